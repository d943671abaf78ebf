"""The measured part of a capture: launches of all backends in turns, and what the numbers mean.

A round (a workload on which every backend was launched once) is timed as a whole::

    Started, Started, ...  ──▶  a copy of the arguments for each ──▶ Contender, Contender, ...
                                                                          │ measure_together
    amounts_of (declared by the author, else counted by a launch)         ▼
                                       └────────────────────────▶  LaunchRecord of each

Launches that are longer than their budget come first, each as a step of its own, so that its limit
is its own; the others, and those that turn out to be faster the second time, share one step.
Warm compiles are timed here, too.
"""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..backends import base
from ..cache.codec import decode, encode
from ..cache.locations import functions_of
from ..cache.offline import UNREADABLE
from ..errors import QuadrantsRuntimeError
from ..ir import all_ops
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..passes.manager import Instrument
from ..passes.mask_loops import LANES
from ..passes.pack_products import PANEL
from ..passes.tile_iterations import TILE
from ..runtime.compile import FullCompile, make_ir
from .agreement import Comparison
from .clocks import HostClock
from .closed_form import bounded
from .costing import Counted
from .counting import Amounts, Instrumented, instrument
from .earlier import Kept, Partner, partner_of
from .peaks import threads_of
from .placing import Placed, placed
from .record_compile import TaskRecord
from .steps import StepLimit
from .targets import NoCaches, compile_for, target_of
from .timing import Contender, measure_together, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..config import CompileConfig
    from ..ir import Func
    from ..passes.manager import Run
    from .capture import KernelCapture
    from .launching import Launcher, Round
    from .record import WorkloadRecord

__all__ = ["Started", "Timed", "amounts_of", "measured", "reconsidered", "warm_start"]

_ORACLE: Final = "interp"
_ORACLE_BUDGET_S: Final = 0.02
_COUNTER: Final = "cpu"
_CPU_ONLY: Final = (
    "privatize_scatter", "serialize_scatter", "pack_products", "mask_loops", "tile_iterations",
)  # fmt: skip
_WARM: Final = 3
# The longest launch that is counted: with counters, on one thread without vectors, it is slower.
_COUNTING_S: Final = 0.5
# Most bytes of marks by line; with more of them, elements are marked for the whole launch only.
_MARKS: Final = 256 << 20
# Executed ops, at most, of a launch that is counted however long it took.
_SHORT: Final = 200_000_000
_again: Final = itertools.count(1)


class Started(NamedTuple):
    """A kernel that was launched once on a backend, and the time of that. kind: of `Steps.step`."""

    name: str
    compiled: FullCompile
    first_us: float
    kind: str


class Timed(NamedTuple):
    """A backend of a round, ready to be timed. place: None of what could not be made ready
    again. partner: the earlier compile. kept: what is left for the next one."""

    started: Started
    place: Placed | None
    contender: Contender
    partner: Partner | None = None
    kept: Kept | None = None

    @property
    def contenders(self) -> list[Contender]:
        return [self.contender, *([self.partner.contender] if self.partner else [])]


def measured(
    launcher: Launcher, capture: KernelCapture, found: Round, budget_s: float
) -> list[Timed]:
    """Time what a round has started.

    budget_s: seconds of a single backend; several share up to twice as much.
    """
    earlier = capture.steps.earlier
    before = {
        one.name: earlier.find(capture.record.id, one.name, found.case.label, one.compiled)
        for one in found.started
        if earlier is not None and one.name != _ORACLE
    }
    count = sum(1 + bool(before.get(one.name)) for one in found.started if one.name != _ORACLE)
    each = share(budget_s, count)
    out = [_timed(launcher, found, one, each, before.get(one.name)) for one in found.started]
    stage = f"timing {found.case.label}"
    quarantined = capture.steps.quarantined("", stage)
    if quarantined is not None:
        capture.add_error(quarantined)
        return []
    quick: list[Timed] = []
    for one in out:
        if one.place is None:
            continue
        contender = one.contender
        if contender.slow:
            try:
                name, kind = one.started.name, one.started.kind
                with launcher.limited(name, found, kind), capture.steps.silent():
                    contender.settle()
            except StepLimit as limit:
                contender.error = contender.error or limit
        if not contender.slow:
            quick.append(one)
    if quick:
        names = ", ".join(one.started.name for one in quick)
        text = f"timing {capture.kernel.name} on {names} with {found.case.label}"
        try:
            with capture.steps.step(stage, text, kind="launch"), capture.steps.silent():
                began = time.perf_counter()
                contenders = [x for one in quick for x in one.contenders]
                between = partial(capture.steps.counted, unit="launch")
                measure_together(contenders, _pairs(launcher, quick), between)
                if earlier is not None and len(contenders) > len(quick):
                    earlier.left_s -= time.perf_counter() - began
        except StepLimit as limit:
            # It came between two launches: what is there counts.
            capture.steps.passing(str(limit))
    return out


