"""Passes over the IR, the order in which they run, and the instruments that watch them.

`pipeline` holds the order, `manager` runs passes, `registry` finds them by name. A pass is a module
here, or in `autodiff`, that registers itself under the module's name. Importing this package
imports all of them except those that differentiate: they, and dumps, are loaded on demand.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .instruments import Fuel, Remarks, SkipPasses, Timer, VerifyEach
from .manager import Instrument, PassCx, PassRemark, Run
from .pipeline import POINTS, compile_to_offloads, offload_to_executable, run
from .registry import PassFn, PassInfo, all_passes, get, register, register_later

if TYPE_CHECKING:
    from .dump import DumpToFiles, PrintIr, instruments_for

_LATER: Final = frozenset({"__init__", "dump"})


def _load(folder: str) -> None:
    """Import the modules of this package, or of a folder of it: passes register themselves."""
    package = f"{__name__}.{folder}".rstrip(".")
    for file in sorted(os.listdir(os.path.join(os.path.dirname(__file__), folder))):
        name, suffix = os.path.splitext(file)
        # An editor may keep files of its own here, such as `.#die.py`.
        if suffix == ".py" and name.isidentifier() and name not in _LATER:
            import_module(f"{package}.{name}")


# Now, not when a pass first runs: its time would have that of the import in it.
_load("")
register_later(lambda: _load("autodiff"))

__all__ = [
    "POINTS", "DumpToFiles", "Fuel", "Instrument", "PassCx", "PassFn", "PassInfo",
    "PassRemark", "PrintIr", "Remarks", "Run", "SkipPasses", "Timer", "VerifyEach", "all_passes",
    "compile_to_offloads", "get", "instruments_for", "offload_to_executable", "register", "run",
]  # fmt: skip

_DUMPS: Final = frozenset({"DumpToFiles", "PrintIr", "instruments_for"})


def __getattr__(name: str) -> Any:
    if name in _DUMPS:
        value = globals()[name] = getattr(import_module(".dump", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
