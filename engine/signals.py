"""Exceptions that signal handlers raise in the middle of running code.

Code that turns exceptions of the user's code into errors of a kernel asks here first.
"""

from __future__ import annotations

from typing import Any

__all__ = ["of_signal_handler"]


def of_signal_handler(error: BaseException) -> bool:
    """True if the handler of a signal raised an exception, in whatever code was running.

    It is for the program, and has nothing to do with the code that it came through.
    """
    import signal  # seldom needed

    codes: set[Any] = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        if callable(handler):
            handler = getattr(handler, "__func__", handler)
            kind: Any = handler.__class__
            codes.add(getattr(handler, "__code__", getattr(kind.__call__, "__code__", None)))
    codes.discard(None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
