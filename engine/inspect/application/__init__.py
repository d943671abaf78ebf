"""Records of whole applications: every kernel that a program compiles, its launches, its calls.

Recording
    `recorder.attach` is what a process does that is to be recorded. The first `init` makes a
    `Recorder`, which `runtime.recording` calls at compiles and launches. Launches on the fast path
    are counted by an iterator in C; one in so many is timed, so that timing costs about 1 % of a
    launch (`tally`). Some launches are kept with their arguments (`keeping`).

Parts
    Each process writes files of its own, a part: a log, to which compiles, callers and kept
    launches are appended when they happen, and a table of counts in shared memory, which is valid
    at every moment. So nothing is lost but the last few launches of a process that is killed. A
    child by fork begins a part of its own (`parts`).

The file
    The process that started the program joins the parts (`joining`) into one zip archive::

        application.msgpack     an `Application`, see `model`
        data/DIGEST             IR (as text) and memory of arrays, each content once

    Content is read when it is needed: a file of hundreds of kernels opens at once (`store`).

Replay
    A kernel is compiled again from its recorded IR, with the recorded options, for any backend, and
    launched with recorded arguments; neither the program nor its packages are needed (`replay`).

Not recorded: launches between the last timed one and a kill; the time of a device, where
a program checks indices or asserts on it (waiting would move its errors); launches whose written
arrays overlap others; arguments beyond the stated sizes.
"""
