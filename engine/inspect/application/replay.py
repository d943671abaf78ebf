"""Replays the record of an application: compiles its kernels again and launches them as recorded.

A kernel is compiled from its recorded IR, with the recorded options, for each backend. Each kept
launch gets copies of the recorded arguments; what it leaves is compared with what the recorded
launch has left or, if asked for, with the interpreter. Then it is timed. Everything runs in this
process, without the caches.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from ...backends import base
from ...backends.interp.run import compile_func
from ...config import CompileConfig, DebugSwitches
from ...errors import QuadrantsRuntimeError
from ...ir import parse
from ...runtime.compile import make_code
from ..agreement import Named, compare
from ..contents import elements
from ..placing import device_of, placed
from ..targets import config_for, open_device, split
from .model import Compile, KeptLaunch, Kernel, Value

if TYPE_CHECKING:
    from ...backends.injected import InjectedCache
    from ...ir import Func
    from ...runtime.program import Program
    from .store import ApplicationFile

__all__ = ["AGAINST", "Replayed", "replay"]

AGAINST: Final = ("recorded", "interp")
"""Names of what results can be compared with."""
_STEPS: Final = 20_000_000
_ORACLE: Final = "interp"
_SILENT: Final = {
    "print_ir": False, "print_preprocessed_ir": False, "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False, "print_kernel_asm": False, "kernel_profiler": False,
    "offline_cache": False,
}  # fmt: skip


class Replayed(msgspec.Struct, frozen=True):
    """The result of one kernel on one backend.

    specialization: of the compile. state: ``agrees``, ``differs``, ``unchecked`` (nothing to
    compare with), ``failed``, or ``skipped``, for kernels without a kept launch. reason: in a
    sentence, for all but the first. launches: the numbers of those that were replayed. compile_ms:
    passes and code generation. median_us: of the replayed launches; recorded_us: the mean of the
    recorded ones. against: what it was compared with.
    """

    kernel: str
    place: str
    specialization: tuple[str, ...]
    backend: str
    state: str
    reason: str = ""
    launches: tuple[int, ...] = ()
    compile_ms: float = 0.0
    median_us: float | None = None
    recorded_us: float | None = None
    against: str = ""


@dataclass
class _Given:
    """The values of one launch on the host; see `placing.placed`."""

    values: list[Any]

    def restorer(self, written: Iterable[int]) -> Callable[[], None]:
        """A function that lets these arrays hold what they do now."""
        pairs = [(self.values[i], self.values[i].copy()) for i in written]

        def restore() -> None:
            for value, original in pairs:
                np.copyto(value, original)

        return restore


@dataclass
class _Loaded:
    """A kernel ready to be launched. func: its finished IR."""

    func: Func
    executable: Any
    backend: base.Backend
    config: CompileConfig
    stacks: Any = None
    times: list[float] = field(default_factory=list[float])


class _Elsewhere:
    """A program, as far as adstacks need one."""

    def __init__(self, backend: base.Backend, device: Any, config: CompileConfig) -> None:
        self.config: Final = config
        self.backend: Final = backend
        self.device: Final = device
        self.lock: Final = threading.RLock()
        self.alive: Final = True
        self.switches: Final = DebugSwitches()

    def own(self, thing: object) -> None:
        """Do nothing: its memory is freed with the last reference."""

    def injected_cache(self, reason: str) -> InjectedCache:
        """A cache that keeps nothing."""
        from ...backends.injected import NO_CACHE

        return NO_CACHE


def replay(
    file: ApplicationFile, backends: Sequence[str], *, names: Sequence[str] = (),
    against: str = "recorded", seconds: float = 0.1,
) -> Iterator[Replayed]:  # fmt: skip
    """Replay the kernels of a record, one result for each, compiled form and backend.

    names: only kernels with one of these names; all if empty. against: one of `AGAINST`; what
    takes the interpreter too long is compared with the record. seconds: to time each launch for.
    """
    for name in backends:  # before code for others: PoCL looks for its own tables in memory
        open_device(base.find(split(name)[0]), config_for(CompileConfig(), name))
    for kernel in file.about.kernels:
        if names and kernel.name not in names and kernel.qualname not in names:
            continue
        for compiled in _different(kernel):
            for backend in backends:
                yield _replayed(file, kernel, compiled, backend, against, seconds)


def _different(kernel: Kernel) -> Iterator[Compile]:
    """The compiles of a kernel whose code differs, those with kept launches first."""
    seen: set[tuple[Any, ...]] = set()
    # Code for arrays that overlap is made next to the other; launches count for the latter.
    launched = [c for c in kernel.compiles if c.sites] or kernel.compiles
    for compiled in sorted(launched, key=lambda c: not any(k.done for k in c.kept)):
        key = compiled.ir, compiled.noalias, tuple(compiled.config.items())
        if compiled.error or key in seen:
            continue
        seen.add(key)
        yield compiled


def _replayed(
    file: ApplicationFile, kernel: Kernel, compiled: Compile, backend: str, against: str,
    seconds: float,
) -> Replayed:  # fmt: skip
    result = Replayed(
        kernel=kernel.qualname, place=f"{kernel.file}:{kernel.line}", backend=backend,
        specialization=compiled.specialization, state="skipped", recorded_us=_recorded(compiled),
    )  # fmt: skip
    kept = [launch for launch in compiled.kept if launch.done]
    if not compiled.ir or not kept:
        why = next((launch.reason for launch in compiled.kept if launch.reason), "")
        reason = f"no launch was kept: {why}" if why else "no launch was kept"
        return msgspec.structs.replace(result, reason=reason)
    try:
        with redirect_stdout(io.StringIO()):
            return _launched(file, compiled, kept, result, against, seconds)
    except Exception as error:
        text = " ".join(str(error).split())[:300] or type(error).__name__
        return msgspec.structs.replace(result, state="failed", reason=text)


def _recorded(compiled: Compile) -> float | None:
    waited = sum(site.waited for site in compiled.sites)
    if waited:
        return sum(site.waited_ns for site in compiled.sites) / waited / 1e3
    weighed = sum(site.weighed for site in compiled.sites)
    return sum(site.total_ns for site in compiled.sites) / weighed / 1e3 if weighed else None


def _launched(
    file: ApplicationFile, compiled: Compile, kept: Sequence[KeptLaunch], result: Replayed,
    against: str, seconds: float,
) -> Replayed:  # fmt: skip
    began = time.perf_counter()
    loaded = _load(file, compiled, result.backend)
    took = (time.perf_counter() - began) * 1e3
    oracle: _Loaded | None = None
    states: list[tuple[str, str, str]] = []
    for launch in kept:
        ours, results = _run(file, loaded, launch, seconds)
        theirs, said = _left(file, loaded, launch), "the recorded launch"
        if against == _ORACLE and result.backend != _ORACLE:
            oracle = oracle or _load(file, compiled, _ORACLE)
            found = _interpreted(file, oracle, launch)
            if found is not None:
                theirs, said = found, "the interpreter"
        states.append(_judged(loaded, ours, results, theirs, said, launch.number))
    worst = max(states, key=lambda one: ("agrees", "unchecked", "differs").index(one[0]))
    return msgspec.structs.replace(
        result, state=worst[0], reason=worst[1], against=worst[2], compile_ms=took,
        launches=tuple([launch.number for launch in kept]), median_us=median(loaded.times),
    )  # fmt: skip


def _load(file: ApplicationFile, compiled: Compile, name: str) -> _Loaded:
    """Compile the recorded IR for a backend."""
    options = {k: v for k, v in compiled.config.items() if k != "arch"} | _SILENT
    config = config_for(CompileConfig(**options), name)
    backend = base.find(split(name)[0])
    open_device(backend, config)
    func = parse(file.content(compiled.ir).decode())
    func.noalias = compiled.noalias
    func, artifact = make_code(func, config.freeze(), backend)
    return _Loaded(func, backend.load(artifact), backend, config)


def _values(file: ApplicationFile, launch: KeptLaunch, after: bool = False) -> list[Any]:
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


def _run(
    file: ApplicationFile, loaded: _Loaded, launch: KeptLaunch, seconds: float
) -> tuple[list[Any], tuple[Any, ...]]:
    """Launch once, then again for the time; return the values after the first, and its results."""
    executable = loaded.executable
    given = _Given(_values(file, launch))
    place = placed(cast("Any", loaded), cast("Any", given))
    restore = place.restorer([
        i for i in executable.meta.written if isinstance(given.values[i], np.ndarray)
    ])  # fmt: skip
    results: list[tuple[Any, ...]] = []

    def start() -> None:
        if executable.meta.has_stacks and loaded.backend.name != _ORACLE:
            found = _stacks(loaded).launch(executable, place.values, launch.seed)
        else:
            found = executable.launch(place.values, launch.seed)
        results.append(found)

    start()
    place.wait()
    place.fetch()
    left: list[Any] = [_copy(value) for value in given.values]
    first, end = results[0], time.perf_counter() + seconds
    while True:
        restore()
        loaded.times.append(place.clock.took(start, restore).us)
        if time.perf_counter() > end or len(loaded.times) > 1000:
            return left, first


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "dtype") else value


def _stacks(loaded: _Loaded) -> Any:
    if loaded.stacks is None:
        from ...runtime.stacks import Stacks

        device = device_of(cast("Any", loaded)) or base.HostDevice()
        owner = _Elsewhere(loaded.backend, device, loaded.config)
        loaded.stacks = Stacks(cast("Program", owner)), owner  # stacks do not keep their program
    return loaded.stacks[0]


def _left(file: ApplicationFile, loaded: _Loaded, launch: KeptLaunch) -> tuple[list[Any], Any]:
    return _values(file, launch, after=True), launch.results


def _interpreted(
    file: ApplicationFile, oracle: _Loaded, launch: KeptLaunch
) -> tuple[list[Any], Any] | None:
    """The values and results of a launch by the interpreter; None if it needs too long."""
    values = _values(file, launch)
    program = compile_func(oracle.func, counted=True)
    try:
        results = program.launch(
            values, print_fn=lambda text: None, max_steps=_STEPS, seed=launch.seed
        )
    except QuadrantsRuntimeError as error:
        if "step limit" not in error.message:
            raise
        return None
    return values, results


def _judged(
    loaded: _Loaded, ours: Sequence[Any], results: Sequence[Any],
    theirs: tuple[Sequence[Any], Sequence[Any]], said: str, number: int,
) -> tuple[str, str, str]:  # fmt: skip
    """(state, reason, what it was compared with) of one launch."""
    meta = loaded.executable.meta
    names: list[str | Named] = []
    a: list[Any] = []
    b: list[Any] = []
    for i, param in enumerate(meta.params):
        if not isinstance(ours[i], np.ndarray) or i not in meta.written:
            continue
        mine, other = ours[i], theirs[0][i]
        origin: tuple[int, ...] = ()
        if param.layout is not None:
            mine, other = elements(param.layout, mine), elements(param.layout, other)
            origin = param.layout.origin[: param.ndim]
        names.append(Named(param.name, param.ndim, origin))
        a.append(mine)
        b.append(other)
    types = [*meta.results, *([None] if meta.labels else [])]
    for i, dtype in enumerate(types):
        names.append(f"result {i}")
        a.append(np.int32(results[i]) if dtype is None else dtype.np(results[i]))
        b.append(np.int32(theirs[1][i]) if dtype is None else dtype.np(theirs[1][i]))
    if not names:
        return "unchecked", "it writes nothing and returns nothing", ""
    found = compare(names, a, b)
    if found.agrees:
        return "agrees", "", said
    text = found.first_difference.replace("interpreter", "expected")
    return "differs", f"launch {number} differs from {said}: {text}", said
