"""Rules that make a report fail, and the comparison with a baseline.

A rule is ``metric OP value``, checked for every kernel (see `metrics`)::

    ir.statements>200            an absolute limit
    ir.statements>+5%            more than 5 % above the baseline
    launch.cpu.median_us>+20%    slower than the baseline by more than 20 %, beyond all noise
    agreement!=ok                a word; `agreement` stands for every backend's
    code.cuda:sm_90.spills>0     tasks of a GPU may not spill registers
    cache.fastcache!=loaded      a layer's state: hit (or loaded), miss, bypass, off, damaged
    adstack.bytes>+0%            adstacks of a gradient kernel take more than at the baseline
    check.race!=safe             a race that is not excluded (see `engine.inspect.checking`)
    compile.error                short for compile.error>0
    launch.cuda.wall_us>50?      says nothing where there is no value
    task.2.loads>0@cfg           loads of task 2 after the last run of a pass (see `located`)
    ir.atomics>0 in step*        for kernels of this name (or id), which may have * and ?

The rule states the *failure*: it fails when it is true. With ``require `` before it, it states what
must hold: ``require task.2.loads<=4@cfg_optimization``. A metric that no record can have is an
error. One that has no value for a kernel it concerns is *unknown*, and fails like a rule that is
true; with ``?`` at the end it is skipped. A rule that concerns no kernel at all is unknown, too.

Relative rules need a baseline; a kernel that the baseline lacks is skipped. A time is compared
beyond the noise of both runs, by the judgement that verdicts on two records have
(`compare_figures.verdict_of_runs`). Where it says `unknown`, or a machine was too busy
(`machine_load`), or machines, arguments or clocks differ, the rule is *not judged*: neither passed
nor failed. Unlike there, times of the same code are judged: a rule also guards against a slower
engine, driver or setting.
"""

from __future__ import annotations

import fnmatch
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...engine.inspect.compare_figures import (
    other_arguments,
    other_machine,
    same_clock,
    verdict_of_runs,
)
from ...engine.inspect.machine_load import busy, unlike
from ...engine.inspect.record import KernelRecord, Record
from .located import Place, counted, expanded, is_counted, places_of
from .located import check as check_counted
from .metrics import (
    Metric,
    UnknownMetric,
    check_name,
    has_noise,
    is_time,
    missing,
    record_metrics,
)

__all__ = [
    "AGREEMENTS", "FAILING", "OUTCOMES", "PLACES", "STATES", "Finding", "Rule", "RuleError",
    "counts_text", "evaluate", "parse_rule",
]  # fmt: skip

FAILING: Final = ("failed", "unknown")
"""States of findings that make a report fail."""


class RuleError(ValueError):
    """A rule that cannot be read; the message says what is allowed."""


class Rule(NamedTuple):
    """A parsed rule. relative: ``limit`` is a fraction of the baseline's value (0.05 for +5%).

    optional: it ended in ``?``, and says nothing where there is no value. op: of what fails, also
    of a requirement. kernels: a pattern of their names; empty for all.
    """

    text: str
    metric: str
    op: str
    limit: float | str
    relative: bool
    optional: bool = False
    kernels: str = ""

    def concerns(self, kernel: KernelRecord) -> bool:
        """True if the rule is about a kernel of this name."""
        return not self.kernels or any(
            fnmatch.fnmatchcase(name, self.kernels) for name in (kernel.name, kernel.id)
        )


class Finding(NamedTuple):
    """The finding of a rule about a kernel.

    state: failed, passed, skipped (it does not concern the kernel), unknown (there is no value),
    not judged (a time that says nothing). message: one sentence. places: of a failure, the
    statements that count, with their source lines.
    """

    rule: str
    kernel: str
    state: str
    message: str
    places: tuple[Place, ...] = ()

    def text(self) -> str:
        """The finding in a line, and a line for each place."""
        places = [f"\n    {place}" for place in self.places[:PLACES]]
        left = len(self.places) - PLACES
        places += [f"\n    and {left} more"] if left > 0 else []
        return f"rule {self.rule}: {self.kernel}: {self.message}{''.join(places)}"


