"""The gain if an assumption held: compile with it, check the results, time it.

    found = inspect.what_if(kernel, "fast_math", "cpu")
    print(found.verdict, found.ratio, found.agreement, found.change)

An assumption is one of `ASSUMPTIONS`, a loop to unroll (``unroll=12``, the line of the loop), a
loop whose iterations do not depend on each other (``independent=12``), a block size
(``block_dim=256``), or any compile option (``max_vector_width=4``). The kernel is
compiled once as it is and once with the assumption, in scratch: nothing of the user's changes, and
no cache is written. Both are launched in turns with the same arguments, so that their times belong
to the same moments; a verdict other than ``within noise`` must hold in two measurements.
The results with the assumption are compared with the interpreter's, which runs the kernel without
it, or, where that takes too long, with the results without it. So an assumption that is false for
these arguments shows as ``differs``.

Independent iterations are also checked by element with each of the arguments (`independence`).

Where the generated code is the same there is nothing to time: the verdict is ``same code``. Where
an assumption cannot be made the verdict is ``cannot``, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..backends import interp
from ..config import OPTIONS, CompileConfig
from ..named_tuple import NamedTuple
from .agreement import judged
from .arguments import Call
from .capture import KernelCapture
from .compare_figures import code_of, figures_of
from .describing import subject_of
from .discover import Subject
from .explaining import explanations
from .independence import Marking, MarkingCapture, carried
from .launching import ORACLE, ORACLE_STEPS_FIRST, Launcher, Round, TooLong, counted, discard
from .placing import Placed, placed
from .record import BackendRecord, CompileRecord, KernelRecord
from .record_what_if import WhatIfCount, WhatIfRecord
from .settings import parse_setting
from .steps import StepLimit, Steps
from .targets import options_of
from .timing import Contender, measure_together, share
from .trials import Trials, UnjudgedError
from .unrolling import NotUnrolledError, unrolled
from .verdicts import Rival, verdicts_of

if TYPE_CHECKING:
    from ..lang.kernel import Kernel

__all__ = [
    "ASSUMPTIONS", "SUGGESTED", "Assumption", "ScratchLauncher", "ScratchSteps", "assumption",
    "suggested", "try_assumptions",
    "what_if",
]  # fmt: skip


class Assumption(NamedTuple):
    """title: in words. options: compile options that make it. change: what to write for it.
    noalias: arrays of a launch do not overlap. unroll, independent: the line of a loop; 0 for
    none."""

    name: str
    title: str
    options: dict[str, Any]
    change: str
    noalias: bool = False
    unroll: int = 0
    independent: int = 0


ASSUMPTIONS: Final = {
    a.name: a
    for a in (
        Assumption(
            "noalias", "arrays of a launch do not overlap", {},
            "pass arrays that do not share memory", noalias=True,
        ),
        Assumption(
            "no_checks", "no index is outside of its array, and no assert fails",
            {"check_out_of_bound": False, "debug": False},
            "qd.init(debug=False, check_out_of_bound=False)",
        ),
        Assumption(
            "fast_math", "the last bit of floats, NaN and infinities do not matter",
            {"fast_math": True}, "qd.init(fast_math=True)",
        ),
        Assumption(
            "hoist_conditional", "what a condition guards may be computed on every path",
            {"move_loop_invariant_outside_if": True},
            "qd.init(move_loop_invariant_outside_if=True)",
        ),
        Assumption(
            "cache_elements", "elements that a loop always uses may be kept in locals",
            {"cache_loop_invariant_global_vars": True},
            "qd.init(cache_loop_invariant_global_vars=True)",
        ),
        Assumption(
            "flat_ifs", "both branches of small conditions may be computed",
            {"flatten_if": True}, "qd.init(flatten_if=True)",
        ),
    )
}  # fmt: skip


def assumption(text: str, backend: str = "cpu") -> Assumption:
    """The assumption that ``text`` names. ValueError, with what there is, if it names none."""
    name, given, value = text.partition("=")
    if not given and name in ASSUMPTIONS:
        return ASSUMPTIONS[name]
    if name in ("unroll", "independent", "block_dim"):
        number = int(value) if value.isdecimal() else 0
        if not number:
            what = "a number of threads" if name == "block_dim" else "the line of a loop"
            raise ValueError(f"{name} needs {what}, such as {name}=64, not {value!r}")
        if name == "unroll":
            return Assumption(
                text, f"the loop at line {number} is unrolled", {},
                f"use qd.static(range(...)) at line {number}", unroll=number,
            )  # fmt: skip
        if name == "independent":
            return Assumption(
                text, f"iterations of the loop at line {number} do not depend on each other", {},
                f"make the loop at line {number} the outermost one, without serialize=True: its "
                "iterations then run in parallel; or let it write to another array than it reads",
                independent=number,
            )  # fmt: skip
        host = backend.partition(":")[0] in ("cpu", "interp", "cross")
        option = "default_cpu_block_dim" if host else "default_gpu_block_dim"
        return Assumption(
            text, f"blocks of {number} threads", {option: number},
            f"qd.loop_config(block_dim={number}) before the loop",
        )  # fmt: skip
    if not given:
        known = ", ".join(
            (*ASSUMPTIONS, "unroll=LINE", "independent=LINE", "block_dim=N", "any OPTION=VALUE")
        )
        raise ValueError(f"there is no assumption {text!r}; there are: {known}")
    try:
        option, parsed = parse_setting(text)
    except (KeyError, ValueError) as error:
        raise ValueError(str(error.args[0])) from None
    return Assumption(text, OPTIONS[option].doc, {option: parsed}, f"qd.init({option}={parsed!r})")


_PLAIN: Final = "the results without the assumption"
SUGGESTED: Final = "suggested"
"""In place of an assumption: all that the remarks about the kernel suggest."""


def what_if(
    kernel: Kernel | Subject,
    text: str,
    backend: str = "cpu",
    config: CompileConfig | None = None,
    *,
    steps: Steps | None = None,
    calls: Sequence[Call] = (),
    described: KernelRecord | None = None,
    budget_s: float = 0.4,
) -> WhatIfRecord:
    """Return what the assumption ``text`` would change for a kernel on a backend.

    config: None takes the options of the running program, or the defaults. ValueError if there is
    no such assumption. The other arguments are those of `KernelCapture`.
    """
    made = assumption(text, backend)
    config = options_of(config)
    found = WhatIfRecord(
        assumption=text, title=made.title, backend=backend, change=made.change
    )  # fmt: skip
    subject = subject_of(kernel)
    options = {k: v for k, v in made.options.items() if getattr(config, k) != v}
    if made.options and not options:
        return _cannot(found, f"it holds already: {', '.join(made.options)} is set that way")
    changed = subject
    if made.unroll:
        try:
            changed = unrolled(subject, made.unroll)
        except NotUnrolledError as error:
            return _cannot(found, str(error))
    steps = steps or Steps()
    plain = KernelCapture(subject, (backend,), config, steps, calls, described)
    kind = MarkingCapture if made.independent else KernelCapture
    other = kind(changed, (backend,), config.replace(**options), steps, calls, described)
    if isinstance(other, MarkingCapture):
        other.marking = Marking(made.independent)
    pair = _Pair(plain, other, backend, budget_s, made)
    return pair.run(found)


def _cannot(found: WhatIfRecord, reason: str) -> WhatIfRecord:
    return msgspec.structs.replace(found, verdict="cannot", reason=reason)


def suggested(compiled: CompileRecord, line: int = 0) -> list[str]:
    """The assumptions that would change something that passes remarked on, by source line."""
    found = explanations(compiled, line)
    return list(dict.fromkeys(name for one in found if not one.later for name in one.assume))


def try_assumptions(
    capture: KernelCapture,
    wanted: Iterable[tuple[str, str]],
    calls: Sequence[Call] = (),
    budget_s: float = 0.4,
) -> KernelRecord:
    """Try assumptions on a captured kernel and add the results to its record.

    wanted: (backend, assumption); the backend may be empty for the first that launches compiled
    code, the assumption `SUGGESTED`.
    """
    subject = Subject(capture.kernel, capture.record.name, capture.instance)
    done: dict[tuple[str, str], WhatIfRecord] = {}
    for name, text in wanted:
        names = [b.backend for b in capture.backends if b.status == "ok" and b.backend != ORACLE]
        backend = name or (names[0] if names else "")
        compiled = next((b.compile for b in capture.backends if b.backend == backend), None)
        if compiled is None:
            continue
        for one in suggested(compiled) if text == SUGGESTED else [text]:
            if (backend, one) not in done:
                done[backend, one] = what_if(
                    subject, one, backend, capture.config, steps=ScratchSteps(capture.steps),
                    calls=calls, described=capture.record, budget_s=budget_s,
                )  # fmt: skip
    capture.record = msgspec.structs.replace(capture.record, what_ifs=tuple(done.values()))
    return capture.record


class ScratchSteps(Steps):
    """Steps of a scratch capture, whose records are not those of the kernel."""

    def __init__(self, steps: Steps) -> None:
        self._steps: Final = steps
        self.step = steps.step
        self.silent = steps.silent
        self.passing = steps.passing
        self.counted = steps.counted
        self.quarantined = steps.quarantined

    def updated(self, kernel: KernelRecord) -> None:
        pass


class ScratchLauncher(Launcher):
    """One of the two captures, launched once and then timed."""

    def overlaps(self, name: str, found: Round) -> bool:
        """True if arrays of the launch overlap."""
        compiled = self._capture.compiled(name, found.spec_keys)
        return bool(self.inputs(compiled, found).overlap())

    def launched(self, name: str, found: Round) -> tuple[Any, float]:
        """(the results of a launch, microseconds)."""
        compiled, given = self.ready(name, found)
        place = placed(compiled, given)
        start = self.starter(compiled, place, found)
        with self.limited(name, found, "launch"):
            results, took = place.launched(start)
        return self.outcome(compiled, given.values, results), took

    def interpreted(self, found: Round) -> Any:
        """The interpreter's results; None if they take too long."""
        try:
            compiled, given = self.ready(ORACLE, found)
            code = interp.compile_func(compiled.func, counted=True)
            with self.limited(ORACLE, found, "interpret"):
                results = counted(code, given.values, discard, ORACLE_STEPS_FIRST)
            return self.outcome(compiled, given.values, results)
        except (TooLong, StepLimit):
            return None

    def round(self, index: int) -> Round | None:
        """Arguments of the case with this index."""
        return self.round_of(self._capture.cases[index], index == 0)

    def contender(self, name: str, found: Round, first_us: float) -> tuple[Contender, Placed]:
        """Return what is launched again and again."""
        compiled, given = self.ready(name, found)
        place = placed(compiled, given)
        restore = place.restorer(compiled.executable.meta.written)
        start = self.timed_starter(name, compiled, place, found)
        each = share(self._budget_s, 2)
        return Contender(start, restore, each, first_us, place.clock), place


