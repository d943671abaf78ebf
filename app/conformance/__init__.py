"""The conformance suite: one table of language features by backends.

    feature.py   what a feature is: a small program and what it must give
    kernels/     the features, in the kernel language; importing the room registers them
    run.py       one feature on one backend, in this process
    process.py   whole tables, each backend in a process of its own
    progress.py  how far that has come, for somebody who waits at a terminal
    table.py     a table as text, JSON and Markdown

A cell says ok, "no" with the reason of the backend, or FAILED with the first difference. Values are
compared with what stands beside the feature and with the interpreter.
"""