PLACES: Final = 20
"""Places of a finding that are listed."""
_NEGATED: Final = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}


STATES: Final = ("hit", "loaded", "miss", "bypass", "off", "not_applicable", "damaged")
"""The names that rules may use for the state of a layer of caches; ``loaded`` is ``hit``."""

_OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "==": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_IN: Final = re.compile(r"^(.*\S)\s+in\s+(\S+)$")
_RULE: Final = re.compile(r"^\s*([A-Za-z_][\w.:\[\]=,@* -]*?)\s*(>=|<=|!=|==|>|<)\s*(\S+)\s*$")


def parse_rule(text: str) -> Rule:
    """Read a rule; RuleError says what is wrong with it."""
    body, required = text.strip(), False
    if body.startswith("require "):
        body, required = body.removeprefix("require ").lstrip(), True
    found = _IN.match(body)
    body, kernels = found.groups() if found else (body, "")
    rule = _read(body.removesuffix("?"), text)._replace(
        optional=body.endswith("?"), kernels=kernels
    )
    if required:
        rule = rule._replace(op=_NEGATED[rule.op])
    try:
        if is_counted(rule.metric):
            check_counted(rule.metric)
        else:
            check_name(rule.metric)
    except UnknownMetric as error:
        raise RuleError(f"rule {text!r}: {error}") from None
    if rule.relative and is_time(rule.metric) and not has_noise(rule.metric):
        raise RuleError(
            f"rule {text!r}: {rule.metric} is measured too seldom to know its noise, so it is not "
            "compared with a baseline; give a fixed limit, or use median_us or wall_us of a launch"
        )
    family = rule.metric.split(".")[0]
    if family == "agreement":
        _check_word(rule, AGREEMENTS, "verdict")
    elif family == "check":
        _check_word(rule, OUTCOMES, "verdict")
    elif family == "cache":
        return _of_cache(rule)
    elif isinstance(rule.limit, str) or not math.isfinite(rule.limit):
        raise RuleError(f"rule {text!r}: {rule.metric} is a number; compare it with a finite one")
    return rule


AGREEMENTS: Final = ("ok", "differs", "unknown")
"""The names that rules may use for a verdict."""
OUTCOMES: Final = ("safe", "fault", "unknown")
"""Those of a check."""


def _check_word(rule: Rule, words: Sequence[str], what: str) -> None:
    if rule.limit not in words or rule.op not in ("==", "!="):
        raise RuleError(
            f"rule {rule.text!r}: {rule.metric} is a {what}: write == or != and one of "
            f"{', '.join(words)}"
        )


def _of_cache(rule: Rule) -> Rule:
    """A rule about a layer of caches, with the word that records have for its state."""
    _check_word(rule, STATES, "state of a cache")
    return rule._replace(limit="hit") if rule.limit == "loaded" else rule


def _read(rule: str, text: str) -> Rule:
    """The parts of ``rule``; text: as it was written."""
    if re.fullmatch(r"\s*[A-Za-z_][\w.:@*]*\s*", rule):
        return Rule(text, rule.strip(), ">", 0.0, False)
    match = _RULE.match(rule)
    if match is None:
        raise RuleError(
            f"cannot read rule {text!r}: write METRIC OP VALUE, such as ir.statements>+5% "
            "or agreement!=ok"
        )
    metric, op, value = match.groups()
    value, at, after = value.partition("@")
    metric += at + after  # loads<=4@PASS is loads@PASS<=4
    if value.endswith("%") and (op in ("==", "!=") or value[0] not in "+-"):
        raise RuleError(
            f"cannot read rule {text!r}: a percentage compares with the baseline and needs "
            "a sign and one of > >= < <=, such as >+5%"
        )
    relative = value.endswith("%")
    try:
        limit = float(value[:-1]) / 100 if relative else float(value)
    except ValueError:
        if op not in ("==", "!="):
            raise RuleError(
                f"cannot read rule {text!r}: {value!r} is not a number; words take == or !="
            ) from None
        return Rule(text, metric, op, value, False)
    if not math.isfinite(limit):  # nothing is above or below it: such a rule could only pass
        raise RuleError(f"cannot read rule {text!r}: {value!r} is no limit; write a finite number")
    return Rule(text, metric, op, limit, relative)