class _Pair(NamedTuple):
    """A kernel without and with an assumption."""

    plain: KernelCapture
    other: KernelCapture
    backend: str
    budget_s: float
    made: Assumption

    def run(self, found: WhatIfRecord) -> WhatIfRecord:
        """Compile, check and time both."""
        records: list[BackendRecord] = []
        for capture, which in ((self.plain, "without"), (self.other, "with")):
            capture.compile()
            capture.generate_texts(binary=False)
            record = capture.backends[0]
            if record.status != "ok" or record.compile is None:
                reason = (record.reason or _first_error(capture)).splitlines()[0]
                return _cannot(found, f"the kernel does not compile {which} it: {reason}")
            records.append(record)
        if isinstance(self.other, MarkingCapture) and self.other.marking.why:
            return _cannot(found, f"{self.plain.kernel.name} {self.other.marking.why}")
        before, after = records
        assert before.compile is not None
        assert after.compile is not None
        code = code_of(before.compile, after.compile)
        figures = figures_of(before, after, code.state)
        found = msgspec.structs.replace(
            found, counts=tuple([WhatIfCount(**msgspec.structs.asdict(x)) for x in figures])
        )
        if code.state == "same" and not self.made.noalias:
            return msgspec.structs.replace(
                found, verdict="same code", reason="the generated code is the same without it"
            )
        if before.unlaunched:
            return msgspec.structs.replace(found, reason=f"not launched: {before.unlaunched}")
        if not self.plain.cases:
            return msgspec.structs.replace(found, reason="there are no arguments to launch with")
        try:
            return self._launched(found)
        except (Exception, StepLimit) as error:
            text = (str(error) or type(error).__name__).splitlines()[0]
            return msgspec.structs.replace(found, reason=f"a launch failed: {text}")

    def _launched(self, found: WhatIfRecord) -> WhatIfRecord:
        a, b = (ScratchLauncher(side, self.budget_s) for side in (self.plain, self.other))
        name = self.backend
        if self.made.noalias:
            rounds = map(a.round, range(len(self.plain.cases)))
            if any(one is not None and a.overlaps(name, one) for one in rounds):
                return _cannot(found, "it is false: an array that a launch writes overlaps another")
            return _cannot(
                found,
                "it holds already: the arrays of the launches do not overlap, and the code is made "
                "for that; the accesses that may conflict are in one array or field",
            )
        if isinstance(self.other, MarkingCapture):
            wrong, found = self._carried(a, self.other, found)
            if wrong:
                return _cannot(found, wrong)
        found = self._checked(a, b, found)
        last = len(self.plain.cases) - 1
        rounds = a.round(last), b.round(last)
        if rounds[0] is None or rounds[1] is None:
            return msgspec.structs.replace(found, reason="the arguments cannot be made")
        ours, theirs = a.launched(name, rounds[0]), b.launched(name, rounds[1])
        if last:  # the interpreter has not seen this one
            found = self._compared(found, rounds[0].case.label, theirs[0], ours[0], _PLAIN)
        times = (ours[1], theirs[1])
        found = self._timed((a, b), (rounds[0], rounds[1]), times, found)
        if found.verdict not in ("faster", "slower"):
            return found
        # What a busy machine did to one of the two shows when both are measured once more.
        again = self._timed((a, b), (rounds[0], rounds[1]), times, found)
        if again.verdict != found.verdict:
            return msgspec.structs.replace(
                again, verdict="unknown", reason="two measurements disagree: the machine is busy",
            )  # fmt: skip
        return again if abs(again.ratio - 1.0) < abs(found.ratio - 1.0) else found

    def _carried(
        self, side: ScratchLauncher, other: MarkingCapture, found: WhatIfRecord
    ) -> tuple[str, WhatIfRecord]:
        """The reason why iterations are not independent, else empty; and the record."""
        for i in range(len(self.plain.cases)):
            one = side.round(i)
            if one is None:
                continue
            try:
                trials = Trials(self.plain, side, one, self.backend, light=True)
                wrong = carried(trials, other.marking)
            except (UnjudgedError, TooLong, StepLimit) as error:
                why = str(error) or "it takes too long"
                text = f"{one.case.label}: iterations were not followed: {why}"
            else:
                if wrong:
                    return f"{wrong} ({one.case.label})", found
                text = f"{one.case.label}: no two iterations touch an element that one writes"
            compared = f"{found.compared}; {text}" if found.compared else text
            found = msgspec.structs.replace(found, compared=compared)
        return "", found

    def _timed(
        self, sides: tuple[ScratchLauncher, ScratchLauncher], rounds: tuple[Round, Round],
        first_us: tuple[float, float], found: WhatIfRecord,
    ) -> WhatIfRecord:  # fmt: skip
        """Time both in turns, on fresh copies of the arguments."""
        name = self.backend
        one, place = sides[0].contender(name, rounds[0], first_us[0])
        two, other = sides[1].contender(name, rounds[1], first_us[1])
        text = f"timing {self.plain.kernel.name} on {name} with and without {found.assumption}"
        with self.plain.steps.step("launch", text, backend=name, kind="launch"):
            measure_together((one, two))
        label = rounds[0].case.label
        records = one.record(label, burst=1), two.record(label, burst=1)
        if records[0] is None or records[1] is None:
            raise one.error or two.error or RuntimeError("nothing was timed")
        verdicts = verdicts_of(
            [Rival(name, records[0], place.record), Rival(name, records[1], other.record)]
        )
        found = msgspec.structs.replace(
            found, workload=label, before_us=records[0].median_us, after_us=records[1].median_us
        )
        if not verdicts:
            why = "no clock has timed both in the same way"
            return msgspec.structs.replace(found, verdict="unknown", reason=why)
        said = verdicts[0]
        return msgspec.structs.replace(
            found, verdict=said.verdict, ratio=said.ratio, band=said.band, clock=said.clock,
            reason=said.reason or found.reason,
        )  # fmt: skip

    def _checked(self, a: ScratchLauncher, b: ScratchLauncher, found: WhatIfRecord) -> WhatIfRecord:
        """Compare the results of the first case with the interpreter's."""
        rounds = a.round(0), b.round(0)
        if rounds[0] is None or rounds[1] is None:
            return found
        expected = a.interpreted(rounds[0])
        against = "the interpreter"
        if expected is None:
            expected, against = a.launched(self.backend, rounds[0])[0], _PLAIN
        ours = b.launched(self.backend, rounds[1])[0]
        return self._compared(found, rounds[0].case.label, ours, expected, against)

    def _compared(
        self, found: WhatIfRecord, label: str, ours: Any, theirs: Any, against: str
    ) -> WhatIfRecord:
        if found.agreement == "differs":
            return found
        said = judged([(label, ours.compared(theirs))])
        text = f"{label}: compared with {against}"
        if said.state == "differs":
            first = said.first_difference.replace("interpreter", "expected")
            text = f"{label}: {first}"
        elif said.state == "unknown":
            text = f"{label}: {said.reason}"
        elif found.compared:
            text = f"{found.compared}; {text}"
        return msgspec.structs.replace(found, agreement=said.state, compared=text)


def _first_error(capture: KernelCapture) -> str:
    errors = capture.record.errors
    return errors[0].message if errors else "no reason is known"
