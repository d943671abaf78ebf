"""The conformance suite: one table of language features by backends.

    feature.py   the definition of a feature: a small program and its expected result
    kernels/     the features, in the kernel language; importing the package registers them
    run.py       one feature on one backend, in this process
    process.py   whole tables, each backend in a process of its own
    progress.py  the progress of that, for a user who waits at a terminal
    table.py     a table as text, JSON and Markdown

A cell says ok, "no" with the reason of the backend, or FAILED with the first difference. Values are
compared with the expected result in the feature's definition and with the interpreter.
"""
