"""Control-flow graphs as text and as SVG, stable from pass to pass.

Nodes are drawn below each other in program order, one box a node. A step to the next box is a line
between them; forward jumps run in lanes to the right of the boxes, back edges (loops) in lanes
to the left. Crossings are not minimised, on purpose: a node keeps its place unless the program
around it changes, so stepping through passes does not make the picture jump.

`layout` draws characters, `to_svg` the same geometry as a picture; `to_dot` and `to_mermaid`
export the bare graph. All take a `CfgRecord`.
"""

from __future__ import annotations

from html import escape
from typing import Final, NamedTuple

from ...engine.inspect.record import CfgNode, CfgRecord

__all__ = ["CfgLayout", "CfgRow", "Edge", "edges", "layout", "to_dot", "to_mermaid", "to_svg"]

_UNICODE: Final = {
    "h": "─",
    "v": "│",
    "tl": "┌",
    "tr": "┐",
    "bl": "└",
    "br": "┘",
    "x": "┼",
    "up": "▲",
    "left": "◄",
    "right": "►",
    "down": "▼",
    "stub": "┬",
    "more": "…",
}
_ASCII: Final = {
    "h": "-",
    "v": "|",
    "tl": "+",
    "tr": "+",
    "bl": "+",
    "br": "+",
    "x": "+",
    "up": "^",
    "left": "<",
    "right": ">",
    "down": "v",
    "stub": "+",
    "more": "...",
}


class Edge(NamedTuple):
    """An edge of the drawing. kind: next (to the box below), forward, back. lane: from 0."""

    source: int
    target: int
    kind: str
    lane: int


class CfgRow(NamedTuple):
    """One line of the drawing. node: number of the node it belongs to, -1 between boxes.

    op: the id of the op shown on the line, -1 for borders. start, end: columns of the box.
    """

    text: str
    node: int
    op: int
    start: int
    end: int


class CfgLayout(NamedTuple):
    """The drawing: rows, and for each node id the index of its first row."""

    rows: tuple[CfgRow, ...]
    tops: dict[int, int]
    width: int


def edges(record: CfgRecord) -> list[Edge]:
    """The edges with their lanes; order follows the nodes."""
    place = {node.id: i for i, node in enumerate(record.nodes)}
    jumps: dict[str, list[tuple[int, int]]] = {"forward": [], "back": []}
    out: list[Edge] = []
    for i, node in enumerate(record.nodes):
        for target in node.next:
            j = place.get(target)
            if j is None:
                continue
            if j == i + 1:
                out.append(Edge(i, j, "next", 0))
            else:
                jumps["forward" if j > i else "back"].append((i, j))
    for kind, pairs in jumps.items():
        lanes: list[list[tuple[int, int]]] = []
        # Short jumps take the inner lanes, so that long ones run around them.
        for source, target in sorted(pairs, key=lambda p: (abs(p[0] - p[1]), p)):
            low, high = min(source, target), max(source, target)
            lane = 0
            while lane < len(lanes) and any(low <= b and a <= high for a, b in lanes[lane]):
                lane += 1
            if lane == len(lanes):
                lanes.append([])
            lanes[lane].append((low, high))
            out.append(Edge(source, target, kind, lane))
    return out


def _title(node: CfgNode) -> str:
    parts = [str(node.id)]
    if node.label:
        parts.append(node.label)
    if node.parallel:
        parts.append("parallel")
    return " ".join(parts)


def _footer(node: CfgNode) -> str:
    return "live " + " ".join(f"${i}" for i in node.live_out) if node.live_out else ""