def _pairs(launcher: Launcher, timed: Sequence[Timed]) -> list[tuple[Contender, Contender]]:
    """Those that verdicts are about."""
    compiled = {one.started.name: one.contender for one in timed if one.started.name != _ORACLE}
    rivals = [
        (one, compiled.get(launcher.rival_of(name, list(compiled))))
        for name, one in compiled.items()
    ]
    out = [(one, rival) for one, rival in rivals if rival is not None and one is not rival]
    if launcher.earlier is not None and launcher.earlier.left_s > 0:
        out += [(one.contender, one.partner.contender) for one in timed if one.partner]
    return out


def _timed(
    launcher: Launcher, found: Round, one: Started, budget_s: float, before: Kept | None
) -> Timed:
    """Return what is needed to launch again and again on the same values."""
    if one.name == _ORACLE:
        budget_s = min(budget_s, _ORACLE_BUDGET_S)
    earlier = launcher.earlier
    try:
        place = placed(one.compiled, launcher.inputs(one.compiled, found))
        kept = None
        if earlier is not None and one.name != _ORACLE:
            kept = earlier.copied(one.compiled, place.given.values)
        partner = restore = None
        if before is not None:
            made = partner_of(before, one.compiled, place, budget_s)
            partner, restore = made if made is not None else (None, None)
        restore = restore or place.restorer(one.compiled.executable.meta.written)
        start = launcher.timed_starter(one.name, one.compiled, place, found)
    except Exception as error:
        failed = Contender(lambda: None, lambda: None, 0.0)
        failed.error = error
        return Timed(one, None, failed)
    contender = Contender(start, restore, budget_s, one.first_us, place.clock)
    return Timed(one, place, contender, partner, kept)


# ---- bytes and operations


def amounts_of(
    launcher: Launcher, capture: KernelCapture, found: Round, workload: WorkloadRecord
) -> tuple[WorkloadRecord, Counted]:
    """The workload's record with what a launch moves and does: as declared, else as counted; and
    what was counted, by line."""
    changes: dict[str, Any] = {
        "by_bytes": "declared" if workload.bytes is not None else "",
        "by_flops": "declared" if workload.flops is not None else "",
    }
    counted = _counted(launcher, capture, found)
    for what, amount, why in (
        ("bytes", counted.bytes, counted.no_bytes), ("flops", counted.flops, counted.no_flops),
    ):  # fmt: skip
        if not changes[f"by_{what}"]:
            changes[what] = amount
            changes[f"by_{what}"] = "counted" if amount is not None else f"not counted: {why}"
    if not counted.lines and counted.no_flops:
        return msgspec.structs.replace(workload, **changes), _from_bounds(
            launcher, capture, found, counted.no_flops
        )
    compiled = capture.record.backend(_COUNTER)
    tasks = compiled.compile.tasks if compiled is not None and compiled.compile else ()
    by_line = _by_line(counted, tasks)
    if by_line.method and _differs_on_devices(launcher, found):
        parallel = _counted(launcher, capture, found, as_devices=True)
        if parallel.lines:
            by_line = by_line._replace(device=_by_line(parallel, tasks))
    return msgspec.structs.replace(workload, **changes), by_line


def _by_line(counted: Amounts, tasks: tuple[TaskRecord, ...]) -> Counted:
    return Counted(
        lines=counted.lines, memory=counted.memory, bytes=counted.bytes, flops=counted.flops,
        method="counted" if counted.lines else "", reason=counted.no_flops or counted.no_bytes,
        tasks=tasks, chunks=counted.chunks, iterations=counted.iterations,
    )  # fmt: skip


