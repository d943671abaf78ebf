"""Verdicts on races, indices and values that are not set, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....engine.inspect.record import CheckFinding, CheckRecord, CheckVerdict
from ..lines import Line

__all__ = ["TITLES", "check_lines", "check_style", "counts"]

TITLES: Final = {
    "race": "races", "bounds": "indices", "uninitialised": "values that are not set",
}  # fmt: skip
_STYLES: Final = {"safe": "ok", "fault": "bad", "unknown": "warn"}
_WIDTH: Final = max(map(len, TITLES.values()))


def check_style(outcome: str) -> str:
    """The style of an outcome."""
    return _STYLES.get(outcome, "dim")


def check_lines(found: CheckRecord) -> list[Line]:
    """A line a verdict, then what it assumes, or the findings with their source lines."""
    out: list[Line] = []
    for verdict in found.verdicts:
        out += _verdict(verdict)
    if found.launches:
        labels = ", ".join(found.launches)
        out.append(_row("followed", f"{labels} ({found.accesses:,} accesses of shared memory)"))
    elif found.unfollowed:
        out.append(_row("followed", f"no launch to its end: {found.unfollowed}"))
    return out


def _verdict(verdict: CheckVerdict) -> list[Line]:
    title = TITLES.get(verdict.check, verdict.check)
    style = check_style(verdict.outcome)
    reason = f"  {verdict.reason}" if verdict.reason else ""
    head = ((f"     {title:<{_WIDTH}}  ", "head"), (verdict.outcome, style), (reason, "dim"))
    out = [Line(head, ("check", verdict.check), f"{title}: {verdict.outcome}{reason}")]
    for finding in verdict.findings:
        out += _finding(finding)
    if verdict.outcome == "safe":
        out += [_row("assumes", text) for text in verdict.assumptions]
    return out


def _finding(found: CheckFinding) -> list[Line]:
    texts = found.rendered.splitlines() or [found.message]
    style = "bad" if found.state == "fault" else ""
    out: list[Line] = []
    for i, text in enumerate(texts):
        last = i == len(texts) - 1
        spans = ((" " * 9, "gutter"), (text, style if last else "dim"))
        out.append(Line(spans, ("check", found.message), found.message, line=found.line))
    if found.workload:
        out.append(_row("launch", found.workload))
    return out


def _row(name: str, value: str) -> Line:
    return Line(((" " * 9, "gutter"), (f"{name:<10}", "dim"), (value, "")), None, value)


def counts(found: Sequence[CheckRecord]) -> str:
    """``2 faults, 3 unknown, 10 safe``."""
    outcomes = [v.outcome for one in found for v in one.verdicts]
    faults, unknown = outcomes.count("fault"), outcomes.count("unknown")
    many = "" if faults == 1 else "s"
    return f"{faults} fault{many}, {unknown} unknown, {outcomes.count('safe')} safe"
