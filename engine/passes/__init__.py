"""Passes over the IR, the order in which they run, and the instruments that watch them.

`pipeline` holds the order, `manager` runs passes, `registry` finds them by name. A pass is a module
here, or in `autodiff`, that registers itself under the module's name. A module is imported when
its pass is first asked for: a kernel for the CPU loads none of those for GPUs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .manager import Instrument, PassCx, PassRemark, Run
from .pipeline import POINTS, compile_to_offloads, offload_to_executable, run
from .registry import PassFn, PassInfo, all_passes, get, register

if TYPE_CHECKING:
    from .dump import DumpToFiles, PrintIr, instruments_for
    from .instruments import Fuel, Remarks, SkipPasses, Timer, VerifyEach

__all__ = [
    "POINTS", "DumpToFiles", "Fuel", "Instrument", "PassCx", "PassFn", "PassInfo",
    "PassRemark", "PrintIr", "Remarks", "Run", "SkipPasses", "Timer", "VerifyEach", "all_passes",
    "compile_to_offloads", "get", "instruments_for", "offload_to_executable", "register", "run",
]  # fmt: skip

_WATCHING: Final = {
    "DumpToFiles": "dump", "PrintIr": "dump", "instruments_for": "dump", "Fuel": "instruments",
    "Remarks": "instruments", "SkipPasses": "instruments", "Timer": "instruments",
    "VerifyEach": "instruments",
}  # fmt: skip
"""The instruments that watch a compile, by the module that is imported for them."""


def __getattr__(name: str) -> Any:
    if name in _WATCHING:
        value = globals()[name] = getattr(import_module(f".{_WATCHING[name]}", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
