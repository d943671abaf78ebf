"""Remarks of passes by source line, with advice and the documentation of the pass, as lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Final

from ....engine.inspect.explaining import Explanation, explanations, pass_page, pass_summary
from ....engine.inspect.record import CompileRecord, KernelRecord, Record, WhatIfRecord
from ..lines import Line, Span, prose_spans, python_spans
from ..memo import by_identity
from .what_if import what_if_lines, what_if_style, what_if_text

__all__ = ["assumptions_at", "explained", "explained_lines", "page_key"]

_SIGNS: Final = {"missed": ("!", "warn"), "done": ("+", "num"), "note": ("-", "dim")}
_PAD: Final = " " * 9


@by_identity(16)
def explained(compiled: CompileRecord, line: int = 0) -> tuple[Explanation, ...]:
    """The explanations of a compile; line 0: of all lines."""
    return tuple(explanations(compiled, line))


def page_key(one: Explanation) -> str:
    """The name of an explanation in `Selection.page`."""
    return f"{one.by} {one.pass_name} {one.line} {one.op} {one.text}"


def assumptions_at(found: Iterable[Explanation], line: Line) -> tuple[str, ...]:
    """The assumptions of the remark that a line shows; on a source line, of all its remarks."""
    chosen = [
        name for one in found if not one.later and line.key in (page_key(one), one.line)
        for name in one.assume
    ]  # fmt: skip
    return tuple(dict.fromkeys(chosen))


@by_identity(16)
def explained_lines(
    record: Record, kernel: KernelRecord, found: tuple[Explanation, ...], width: int = 100,
    page: str = "", backend: str = "",
) -> list[Line]:  # fmt: skip
    """Each source line with its remarks, keyed by `page_key`; below each the advice, and what a
    later pass did. page: the remark below which the documentation of its pass is shown. backend: of
    the compile, for the assumptions that were tried on it: they are below the remarks that suggest
    them, others come first."""
    tried = {x.assumption: x for x in kernel.what_ifs if x.backend == backend}
    offered = {name for one in found if not one.later for name in one.assume}
    texts = {f.path: f.text.splitlines() for f in record.files}
    out = what_if_lines([x for name, x in tried.items() if name not in offered])
    at: tuple[str, int] | None = None
    for one in found:
        if (one.file, one.line) != at:
            at = one.file, one.line
            out.append(_source_line(texts.get(one.file, []), one, kernel))
        out += _remark(one, width, tried)
        if page == page_key(one):
            out += _page(one.pass_name, one.line)
    return out


def _source_line(text: list[str], one: Explanation, kernel: KernelRecord) -> Line:
    if not one.line:
        return Line((("     without a line", "head"),), "no line")
    shown = text[one.line - 1].strip() if one.line <= len(text) else ""
    other: tuple[Span, ...] = () if one.file == kernel.file else ((f"  {one.file}", "dim"),)
    return Line(((f"{one.line:>4} ", "gutter"), *python_spans(shown), *other), one.line,
                line=one.line)  # fmt: skip


def _remark(one: Explanation, width: int, tried: Mapping[str, WhatIfRecord]) -> list[Line]:
    sign, style = ("-", "dim") if one.later else _SIGNS[one.kind]
    key = page_key(one)
    name = f"LLVM {one.pass_name}" if one.by == "LLVM" else one.pass_name
    times = f"  (in {one.times} runs)" if one.times > 1 else ""
    faded = style == "dim"
    room = max(40, width - len(_PAD) - 1)
    parts = textwrap.wrap(f"{name}  {one.text}{times}", room) or [name]
    text = f"{name}: {one.text}"
    out: list[Line] = []
    for part in parts:
        own = part.removeprefix(name) if not out else part
        spans = ((own, "dim"),) if faded else prose_spans(own)
        start: tuple[Span, ...] = ((_PAD, "gutter"),)
        if not out:
            title = "dim" if faded else "title"
            start = (("     ", "gutter"), (f"{sign} ", style), (name, title))
        out.append(Line((*start, *spans), key, text, line=one.line))
    below: list[tuple[str, str]] = []
    if one.later:
        below.append((f"later {one.later}", "dim"))
    elif one.advice:
        below.append((one.advice, ""))
        for name in one.assume:
            if name in tried:
                found = tried[name]
                gain = found.verdict == "faster" and found.agreement != "differs"
                change = f"; to have it: {found.change}" if gain else ""
                text_of = f"what if {name}: {what_if_text(found)}{change}"
                below.append((text_of, what_if_style(found) or "accent"))
        rest = [name for name in one.assume if name not in tried]
        if rest:
            below.append((f"W measures what it would gain: {', '.join(rest)}", "accent"))
    for text_of, style_of in below:
        out += [Line(((_PAD, "gutter"), (part, style_of)), key, text_of, line=one.line)
                for part in textwrap.wrap(text_of, room)]  # fmt: skip
    return out


def _page(name: str, line: int) -> list[Line]:
    """The documentation of a pass, in place."""
    text = pass_page(name) or "There is no documentation of this pass here."
    head = Line(((_PAD, "gutter"), (name, "title"), (f"  {pass_summary(name)}", "dim")), line=line)
    return [head, *(Line(((_PAD, "gutter"), (part, "comment")), copy=part, line=line)
                    for part in text.splitlines())]  # fmt: skip
