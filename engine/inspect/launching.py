"""Launches of a captured kernel: timings, agreement with the interpreter, the author's checks.

The first launch with each workload counts twice: it is the first of the warm-up, and its results
are what checks and comparisons look at. The interpreter goes first and counts its steps; a
workload that takes it more than `ORACLE_STEPS` is left to the others and stays unchecked. The first
gets `ORACLE_STEPS_FIRST`, so that something is checked also where there is no small one. Steps, not
seconds, decide that, so that two captures check the same.

When every backend has been launched once with a workload, they are timed, in turns (`measuring`).

The interpreter sees every access outside of an array. Where it finds one, compiled code is not
launched with these arguments: it would write to memory that belongs to somebody else, and the
worker would fail later, somewhere else. This happens above all with arguments made up from a
signature. (A check that the compiler put in stops every backend alike, so that is no reason.)

No launch works on the user's own arrays and fields: each is given copies, see `inputs`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ..backends import interp
from ..backends.base import StackPlan
from ..errors import QuadrantsAssertionError, QuadrantsRuntimeError
from ..runtime.compile import FullCompile
from ..runtime.status import status
from .agreement import Comparison, Named, compare
from .arguments import LaunchCase
from .contents import Contents, elements, installed
from .counting import Instrumented
from .faults import error_record
from .flows import graph_facts, told_by_graph
from .inputs import Inputs
from .measuring import Started, amounts_of, measured, warm_start
from .placing import Placed, placed
from .record import (
    AgreementRecord,
    BackendRecord,
    DeviceRecord,
    ErrorRecord,
    FlowRecord,
    LaunchRecord,
    VerdictRecord,
    WorkloadRecord,
)
from .steps import StepLimit
from .verdicts import Rival, verdicts_of

if TYPE_CHECKING:
    from .capture import KernelCapture

__all__ = [
    "ORACLE", "ORACLE_STEPS", "ORACLE_STEPS_FIRST", "SEED", "Launcher", "Round", "TooLong",
    "counted", "discard",
]  # fmt: skip

ORACLE: Final = "interp"
ORACLE_STEPS: Final = 1_000_000
ORACLE_STEPS_FIRST: Final = 20_000_000
SEED: Final = 1

_Printer = Callable[[str], object]


class TooLong(Exception):
    """The interpreter did not finish within its steps."""


class _Outcome:
    """What a launch left: contents of arrays and fields, then results. names: one for each."""

    def __init__(self, names: list[str | Named], values: list[Any]) -> None:
        self.names: Final = names
        self.values: Final = values


@dataclass
class _State:
    """What the launches on one backend gave so far."""

    launches: list[LaunchRecord] = field(default_factory=list[LaunchRecord])
    errors: list[ErrorRecord] = field(default_factory=list[ErrorRecord])
    compared: list[tuple[str, Comparison]] = field(default_factory=list[tuple[str, Comparison]])
    unchecked: str = ""
    checks: int = 0
    check_failure: str = ""
    device: DeviceRecord | None = None
    last: FullCompile | None = None


@dataclass
class Round:
    """One case while it is launched on one backend after the other.

    contents: of the fields, before each launch. first: it is the first of the kernel's cases.
    started: what was launched once and can be timed.
    """

    case: LaunchCase
    args: tuple[Any, ...]
    contents: Contents
    features: tuple[Any, ...]
    first: bool
    oracle: _Outcome | None = None
    unchecked: str = ""
    unfit: ErrorRecord | None = None
    started: list[Started] = field(default_factory=list[Started])


class Launcher:
    """Launches everything a `KernelCapture` can launch and puts the results into its record."""

    def __init__(self, capture: KernelCapture, budget_s: float) -> None:
        self._capture: Final = capture
        self._kernel: Final = capture.kernel
        self._steps: Final = capture.steps
        self._budget_s: Final = budget_s
        self._names: Final = [
            b.backend for b in capture.backends if b.status == "ok" and not b.unlaunched
        ]
        self._state: Final = {name: _State() for name in (*self._names, ORACLE)}
        self._verdicts: Final[list[VerdictRecord]] = []
        # Of a compile, the one with counters.
        self.counting: Final[dict[FullCompile, tuple[FullCompile, Instrumented]]] = {}

    def run(self) -> None:
        """Launch every case on every backend."""
        if not self._names:
            return
        for index, case in enumerate(self._capture.cases):
            found = self._made(case, index == 0)
            if found is None:
                continue
            names = self._kernel.decl.fn.__globals__
            workload = case.record(found.args, names)
            self._capture.put_workload(index, workload)
            self._capture.seen.setdefault(found.features, index)
            self._interpret(found)
            unfit = found.unfit
            self._capture.tried[found.case.label] = "" if unfit is None else unfit.message
            for name in self._names:
                if name != ORACLE:
                    self._launch(name, found)
            if found.started:
                workload = amounts_of(self, self._capture, found, workload)
                self._capture.put_workload(index, workload)
                self._time(found, workload)
        for backend in self._capture.backends:
            if backend.backend in self._names:
                self._capture.put(self._finished(backend))
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

    def _made(self, case: LaunchCase, first: bool) -> Round | None:
        """Fresh arguments, or None when they cannot be made (which is recorded)."""
        made = self._capture.made(case)
        if made is None:
            return None
        args, contents = made
        features = tuple(arg.feature for arg in self._capture.bound(args))
        return Round(case, args, contents, features, first)

    def _interpret(self, found: Round) -> None:
        """Let the interpreter say what is right."""
        state = self._state[ORACLE]
        shown = self._names == [ORACLE]
        held = self._steps.held(ORACLE, "launch")
        if held is not None:
            found.unchecked = f"the interpreter failed: {held.message}"
            if held not in state.errors:
                state.errors.append(held)
            return
        try:
            compiled, given = self.ready(ORACLE, found)
            interpret = self._interpreter(compiled, given, found, None if shown else discard)
            with self.limited(ORACLE, found, "interpret"):
                most = ORACLE_STEPS_FIRST if found.first else ORACLE_STEPS
                began = time.perf_counter_ns()
                results = interpret(most)
                first_us = (time.perf_counter_ns() - began) / 1e3
            found.oracle = self._outcome(compiled, given, results)
        except (TooLong, StepLimit):
            found.unchecked = f"{found.case.label} takes the interpreter too long"
            state.unchecked = state.unchecked or found.unchecked
        except Exception as raised:
            error = self._error(raised, ORACLE)
            found.unchecked = f"the interpreter failed: {error.message}"
            if not isinstance(raised, QuadrantsAssertionError):
                found.unfit = error
            state.errors.append(error)
        else:
            self._check(ORACLE, found, compiled, given, results)
            if ORACLE in self._names:
                found.started.append(Started(ORACLE, compiled, first_us, "interpret"))

    def _launch(self, name: str, found: Round) -> None:
        """Launch on a backend, compare, check, and time."""
        state = self._state[name]
        if found.unfit is not None:
            made_up = "made-up arguments do not fit the kernel: "
            why = made_up if found.case.origin == "synthetic" else "not launched: "
            state.unchecked = state.unchecked or why + found.unfit.message
            return
        held = self._steps.held(name, "launch")
        if held is not None:
            if held not in state.errors:
                state.errors.append(held)
            return
        try:
            compiled, given = self.ready(name, found)
            place = placed(compiled, given)
            start = self.starter(compiled, place, found)
            with self.limited(name, found, "launch"):
                began = time.perf_counter_ns()
                results = start()
                place.wait()
                first_us = (time.perf_counter_ns() - began) / 1e3
                place.fetch()
        except (Exception, StepLimit) as raised:
            state.errors.append(self._error(raised, name))
            return
        if found.oracle is None:
            state.unchecked = state.unchecked or found.unchecked
        else:
            ours = self._outcome(compiled, given, results)
            comparison = compare(ours.names, ours.values, found.oracle.values)
            state.compared.append((found.case.label, comparison))
        self._check(name, found, compiled, given, results)
        found.started.append(Started(name, compiled, first_us, "launch"))

    def ready(self, name: str, found: Round) -> tuple[FullCompile, Inputs]:
        """The kernel as it is compiled for the case, and what it is launched with."""
        compiled = self._capture.compiled(name, found.features)
        given = self.inputs(compiled, found)
        if given.overlap():
            compiled = self._capture.compiled(name, found.features, False)
        return compiled, given

    def limited(self, name: str, found: Round, kind: str) -> Any:
        text = f"launching {self._kernel.name} on {name} with {found.case.label}"
        return self._steps.step("launch", text, backend=name, kind=kind)

    def inputs(self, compiled: FullCompile, found: Round) -> Inputs:
        """Fresh copies of what the kernel is launched with."""
        bound, config = self._capture.bound(found.args), self._capture.config
        return Inputs(self._kernel.name, compiled, bound, found.args, found.contents, config)

    def starter(
        self, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        """What launches on the values at ``place``; the same again and again."""
        executable = compiled.executable
        return lambda: executable.launch(place.values, SEED)

    def timed_starter(
        self, name: str, compiled: FullCompile, place: Placed, found: Round
    ) -> Callable[[], tuple[Any, ...]]:
        """`starter` for the launches that are timed on a backend."""
        return self.starter(compiled, place, found)

    def _interpreter(
        self, compiled: FullCompile, given: Inputs, found: Round, print_fn: _Printer | None
    ) -> Callable[[int], tuple[Any, ...]]:
        """What interprets ``given`` with at most so many steps."""
        program = interp.compile_func(compiled.func, counted=True)
        return partial(counted, program, given.values, print_fn)

    def _outcome(self, compiled: FullCompile, given: Inputs, results: tuple[Any, ...]) -> _Outcome:
        names: list[str | Named] = []
        kept: list[Any] = []
        for param, value in zip(compiled.executable.meta.params, given.values, strict=True):
            if param.kind == "ndarray":
                names.append(Named(param.name, param.ndim))
                kept.append(np.array(value))
            elif param.layout is not None:
                names.append(Named(param.name, param.ndim, param.layout.origin[: param.ndim]))
                kept.append(elements(param.layout, value))
        meta = compiled.executable.meta
        returned = [t.np(r) for r, t in zip(results, meta.results, strict=False)]
        names += self._capture.result_names()
        if meta.labels:  # 0, or 1 + the label of the checkpoint that yielded
            names.append("yielded")
            returned.append(np.int32(results[-1]))
        return _Outcome(names, [*kept, *returned])

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
            held = self._steps.held(name, stage)
            if held is not None:
                state.errors.append(held)
                return
            text = f"checking {self._kernel.name} on {name} with {found.case.label}"
            state.checks += 1
            try:
                step = self._steps.step(stage, text, backend=name, kind="check")
                # The check may look at fields: there it sees what the launch left.
                with step, installed(given.blocks):
                    check(self.inputs(compiled, found).args, given.args, result)
            except AssertionError as raised:
                message = " ".join(str(raised).split()) or "assertion failed"
                line = error_record(raised, "check").line
                at = f" (line {line})" if line else ""
                state.check_failure = state.check_failure or f"{found.case.label}: {message}{at}"
            except (Exception, StepLimit) as raised:
                error = error_record(raised, "check", kernel=self._kernel.name, backend=name)
                state.errors.append(error)
                state.check_failure = state.check_failure or f"{found.case.label}: {error.message}"

    def _time(self, found: Round, workload: WorkloadRecord) -> None:
        """Time what was started, in turns, and compare."""
        rivals: list[Rival] = []
        for one, place, contender in measured(self, self._capture, found, self._budget_s):
            state = self._state[one.name]
            error = contender.error
            # It has run once, in time; that a busy machine lets it not run again is no failure.
            if error is not None and not (one.name == ORACLE and isinstance(error, StepLimit)):
                state.errors.append(self._error(error, one.name))
            record = contender.record(found.case.label, workload.bytes, workload.flops)
            if record is None or error is not None or place is None:
                continue
            record = msgspec.structs.replace(record, memory_bytes=place.memory_bytes)
            state.launches.append(record)
            state.device = place.record
            state.last = one.compiled
            if one.name != ORACLE:
                rivals.append(Rival(one.name, record, place.record))
        self._verdicts.extend(verdicts_of(rivals))

    def _error(self, raised: BaseException, name: str) -> ErrorRecord:
        return error_record(raised, "launch", kernel=self._kernel.name, backend=name)

    # ---- the end

    def _finished(self, backend: BackendRecord) -> BackendRecord:
        state = self._state[backend.backend]
        agreement = self._agreement(backend.backend, state)
        failed = bool(state.errors)
        return msgspec.structs.replace(
            backend,
            status="error" if failed else "ok",
            reason=state.errors[0].message if failed else "",
            launches=tuple(state.launches),
            agreement=agreement,
            device=state.device,
            flow=self._flow(backend, state),
            errors=(*backend.errors, *state.errors),
        )

    def _flow(self, backend: BackendRecord, state: _State) -> FlowRecord | None:
        """The order of the tasks, with what the last launches tell of it."""
        facts = None if state.last is None else graph_facts(state.last.executable)
        if facts is None or state.last is None or backend.compile is None:
            return backend.flow
        locs = [task.loc for task in backend.compile.tasks]
        return told_by_graph(backend.flow, facts, state.last.executable.meta, locs)

    def _agreement(self, name: str, state: _State) -> AgreementRecord:
        check = "none" if not state.checks else "failed" if state.check_failure else "passed"
        if name == ORACLE or not state.compared:
            reason = "it is what others are compared with" if name == ORACLE else state.unchecked
            return AgreementRecord(
                state="unchecked",
                reason=reason or "it was not launched",
                check=check,
                check_message=state.check_failure,
            )
        worst = next((c for _, c in state.compared if not c.agrees), None)
        label = next((label for label, c in state.compared if c is worst), "")
        comparisons = [c for _, c in state.compared]
        return AgreementRecord(
            state="ok" if worst is None else "differs",
            reason=state.unchecked,
            workload=label or "; ".join(label for label, _ in state.compared),
            max_abs=max(c.max_abs for c in comparisons),
            max_rel=max(c.max_rel for c in comparisons),
            max_ulp=max(c.max_ulp for c in comparisons),
            tolerance=comparisons[0].tolerance,
            differing=0 if worst is None else worst.differing,
            elements=sum(c.elements for c in comparisons) if worst is None else worst.elements,
            first_difference="" if worst is None else worst.first_difference,
            check=check,
            check_message=state.check_failure,
        )


def discard(text: str) -> None:
    """Where the interpreter's prints go when another backend prints the same."""


def counted(
    program: interp.Program,
    values: Sequence[Any],
    print_fn: Callable[[str], object] | None,
    most: int,
    stacks: StackPlan | None = None,
) -> tuple[Any, ...]:
    """Interpret with at most ``most`` steps; TooLong if it takes more."""
    try:
        return program.launch(values, print_fn=print_fn, max_steps=most, seed=SEED, stacks=stacks)
    except QuadrantsRuntimeError as error:
        if "step limit" in error.message:
            raise TooLong from None
        raise
