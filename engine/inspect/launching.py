"""Launches of a captured kernel: timings, agreement with the interpreter, the author's checks.

The first launch with each workload counts twice: it is the first of the warm-up, and its results
are what checks and comparisons look at. The interpreter goes first and counts its steps; a
workload that needs more than `ORACLE_STEPS` is left to the others and stays unchecked. The first
gets `ORACLE_STEPS_FIRST`, so that something is checked also where there is no small one. Steps, not
seconds, decide that, so that two captures check the same.

When every backend has been launched once with a workload, they are timed, in turns (`measuring`).

The interpreter sees every access outside of an array. Where it finds one, compiled code is not
launched with these arguments: it would write to memory outside of its arrays, and the worker would
fail later, somewhere else. With arguments of the author's that is an error of every backend, also
where the interpreter is not among them. With synthetic arguments, made from a signature, it shows
nothing of the kernel: the verdict is unknown. (A check that the compiler put in stops every
backend alike, so that is no reason not to launch with the author's arguments.)

No launch works on the user's own arrays and fields: each is given copies, see `inputs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ..backends import interp
from ..errors import QuadrantsAssertionError, QuadrantsRuntimeError
from ..runtime.compile import FullCompile
from ..runtime.status import status
from .agreement import Comparison, Named, compare, judged
from .arguments import LaunchCase
from .contents import Contents, elements, installed
from .costing import Counted
from .counting import Instrumented
from .earlier import with_earlier
from .faults import error_record
from .flows import facts_of_graph, graph_facts
from .inputs import Inputs
from .interpreting import SEED, TooLong, counted, discard, run_widened
from .launch_costs import LaunchCosts
from .measuring import Started, amounts_of, measured, reconsidered, warm_start
from .placing import Placed, placed
from .record import (
    BackendRecord,
    DeviceRecord,
    ErrorRecord,
    FlowRecord,
    LaunchRecord,
    VerdictRecord,
    WorkloadRecord,
)
from .steps import StepLimit
from .unending import late_error, place_of, reason_of, synthetic_unfit, unending
from .verdicts import Rival, verdicts_of

if TYPE_CHECKING:
    from ..ir import Loc
    from .capture import KernelCapture

__all__ = ["ORACLE", "ORACLE_STEPS", "ORACLE_STEPS_FIRST", "Launcher", "Round"]

ORACLE: Final = "interp"
ORACLE_STEPS: Final = 1_000_000
ORACLE_STEPS_FIRST: Final = 20_000_000

_Printer = Callable[[str], object]


class Outcome:
    """The outcome of a launch: contents of arrays and fields, then results.

    names: one for each. results: the indices of what the kernel writes or returns.
    """

    def __init__(self, names: list[str | Named], values: list[Any], results: set[int]) -> None:
        self.names: Final = names
        self.values: Final = values
        self.results: Final = results

    def compared(self, theirs: Outcome, exact: Callable[[], Any] | None = None) -> Comparison:
        """This outcome, compared with that of the interpreter. exact: of `compare`."""
        written = self.results | theirs.results
        return compare(self.names, self.values, theirs.values, written, exact)


@dataclass
class _State:
    """The results of the launches on one backend so far."""

    launches: list[LaunchRecord] = field(default_factory=list[LaunchRecord])
    errors: list[ErrorRecord] = field(default_factory=list[ErrorRecord])
    compared: list[tuple[str, Comparison]] = field(default_factory=list[tuple[str, Comparison]])
    uncompared: list[str] = field(default_factory=list[str])
    unchecked: str = ""
    checks: int = 0
    check_failure: str = ""
    device: DeviceRecord | None = None
    last: FullCompile | None = None

    def fail(self, error: ErrorRecord) -> None:
        """Note an error, once: several workloads may fail alike."""
        if error not in self.errors:
            self.errors.append(error)


@dataclass
class Round:
    """One case while it is launched on one backend after the other.

    contents: of the fields, before each launch. first: it is the first of the kernel's cases.
    unchecked: why there is nothing to compare with. unfit: why compiled code is not launched.
    failure: how the interpreter failed on arguments of the author's. loop: the one that the
    interpreter did not get out of in its time. exact: the results in f64, once asked for; empty if
    there are none. started: what was launched once and can be timed.
    """

    case: LaunchCase
    args: tuple[Any, ...]
    contents: Contents
    spec_keys: tuple[Any, ...]
    first: bool
    oracle: Outcome | None = None
    unchecked: str = ""
    unfit: ErrorRecord | None = None
    failure: ErrorRecord | None = None
    loop: Loc | None = None
    exact: list[Any] | None = None
    started: list[Started] = field(default_factory=list[Started])


class Launcher:
    """Launches everything a `KernelCapture` can launch and puts the results into its record.

    recompiles: what is launched can be compiled with other options.
    """

    recompiles = True

    def __init__(self, capture: KernelCapture, budget_s: float) -> None:
        self._capture: Final = capture
        self._kernel: Final = capture.kernel
        self._steps: Final = capture.steps
        self._budget_s: Final = budget_s
        self.earlier: Final = capture.steps.earlier
        self._names: Final = capture.launchable
        self._state: Final = {name: _State() for name in (*self._names, ORACLE)}
        self._verdicts: Final[list[VerdictRecord]] = []
        # Of a compile, the one with counters, by line or not.
        self.counting: Final[dict[tuple[FullCompile, bool], tuple[FullCompile, Instrumented]]] = {}
        self.variants: Final[dict[tuple[Any, ...], FullCompile]] = {}  # of `measuring`
        self._costs: Final = LaunchCosts(self, capture)

    def run(self) -> None:
        """Launch every case on every backend."""
        if not self._names:
            return
        for index, case in enumerate(self._capture.cases):
            found = self.round_of(case, index == 0)
            if found is None:
                continue
            names = self._kernel.decl.fn.__globals__
            workload = case.record(found.args, names)
            self._capture.put_workload(index, workload)
            self._capture.seen.setdefault(found.spec_keys, index)
            self._interpret(found)
            unfit = found.unfit
            self._capture.tried[found.case.label] = "" if unfit is None else unfit.message
            for name in self._names:
                if name != ORACLE:
                    self._launch(name, found)
            if found.started:
                workload, by_line = amounts_of(self, self._capture, found, workload)
                self._capture.put_workload(index, workload)
                self._time(found, workload, by_line)
        for backend in self._capture.backends:
            if backend.backend in self._names:
                self._capture.put(self._costs.put(self._finished(backend)))
        self._capture.put_verdicts(self._verdicts)
        self._binaries()

    def _binaries(self) -> None:
        """Sizes of binaries, as a cache keeps them after launches, and what is left of a compile
        where it has them."""
        for backend in self._capture.backends:
            if backend.backend in self._names and backend.compile is not None:
                size, took = warm_start(self._capture, backend.backend)
                compiled = msgspec.structs.replace(
                    backend.compile, code_bytes=size, warm_ms=took
                )  # fmt: skip
                self._capture.put(msgspec.structs.replace(backend, compile=compiled))

    # ---- one case

    def rounds(self) -> Iterator[Round]:
        """The cases of the kernel in turn, without those whose arguments cannot be made."""
        cases = enumerate(self._capture.cases)
        return filter(None, (self.round_of(case, i == 0) for i, case in cases))

    def round_of(self, case: LaunchCase, first: bool) -> Round | None:
        """Fresh arguments, or None when they cannot be made (which is recorded)."""
        made = self._capture.made(case)
        if made is None:
            return None
        args, contents = made
        spec_keys = tuple(arg.spec_key for arg in self._capture.bound(args))
        return Round(case, args, contents, spec_keys, first)

    def _interpret(self, found: Round) -> None:
        """Run the interpreter, whose results are the reference."""
        shown = self._names == [ORACLE]
        quarantined = self._steps.quarantined(ORACLE, "launch")
        if quarantined is not None:
            if quarantined.kind == "TimeLimit":
                self._late(found, shown, None)
            else:
                self._refused(found, quarantined)
            return
        try:
            compiled, given = self.ready(ORACLE, found)
            interpret = self.interpreter(compiled, given, found, None if shown else discard)
            with self.limited(ORACLE, found, "interpret"):
                most = ORACLE_STEPS_FIRST if found.first else ORACLE_STEPS
                began = time.perf_counter_ns()
                results = interpret(most)
                first_us = (time.perf_counter_ns() - began) / 1e3
            found.oracle = self.outcome(compiled, given.values, results)
        except (TooLong, StepLimit) as late:
            self._late(found, shown, late.loop if isinstance(late, TooLong) else None)
        except Exception as raised:
            error = self._error(raised, ORACLE)
            self._refused(found, error)
            if found.case.origin == "synthetic" or not isinstance(raised, QuadrantsAssertionError):
                found.unfit = error
        else:
            self._check(ORACLE, found, compiled, given, results)
            if ORACLE in self._names:
                found.started.append(Started(ORACLE, compiled, first_us, "interpret"))

    def _late(self, found: Round, shown: bool, loop: Loc | None) -> None:
        """Called when the interpreter did not reach the end of ``found``.

        Other backends may, so that is no failure; but where nothing else is launched, the first
        workload must end.
        """
        found.loop = loop
        at = f", in the loop at {place_of(loop)}" if loop is not None else ""
        found.unchecked = f"{found.case.label} takes the interpreter too long{at}"
        state = self._state[ORACLE]
        state.unchecked = state.unchecked or found.unchecked
        if shown and found.first:
            text = f"stopped: {self._kernel.name} on {ORACLE} with {found.case.label} did not end"
            state.errors.append(late_error(self._kernel, ORACLE, text, loop))

    def _refused(self, found: Round, error: ErrorRecord) -> None:
        """Called when the interpreter failed on ``found``; sets `Round.failure` for arguments of
        the author's."""
        found.unchecked = f"the interpreter failed: {reason_of(error)}"
        state = self._state[ORACLE]
        if found.case.origin == "synthetic":
            state.unchecked = state.unchecked or synthetic_unfit(error)
        else:
            found.failure = error
            state.fail(error)

    def _launch(self, name: str, found: Round) -> None:
        """Launch on a backend, compare, check, and time."""
        state = self._state[name]
        if found.unfit is not None:
            if found.failure is None:
                state.unchecked = state.unchecked or synthetic_unfit(found.unfit)
            else:
                state.unchecked = state.unchecked or f"not launched: {reason_of(found.failure)}"
                state.fail(found.failure)
            return
        quarantined = self._steps.quarantined(name, "launch")
        if quarantined is not None:
            state.fail(quarantined)
            return
        try:
            compiled, given = self.ready(name, found)
            place = placed(compiled, given)
            start = self.starter(compiled, place, found)
            with self.limited(name, found, "launch", unending(compiled, found.loop)):
                results, first_us = place.launched(start)
            ours = self.outcome(compiled, given.values, results)
        except (Exception, StepLimit) as raised:
            state.errors.append(self._error(raised, name))
            return
        if found.failure is not None:
            state.fail(found.failure)
        if found.oracle is None:
            state.unchecked = state.unchecked or found.unchecked
            state.uncompared.append(found.case.label)
        else:
            comparison = ours.compared(found.oracle, partial(self._exact, found))
            if not comparison.agrees and self.recompiles:
                comparison = reconsidered(self, self._capture, found, name, comparison)
            state.compared.append((found.case.label, comparison))
        self._check(name, found, compiled, given, results)
        found.started.append(Started(name, compiled, first_us, "launch"))

    def ready(self, name: str, found: Round) -> tuple[FullCompile, Inputs]:
        """The kernel as it is compiled for the case, and what it is launched with."""
        compiled = self._capture.compiled(name, found.spec_keys)
        given = self.inputs(compiled, found)
        if given.overlap():
            compiled = self._capture.compiled(name, found.spec_keys, False)
        return compiled, given

    def limited(
        self, name: str, found: Round, kind: str, unending: tuple[str, int] = ("", 0)
    ) -> Any:
        """unending: the possible cause of an endless launch, and its line, for `Steps.step`."""
        text = f"launching {self._kernel.name} on {name} with {found.case.label}"
        note, loop = unending
        return self._steps.step("launch", text, backend=name, kind=kind, note=note, loop=loop)

    def inputs(self, compiled: FullCompile, found: Round) -> Inputs:
        """Fresh copies of what the kernel is launched with."""
        bound, config = self._capture.bound(found.args), self._capture.config
        return Inputs(self._kernel.name, compiled, bound, found.args, found.contents, config)

    def starter(
        self, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        """Return a function that launches on the values at ``place``, the same at every call."""
        executable = compiled.executable
        return lambda: executable.launch(place.values, SEED)

    def rival_of(self, name: str, names: Sequence[str]) -> str:
        """The one of ``names`` that launches on a backend are compared with."""
        return names[0]

    def timed_starter(
        self, name: str, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        """`starter` for the launches that are timed on a backend."""
        return self.starter(compiled, place, found)

    def interpreter(
        self, compiled: FullCompile, given: Inputs, found: Round, print_fn: _Printer | None
    ) -> Callable[[int], tuple[Any, ...]]:
        """Return a function that interprets ``given`` with a limited number of steps."""
        program = interp.compile_func(compiled.func, counted=True)
        return partial(counted, program, given.values, print_fn)

    def outcome(
        self, compiled: FullCompile, values: Sequence[Any], results: tuple[Any, ...]
    ) -> Outcome:
        names: list[str | Named] = []
        kept: list[Any] = []
        meta = compiled.executable.meta
        written: set[int] = set()
        for i, (param, value) in enumerate(zip(meta.params, values, strict=True)):
            if i in meta.written:
                written.add(len(kept))
            if param.kind == "ndarray":
                names.append(Named(param.name, param.ndim))
                kept.append(np.array(value))
            elif param.layout is not None:
                names.append(Named(param.name, param.ndim, param.layout.origin[: param.ndim]))
                kept.append(elements(param.layout, value))
        wanted = len(meta.results) + bool(meta.labels)
        if len(results) != wanted:
            raise QuadrantsRuntimeError(
                f"{compiled.artifact.backend} returned {len(results)} of {wanted} results",
                kernel=self._kernel.name,
            )
        returned = [t.np(r) for r, t in zip(results, meta.results, strict=False)]
        names += self._capture.result_names()
        if meta.labels:  # 0, or 1 + the label of the checkpoint that yielded
            names.append("yielded")
            returned.append(np.int32(results[-1]))
        written.update(range(len(kept), len(kept) + len(meta.results)))
        return Outcome(names, [*kept, *returned], written)

    def _exact(self, found: Round) -> list[Any] | None:
        """The results computed in f64 throughout (see `widened`); None if there are none."""
        if found.exact is None:
            found.exact = []
            compiled, given = self.ready(ORACLE, found)
            if given.overlap():
                return None
            with suppress(Exception, StepLimit), self.limited(ORACLE, found, "interpret"):
                made = run_widened(compiled.func, given.values, ORACLE_STEPS_FIRST)
                if made is not None:
                    found.exact = self.outcome(compiled, *made).values
        return found.exact or None

    def _check(
        self,
        name: str,
        found: Round,
        compiled: FullCompile,
        given: Inputs,
        results: tuple[Any, ...],
    ) -> None:
        """Ask the author's checks about a launch that worked on ``given``."""
        state = self._state[name]
        stage = f"check {found.case.label}"
        result = self._capture.result(results)
        labels = compiled.executable.meta.labels
        if labels:
            result = status(self._kernel.decl, labels, results[-1])
        for check in self._kernel.checks:
            quarantined = self._steps.quarantined(name, stage)
            if quarantined is not None:
                state.fail(quarantined)
                state.checks += 1
                failure = f"{found.case.label}: {quarantined.message}"
                state.check_failure = state.check_failure or failure
                return
            text = f"checking {self._kernel.name} on {name} with {found.case.label}"
            state.checks += 1
            try:
                step = self._steps.step(stage, text, backend=name, kind="check")
                # The check may look at fields: there it sees what the launch left.
                with step, installed(given.blocks):
                    said = check(self.inputs(compiled, found).args, given.args, result)
                if isinstance(said, bool | np.bool_) and not said:
                    raise AssertionError(
                        f"{getattr(check, '__name__', 'the check')} returned {said}"
                    )
            except AssertionError as raised:
                message = " ".join(str(raised).split()) or "assertion failed"
                line = error_record(raised, "check").line
                at = f" (line {line})" if line else ""
                state.check_failure = state.check_failure or f"{found.case.label}: {message}{at}"
            except (Exception, StepLimit) as raised:
                error = error_record(raised, "check", kernel=self._kernel.name, backend=name)
                state.errors.append(error)
                state.check_failure = state.check_failure or f"{found.case.label}: {error.message}"

    def _time(self, found: Round, workload: WorkloadRecord, by_line: Counted) -> None:
        """Time what was started, in turns, and compare."""
        rivals: list[Rival] = []
        for timed in measured(self, self._capture, found, self._budget_s):
            one, place, contender, _, kept = timed
            state = self._state[one.name]
            error = contender.error
            # It has run once, in time; that a busy machine lets it not run again is no failure.
            if error is not None and not (one.name == ORACLE and isinstance(error, StepLimit)):
                state.errors.append(self._error(error, one.name))
            record = contender.record(found.case.label, workload.bytes, workload.flops)
            if record is None or error is not None or place is None:
                continue
            record = msgspec.structs.replace(record, memory_bytes=place.memory_bytes)
            record = with_earlier(record, timed)
            if self.earlier is not None:
                record = self.earlier.noted(self._capture, record, timed)
            if kept is not None and self.earlier is not None:
                self.earlier.keep(self._capture.record.id, one.name, found.case.label, kept)
            state.launches.append(record)
            state.device = place.record
            state.last = one.compiled
            if one.name != ORACLE:
                single = contender.record(found.case.label, burst=1)
                rivals.append(Rival(one.name, single or record, place.record))
                self._costs.add(one, found, record, by_line)
        self._verdicts.extend(verdicts_of(rivals))

    def _error(self, raised: BaseException, name: str) -> ErrorRecord:
        return error_record(raised, "launch", kernel=self._kernel.name, backend=name)

    # ---- the end

    def _finished(self, backend: BackendRecord) -> BackendRecord:
        state = self._state[backend.backend]
        check = "none" if not state.checks else "failed" if state.check_failure else "passed"
        oracle = backend.backend == ORACLE
        why = "" if oracle and not (state.unchecked or state.errors) else state.unchecked
        if oracle:
            why = why or "it is what others are compared with"
        agreement = judged(state.compared, state.uncompared, why, check, state.check_failure)
        failed = bool(state.errors)
        return msgspec.structs.replace(
            backend,
            status="error" if failed else "ok",
            reason=reason_of(state.errors[0]) if failed else "",
            launches=tuple(state.launches),
            agreement=agreement,
            device=state.device,
            flow=self._flow(backend, state),
            errors=(*backend.errors, *state.errors),
        )

    def _flow(self, backend: BackendRecord, state: _State) -> FlowRecord | None:
        """The order of the tasks, with what the last launch reports of it."""
        facts = None if state.last is None else graph_facts(state.last.executable)
        if facts is None or state.last is None or backend.compile is None:
            return backend.flow
        locs = [task.loc for task in backend.compile.tasks]
        return facts_of_graph(backend.flow, facts, state.last.executable.meta, locs)
