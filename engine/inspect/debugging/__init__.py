"""A debugger for kernels that steps forward and back: `debug` starts one.

`flat` writes the IR as instructions, `machine` runs them to any moment, `values` finds what the
user's names hold, `session` moves by lines and finds writes.
"""

from .session import Breakpoint, DebugError, Debugger, Stop, Write
from .start import debug
from .values import Struct, Vector, shown

__all__ = [
    "Breakpoint", "DebugError", "Debugger", "Stop", "Struct", "Vector", "Write", "debug", "shown",
]  # fmt: skip