def layout(
    record: CfgRecord, width: int = 80, *, max_ops: int = 12, ascii_only: bool = False
) -> CfgLayout:
    """Draw the graph in ``width`` columns (at least 24); boxes show at most ``max_ops`` ops."""
    glyph = _ASCII if ascii_only else _UNICODE
    links = edges(record)
    left = 2 * (1 + max((e.lane for e in links if e.kind == "back"), default=-1))
    right = 2 * (1 + max((e.lane for e in links if e.kind == "forward"), default=-1))
    start = left + (1 if left else 0)
    box = max(20, width - start - right - (1 if right else 0))
    grid: list[list[str]] = []
    owner: list[tuple[int, int]] = []
    tops: list[int] = []
    bottoms: list[int] = []
    total = start + box + right + 1
    has_next = {e.source for e in links if e.kind == "next"}
    for i, node in enumerate(record.nodes):
        tops.append(len(grid))
        for text, op in _box(node, box, max_ops, glyph):
            grid.append([" "] * start + list(text) + [" "] * (total - start - box))
            owner.append((i, op))
        bottoms.append(len(grid) - 1)
        if i in has_next:
            row = [" "] * total
            row[start + 1] = glyph["v"]
            grid[-1][start + 1] = glyph["stub"]
            grid.append(row)
            owner.append((-1, -1))
    for e in links:
        if e.kind != "next":
            _lane(grid, e, bottoms[e.source], tops[e.target], start, box, glyph)
    rows = tuple(
        CfgRow("".join(cells).rstrip(), node, op, start, start + box)
        for cells, (node, op) in zip(grid, owner, strict=True)
    )
    return CfgLayout(rows, {n.id: tops[i] for i, n in enumerate(record.nodes)}, total)


def _box(node: CfgNode, width: int, max_ops: int, glyph: dict[str, str]) -> list[tuple[str, int]]:
    def border(left: str, text: str, right: str) -> str:
        text = _clip(f" {text} " if text else "", width - 3, glyph)
        return left + glyph["h"] + text + glyph["h"] * (width - 3 - len(text)) + right

    out = [(border(glyph["tl"], _title(node), glyph["tr"]), -1)]
    shown = len(node.ops) if len(node.ops) <= max_ops else max_ops - 1
    pad = min((len(t) - len(t.lstrip()) for t in node.lines), default=0)
    for op, text in list(zip(node.ops, node.lines, strict=True))[:shown]:
        body = _clip(text[pad:], width - 4, glyph)
        out.append((f"{glyph['v']} {body:<{width - 4}} {glyph['v']}", op))
    if shown < len(node.ops):
        text = f"{glyph['more']} {len(node.ops) - shown} more"
        out.append((f"{glyph['v']} {text:<{width - 4}} {glyph['v']}", -1))
    out.append((border(glyph["bl"], _footer(node), glyph["br"]), -1))
    return out


def _clip(text: str, width: int, glyph: dict[str, str]) -> str:
    return text if len(text) <= width else text[: width - len(glyph["more"])] + glyph["more"]


def _lane(
    grid: list[list[str]], e: Edge, leave: int, enter: int, start: int, box: int,
    glyph: dict[str, str],
) -> None:  # fmt: skip
    """Draw a jump from the bottom border of one box to the top border of another."""
    if e.kind == "forward":
        column = start + box + 1 + 2 * e.lane
        near, step = start + box, 1
        corner_leave, corner_enter, arrow = glyph["tr"], glyph["br"], glyph["left"]
    else:
        column = start - 3 - 2 * e.lane
        near, step = start - 1, -1
        corner_leave, corner_enter, arrow = glyph["bl"], glyph["tl"], glyph["right"]
    for row in range(min(leave, enter) + 1, max(leave, enter)):
        cell = grid[row][column]
        grid[row][column] = glyph["v"] if cell == " " else glyph["x"]
    for row, corner in ((leave, corner_leave), (enter, corner_enter)):
        for at in range(near, column, step):
            cell = grid[row][at]
            grid[row][at] = glyph["h"] if cell == " " else cell if cell == arrow else glyph["x"]
        cell = grid[row][column]
        grid[row][column] = corner if cell == " " else glyph["x"]
    grid[enter][near] = arrow


def to_dot(record: CfgRecord) -> str:
    """The graph in Graphviz's language."""
    out = ["digraph cfg {", "  node [shape=box, fontname=monospace];"]
    for node in record.nodes:
        text = "\\l".join(
            t.replace("\\", "\\\\").replace('"', '\\"') for t in (_title(node), *node.lines)
        )
        out.append(f'  n{node.id} [label="{text}\\l"];')
    for node in record.nodes:
        out.extend(f"  n{node.id} -> n{target};" for target in node.next)
    return "\n".join([*out, "}"]) + "\n"


def to_mermaid(record: CfgRecord) -> str:
    """The graph as a Mermaid flowchart."""
    out = ["flowchart TD"]
    for node in record.nodes:
        text = "<br/>".join(
            escape(t.strip()).replace('"', "&quot;") for t in (_title(node), *node.lines)
        )
        out.append(f'  n{node.id}["{text}"]')
    for node in record.nodes:
        out.extend(f"  n{node.id} --> n{target}" for target in node.next)
    return "\n".join(out) + "\n"


