"""Gates: rules that make a report fail, and the comparison with a baseline.

A rule is ``metric OP value``, checked for every kernel that has the metric (see `metrics`)::

    ir.statements>200            an absolute limit
    ir.statements>+5%            more than 5 % above the baseline
    launch.cpu.median_us>+20%    slower than the baseline by more than 20 % and by more than noise
    agreement!=ok                a word; `agreement` stands for every backend's
    code.cuda:sm_90.spills>0     tasks of a GPU may not spill registers
    cache.fastcache!=loaded      a layer's state: hit (or loaded), miss, bypass, off, damaged
    adstack.bytes>+0%            adstacks of a gradient kernel take more than at the baseline
    compile.error                short for compile.error>0

The rule states the *failure*: a gate trips when it is true. Relative rules need a baseline; a
kernel that the baseline lacks is skipped and said so. A time is compared with a noise verdict:
a difference within three combined median absolute deviations is "within noise" and never trips.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...engine.inspect.record import Record
from .metrics import FAMILIES, Metric, is_time, record_metrics

__all__ = ["Finding", "Rule", "RuleError", "evaluate", "parse_rule", "verdict"]


class RuleError(ValueError):
    """A rule that cannot be read; the message says what is allowed."""


class Rule(NamedTuple):
    """A parsed rule. relative: ``limit`` is a fraction of the baseline's value (0.05 for +5%)."""

    text: str
    metric: str
    op: str
    limit: float | str
    relative: bool


class Finding(NamedTuple):
    """What a rule said about a kernel. state: failed, passed, skipped. message: one sentence."""

    rule: str
    kernel: str
    state: str
    message: str


STATES: Final = ("hit", "loaded", "miss", "bypass", "off", "not_applicable", "damaged")
"""What rules may call the state of a layer of caches; ``loaded`` is ``hit``."""

_OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "==": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_RULE: Final = re.compile(r"^\s*([A-Za-z_][\w.:\[\]=, -]*?)\s*(>=|<=|!=|==|>|<)\s*(\S+)\s*$")


def parse_rule(text: str) -> Rule:
    """Read a rule; RuleError says what is wrong with it."""
    rule = _read(text)
    if rule.metric.split(".")[0] not in FAMILIES:
        raise RuleError(
            f"rule {text!r}: there is no metric {rule.metric!r}; metrics begin with "
            f"{', '.join(FAMILIES)}"
        )
    return _of_cache(rule) if rule.metric.split(".")[0] == "cache" else rule


def _of_cache(rule: Rule) -> Rule:
    """A rule about a layer of caches, with the word that records have for its state."""
    if isinstance(rule.limit, str) and rule.limit not in STATES:
        raise RuleError(
            f"rule {rule.text!r}: {rule.limit!r} is no state of a cache; there are "
            f"{', '.join(STATES)}"
        )
    return rule._replace(limit="hit") if rule.limit == "loaded" else rule


def _read(text: str) -> Rule:
    if re.fullmatch(r"\s*[A-Za-z_][\w.:]*\s*", text):
        return Rule(text, text.strip(), ">", 0.0, False)
    match = _RULE.match(text)
    if match is None:
        raise RuleError(
            f"cannot read rule {text!r}: write METRIC OP VALUE, such as ir.statements>+5% "
            "or agreement!=ok"
        )
    metric, op, value = match.groups()
    if value.endswith("%") and (op in ("==", "!=") or value[0] not in "+-"):
        raise RuleError(
            f"cannot read rule {text!r}: a percentage compares with the baseline and needs "
            "a sign and one of > >= < <=, such as >+5%"
        )
    try:
        if value.endswith("%"):
            return Rule(text, metric, op, float(value[:-1]) / 100, True)
        return Rule(text, metric, op, float(value), False)
    except ValueError:
        if op not in ("==", "!="):
            raise RuleError(
                f"cannot read rule {text!r}: {value!r} is not a number; words take == or !="
            ) from None
        return Rule(text, metric, op, value, False)


def verdict(now: Metric, before: Metric) -> str:
    """``better``, ``worse`` or ``within noise`` for a time against its baseline."""
    if not isinstance(now.value, (int, float)) or not isinstance(before.value, (int, float)):
        return "within noise" if now.value == before.value else "worse"
    noise = 3 * math.hypot(now.spread, before.spread)
    difference = now.value - before.value
    if abs(difference) <= noise:
        return "within noise"
    return "worse" if difference > 0 else "better"


def evaluate(record: Record, rules: Sequence[str], baseline: Record | None = None) -> list[Finding]:
    """Check every rule against every kernel. RuleError for an unreadable or unusable rule."""
    parsed = [parse_rule(text) for text in rules]
    for rule in parsed:
        if rule.relative and baseline is None:
            raise RuleError(f"rule {rule.text!r} compares with a baseline; give --baseline FILE")
    now = record_metrics(record)
    before = record_metrics(baseline) if baseline is not None else {}
    out: list[Finding] = []
    for rule in parsed:
        for kernel, metrics in now.items():
            names = [n for n in metrics if n == rule.metric or n.startswith(rule.metric + ".")]
            if rule.metric in names:
                names = [rule.metric]
            if not names:
                out.append(Finding(rule.text, kernel, "skipped", f"has no {rule.metric}"))
            for name in names:
                old = before.get(kernel, {}).get(name)
                out.append(_check(rule, kernel, name, metrics[name], old))
        if not now:
            out.append(Finding(rule.text, "", "skipped", "no kernels"))
        _known(rule, now)
    return out


def _known(rule: Rule, now: Mapping[str, Mapping[str, Metric]]) -> None:
    """RuleError for a statement count that no compiled kernel has: a slip that would never trip."""
    names = {name for metrics in now.values() for name in metrics if name.startswith("ir.")}
    if rule.metric.startswith("ir.") and names and rule.metric not in names:
        raise RuleError(
            f"rule {rule.text!r}: there is no {rule.metric}; there are {', '.join(sorted(names))}"
        )


def _check(rule: Rule, kernel: str, name: str, now: Metric, old: Metric | None) -> Finding:
    compare = _OPS[rule.op]
    if not rule.relative:
        if isinstance(rule.limit, str) != isinstance(now.value, str):
            raise RuleError(f"rule {rule.text!r}: {name} is {now.value!r}, not comparable")
        tripped = compare(now.value, rule.limit)
        text = f"{name} is {_show(now.value)}{': ' if now.why else ''}{now.why}"
        return Finding(rule.text, kernel, "failed" if tripped else "passed", text)
    if old is None:
        return Finding(rule.text, kernel, "skipped", f"the baseline has no {name}")
    if isinstance(now.value, str) or isinstance(old.value, str) or isinstance(rule.limit, str):
        raise RuleError(f"rule {rule.text!r}: {name} is not a number")
    change = (now.value - old.value) / old.value if old.value else math.inf * (now.value > 0 or 0)
    if not old.value and not now.value:
        change = 0.0
    text = f"{name} {_show(old.value)} -> {_show(now.value)} ({change:+.1%})"
    tripped = compare(change, rule.limit)
    if tripped and is_time(name) and verdict(now, old) == "within noise":
        return Finding(rule.text, kernel, "passed", text + ", within noise")
    return Finding(rule.text, kernel, "failed" if tripped else "passed", text)


def _show(value: int | float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
