"""A debugger for kernels that steps forward and back: `debug` starts one.

`flat` writes the IR as instructions, `machine` runs them to any moment, `values` finds what the
user's names hold, `user_values` are those, `cells` finds writes, `breakpoints`
are those of lines, and `session` moves by lines.
"""

from .breakpoints import Breakpoint, Stop
from .cells import Watch, Write
from .session import Debugger
from .start import debug
from .user_values import Struct, Vector, shown
from .values import DebugError

__all__ = [
    "Breakpoint", "DebugError", "Debugger", "Stop", "Struct", "Vector", "Watch", "Write",
    "debug", "shown",
]  # fmt: skip
