"""`qd.compile_ahead`: a kernel is compiled before it is called."""

from __future__ import annotations

from contextlib import suppress
from types import MethodType
from typing import Any

from ..errors import QuadrantsTypeError
from ..runtime import ahead
from .kernel import Kernel

__all__ = ["compile_ahead"]


def compile_ahead(kernel: Any, *args: Any, **kwargs: Any) -> None:
    """Compile a kernel for a call with these arguments, in the background where that is possible.

    A later call with arguments of these kinds uses the code. One that comes before that is there
    begins with first-tier code, or waits where there is none. Nothing is launched, and arrays are
    not read. Errors of the compile are raised by the call; arguments that do not fit the kernel are
    an error here.
    """
    if isinstance(kernel, MethodType):
        args = (kernel.__self__, *args)
        kernel = kernel.__func__
    if not isinstance(kernel, Kernel):
        raise QuadrantsTypeError(
            f"compile_ahead() needs a kernel, not {type(kernel).__name__}",
            hint="pass the kernel, then its arguments: qd.compile_ahead(step, x, 0.1)",
        )
    found = kernel.owned(args)
    if kwargs:
        args = found.launchers.bind(args, kwargs)
    found.get_ready(args)
    prepared = found.launchers.prepare(args)
    if ahead.in_background(prepared.program):
        ahead.submit(prepared)
        return
    with suppress(Exception):  # the call raises it
        prepared.finish(ahead=True)
