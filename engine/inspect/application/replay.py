"""Replays the record of an application: compiles its kernels again and launches them as recorded.

A kernel is compiled from its recorded IR, with the recorded options, for each backend. Each kept
launch gets copies of the recorded arguments; what it leaves is compared with what the recorded
launch has left or, if asked for, with the interpreter. Where they differ by more than the
tolerances, `residue` looks for the reason. Then it is timed. Everything runs in this process,
without the caches.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ...backends import base
from ...backends.interp.run import compile_func
from ...config import CompileConfig
from ..agreement import Named, compare
from ..contents import elements
from ..interpreting import TooLong, counted, discard
from ..targets import config_for, open_device, split
from .model import Compile, KeptLaunch, Kernel
from .relaunch import ORACLE, Loaded, load, run, values_of
from .residue import STATES, Values, Variants, judge

if TYPE_CHECKING:
    from .store import ApplicationFile

__all__ = ["AGAINST", "Replayed", "compiles_in", "compiles_of", "replay"]

AGAINST: Final = ("recorded", "interp")
"""Names of what results can be compared with."""
_STEPS: Final = 20_000_000


class Replayed(msgspec.Struct, frozen=True):
    """The result of one kernel on one backend.

    specialization: of the compile. state: one of `STATES` (``agrees``; ``rounding`` and ``order``,
    where all differences are of that kind; ``unchecked``: nothing to compare with; ``differs``),
    ``failed``, or ``skipped``, for kernels without a kept launch. reason: in a sentence, for all
    but the first. launches: the numbers of those that were replayed. compile_ms:
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


def replay(
    file: ApplicationFile, backends: Sequence[str], *, names: Sequence[str] = (),
    against: str = "recorded", seconds: float = 0.1,
    progress: Callable[[str, int, int], object] = lambda text, done, total: None,
) -> Iterator[Replayed]:  # fmt: skip
    """Replay the kernels of a record, one result for each, compiled form and backend.

    names: only kernels with one of these names; all if empty. against: one of `AGAINST`; what
    takes the interpreter too long is compared with the record. seconds: to time each launch for.
    progress: called with what comes next, how many results there are, and of how many.
    """
    for name in backends:  # before code for others: PoCL looks for its own tables in memory
        open_device(base.find(split(name)[0]), config_for(CompileConfig(), name))
    chosen = [
        (kernel, compiled, backend)
        for kernel, compiled in compiles_in(file, names)
        for backend in backends
    ]
    for done, (kernel, compiled, backend) in enumerate(chosen):
        progress(f"replaying {kernel.qualname} on {backend}", done, len(chosen))
        yield _replayed(file, kernel, compiled, backend, against, seconds)


def compiles_in(file: ApplicationFile, names: Sequence[str]) -> Iterator[tuple[Kernel, Compile]]:
    """The kernels with one of these names, of all if there are none, with `compiles_of` them."""
    for kernel in file.about.kernels:
        if not names or kernel.name in names or kernel.qualname in names:
            for compiled in compiles_of(kernel):
                yield kernel, compiled


def compiles_of(kernel: Kernel) -> Iterator[Compile]:
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
    loaded = load(file, compiled, result.backend)
    took = (time.perf_counter() - began) * 1e3
    oracle: Loaded | None = None
    variants = Variants(file, compiled, _left)
    states: list[tuple[str, str, str]] = []
    for launch in kept:
        ours, results = run(file, loaded, launch, seconds)
        theirs, said = (values_of(file, launch, after=True), launch.results), "the recorded launch"
        if against == ORACLE and result.backend != ORACLE:
            oracle = oracle or load(file, compiled, ORACLE)
            found = _interpreted(file, oracle, launch)
            if found is not None:
                theirs, said = found, "the interpreter"
        mine, other = _left(loaded, ours, results), _left(loaded, *theirs)
        states.append(_judged(mine, other, variants, launch, said))
    worst = max(states, key=lambda one: STATES.index(one[0]))
    return msgspec.structs.replace(
        result, state=worst[0], reason=worst[1], against=worst[2], compile_ms=took,
        launches=tuple([launch.number for launch in kept]), median_us=median(loaded.times),
    )  # fmt: skip


def _interpreted(
    file: ApplicationFile, oracle: Loaded, launch: KeptLaunch
) -> tuple[list[Any], Any] | None:
    """The values and results of a launch by the interpreter; None if it needs too long."""
    values = values_of(file, launch)
    program = compile_func(oracle.func, counted=True)
    try:
        return values, counted(program, values, discard, _STEPS, seed=launch.seed)
    except TooLong:
        return None


def _left(loaded: Loaded, values: Sequence[Any], results: Sequence[Any]) -> Values:
    """The arrays and fields that a launch has written, and its results."""
    meta = loaded.executable.meta
    found: list[tuple[str | Named, Any]] = []
    for i, param in enumerate(meta.params):
        if i not in meta.written or not hasattr(values[i], "dtype"):
            continue
        value = values[i]
        origin: tuple[int, ...] = ()
        if param.layout is not None:
            value = elements(param.layout, value)
            origin = param.layout.origin[: param.ndim]
        found.append((Named(param.name, param.ndim, origin), value))
    types = [*meta.results, *([None] if meta.labels else [])]
    for i, dtype in enumerate(types):
        result = np.int32(results[i]) if dtype is None else dtype.np(results[i])
        found.append((f"result {i}", result))
    return found


def _judged(
    ours: Values, theirs: Values, variants: Variants, launch: KeptLaunch, said: str
) -> tuple[str, str, str]:
    """(state, reason, what it was compared with) of one launch."""
    if not ours:
        return "unchecked", "it writes nothing and returns nothing", ""
    names = [name for name, _ in ours]
    if compare(names, [value for _, value in ours], [value for _, value in theirs]).agrees:
        return "agrees", "", said
    state, text = judge(ours, theirs, variants, launch)
    return state, f"launch {launch.number} differs from {said}: {text}", said
