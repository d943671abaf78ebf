"""The order of a kernel's tasks: graphs of a device, with the facts about their replays."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ....engine.inspect.record import (
    BackendRecord,
    CompileRecord,
    FlowNode,
    FlowRecord,
    KernelRecord,
)
from .. import format as fmt
from ..flow_layout import FlowRow, draw
from ..lines import Line, Span
from ..pending import faded, state_of
from .source_lines import user_line

__all__ = ["facts", "flow_lines", "groups", "heading", "line_of", "title"]

_LINES: Final = re.compile("([─│┌┐└┘┬►]+)")
_WAYS: Final = {
    "graph": "a graph of the device",
    "auto": "a graph of the device, made from ordinary launches",
    "launches": "a launch for each task",
    "host": "the host goes from task to task",
    "none": "nothing is launched here",
}


def title(flow: FlowRecord) -> str:
    """The way the tasks are run, and the reason if it is not a graph."""
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


def groups(kernel: KernelRecord) -> list[tuple[list[BackendRecord], FlowRecord]]:
    """Backends with the same drawing, and that; none for tasks that simply follow each other."""
    out: list[tuple[list[BackendRecord], FlowRecord]] = []
    for backend in kernel.backends:
        found = backend.flow
        if found is None or not found.nodes:
            continue
        same = next((b for b, f in out if (f.nodes, f.edges) == (found.nodes, found.edges)), None)
        if same is not None:
            same.append(backend)
        else:
            out.append(([backend], found))
    return out


def heading(backend: BackendRecord) -> tuple[str, str]:
    """(backend, how it runs its tasks), with the facts about its graph."""
    assert backend.flow is not None
    known = facts(backend.flow)
    return backend.backend, title(backend.flow) + (f"; {known}" if known else "")


def flow_lines(kernel: KernelRecord, width: int, ascii_only: bool = False) -> list[Line]:
    """The drawings, each below the backends that it is of."""
    out: list[Line] = []
    for backends, flow in groups(kernel):
        first = backends[0]
        state = state_of(kernel, first, "passes", "launches")
        mark = f"{fmt.GLYPHS[state][ascii_only]} " if state else ""
        drawn: list[Line] = []
        for name, text in map(heading, backends):
            drawn.append(Line(((f"{mark}{name} tasks", "title"), (f"   {text}", "dim"))))
        at = line_of(first.compile)
        for row in draw(flow, width, at, ascii_only):
            node = flow.nodes[row.node] if row.node >= 0 else None
            key = ("flow", first.backend, row.node) if node is not None else None
            line = at(node) if node is not None else 0
            drawn.append(Line(_spans(row), key, line=line))
        out += [Line(()), *faded(drawn, state)]
    return out


def _spans(row: FlowRow) -> tuple[Span, ...]:
    """The row with its lines apart from its words."""
    if row.kind == "link":
        return ((row.text, "dim"),)
    style = "title" if row.kind == "box" else ""
    parts = _LINES.split(row.text)
    return tuple((part, "accent" if i % 2 else style) for i, part in enumerate(parts) if part)
