"""The verdict on a gradient as lines: for ``qd-studio check-grad``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ....engine.inspect.record_gradient import (
    GradientCount,
    GradientEntry,
    GradientReport,
    GradientStep,
)
from ..lines import Line
from .source_lines import source_at

__all__ = ["gradient_lines"]

_STYLES = {"right": "ok", "wrong": "bad", "unknown": "warn"}
_CAUSES = {
    "rule": "the rule of an operation",
    "race": "a race",
    "overwritten": "an overwritten value",
    "custom": "a gradient of the author's",
    "kink": "a point without a unique derivative",
    "noise": "rounding",
    "other": "the gradient kernel",
}


def gradient_lines(found: GradientReport, texts: Mapping[str, str] | None = None) -> Iterator[Line]:
    """The worst entry, the cause, and the path from the loss. texts: of files, by path."""
    texts = texts or {}
    name = found.kernel + (f" on {found.backend}" if found.backend else "")
    yield Line(((f"{name}: ", "title"), (_headline(found), _STYLES[found.state])))
    facts = [("reason", found.reason), ("cause", _CAUSES.get(found.cause, "")), ("why", found.why)]
    if found.line:
        where = f"{os.path.basename(found.file)}:{found.line}"
        facts.append(("where", f"{where}  {source_at(texts, found.file, found.line).strip()}"))
    if found.name:
        facts += [
            ("reverse", _reverse(found)),
            ("differences", f"{_number(found.differences)}   from below {_number(found.below)}, "
             f"from above {_number(found.above)}, step {found.step:.3g}"),
            ("forward", _number(found.forward)),
            ("error", "" if found.reverse is None else
             f"{found.error:.3g}, allowed {found.tolerance:.3g} ({found.dtype})"),
        ]  # fmt: skip
    facts.append(("wrong", ", ".join(map(_count, found.counts))))
    if found.entries:
        facts.append(("covered", f"{found.entries:,} elements in {found.evaluations} runs"))
    facts.append(("with", found.workload))
    for label, text in facts:
        if text:
            yield Line(((f"  {label:<12}", "dim"), (text, "")))
    if found.path:
        yield Line((("  from the loss to the entry: value, derivative by the operand", "dim"),))
    for row in found.path:
        yield _row(row, texts)
    if len(found.worst) > 1:
        yield Line((("  the wrong elements with the largest errors: reverse, differences", "dim"),))
        widths = [max(map(len, column)) for column in zip(*map(_cells, found.worst), strict=True)]
        for entry in found.worst:
            yield _entry(entry, widths)


def _headline(found: GradientReport) -> str:
    if found.state == "right":
        return "the gradient is right"
    if not found.name:
        return "unknown"
    word = "is wrong" if found.state == "wrong" else "has no verdict"
    return f"the gradient of {_named(found)} {word}"


def _named(found: GradientReport | GradientEntry) -> str:
    return found.name + (f"[{', '.join(map(str, found.index))}]" if found.index else "")


def _reverse(found: GradientReport | GradientEntry) -> str:
    return "no finite number" if found.reverse is None else _number(found.reverse)


def _count(found: GradientCount) -> str:
    least = "" if found.all else "at least "
    return f"{least}{found.wrong:,} of the {found.size:,} elements of {found.name}"


def _cells(found: GradientEntry) -> tuple[str, str, str]:
    return _named(found), _reverse(found), _number(found.differences)


def _entry(found: GradientEntry, widths: list[int]) -> Line:
    name, *numbers = (f"{text:<{n}}" for text, n in zip(_cells(found), widths, strict=True))
    where = f"  {os.path.basename(found.file)}:{found.line}" if found.line else ""
    return Line((
        (f"  {name}  ", "accent"), ("  ".join(numbers), ""),
        (f"  {_CAUSES[found.cause]}{where}", "dim"),
    ), line=found.line)  # fmt: skip


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _row(row: GradientStep, texts: Mapping[str, str]) -> Line:
    at = f"  iteration {', '.join(map(str, row.iteration))}" if row.iteration else ""
    value = "" if row.value is None else f" = {row.value:.6g}"
    known = "unknown" if row.rule is None else f"{row.rule:.6g}"
    rule = f"{known}, differs from {_number(row.quotient)}" if row.wrong else known
    return Line((
        (f"  {os.path.basename(row.file)}:{row.line:<5}", "accent"),
        (f"{row.text}{value}", ""), (at, "dim"), (f"   {rule}", "bad" if row.wrong else "dim"),
        (f"   {source_at(texts, row.file, row.line).strip()}", "dim"),
    ), line=row.line)  # fmt: skip
