"""Find the pass that made a kernel's result wrong: `bisect_kernel`.

::

    IR of the frontend ── run ── IR ── run ── IR ── ... ── finished IR ── code of a backend
          right                                              wrong?            wrong

The interpreter runs the frontend's IR, which says what is right. Where code of a backend differs,
the IR after each run that changed it is kept, and a binary search asks the interpreter where it
turns wrong: the run between a right and a wrong state is the culprit, and the fewest of its changes
that make the IR wrong name the op and the user's line (`rewrites`).

If all IR is right, three things are left, in this order: a pass let iterations of a parallel loop
compete (`races`), which the interpreter cannot show; the code is wrong only with a certain optional
pass (compiles with fewer passes are launched); or the backend's code generation is at fault.

Some passes change what IR means: those that differentiate, and `demote_random`, which draws other
numbers. The states between two of them are judged among themselves, and gradients also by
`differences` of the kernel as written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..ir import Loc, parse
from ..passes import run as run_passes
from ..passes.instruments import Fuel
from ..runtime.compile import FullCompile, make_ir
from .faults import error_record
from .launching import ORACLE, ORACLE_STEPS_FIRST, TooLong
from .races import conflicts
from .record_bisection import Bisection, ChangedOp
from .rewrites import Rewrite, smallest
from .steps import StepLimit
from .targets import compile_for, options_of, target_of
from .trials import Judge, Predicate, State, States, Trials, UnjudgedError, spans

if TYPE_CHECKING:
    from .capture import KernelCapture

__all__ = [
    "Bisection", "ChangedOp", "bisect_backends", "bisect_capture", "bisect_kernel", "same_fault",
]  # fmt: skip

_REWRITE_TRIALS: Final = 300
_REWRITE_S: Final = 15.0
_DEEPEST: Final = 8
_CHUNKS: Final = "make_cpu_multithreaded_range_for"
_ADJOINT: Final = "make_adjoint"
_LATE: Final = "the interpreter takes too long"
_CODE: Final = (
    "the IR is right after every pass, and the code is wrong without optional passes, too"
)
_ROUNDING: Final = (
    "the IR is right after every pass, and the code is right with fast_math=0. With it, sums are "
    "added in another order and there is no NaN. Where large terms cancel, that is rounding"
)
_STEPS: Final = 1_000_000
"""Of the interpreter with the frontend's IR. Cases that need more are tried if all do."""


def bisect_kernel(
    kernel: Any,
    backend: str = "cpu",
    config: Any = None,
    *,
    predicate: Predicate | None = None,
    calls: Sequence[Any] = (),
) -> Bisection:
    """Find what makes the result of ``kernel`` wrong on ``backend``.

    kernel, config, calls: as for `capture_kernel`. predicate: gets the results by name (a
    parameter, ``result``) and returns True if they are right; without it the interpreter on the
    frontend's IR says what is right.
    """
    from .capture import KernelCapture

    capture = KernelCapture(kernel, (backend,), options_of(config), None, calls)
    capture.compile()
    return bisect_capture(capture, backend, predicate)


def bisect_capture(
    capture: KernelCapture,
    backend: str,
    predicate: Predicate | None = None,
) -> Bisection:
    """`bisect_kernel`, of a capture that has compiled for ``backend``; reports its trials as
    steps."""
    return _Bisector(capture, backend, predicate).run()


def same_fault(capture: KernelCapture, found: Bisection) -> bool:
    """True if the kernel of ``capture`` is wrong because of the same part as ``found``."""
    if found.evidence not in ("ir", "race", "differences"):
        capture.compile()
    again = _Bisector(capture, found.backend, None, found).run()
    parts = (again.state, again.part, again.evidence, again.pass_name)
    return parts == (found.state, found.part, found.evidence, found.pass_name)