def evaluate(
    record: Record,
    rules: Sequence[str],
    baseline: Record | None = None,
    asked: Container[str] = (),
) -> list[Finding]:
    """Check every rule against every kernel. RuleError for an unreadable or unusable rule.

    asked: backends that were named one by one: `agreement` stands for these, too, where they are
    absent or cannot launch.
    """
    parsed = [parse_rule(text) for text in rules]
    for rule in parsed:
        if rule.relative and baseline is None:
            raise RuleError(f"rule {rule.text!r} compares with a baseline; give --baseline FILE")
    now = record_metrics(record)
    before = record_metrics(baseline) if baseline is not None else {}
    old = {k.id: k for k in baseline.kernels} if baseline is not None else {}
    machines = other_machine(baseline.tool, record.tool) if baseline is not None else ""
    out: list[Finding] = []
    for rule in parsed:
        found: list[Finding] = []
        for kernel in filter(rule.concerns, record.kernels):
            for name in _names(rule, kernel, asked):
                if is_counted(name):
                    found.append(_count(rule, kernel, name, old.get(kernel.id)))
                    continue
                metric = now[kernel.id].get(name)
                if metric is None:
                    found.append(_without(rule, kernel, name))
                else:
                    known = before.get(kernel.id)
                    why = _apart(name, (old.get(kernel.id), kernel), (known, metric)) or machines
                    one = _check(rule, kernel.id, name, metric, known, why)
                    found.append(_placed(one, kernel, name))
        if not found or (not rule.optional and all(f.state == "skipped" for f in found)):
            why = f": {found[0].kernel} {found[0].message}" if found else ""
            text = f"the rule concerns no kernel{why}"
            found.append(Finding(rule.text, "", _unknown(rule), text))
        out += found
    return out


def counts_text(findings: Sequence[Finding]) -> str:
    """``1 failed of 3``, ``1 failed, 2 unknown of 3``."""
    found = Counter(f.state for f in findings)
    parts = [f"{found['failed']} failed"]
    parts += [f"{found[state]} {state}" for state in ("unknown", "not judged") if found[state]]
    return f"{', '.join(parts)} of {len(findings)}"


def _names(rule: Rule, kernel: KernelRecord, asked: Container[str]) -> list[str]:
    """The metrics of ``kernel`` that a rule is about."""
    if rule.metric != "agreement":
        return expanded(rule.metric, kernel) if is_counted(rule.metric) else [rule.metric]
    found = [
        f"agreement.{b.backend}"
        for b in kernel.backends
        if b.backend != "interp"
        and (b.backend in asked or not (b.status == "absent" or b.unlaunched))
    ]
    return found or ["agreement"]


def _unknown(rule: Rule, word: str = "unknown") -> str:
    return "skipped" if rule.optional else word


def _without(rule: Rule, kernel: KernelRecord, name: str) -> Finding:
    """The finding of a rule about a kernel that has no such metric."""
    foreign, why = missing(kernel, name)
    return Finding(rule.text, kernel.id, "skipped" if foreign else _unknown(rule), why)


def _placed(found: Finding, kernel: KernelRecord, name: str) -> Finding:
    """A failure with the statements that count."""
    if found.state != "failed":
        return found
    return found._replace(places=tuple(places_of(kernel, name)))


def _count(rule: Rule, kernel: KernelRecord, name: str, before: KernelRecord | None) -> Finding:
    """The finding of a rule about a metric that is counted for it."""
    found = counted(kernel, name)
    if found.metric is None:
        return Finding(
            rule.text, kernel.id, "skipped" if found.foreign else _unknown(rule), found.why
        )
    metrics: dict[str, Metric] | None = None
    if rule.relative and before is not None:
        old = counted(before, name)
        metrics = {} if old.metric is None else {name: old.metric}
    one = _check(rule, kernel.id, name, found.metric, metrics)
    return one._replace(places=tuple(found.places)) if one.state == "failed" else one


