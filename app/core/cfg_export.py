"""The control flow before and after a pass, for other programs: SVG, Graphviz and Mermaid.

All show both graphs in one, as `cfg_layout` draws it, with nothing folded but long boxes. What
differs has a sign (``+ - ~ >``) and a line of its own kind, not a colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from ...engine.inspect.graphs import BlockDiff, EdgeDiff, GraphDiff
from .cfg_layout import SIGNS, lanes_of

__all__ = ["BOX_STYLE", "EDGE_STYLE", "TEXT_STYLE", "svg", "to_dot", "to_mermaid", "to_svg"]

_MOST: Final = 40
_COLORS: Final = {
    "added": "#1a7f37", "removed": "#cf222e", "changed": "#9a6700", "moved": "#0550ae",
}  # fmt: skip


def _title(block: BlockDiff) -> str:
    if block.state == "same":
        return block.title
    what = f"{block.state} {block.summary()}".rstrip()
    return f"{SIGNS[block.state]} {block.title} ({what})"


def _texts(block: BlockDiff) -> list[tuple[str, str]]:
    """(kind, text with its sign) of each line of a block."""
    out: list[tuple[str, str]] = []
    for line in block.lines:
        if line.before:
            out += [("removed", f"- {line.before.strip()}"), ("added", f"+ {line.text.strip()}")]
        else:
            out.append((line.kind, f"{SIGNS[line.kind]} {line.text.strip()}"))
    if len(out) > _MOST:
        out[_MOST - 1 :] = [("same", f"  … {len(out) - _MOST + 1} more")]
    return out


def to_dot(graphs: Sequence[GraphDiff]) -> str:
    """The graphs in Graphviz's language, a cluster each."""
    out = ["digraph cfg {", "  node [shape=box, fontname=monospace];"]
    for k, graph in enumerate(graphs):
        out += [f"  subgraph cluster_{k} {{", f'    label="{_quoted(graph.name)}";']
        for i, block in enumerate(graph.blocks):
            lines = [_title(block), *(text for _, text in _texts(block))]
            label = "".join(_quoted(text) + "\\l" for text in lines)
            out.append(f'    g{k}n{i} [label="{label}"{_dot_style(block.state)}];')
        for edge in graph.edges:
            out.append(f"    g{k}n{edge.source} -> g{k}n{edge.target}{_dot_edge(edge)};")
        out.append("  }")
    return "\n".join([*out, "}"]) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _dot_style(state: str) -> str:
    color = _COLORS.get(state)
    if color is None:
        return ""
    style = ', style="dashed"' if state == "removed" else ""
    return f', color="{color}", penwidth=2{style}'


def _dot_edge(edge: EdgeDiff) -> str:
    if edge.state == "same":
        return ""
    style = "dashed" if edge.state == "removed" else "bold"
    return f' [color="{_COLORS[edge.state]}", style={style}, label="{SIGNS[edge.state]}"]'


def to_mermaid(graphs: Sequence[GraphDiff]) -> str:
    """The graphs as one Mermaid flowchart, a subgraph each."""
    out = ["flowchart TD"]
    for state, color in _COLORS.items():
        dash = ",stroke-dasharray:5 3" if state == "removed" else ""
        out.append(f"  classDef {state} stroke:{color},stroke-width:2px{dash}")
    for k, graph in enumerate(graphs):
        out.append(f'  subgraph g{k}["{_mermaid(graph.name)}"]')
        for i, block in enumerate(graph.blocks):
            lines = (_title(block), *(text for _, text in _texts(block)))
            kind = f":::{block.state}" if block.state in _COLORS else ""
            out.append(f'    g{k}n{i}["{"<br/>".join(map(_mermaid, lines))}"]{kind}')
        for edge in graph.edges:
            arrow = {"same": "-->", "added": "==>", "removed": "-.->"}[edge.state]
            out.append(f"    g{k}n{edge.source} {arrow} g{k}n{edge.target}")
        out.append("  end")
    return "\n".join(out) + "\n"


def _mermaid(text: str) -> str:
    return escape(text.strip()).replace('"', "&quot;")


# ---- SVG

_CHAR, _LINE, _PAD, _GAP, _LANE = 7.3, 16, 8, 22, 14
_CHARS: Final = 100

BOX_STYLE: Final = ".cfg-box{fill:var(--cfg-box,#f6f8fa);stroke:var(--cfg-edge,#8b949e)}"
TEXT_STYLE: Final = (
    ".cfg-op,.cfg-title{font:12px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:var(--cfg-ink,#1f2328)}.cfg-title{font-weight:700;fill:var(--cfg-title,#0550ae)}"
)
EDGE_STYLE: Final = ".cfg-edge{fill:none;stroke:var(--cfg-edge,#8b949e);stroke-width:1.4}"
_STYLE: Final = (
    f"{BOX_STYLE}.cfg-par{{stroke-width:2}}{TEXT_STYLE}{EDGE_STYLE}"
    ".cfg-back{stroke:var(--cfg-back,#bc4c00)}"
    ".cfg-added{stroke:var(--cfg-added,#1a7f37);stroke-width:2.4}"
    ".cfg-removed{stroke:var(--cfg-removed,#cf222e);stroke-width:1.8;stroke-dasharray:5 3}"
    ".cfg-changed{stroke:var(--cfg-changed,#9a6700);stroke-width:2.4}"
    ".cfg-moved{stroke:var(--cfg-moved,#0550ae);stroke-width:2.4}"
    "text.cfg-t-added{fill:var(--cfg-added,#1a7f37)}text.cfg-t-removed,text.cfg-t-left"
    "{fill:var(--cfg-removed,#cf222e)}text.cfg-t-moved{fill:var(--cfg-moved,#0550ae)}"
)


