"""A debugger for kernels that steps forward and back: `debug` starts one.

`flat` writes the IR as instructions, `machine` runs them to any moment, `values` finds what the
user's names hold, `cells` finds writes, and `session` moves by lines.
"""

from .cells import Write
from .session import Breakpoint, Debugger, Stop
from .start import debug
from .values import DebugError, Struct, Vector, shown

__all__ = [
    "Breakpoint", "DebugError", "Debugger", "Stop", "Struct", "Vector", "Write", "debug", "shown",
]  # fmt: skip