_CHAR, _LINE, _PAD, _GAP, _LANE = 7.3, 16, 8, 22, 14


def to_svg(record: CfgRecord, *, max_ops: int = 40, max_chars: int = 96) -> str:
    """The drawing as one SVG element; colours come from CSS variables with fallbacks.

    Variables: --cfg-ink, --cfg-box, --cfg-edge, --cfg-back, --cfg-title.
    """
    links = edges(record)
    left = 20 + _LANE * (1 + max((e.lane for e in links if e.kind == "back"), default=-1))
    right = 20 + _LANE * (1 + max((e.lane for e in links if e.kind == "forward"), default=-1))
    texts: list[list[str]] = []
    for node in record.nodes:
        pad = min((len(t) - len(t.lstrip()) for t in node.lines), default=0)
        lines = [t[pad:] for t in node.lines[:max_ops]]
        if len(node.lines) > max_ops:
            lines.append(f"… {len(node.lines) - max_ops} more")
        if node.live_out:
            lines.append(_footer(node))
        texts.append([t if len(t) <= max_chars else t[: max_chars - 1] + "…" for t in lines])
    widest = max((len(t) for lines in texts for t in lines), default=10)
    box = max(160.0, widest * _CHAR + 2 * _PAD)
    parts: list[str] = []
    tops: list[float] = []
    bottoms: list[float] = []
    y = 8.0
    for node, lines in zip(record.nodes, texts, strict=True):
        height = _LINE * (1 + len(lines)) + _PAD
        tops.append(y)
        bottoms.append(y + height)
        parts.append(
            f'<rect x="{left}" y="{y:.0f}" width="{box:.0f}" height="{height}" rx="4" '
            f'class="cfg-box{" cfg-par" if node.parallel else ""}"/>'
        )
        parts.append(
            f'<text x="{left + _PAD}" y="{y + _LINE - 2:.0f}" class="cfg-title">'
            f"{escape(_title(node))}</text>"
        )
        parts.append('<g class="cfg-op" xml:space="preserve">')
        parts += [
            f'<text x="{left + _PAD}" y="{y + _LINE * (k + 2) - 2:.0f}">{escape(text)}</text>'
            for k, text in enumerate(lines)
        ]
        parts.append("</g>")
        y += height + _GAP
    for e in links:
        parts.append(_svg_edge(e, left, box, tops, bottoms))
    width = left + box + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" '
        f'width="{width:.0f}" height="{y:.0f}" role="img" aria-label="control-flow graph">'
        f"<style>{_STYLE}</style><defs>{_MARKER}</defs>{''.join(parts)}</svg>"
    )


_STYLE: Final = (
    ".cfg-box{fill:var(--cfg-box,#f6f8fa);stroke:var(--cfg-edge,#8b949e)}"
    ".cfg-par{stroke-width:2}"
    ".cfg-op,.cfg-title{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:var(--cfg-ink,#1f2328)}.cfg-title{font-weight:700;fill:var(--cfg-title,#0550ae)}"
    ".cfg-edge{fill:none;stroke:var(--cfg-edge,#8b949e);stroke-width:1.4}"
    ".cfg-back{stroke:var(--cfg-back,#bc4c00);stroke-dasharray:5 3}"
)
_MARKER: Final = (
    '<marker id="cfg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker>'
)


def _svg_edge(e: Edge, left: float, box: float, tops: list[float], bottoms: list[float]) -> str:
    if e.kind == "next":
        x = left + 24
        path = f"M{x:.0f} {bottoms[e.source]:.0f}V{tops[e.target]:.0f}"
        return f'<path class="cfg-edge" marker-end="url(#cfg-arrow)" d="{path}"/>'
    leave, enter = bottoms[e.source] - 8, tops[e.target] + 8
    if e.kind == "forward":
        near, far = left + box, left + box + _LANE * (e.lane + 1)
    else:
        near, far = left, left - _LANE * (e.lane + 1)
    path = f"M{near:.0f} {leave:.0f}H{far:.0f}V{enter:.0f}H{near:.0f}"
    extra = " cfg-back" if e.kind == "back" else ""
    return f'<path class="cfg-edge{extra}" marker-end="url(#cfg-arrow)" d="{path}"/>'
