"""The lines of the Debug tab: what is above the source, the ops, the values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from textwrap import wrap
from typing import Final

from ...core.lines import Line, Span, ir_spans
from ..debugging import DebugSession, View

__all__ = ["op_lines", "status_lines", "value_lines", "wrapped_text"]

_PADDING: Final = re.compile(r"\s+")
"""NumPy pads the numbers of an array to one width."""
_REASONS: Final = {
    "exception": "error",
    "end": "the kernel has ended: step back, or start again",
    "entry": "at the start",
}


def wrapped_text(text: str, room: int) -> list[str]:
    """A text in lines of at most ``room`` columns, if there are at least 40."""
    return wrap(text, max(40, room - 2)) if len(text) > room else [text]


def status_lines(session: DebugSession, key: Callable[[str], str], room: int) -> list[Line]:
    """The lines above the source: the moment, why it stopped, the last answer. key: the name of
    the key of a command. room: columns."""
    view = session.view
    position = view.position
    assert position is not None
    text = "" if position.reason == "end" else position.text
    if position.reason == "breakpoint" and text.startswith("line "):
        text = f"breakpoint at {text}"
    reason = view.busy or text or _REASONS.get(position.reason, "")
    if view.busy:
        reason += f" ...  {key('cancel')} cancels"
    style = "bad" if position.reason == "exception" and not view.busy else "accent"
    parts = [(text, style) for text in reason.splitlines() or [""]]  # one also without: no jump
    if session.is_old:
        again = f"{key('debug-restart')} starts again with the new one."
        parts.append((f"This session belongs to the earlier save; {again}", "warn"))
    parts += [(text, "accent" if view.good else "warn") for text in view.note.splitlines()]
    if view.wrote is not None and view.note:
        parts.append((f"{key('debug-go')} goes there", "dim"))
    elif view.away is not None:
        parts.append((f"{key('debug-go')} goes back", "dim"))
    lines = [Line(((part, style),)) for text, style in parts for part in wrapped_text(text, room)]
    return [_moment_line(session, view), *lines]


def _moment_line(session: DebugSession, view: View) -> Line:
    """The file, what runs, and the moment."""
    position, moment = view.position, view.moment
    assert position is not None and moment is not None
    name, file, _ = position.frames[view.frame]
    spans: list[Span] = [(os.path.basename(file), "title")]
    case = session.configuration.get("workload")
    if case:
        spans.append((f"  {case}", ""))
    if moment.iteration is not None:
        at = moment.iteration
        text = ", ".join(map(str, at)) if isinstance(at, tuple) else str(at)
        spans.append((f"  iteration {text}", ""))
    of = f" of {view.end - moment.first}" if view.end is not None else ""
    spans.append((f"  moment {moment.time - moment.first}{of}", "num"))
    if view.frame:
        spans.append((f"  in {name}, which calls {position.frames[view.frame - 1][0]}", "warn"))
    return Line(tuple(spans))


def op_lines(view: View, ascii_only: bool) -> list[Line]:
    """The ops around this moment, below the current line."""
    assert view.moment is not None
    arrow = "->" if ascii_only else "→ "
    return [
        Line(((f"       {arrow if n == view.moment.op else '  '} ", "accent"), *ir_spans(text)),
             ("op", n), text)
        for n, text in enumerate(view.moment.ops)
    ]  # fmt: skip


def value_lines(view: View, ascii_only: bool) -> list[Line]:
    """The values, the functions that run, what stops when it changes, and what was printed."""
    assert view.position is not None
    out: list[Line] = []
    groups = [*view.seen.items(), ("Expressions", list(view.values))]
    for heading, values in groups:
        if not values and heading != "Locals":
            continue
        out.append(Line(((heading, "head"),)))
        if not values:
            out.append(Line((("  none has a value here", "dim"),)))
        width = max((len(name) for name, _ in values), default=0)
        for name, value in values:
            old = view.before.get(name) if not view.frame else None
            style = "warn" if old is not None and old != value else ""
            spans = (
                (f"  {name:<{width}}  ", "id"),
                (_PADDING.sub(" ", value).replace(" ,", ","), style),
            )
            out.append(Line(spans, (heading, name), f"{name} = {value}"))
    if len(view.position.frames) > 1:
        out.append(Line((("Functions", "head"),)))
        arrow = ">" if ascii_only else "▶"
        for n, (name, file, line) in enumerate(view.position.frames):
            mark = arrow if n == view.frame else " "
            text = f"{name} {os.path.basename(file)}:{line}"
            out.append(Line(((f"{mark} ", "accent"), (text, "")), ("Functions", str(n)), text))
    if view.cells:
        out.append(Line((("Stops when", "head"),)))
        out += [Line(((f"  {text}", ""),)) for _, text in view.cells]
    if view.printed:
        out.append(Line((("Printed", "head"),)))
        out += [Line(((f"  {text}", ""),)) for text in view.printed]
    return out
