"""The verdict on a gradient as lines: for ``qd-studio check-grad``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ....engine.inspect.record_gradient import GradientReport, GradientStep
from ..lines import Line

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
        facts.append(("where", f"{where}  {_source(texts, found.file, found.line).strip()}"))
    if found.name:
        facts += [
            ("reverse", _number(found.reverse)),
            ("differences", f"{_number(found.differences)}   from below {_number(found.below)}, "
             f"from above {_number(found.above)}, step {found.step:.3g}"),
            ("forward", _number(found.forward)),
            ("error", f"{found.error:.3g}, allowed {found.tolerance:.3g} ({found.dtype})"),
        ]  # fmt: skip
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


def _headline(found: GradientReport) -> str:
    if found.state == "right":
        return "the gradient is right"
    if not found.name:
        return "unknown"
    word = "is wrong" if found.state == "wrong" else "has no verdict"
    index = f"[{', '.join(map(str, found.index))}]" if found.index else ""
    return f"the gradient of {found.name}{index} {word}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g}"


def _source(texts: Mapping[str, str], file: str, line: int) -> str:
    lines = texts.get(file, "").split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _row(row: GradientStep, texts: Mapping[str, str]) -> Line:
    at = f"  iteration {', '.join(map(str, row.iteration))}" if row.iteration else ""
    value = "" if row.value is None else f" = {row.value:.6g}"
    known = "unknown" if row.rule is None else f"{row.rule:.6g}"
    rule = f"{known}, differs from {_number(row.quotient)}" if row.wrong else known
    return Line((
        (f"  {os.path.basename(row.file)}:{row.line:<5}", "accent"),
        (f"{row.text}{value}", ""), (at, "dim"), (f"   {rule}", "bad" if row.wrong else "dim"),
        (f"   {_source(texts, row.file, row.line).strip()}", "dim"),
    ), line=row.line)  # fmt: skip
