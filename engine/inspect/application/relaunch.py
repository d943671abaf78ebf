"""Kernels of a record, compiled and launched again with recorded arguments: see `replay`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...backends import base
from ...config import CompileConfig
from ...ir import parse
from ...runtime.compile import make_code
from ..inputs import HostValues, copies_of
from ..placing import device_of, placed
from ..stack_owner import StackOwner
from ..targets import config_for, open_device, split
from .model import Compile, KeptLaunch, Value

if TYPE_CHECKING:
    from ...ir import Func
    from ...passes.manager import Instrument
    from ...runtime.program import Program
    from .store import ApplicationFile

__all__ = ["ORACLE", "Loaded", "load", "run", "stacks_of", "values_of"]

ORACLE: Final = "interp"
_SILENT: Final = {
    "print_ir": False, "print_preprocessed_ir": False, "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False, "print_kernel_asm": False, "kernel_profiler": False,
    "offline_cache": False,
}  # fmt: skip


@dataclass
class Loaded:
    """A kernel ready to be launched. func: its finished IR."""

    func: Func
    executable: Any
    backend: base.Backend
    config: CompileConfig
    stacks: Any = None
    times: list[float] = field(default_factory=list[float])


def load(
    file: ApplicationFile, compiled: Compile, name: str,
    change: Callable[[Func], None] | None = None, instruments: Sequence[Instrument] = (),
    **changed: Any,
) -> Loaded:  # fmt: skip
    """Compile the recorded IR for a backend.

    change: called with the IR before it is compiled. instruments: of the passes. changed: options
    in place of the recorded ones.
    """
    options = {k: v for k, v in compiled.config.items() if k != "arch"} | _SILENT | changed
    config = config_for(CompileConfig(**options), name)
    backend = base.find(split(name)[0])
    open_device(backend, config)
    func = parse(file.content(compiled.ir).decode())
    func.noalias = compiled.noalias
    if change is not None:
        change(func)
    func, artifact = make_code(func, config.freeze(), backend, instruments)
    return Loaded(func, backend.load(artifact), backend, config)


def values_of(file: ApplicationFile, launch: KeptLaunch, after: bool = False) -> list[Any]:
    """The values of a launch, in memory of their own; before or after it."""
    out: list[Any] = []
    for value in launch.values:
        if not value.dtype:
            out.append(value.number)
        elif value.same >= 0:
            out.append(out[value.same])
        else:
            out.append(_array(file, value, value.after if after and value.after else value.before))
    return out


def _array(file: ApplicationFile, value: Value, digest: str) -> Any:
    from ...backends.array_memory import aligned_zeros

    data = np.frombuffer(file.content(digest), np.uint8)
    memory = aligned_zeros(data.size, 4096)
    memory[:] = data
    return memory.view(value.dtype).reshape(value.shape)


def run(
    file: ApplicationFile, loaded: Loaded, launch: KeptLaunch, seconds: float | None = None
) -> tuple[list[Any], tuple[Any, ...]]:
    """Launch once, then again for the time; return the values after the first, and its results.

    seconds: how long to time launches; None for not at all.
    """
    executable = loaded.executable
    given = HostValues(values_of(file, launch))
    place = placed(cast("Any", loaded), given)
    restore = place.restorer([
        i for i in executable.meta.written if isinstance(given.values[i], np.ndarray)
    ])  # fmt: skip

    def start() -> tuple[Any, ...]:
        if executable.meta.has_stacks and loaded.backend.name != ORACLE:
            return stacks_of(loaded).launch(executable, place.values, launch.seed)
        return executable.launch(place.values, launch.seed)

    first, _ = place.launched(start)
    if seconds is None:
        return given.values, first
    left = copies_of(given.values)
    end = time.perf_counter() + seconds
    while True:
        restore()
        loaded.times.append(place.clock.took(start, restore).us)
        if time.perf_counter() > end or len(loaded.times) > 1000:
            return left, first


def stacks_of(loaded: Loaded) -> Any:
    """The adstacks of a loaded kernel, which launch it."""
    if loaded.stacks is None:
        from ...runtime.stacks import Stacks

        device = device_of(cast("Any", loaded)) or base.HostDevice()
        owner = StackOwner(loaded.backend, device, loaded.config)
        loaded.stacks = Stacks(cast("Program", owner)), owner  # stacks do not keep their program
    return loaded.stacks[0]
