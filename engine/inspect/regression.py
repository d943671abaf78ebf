"""Find what made a kernel's code worse by a metric: `bisect_metric`.

::

    good side ── its figure ┐
                            ├─ the fewest differences of the sides that make it worse
    bad side  ── its figure ┘        │
                                     └─ the run of a pass without which it is not worse

A figure counts as bad if it is nearer to that of the bad side than to that of the good side. A run
is at fault if the bad side is good without it, or the good side bad without it: each is a compile
of its own, so what is named is a cause. Without a good side, each optional run is left out in turn,
and the one without which the figure is best is named. Where no optional run is at fault, both
sides are compared pass by pass, and the first run after which the figure (or, of figures of the
code, the IR) stays different is named.

Times are measured in turns, and count only beyond their noise, twice.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from ..named_tuple import NamedTuple
from ..passes import registry
from .ir_counts import UncountedError, statements
from .metrics import (
    AS_IT_IS,
    COUNTED,
    RunKey,
    RunKeys,
    Side,
    check_metric,
    measure,
    named,
    times_in_turns,
    variant,
)
from .record import RunNames
from .record_bisection import Bisection, ChangedOp
from .trials import UnjudgedError

if TYPE_CHECKING:
    from .capture import KernelCapture
    from .record_compile import CompileRecord, PassRun, Snapshot

__all__ = ["bisect_metric"]

_SEARCH_S: Final = 40.0
_MOST_RUNS: Final = 400
_LINES: Final = 5
_LESS_IS_WORSE: Final = ("vector-width",)


class _Cause(NamedTuple):
    """run: of the pass at fault; its ``index`` is -1 for all runs of a stage or pass. value: the
    figure without it (of the good side: with it left out)."""

    key: RunKey
    value: float
    run: PassRun
    good_side: bool


def bisect_metric(
    capture: KernelCapture, backend: str, metric: str, good: Side | None = None,
    bad: Side = AS_IT_IS,
) -> Bisection:  # fmt: skip
    """Find the cause that the kernel of ``capture`` is worse on the bad side than on the good one.

    good: None for none, see the module docstring. ValueError if there is no such metric.
    """
    check_metric(metric)
    names = [b.backend for b in capture.backends if b.backend != "interp"]
    search = _Search(capture, backend or (names[0] if names else "cpu"), metric, good, bad)
    try:
        return search.run()
    except (UnjudgedError, UncountedError) as error:
        return search.result("unknown", reason=str(error))


class _Search:
    """One search. Figures are kept so that more is worse."""

    def __init__(
        self, capture: KernelCapture, backend: str, metric: str, good: Side | None, bad: Side
    ) -> None:
        self._capture: Final = capture
        self._backend: Final = backend
        self._metric: Final = metric
        self._asked: Final = good
        self._good: Side = bad if good is None else good
        self._bad: Side = bad
        self._began: Final = time.monotonic()
        self._made: dict[Side, KernelCapture] = {}
        self._values: dict[Side, float] = {}
        self._settings: tuple[str, ...] = ()
        self._trials = 0

    # ---- figures

    @property
    def _late(self) -> bool:
        return time.monotonic() - self._began > _SEARCH_S

    @property
    def _timed(self) -> bool:
        return self._metric == "time"

    def _variant(self, side: Side) -> KernelCapture:
        found = self._made.get(side)
        if found is None:
            self._trials += 1
            found = variant(self._capture, self._backend, side)
            if side.keys == frozenset():
                self._made[side] = found
        return found

    def _value(self, side: Side) -> float:
        """The figure of a side. Of times: that over the time of the good side, 1 within noise."""
        found = self._values.get(side)
        if found is not None:
            return found
        text = f"bisecting {self._capture.record.name}: {self._metric}, trial {self._trials + 1}"
        with self._capture.steps.step("bisect", text, backend=self._backend, kind="compile"):
            made = self._variant(side)
            if self._timed:
                value = 1.0 if side == self._good else self._ratio(made)
            else:
                value = measure(made, self._metric)
                value = -value if self._metric in _LESS_IS_WORSE else value
        self._values[side] = value
        return value

    def _ratio(self, made: KernelCapture) -> float:
        base = self._variant(self._good)
        found = [times_in_turns([base, made])[0]]
        if found[0].verdict not in ("faster", "slower"):
            return 1.0
        found.append(times_in_turns([base, made])[0])
        if found[1].verdict != found[0].verdict:
            return 1.0
        return min((one.ratio for one in found), key=lambda r: abs(math.log(r)))

    def _is_bad(self, value: float) -> bool:
        """True if a figure is nearer to that of the bad side."""
        good, bad = self._value(self._good), self._value(self._bad)
        if self._timed:
            return value > math.sqrt(good * bad)
        return value > (good + bad) / 2

    # ---- the search

    def run(self) -> Bisection:
        """Shrink the differences of the sides, then find the run."""
        bad = self._value(self._bad)
        if self._asked is None:
            return self._without_a_good_side(bad)
        if bad <= self._value(self._good):
            why = "the bad side is no worse than the good one"
            if bad < self._value(self._good):
                why = (
                    "the bad side is the better one; swap --good and --bad to ask what improved it"
                )
            return self.result("agrees", reason=why)
        wholly_bad = self._bad
        self._settings = tuple(self._shrink())
        cause = (
            self._best(self._causes_of_passes())
            or self._best(self._causes_of_bad())
            or self._best(self._causes_of_good())
        )
        if cause is not None:
            what = "is bad without it" if cause.good_side else "is good without it"
            side = "good" if cause.good_side else "bad"
            return self._found(cause, f"the {side} side {what}")
        found = self._parting()
        self._bad = self._bad if self._settings else wholly_bad
        return found

    def _without_a_good_side(self, bad: float) -> Bisection:
        better = [one for one in self._causes(self._bad, False) if one.value < bad]
        cause = self._best(iter(better))
        if cause is None:
            why = "no optional pass makes it worse: leaving out any one of them does not help"
            return self.result("agrees", reason=why)
        self._good = self._bad.skipping(cause.key)
        self._values.setdefault(self._good, cause.value)
        if self._timed:  # the ratios were those over the side as it is
            self._values = {self._good: 1.0, self._bad: 1.0 / cause.value}
        return self._found(cause, "it is better without this run")

    def _shrink(self) -> Iterator[str]:
        """Reduce the bad side to the fewest differences that are bad; yields them in words."""
        good, bad = self._good, self._bad
        a, b = dict(good.options), dict(bad.options)
        default = self._capture.config
        parts: list[tuple[str, Callable[[Side], Side]]] = []
        for name in dict.fromkeys([*a, *b]):
            old, new = a.get(name, getattr(default, name)), b.get(name, getattr(default, name))
            if old != new:
                parts.append((f"{name}: {old!r} -> {new!r}", _option(name, new)))
        for name in dict.fromkeys([*good.without, *bad.without]):
            if name not in good.without:
                parts.append((f"without {name}", _left_out(name, True)))
            elif name not in bad.without:
                parts.append((f"with {name}", _left_out(name, False)))

        def side(chosen: list[tuple[str, Callable[[Side], Side]]]) -> Side:
            made = good
            for _, change in chosen:
                made = change(made)
            return made

        single = [(self._value(side([one])), one) for one in parts] if len(parts) > 1 else []
        worst = max(single, key=lambda pair: pair[0], default=None)
        if worst is not None and self._is_bad(worst[0]):
            parts = [worst[1]]
        else:
            for one in list(parts):
                rest = [x for x in parts if x is not one]
                if rest and self._is_bad(self._value(side(rest))):
                    parts = rest
        self._bad = side(parts)
        yield from (text for text, _ in parts)

    def _causes_of_passes(self) -> Iterator[_Cause]:
        """Of the runs of a pass that one side leaves out, those that make the difference."""
        for names, others, good_side in (
            (self._bad.without, self._good.without, True),
            (self._good.without, self._bad.without, False),
        ):
            only = set(names) - set(others)
            side = self._good if good_side else self._bad
            for one in self._causes(side, True, only) if only else ():
                if self._is_bad(one.value) == good_side:
                    value = -one.value if good_side else one.value
                    yield one._replace(good_side=good_side, value=value)

    def _causes_of_bad(self) -> Iterator[_Cause]:
        """Without these the bad side is good."""
        for one in self._causes(self._bad, True):
            if not self._is_bad(one.value) and self._closes(one):
                yield one

    def _closes(self, cause: _Cause) -> bool:
        """True if both sides are alike without the run: what helps both is no difference."""
        good, bad = self._value(self._good), self._value(self._bad)
        try:
            other = self._value(self._good.skipping(cause.key))
        except UnjudgedError:
            return True
        if self._timed:
            return cause.value / other < math.sqrt(bad / good)
        return cause.value - other < (bad - good) / 2

    def _causes_of_good(self) -> Iterator[_Cause]:
        """Without these the good side is bad."""
        own = {key[:2] for key, _ in self._runs(self._bad)}
        for one in self._causes(self._good, True):
            if self._is_bad(one.value) and (one.key[:2] not in own or self._bad.without):
                yield one._replace(good_side=True, value=-one.value)

    def _best(self, causes: Iterator[_Cause]) -> _Cause | None:
        """The one that helps most; of equal ones the one with the fewest runs, then the first."""
        return min(causes, key=lambda one: (one.value, -len(one.key), one.run.index), default=None)

    def _runs(self, side: Side) -> list[tuple[RunKey, PassRun]]:
        """The optional runs of a side that changed something."""
        keys = RunKeys()
        runs = [(keys.next(run), run) for run in _compiled(self._variant(side)).runs]
        return [
            (key, run)
            for key, run in runs
            if run.state == "changed" and registry.get(run.name).optional
        ]

    def _causes(self, side: Side, judged: bool, only: Collection[str] = ()) -> Iterator[_Cause]:
        """Each optional pass in each stage left out, then single runs of those that matter.
        judged: such a one turns good into bad, or bad into good. only: of these passes."""
        runs = [(key, run) for key, run in self._runs(side) if not only or run.name in only]
        base = self._value(side)
        useful: set[RunKey] = set()
        found = False
        # A pass in a stage, then its single runs; whole passes only if that shows nothing.
        for size in (2, 5, 1):
            groups: dict[RunKey, PassRun] = {}
            for key, run in runs[:_MOST_RUNS]:
                groups.setdefault(key[:size], run)
            for key, run in groups.items():
                if self._late or (size == 5 and key[:2] not in useful) or (size == 1 and found):
                    continue
                try:
                    value = self._value(side.skipping(key))
                except UnjudgedError:
                    continue
                wanted = value < base if not judged else self._is_bad(value) != self._is_bad(base)
                found = found or wanted
                if wanted:
                    useful.add(key)
                yield _Cause(key, value, run, False)

    # ---- where the sides part

    def _parting(self) -> Bisection:
        """The first run after which the sides stay different."""
        old, new = (_compiled(self._variant(side)) for side in (self._good, self._bad))
        counted = self._metric in COUNTED

        def figure(compiled: CompileRecord, at: int) -> Any:
            shot = compiled.snapshots[at]
            if counted:
                return len(statements(compiled, shot, self._metric))
            return shot.lines

        why = "it is worse after this run, and not before" if counted else (
            "the IR of both sides is the same before this run, and no longer after it"
        )  # fmt: skip
        if figure(old, 0) != figure(new, 0):
            return self._result_found(
                "frontend", reason="both sides differ before any pass: the options of the language"
            )
        pairs = list(_aligned(old, new))
        last: PassRun | None = None
        for mine, theirs in reversed(pairs):
            if figure(old, mine.after) == figure(new, theirs.after):
                break
            last = theirs
        if last is None:
            return self._result_found(
                "code", reason="the IR is the same after every pass: the code is made differently"
            )
        return self._found(_Cause(RunKeys().next(last), 0.0, last, False), why)

    # ---- results

    def _found(self, cause: _Cause, reason: str) -> Bisection:
        run, size = cause.run, len(cause.key)
        return self._result_found(
            "pass", reason=reason, pass_name=run.name, stage=run.stage if size > 1 else "",
            round=run.round if size > 2 else 0, task=run.task if size > 2 else None,
            run=run.index if size > 2 else -1,
        )  # fmt: skip

    def _result_found(self, part: str, **fields: Any) -> Bisection:
        changes, more = self._lines() if self._metric in COUNTED else ((), 0)
        return self.result(
            "found", part=part, evidence="metric", changes=changes, more=more, **fields
        )

    def _lines(self) -> tuple[tuple[ChangedOp, ...], int]:
        """The source lines with more of what is counted on the bad side."""
        counts: list[Counter[tuple[str, int]]] = []
        for side in (self._good, self._bad):
            compiled = _compiled(self._variant(side))
            found = statements(compiled, _last(compiled), self._metric)
            counts.append(Counter((s.file, s.line) for s in found))
        more = {at: n - counts[0][at] for at, n in counts[1].items() if n > counts[0][at] and at[1]}
        worst = sorted(more, key=lambda at: (-more[at], at))
        return tuple([
            ChangedOp(op=-1, before=f"{counts[0][at]} {self._metric}",
                      after=f"{counts[1][at]} {self._metric}", file=at[0], line=at[1])
            for at in worst[:_LINES]
        ]), max(0, len(worst) - _LINES)  # fmt: skip

    def _figure(self, side: Side) -> float:
        value = self._values.get(side)
        return math.nan if value is None else abs(value)

    def result(self, state: str, **fields: Any) -> Bisection:
        """A result with the figures so far."""
        good, bad = self._figure(self._good), self._figure(self._bad)
        return Bisection(
            kernel=self._capture.record.name, backend=self._backend, state=state,
            metric=self._metric, good=_shown(self._metric, good), bad=_shown(self._metric, bad),
            sides=() if self._asked is None else (named(self._asked), named(self._bad)),
            settings=self._settings, trials=self._trials,
            seconds=time.monotonic() - self._began, **fields,
        )  # fmt: skip


def _shown(metric: str, value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3g} of its time" if metric == "time" else f"{value:,.0f}"


def _option(name: str, value: Any) -> Callable[[Side], Side]:
    def change(side: Side) -> Side:
        kept = [(n, v) for n, v in side.options if n != name]
        return side._replace(options=(*kept, (name, value)))

    return change


def _left_out(name: str, out: bool) -> Callable[[Side], Side]:
    """A side that leaves a pass out, or does not."""
    more = (name,) if out else ()
    return lambda side: side._replace(without=(*(n for n in side.without if n != name), *more))


def _compiled(capture: KernelCapture) -> CompileRecord:
    compiled = capture.backends[0].compile
    assert compiled is not None
    return compiled


def _last(compiled: CompileRecord) -> Snapshot:
    return compiled.snapshots[compiled.runs[-1].after if compiled.runs else -1]


def _aligned(old: CompileRecord, new: CompileRecord) -> Iterator[tuple[PassRun, PassRun]]:
    """The runs of the new compile, each with the last run of the old one up to it."""
    mine = dict(zip(RunNames.of(old.runs), old.runs, strict=True))
    before = old.runs[0] if old.runs else None
    for name, run in zip(RunNames.of(new.runs), new.runs, strict=True):
        before = mine.get(name, before)
        if before is not None:
            yield before, run
