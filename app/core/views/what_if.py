"""The gain of assumptions that were tried, as lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....engine.inspect.record import WhatIfRecord
from ..format import duration_us
from ..lines import Line, Span

__all__ = ["what_if_lines", "what_if_style", "what_if_text"]

_STYLES: Final = {"faster": "accent", "slower": "bad", "cannot": "dim", "same code": "dim"}


def what_if_text(found: WhatIfRecord) -> str:
    """The outcome in one line: ``faster: 116 us -> 29.3 us (0.25 ± 0.19), results ok``."""
    text = found.verdict
    if found.ratio:
        times = f"{duration_us(found.before_us)} -> {duration_us(found.after_us)}"
        text += f": {times} ({found.ratio:.3g} ± {found.band:.2g} of the time, {found.clock})"
    elif found.reason:
        text += f": {found.reason}"
    if found.agreement == "differs":
        text += ", but the results differ: the assumption is false here"
    elif found.agreement == "ok":
        text += ", results ok"
    elif found.agreement == "unknown":
        text += ", results not checked"
    return text


def what_if_style(found: WhatIfRecord) -> str:
    """The style of the outcome."""
    return "bad" if found.agreement == "differs" else _STYLES.get(found.verdict, "")


def what_if_lines(found: Iterable[WhatIfRecord]) -> list[Line]:
    """A block for each assumption: the outcome, what was compared, counts, and what to write."""
    out: list[Line] = []
    for one in found:
        text = what_if_text(one)
        style = what_if_style(one)
        key = ("what if", one.backend, one.assumption)
        head: tuple[Span, ...] = (
            ("     what if ", "head"), (one.assumption, "title"), (f" on {one.backend}  ", "dim"),
            (text, style),
        )  # fmt: skip
        out.append(Line(head, key, f"{one.assumption} on {one.backend}: {text}"))
        rows = [("assumed", one.title)]
        if one.compared:
            rows.append(("results", one.compared))
        if one.workload:
            rows.append(("timed with", one.workload))
        if one.counts:
            rows.append(("counts", ", ".join(f"{c.name} {_count(c.before)} -> {_count(c.after)}"
                                             for c in one.counts)))  # fmt: skip
        if one.verdict == "faster" and one.agreement != "differs":
            rows.append(("to have it", one.change))
        out += [Line(((" " * 9, "gutter"), (f"{name:<12}", "dim"), (value, "")), key, value)
                for name, value in rows]  # fmt: skip
    return out


def _count(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