def _differs_on_devices(launcher: Launcher, found: Round) -> bool:
    """True if a device of the round may execute other operations than the CPU: see `_AsDevices`."""
    devices = [one for one in found.started if one.name not in (_ORACLE, _COUNTER)]
    if not devices:
        return False
    on_cpu, _ = launcher.ready(_COUNTER, found)
    return any(
        op.code == C.ARRAY_ALLOCA and op.attr.name in (TILE, PANEL, LANES)
        for op in all_ops(on_cpu.func)
    ) or any(C.ATOMIC[op.code] for one in devices for op in all_ops(one.compiled.func))


class _AsDevices(Instrument):
    """Leaves atomic operations to all threads, and iterations in the user's order, as devices do
    unless they have the iterations of a tile share memory."""

    def before(self, run: Run, func: Func) -> bool:
        """False for the passes that would run them on one thread, and in tiles."""
        return run.name not in _CPU_ONLY


def _counted(
    launcher: Launcher, capture: KernelCapture, found: Round, as_devices: bool = False
) -> Amounts:
    """Count by a launch with counters on the CPU; see `counting`. as_devices: see `_AsDevices`."""
    steps, stage = capture.steps, f"counting {found.case.label}"
    why = steps.quarantined("", stage)
    if why is not None:
        return _unknown_bytes(why.message)
    works, reason = base.availability(_COUNTER)
    if not works:
        return _unknown_bytes(f"that needs the backend {_COUNTER}: {reason}")
    quick = [one.first_us for one in found.started if one.name != _ORACLE]
    late = bool(quick) and min(quick) > _COUNTING_S * 1e6
    # The first launch on a device may have waited for its compiler.
    if late and not _is_short(launcher, found):
        return _unknown_bytes(f"a launch takes {min(quick) / 1e6:.1f} s, with counters too long")
    text = f"counting what {capture.kernel.name} does with {found.case.label}"
    try:
        with steps.step(stage, text, kind="launch"), steps.silent():
            compiled, given = launcher.ready(_COUNTER, found)
            if as_devices:
                overlap = given.overlap()
                compiled = _recompiled(
                    launcher, capture, found, _COUNTER, overlap, _AsDevices()
                )  # fmt: skip
            counting, counters = _with_counters(launcher, capture, compiled, given.values)
            arrays = counters.counters(given.values)
            given.values.extend(arrays)
            launcher.starter(counting, Placed(given), found)()
            return counters.amounts(arrays)
    except (Exception, StepLimit) as error:
        return _unknown_bytes((str(error) or type(error).__name__).splitlines()[0])


def _recompiled(
    launcher: Launcher, capture: KernelCapture, found: Round, name: str, overlap: bool,
    *instruments: Instrument, **options: Any,
) -> FullCompile:  # fmt: skip
    """The kernel compiled for a backend once more, with other options or passes."""
    kinds = tuple([type(one) for one in instruments])
    key = name, found.spec_keys, overlap, kinds, tuple(options.items())
    if key not in launcher.variants:
        request = capture.request(name, found.spec_keys)
        request = request._replace(
            noalias=not overlap, quiet=True, config=request.config.replace(**options)
        )
        target = target_of(capture.config, name)
        launcher.variants[key] = compile_for(request, target, instruments)[0]
    return launcher.variants[key]


def reconsidered(
    launcher: Launcher, capture: KernelCapture, found: Round, name: str, differing: Comparison
) -> Comparison:
    """A comparison that differs, after one without ``fast_math``: see `Comparison.reordered`."""
    oracle, stage = found.oracle, f"{found.case.label} with fast_math=0"
    if oracle is None or not capture.config.fast_math or capture.steps.quarantined(name, stage):
        return differing
    text = f"launching {capture.kernel.name} on {name} with {stage}"
    with suppress(Exception, StepLimit), capture.steps.silent():
        with capture.steps.step(stage, text, backend=name, kind="launch"):
            given = launcher.ready(name, found)[1]
            exact = _recompiled(launcher, capture, found, name, given.overlap(), fast_math=False)
            place = placed(exact, given)
            results, _ = place.launched(launcher.starter(exact, place, found))
        if launcher.outcome(exact, given.values, results).compared(oracle).agrees:
            return differing._replace(reordered=True)
    return differing


