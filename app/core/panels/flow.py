"""The order of a kernel's tasks: graphs of a device with what is known of their replays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ....engine.inspect.record import BackendRecord, CompileRecord, FlowNode, FlowRecord
from .. import format as fmt
from ..flow_layout import FlowRow, draw
from ..lines import Line, Span
from .places import user_line

__all__ = ["facts", "flow_lines", "line_of", "title"]

_LINES: Final = re.compile("([─│┌┐└┘┬►]+)")
_WAYS: Final = {
    "graph": "a graph of the device",
    "auto": "a graph of the device, made from ordinary launches",
    "launches": "a launch for each task",
    "host": "runs on the host",
}


def title(flow: FlowRecord) -> str:
    """How the tasks are run, and why not as a graph."""
    text = _WAYS.get(flow.how, flow.how)
    if flow.how in ("graph", "auto"):
        return f"{text}; {flow.why}" if flow.why else text
    return f"{text}: {flow.why}" if flow.why else text


def facts(flow: FlowRecord) -> str:
    """``12 replays, 2 updates, 1 rebuild, 3 streams, 4 events``; only what there was."""
    parts: list[str] = []
    if flow.replays or flow.updates or flow.rebuilds:
        parts += [
            fmt.counted(flow.replays, "replay"),
            fmt.counted(flow.updates, "update"),
            fmt.counted(flow.rebuilds, "rebuild"),
        ]
    if flow.streams:
        parts.append(fmt.counted(flow.streams, "stream"))
    if flow.events:
        parts.append(fmt.counted(flow.events, "event"))
    return ", ".join(parts)


def line_of(compiled: CompileRecord | None) -> Callable[[FlowNode], int]:
    """The user's line of a node."""
    return lambda node: user_line(compiled, node.loc) if compiled is not None else 0


def flow_lines(backend: BackendRecord, width: int, ascii_only: bool = False) -> list[Line]:
    """The drawing with a title; nothing for tasks that simply follow each other."""
    flow = backend.flow
    if flow is None or not flow.nodes:
        return []
    at = line_of(backend.compile)
    out = [Line(((f"{backend.backend} tasks", "title"), (f"   {title(flow)}", "dim")))]
    told = facts(flow)
    if told:
        out.append(Line(((told, ""),)))
    for row in draw(flow, width, at, ascii_only):
        node = flow.nodes[row.node] if row.node >= 0 else None
        key = ("flow", backend.backend, row.node) if node is not None else None
        out.append(Line(_spans(row), key, line=at(node) if node is not None else 0))
    return out


def _spans(row: FlowRow) -> tuple[Span, ...]:
    """The row with its lines apart from its words."""
    if row.kind == "link":
        return ((row.text, "dim"),)
    style = "title" if row.kind == "box" else ""
    parts = _LINES.split(row.text)
    return tuple((part, "accent" if i % 2 else style) for i, part in enumerate(parts) if part)