def svg(width: float, height: float, label: str, style: str, arrow: str, body: str) -> str:
    """A drawing as one SVG element. arrow: the id of the head of its arrows."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{label}">'
        f'<style>{style}</style><defs><marker id="{arrow}" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>{body}</svg>'
    )


def to_svg(graphs: Sequence[GraphDiff]) -> str:
    """The graphs below each other as one SVG element; colours are CSS variables with fallbacks.

    Variables: --cfg-ink, --cfg-box, --cfg-edge, --cfg-back, --cfg-title, --cfg-added,
    --cfg-removed, --cfg-changed, --cfg-moved.
    """
    parts: list[str] = []
    width, y = 0.0, 8.0
    for graph in graphs:
        if len(graphs) > 1:
            parts.append(f'<text class="cfg-title" x="8" y="{y + _LINE - 2:.0f}">'
                         f"{escape(graph.name)}</text>")  # fmt: skip
            y += _LINE + _PAD
        body, across, y = _svg_graph(graph, y)
        parts.append(body)
        width = max(width, across)
    return svg(width, y, "control-flow graph", _STYLE, "cfg-arrow", "".join(parts))


def _svg_graph(graph: GraphDiff, y: float) -> tuple[str, float, float]:
    """(elements, width, the end) of one graph that begins at ``y``."""
    states = {(e.source, e.target): e.state for e in graph.edges}
    back = lanes_of([p for p in states if p[1] <= p[0]])
    forward = lanes_of([p for p in states if p[1] > p[0] + 1])
    left = 20 + _LANE * (1 + max((lane for *_, lane in back), default=-1))
    right = 20 + _LANE * (1 + max((lane for *_, lane in forward), default=-1))
    texts = [[(k, t if len(t) <= _CHARS else t[: _CHARS - 1] + "…") for k, t in _texts(b)]
             for b in graph.blocks]  # fmt: skip
    titles = [_title(b) for b in graph.blocks]
    widest = max((len(t) for lines in texts for _, t in lines), default=10)
    box = max(160.0, max(widest, *map(len, titles), 0) * _CHAR + 2 * _PAD)
    parts: list[str] = []
    tops: list[float] = []
    ends: list[float] = []
    for block, title, lines in zip(graph.blocks, titles, texts, strict=True):
        live = [("same", f"  live {block.live}"[:_CHARS])] if block.live_out else []
        shown = [*lines, *live]
        height = _LINE * (1 + len(shown)) + _PAD
        tops.append(y)
        ends.append(y + height)
        kind = f"cfg-box{' cfg-par' if block.parallel else ''}"
        kind += f" cfg-{block.state}" if block.state in _COLORS else ""
        parts.append(f'<rect x="{left}" y="{y:.0f}" width="{box:.0f}" height="{height}" rx="4" '
                     f'class="{kind}"/>')  # fmt: skip
        parts.append(f'<text class="cfg-title" x="{left + _PAD}" y="{y + _LINE - 2:.0f}">'
                     f"{escape(title)}</text>")  # fmt: skip
        parts.append('<g class="cfg-op" xml:space="preserve">')
        for n, (of, text) in enumerate(shown):
            name = f' class="cfg-t-{of}"' if of in ("added", "removed", "left", "moved") else ""
            parts.append(f'<text x="{left + _PAD}" y="{y + _LINE * (n + 2) - 2:.0f}"{name}>'
                         f"{escape(text)}</text>")  # fmt: skip
        parts.append("</g>")
        y += height + _GAP
    for a, b in states:
        if b == a + 1:
            x = left + 24
            parts.append(_edge(f"M{x} {ends[a]:.0f}V{tops[b]:.0f}", states[a, b]))
    for jumps, near, step, name in (
        (forward, left + box, _LANE, ""), (back, float(left), -_LANE, " cfg-back"),
    ):  # fmt: skip
        for a, b, lane in jumps:
            far = near + step * (lane + 1)
            path = f"M{near:.0f} {ends[a] - 8:.0f}H{far:.0f}V{tops[b] + 8:.0f}H{near:.0f}"
            parts.append(_edge(path, states[a, b], name))
    return "".join(parts), left + box + right, y


def _edge(path: str, state: str, name: str = "") -> str:
    kind = f" cfg-{state}" if state != "same" else ""
    return f'<path class="cfg-edge{name}{kind}" marker-end="url(#cfg-arrow)" d="{path}"/>'