def _is_short(launcher: Launcher, found: Round) -> bool:
    """True if the bounds of loops show that a launch executes few ops."""
    try:
        compiled, given = launcher.ready(_ORACLE, found)
        limits = bounded(compiled.func, given.values)
    except (Exception, StepLimit):
        return False
    return not limits.unknown and sum(line.instructions for line in limits.lines) < _SHORT


def _from_bounds(launcher: Launcher, capture: KernelCapture, found: Round, why: str) -> Counted:
    """Amounts from the bounds of loops. why: they were not counted."""
    try:
        with capture.steps.step("launch", f"reading the loops of {capture.kernel.name}"):
            compiled, given = launcher.ready(_ORACLE, found)
            limits = bounded(compiled.func, given.values)
    except (Exception, StepLimit):
        return Counted(reason=why)
    reason = f"{why}; they follow from the bounds of loops"
    if limits.unknown:
        lines = ", ".join(map(str, limits.unknown))
        reason += f", and are unknown in the loop of line {lines}"
    tasks = [
        TaskRecord(index=i, kind=task.attr.kind, name="", ops=0)
        for i, task in enumerate(compiled.func.tasks())
    ]
    return Counted(
        lines=limits.lines, memory=limits.memory, method="bounds", reason=reason,
        exact=limits.exact, tasks=tuple(tasks),
    )  # fmt: skip


def _unknown_bytes(why: str) -> Amounts:
    return Amounts(None, None, why, why)


def _with_counters(
    launcher: Launcher, capture: KernelCapture, compiled: FullCompile, values: Sequence[Any]
) -> tuple[FullCompile, Instrumented]:
    """The kernel with counters. Elements are marked for each line if there is memory for that."""
    for by_line in (True, False):
        key = compiled, by_line
        if key not in launcher.counting:
            made = _made_to_count(compiled, capture.config_for(_COUNTER), by_line)
            launcher.counting[key] = made
        if launcher.counting[key][1].space(values) <= _MARKS:
            break
    return launcher.counting[key]


def _made_to_count(
    compiled: FullCompile, config: CompileConfig, by_line: bool = True
) -> tuple[FullCompile, Instrumented]:
    """The kernel with counters, compiled in the same way."""
    counters = instrument(compiled.func, by_line, threads_of(_COUNTER, config))
    backend = base.find(_COUNTER)
    artifact = backend.lower(counters.func, config)
    executable = backend.load(artifact)
    counting = FullCompile(artifact, executable, {}, func=counters.func, build=compiled.build)
    return counting, counters


# ---- warm compiles


def warm_start(capture: KernelCapture, name: str) -> tuple[int, float | None]:
    """(bytes of the binary, milliseconds from source to a loaded kernel where a cache has it).

    The frontend runs, as its IR is what the cache is asked with; passes and code generation do not.
    None if this kernel's code cannot be kept.
    """
    compiled = capture.compiled(name, capture.spec_keys)
    request = capture.request(name, capture.spec_keys)
    functions = functions_of(compiled.build.decls)

    def again(entry: tuple[Any, bytes]) -> None:
        make_ir(request._replace(quiet=True))
        artifact = decode(*entry, functions)
        if "key" in artifact.facts:
            # By it a backend finds what it has built in this process; a new one has nothing.
            artifact.facts["key"] += f" {next(_again)}"
        request.backend.load(artifact, NoCaches(request.config))

    text = f"loading {capture.kernel.name} for {name} once more"
    clock = HostClock()
    try:
        with ExitStack() as stack:
            stack.enter_context(capture.steps.step("load", text, backend=name, kind="compile"))
            size = len(compiled.artifact.machine_code())
            entry = encode(compiled.artifact, functions)
            took = min(clock.took(lambda: again(entry)).us for _ in range(_WARM))
            return size, took / 1e3
    except (*UNREADABLE, QuadrantsRuntimeError, StepLimit):
        return len(compiled.artifact.code), None