def bisect_backends(
    capture: KernelCapture, backend: str = "", predicate: Predicate | None = None
) -> Bisection:
    """`bisect_capture` for the first backend whose result is wrong, or for ``backend``."""
    names = capture.launchable
    names = [backend] if backend else [n for n in names if n != ORACLE] or names
    found = [Bisection(kernel=capture.record.name, backend="", state="unknown",
                       reason=_why_none(capture))]  # fmt: skip
    for name in names:
        found.append(bisect_capture(capture, name, predicate))
        if found[-1].state == "found":
            return found[-1]
    unknown = [one for one in found[1:] if one.state == "unknown"]
    last = (unknown or found)[-1]
    if last.state == "agrees":
        return msgspec.structs.replace(last, backend=", ".join(names))
    return last


def _why_none(capture: KernelCapture) -> str:
    """The reason that there is no backend to launch on."""
    reasons = [f"{b.backend}: {b.reason}" for b in capture.backends if b.reason]
    reasons += [e.message for e in capture.record.errors]
    return "; ".join(dict.fromkeys(reasons)) or "no backend launches here"


class _Bisector:
    """One bisection."""

    def __init__(
        self, capture: KernelCapture, backend: str, predicate: Predicate | None,
        like: Bisection | None = None,
    ) -> None:  # fmt: skip
        """like: only a fault of this kind and pass is looked for, and its changes are not."""
        self._capture = capture
        self._like = "" if like is None else like.evidence
        # Where no pass changes what the IR means, only the states around one pass are needed.
        draws = like is not None and (" rand" in like.before or " launch_seed" in like.before)
        draws = draws or bool(capture.record.primal)
        alone = like is not None and like.evidence == "ir" and not draws
        self._name = like.pass_name if like is not None and alone else ""
        self._backend = backend
        self._predicate = predicate
        self._began = time.monotonic()
        self._trials: Trials | None = None
        self._states: list[State] = []
        self._observed = ""

    def run(self) -> Bisection:
        """Go through the kernel's cases until one is wrong."""
        record = next((b for b in self._capture.backends if b.backend == self._backend), None)
        if self._ir_only:
            self._capture.prepare()
        elif record is None or record.status != "ok" or record.unlaunched:
            why = "it was not compiled" if record is None else record.unlaunched or record.reason
            return self._result("unknown", reason=f"{self._backend}: {why}")
        result, late = self._cases(_STEPS)
        if result.state == "unknown" and late:
            result, _ = self._cases(ORACLE_STEPS_FIRST)
        return result

    @property
    def _ir_only(self) -> bool:
        """True if nothing is compiled or launched."""
        return self._like in ("ir", "race", "differences")

    def _cases(self, most: int) -> tuple[Bisection, bool]:
        """(the result, True if some case needs more steps of the interpreter than ``most``)."""
        reasons: list[str] = []
        launcher = self._capture.launcher(0.0)
        agrees: list[str] = []
        for index, case in enumerate(self._capture.cases):
            found = launcher.round_of(case, index == 0)
            if found is None:
                reasons.append(f"{case.label}: its arguments could not be made")
                continue
            self._trials = Trials(
                self._capture, launcher, found, self._backend, most, self._ir_only
            )
            try:
                result = self._case(self._trials)
            except (UnjudgedError, StepLimit) as error:
                reasons.append(f"{case.label}: {error}")
                continue
            if result is not None:
                return result, False
            agrees.append(case.label)
        late = any(_LATE in reason for reason in reasons)
        if agrees:
            reason = "; ".join(
                [f"the results are right with the arguments {', '.join(agrees)}", *reasons]
            )
            return self._result("agrees", reason=reason), late
        errors = [e.message for e in self._capture.record.errors]
        return self._result("unknown", reason="; ".join(reasons or errors) or "no arguments"), late

    # ---- one case

    def _case(self, trials: Trials) -> Bisection | None:
        """The culprit; None if nothing is wrong. UnjudgedError if that cannot be said."""
        self._states = self._all_states(trials)
        ranges = spans(self._states)
        judges = [self._judge(trials, self._states[start]) for start, _ in ranges]
        source = self._source_at_fault(trials, judges[0])
        if source is not None:
            return source
        # Before anything is launched: code of wrong IR may hang, or write where it must not.
        for judge, (start, end) in zip(judges, ranges, strict=True):
            wrong = self._state_at(judge, end) if end > start else ""
            if wrong:
                return self._wrong_ir(judge, start, end, wrong)
        if self._like != "ir" and self._predicate is None:
            derivative = self._wrong_derivative(trials, judges[0])
            if derivative is not None or self._like == "differences":
                return derivative
        if self._like == "ir":
            return None
        if not self._ir_only:
            self._observed = self._launched(trials, judges[-1])
        # Also where the result is right: on this machine, this time.
        race = self._race(trials, *ranges[-1])
        if race is not None or not self._observed:
            return race
        return self._exposing(trials, judges[-1])

    def _all_states(self, trials: Trials) -> list[State]:
        """The IR after each run, as the backend's compile makes it."""
        request = self._capture.request(self._backend, tuple(trials.spec_keys))
        build = trials.build or make_ir(request)
        build.func.noalias = trials.noalias
        config = request.config
        if build.func.autodiff != "none" and config.opt_level == 0:
            config = config.replace(opt_level=1)
        states = States(self._name)
        run_passes(build.func, config, request.backend.pipeline(config), (states,))
        return states.found

    def _judge(self, trials: Trials, state: State) -> Judge:
        """The judge of the states that mean the same as ``state``."""
        if self._predicate is not None:
            return Judge(trials, None, self._predicate)
        try:
            with self._step("the reference"):
                reference = trials.interpret(parse(state.text), trials.most)
        except TooLong:
            raise UnjudgedError(_LATE) from None
        except Exception as error:
            message = error_record(error, "interpret").message
            raise UnjudgedError(f"the interpreter fails on the kernel itself: {message}") from None
        return Judge(trials, reference)

    def _source_at_fault(self, trials: Trials, judge: Judge) -> Bisection | None:
        """With a predicate: what the source itself says may already be wrong."""
        if self._predicate is None or len(spans(self._states)) > 1:
            return None
        wrong = self._state_at(judge, 0)
        if not wrong:
            return None
        return self._result(
            "found", part="frontend", evidence="ir", difference=wrong,
            reason="the IR of the frontend, before any pass, is wrong: the kernel itself, or the "
            "frontend",
            before="", after=self._states[0].text,
        )  # fmt: skip

    def _launched(self, trials: Trials, judge: Judge, compiled: FullCompile | None = None) -> str:
        """The first difference of the backend's result; empty if it is right."""
        try:
            with self._step(f"a launch on {self._backend}", "launch"):
                return judge.outcome(trials.launch(compiled or trials.compiled))
        except UnjudgedError:
            raise
        except StepLimit:
            return "it does not end"
        except Exception as error:
            return f"it fails: {error_record(error, 'launch').message}"

    def _state_at(self, judge: Judge, index: int) -> str:
        state = self._states[index]
        text = f"the IR after {state.name or 'the frontend'} {state.phase}".rstrip()
        with self._step(text):
            return judge.text(state.text)

    # ---- wrong IR

    def _wrong_ir(self, judge: Judge, good: int, bad: int, wrong: str) -> Bisection:
        """Search between a right and a wrong state. wrong: what is wrong with it."""
        good, bad, wrong = self._search(good, bad, wrong, lambda i: self._state_at(judge, i))
        before, after = self._states[good], self._states[bad]
        if bad - good > 1:
            names = ", ".join(s.name for s in self._states[good + 1 : bad + 1])
            return self._result(
                "unknown", reason=f"one of {names}: the IR in between cannot be interpreted",
                before=before.text, after=after.text,
            )  # fmt: skip
        end = time.monotonic() + (0.0 if self._like else _REWRITE_S)
        with self._step(f"what {after.name} changed"):
            changes = smallest(
                before.text, after.text, judge.text, _REWRITE_TRIALS, lambda: time.monotonic() < end
            )
        return self._pass_result(after, before, "ir", wrong, changes)

    def _wrong_derivative(self, trials: Trials, forward: Judge) -> Bisection | None:
        """The pass that differentiates wrongly, by differences; None if none does."""
        from .differences import Differences
        from .gradients import GradientCapture

        at = [i for i, state in enumerate(self._states) if state.phase == "autodiff"]
        first = next((i for i in at if self._states[i].name == _ADJOINT), None)
        if first is None or not isinstance(self._capture, GradientCapture):
            return None
        with self._step("differences of the kernel as written"):
            wanted = Differences(trials, self._capture, parse(self._states[0].text))
        wrong = wanted.wrong(parse(self._states[at[-1]].text)) if wanted.known else ""
        if not wrong:
            return None
        bad = at[-1]
        for i in reversed([i for i in at if first <= i < bad]):
            said = wanted.wrong(parse(self._states[i].text))
            if not said:
                break
            bad, wrong = i, said
        if bad == first:  # what it was given may be wrong already
            for i in (i for i in at if i < first):
                with suppress(UnjudgedError):
                    said = self._state_at(forward, i)
                    if said:
                        bad, wrong = i, said
                        break
        return self._pass_result(self._states[bad], self._states[bad - 1], "differences", wrong, [])

    def _search(
        self, good: int, bad: int, found: str, wrong_at: Callable[[int], str]
    ) -> tuple[int, int, str]:
        """(the last right state, the first wrong one, what is wrong with it). At most ceil(log2 n)
        trials for n states. Those that cannot be judged are passed over; more than one apart if
        only such are left in between. found: what is wrong with ``bad``."""
        skipped: set[int] = set()
        while left := [i for i in range(good + 1, bad) if i not in skipped]:
            middle = left[len(left) // 2]
            try:
                wrong = wrong_at(middle)
            except UnjudgedError:
                skipped.add(middle)
                continue
            if wrong:
                bad, found = middle, wrong
            else:
                good = middle
        return good, bad, found

    # ---- right IR, wrong code

    def _race(self, trials: Trials, good: int, bad: int) -> Bisection | None:
        """The pass after which iterations compete for more than before."""

        def competing(index: int) -> frozenset[str]:
            try:
                with self._step(f"conflicts after {self._states[index].name or 'the frontend'}"):
                    return conflicts(trials.given, parse(self._states[index].text))
            except UnjudgedError:
                raise
            except Exception as error:
                raise UnjudgedError(str(error)) from None

        try:
            allowed = competing(good)

            def wrong_at(index: int) -> str:
                more = sorted(competing(index) - allowed)
                what = f"iterations of a parallel loop compete for {', '.join(more)}"
                return what if more else ""

            # Chunks of all iterations of a small loop hide it from there on.
            chunks = [i for i, s in enumerate(self._states) if s.name == _CHUNKS]
            ends = [bad, *(i - 1 for i in chunks if i - 1 > good)]
            worst = next(((i, wrong) for i in ends if (wrong := wrong_at(i))), None)
            if worst is None:
                return None
            good, bad, wrong = self._search(good, *worst, wrong_at)
        except UnjudgedError:
            return None
        before, after = self._states[good], self._states[bad]

        def racing(text: str) -> str:
            more = sorted(conflicts(trials.given, parse(text)) - allowed)
            return ", ".join(more)

        end = time.monotonic() + (0.0 if self._like else _REWRITE_S)
        changes = smallest(
            before.text, after.text, racing, _REWRITE_TRIALS, lambda: time.monotonic() < end
        )
        return self._pass_result(after, before, "race", wrong, changes)

    def _exposing(self, trials: Trials, judge: Judge) -> Bisection:
        """The optional pass without which the code is right, or the code generation."""
        counter = Fuel(1 << 30)
        self._compiled(trials, counter)
        low, high = 0, counter.used
        if self._backend == ORACLE or self._wrong_with(trials, judge, 0):
            rounding = self._rounding(trials, judge)
            return self._result(
                "found", part="code", evidence="code", difference=self._observed,
                reason=_ROUNDING if rounding else _CODE, before=self._states[-1].text,
                settings=("fast_math",) if rounding else (),
            )  # fmt: skip
        while high - low > 1:
            middle = (low + high) // 2
            if self._wrong_with(trials, judge, middle):
                high = middle
            else:
                low = middle
        fuel = Fuel(high)
        self._compiled(trials, fuel)
        run = fuel.last
        assert run is not None
        return self._result(
            "found", part="pass", evidence="exposed", stage=run.stage, round=run.round,
            task=run.task, pass_name=run.name, run=run.index, difference=self._observed,
            reason=f"the IR is right after every pass; the code is wrong only if {run.name} runs: "
            "what it promises is wrong, or the code generation of what it makes",
            before=self._states[-1].text,
        )  # fmt: skip

    def _rounding(self, trials: Trials, judge: Judge) -> bool:
        """True if the code is right once it may not reorder arithmetic on floats."""
        if self._like or not self._capture.config.fast_math:
            return False
        with suppress(Exception), self._step("a compile with fast_math=0"):
            compiled = self._compiled(trials, Fuel(1 << 30), fast_math=False)
            return not self._launched(trials, judge, compiled)
        return False

    def _wrong_with(self, trials: Trials, judge: Judge, limit: int) -> bool:
        try:
            with self._step(f"a compile with {limit} optional runs"):
                compiled = self._compiled(trials, Fuel(limit))
        except Exception as error:
            raise UnjudgedError(f"with fewer passes it does not compile: {error}") from None
        return bool(self._launched(trials, judge, compiled))

    def _compiled(self, trials: Trials, fuel: Fuel, **options: Any) -> FullCompile:
        request = self._capture.request(self._backend, tuple(trials.spec_keys))
        config = request.config.replace(**options)
        request = request._replace(noalias=trials.noalias, quiet=True, config=config)
        return compile_for(request, target_of(self._capture.config, self._backend), (fuel,))[0]

    # ---- results

    def _pass_result(
        self, after: State, before: State, evidence: str, wrong: str, changes: list[Rewrite]
    ) -> Bisection:
        # What has a line of the user comes first.
        ordered = sorted(changes, key=lambda c: not c.loc.line)
        return self._result(
            "found", part="pass", evidence=evidence, run=after.at, stage=after.phase,
            round=after.round, task=after.task, pass_name=after.name, difference=wrong,
            changes=tuple([_changed(c) for c in ordered[:_DEEPEST]]),
            more=max(0, len(changes) - _DEEPEST), before=before.text, after=after.text,
        )  # fmt: skip

    def _result(self, state: str, **fields: Any) -> Bisection:
        trials = self._trials
        return Bisection(
            kernel=self._capture.record.name,
            backend=self._backend,
            state=state,
            workload="" if trials is None else trials.case.label,
            observed=self._observed,
            states=len(self._states),
            trials=0 if trials is None else trials.runs,
            seconds=time.monotonic() - self._began,
            **fields,
        )

    def _step(self, text: str, kind: str = "compile") -> AbstractContextManager[None]:
        """Encloses a trial: it is reported, and may be stopped."""
        text = f"bisecting {self._capture.record.name}: {text}"
        return self._capture.steps.step("bisect", text, backend=self._backend, kind=kind)


def _changed(rewrite: Rewrite) -> ChangedOp:
    loc: Loc = rewrite.loc
    return ChangedOp(
        op=rewrite.op, before=rewrite.before, after=rewrite.after, file=loc.file, line=loc.line,
        col=loc.col, func=loc.func,
    )  # fmt: skip