def _apart(
    name: str,
    kernels: tuple[KernelRecord | None, KernelRecord],
    metrics: tuple[Mapping[str, Metric] | None, Metric],
) -> str:
    """The reason why a time of launches is not comparable with the baseline's; empty if it is."""
    (old, new), (known, now) = kernels, metrics
    before = known.get(name) if known is not None else None
    if old is None or before is None or before.launch is None or now.launch is None:
        return ""
    launches = before.launch, now.launch
    if name.endswith(".median_us") and not same_clock(*launches):
        return "they were timed by different clocks"
    return other_arguments((old, new), launches)


def _check(
    rule: Rule, kernel: str, name: str, now: Metric, before: Mapping[str, Metric] | None,
    apart: str = "",
) -> Finding:  # fmt: skip
    """The finding about a metric. apart: why a time is not comparable with the baseline's."""
    compare = _OPS[rule.op]
    if not rule.relative:
        if isinstance(rule.limit, str) != isinstance(now.value, str):
            raise RuleError(f"rule {rule.text!r}: {name} is {now.value!r}, not comparable")
        tripped = compare(now.value, rule.limit)
        text = f"{name} is {_show(now.value)}{': ' if now.why else ''}{now.why}"
        why = busy(now.launch.load) if tripped and _by_wall(name, now) and now.launch else ""
        if why:
            return Finding(rule.text, kernel, _unknown(rule, "not judged"), f"{text}, but {why}")
        return Finding(rule.text, kernel, "failed" if tripped else "passed", text)
    if before is None:
        return Finding(rule.text, kernel, "skipped", "is not in the baseline")
    old = before.get(name)
    if old is None:
        return Finding(rule.text, kernel, _unknown(rule), f"the baseline has no {name}")
    if isinstance(now.value, str) or isinstance(old.value, str) or isinstance(rule.limit, str):
        raise RuleError(f"rule {rule.text!r}: {name} is not a number")
    change = (now.value - old.value) / old.value if old.value else math.inf * (now.value > 0 or 0)
    if not old.value and not now.value:
        change = 0.0
    text = f"{name} {_show(old.value)} -> {_show(now.value)} ({change:+.1%})"
    tripped = compare(change, rule.limit)
    if is_time(name):
        return _timed(rule, kernel, name, (now, old), (change, tripped), text, apart)
    return Finding(rule.text, kernel, "failed" if tripped else "passed", text)


def _by_wall(name: str, metric: Metric) -> bool:
    """True for a time of launches that other programs on the machine make longer."""
    device = metric.launch is not None and metric.launch.by_device and name.endswith(".median_us")
    return has_noise(name) and not device


def _timed(
    rule: Rule, kernel: str, name: str, pair: tuple[Metric, Metric], found: tuple[float, bool],
    text: str, why: str,
) -> Finding:  # fmt: skip
    """A time against its baseline. found: (relative change, True if the rule trips by it). why:
    it is not comparable."""
    (now, old), (change, tripped) = pair, found
    limit = rule.limit
    assert now.launch is not None and old.launch is not None and not isinstance(limit, str)
    if not why and _by_wall(name, now):
        # A baseline that was measured too slow hides what became slower.
        why = unlike(now.launch, old.launch) if tripped else busy(old.launch.load)
    if why:
        return Finding(rule.text, kernel, _unknown(rule, "not judged"), f"{text}: {why}")
    runs, times = (old.launch, now.launch), (old.samples, now.samples)
    band, verdict, why = verdict_of_runs(runs, times, 1 + change, 1 + limit)
    text += "" if band is None else f", band {band:.1%}"
    if not tripped:
        return Finding(rule.text, kernel, "passed", text)
    if verdict == "unknown":
        return Finding(rule.text, kernel, _unknown(rule, "not judged"), f"{text}: {why}")
    if verdict == "within noise":
        return Finding(rule.text, kernel, "passed", f"{text}, within noise")
    return Finding(rule.text, kernel, "failed", text)


def _show(value: int | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
