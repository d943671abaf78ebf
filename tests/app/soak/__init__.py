"""A soak of the studio: random edits of a kernel file and random keys, against the real worker.

Each version of the file is made so that the right verdicts on it are known; no other may be drawn.
`python -m tests.app.soak --edits 500 --seed 1` is the long run; the suite runs a few edits.
"""
