"""The order of a kernel's tasks as a drawing, in characters and as SVG: boxes inside of boxes.

Tasks that run one after the other are drawn below each other with a line between. A loop holds its
body, with a lane on the left that leads back to its top; a checkpoint holds its block; the branches
of a parallel part are side by side where there is room. A box that waits for another box than the
one above names it (``after 0, 2``).

`draw` returns rows of characters, each with its node; `to_svg` returns a picture of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final, NamedTuple

from ...engine.inspect.record import FlowNode, FlowRecord
from .cfg_export import BOX_STYLE, EDGE_STYLE, TEXT_STYLE, svg

__all__ = ["FlowRow", "draw", "labels", "loop_text", "to_svg"]

_UNICODE: Final = {
    "h": "─", "v": "│", "tl": "┌", "tr": "┐", "bl": "└", "br": "┘", "stub": "┬", "back": "►",
    "more": "…",
}  # fmt: skip
_ASCII: Final = {
    "h": "-", "v": "|", "tl": "+", "tr": "+", "bl": "+", "br": "+", "stub": "+", "back": ">",
    "more": "~",
}  # fmt: skip
_LEAST: Final = 26
"""Columns below which branches are drawn below each other."""

Lines = Callable[[FlowNode], int]


class FlowRow(NamedTuple):
    """One line of the drawing. node: id of the innermost one it belongs to, -1 for none.

    kind: box (a border), text, link (between boxes).
    """

    text: str
    node: int
    kind: str


def labels(node: FlowNode, line: int = 0) -> tuple[str, str]:
    """(title, details) of a node. line: of the user's source, 0 for none."""
    if node.kind == "task":
        title = f"{node.task} {node.name}" if node.task >= 0 else node.name
    elif node.kind == "do_while":
        title = f"do while {node.param}" if node.param else "do while"
    elif node.kind == "checkpoint":
        title = f"checkpoint {node.label}"
    else:
        title = f"{node.kind} {node.name}".strip()
    details: list[str] = []
    if node.kind == "do_while" and node.block:
        details.append(f"one block of {node.block}" if node.grid == 1 else "one kernel")
    elif node.grid == node.block == 1:
        details.append("one thread")
    elif node.grid and node.block:
        details.append(f"{node.grid:,} x {node.block} threads")
    elif node.block:
        details.append(f"blocks of {node.block}")
    if node.stream:
        details.append(f"stream {node.stream}")
    if line:
        details.append(f"line {line}")
    return title, ", ".join(details)


def loop_text(node: FlowNode) -> str:
    """The condition at the end of a loop or checkpoint; empty for others."""
    if node.kind == "do_while":
        rounds = f"; {node.runs:,} rounds so far" if node.runs >= 0 else ""
        return f"again while {node.param or 'its condition'} is not 0{rounds}"
    if node.kind == "checkpoint" and node.param:
        return f"ends the launch if {node.param} is not 0"
    return ""


class _Tree:
    """The nodes by parent, and what each waits for among its neighbours."""

    def __init__(self, flow: FlowRecord) -> None:
        self.children: dict[int, list[FlowNode]] = {}
        for node in flow.nodes:
            self.children.setdefault(node.parent, []).append(node)
        self._before: dict[int, set[int]] = {}
        for a, b in flow.edges:
            self._before.setdefault(b, set()).add(a)

    def of(self, id: int) -> list[FlowNode]:
        return self.children.get(id, [])

    def chained(self, nodes: Sequence[FlowNode], at: int) -> bool:
        """True if node ``at`` waits for the one before it."""
        return at > 0 and nodes[at - 1].id in self._before.get(nodes[at].id, set())

    def after(self, nodes: Sequence[FlowNode], at: int, flow: FlowRecord) -> str:
        """The other nodes, by number, that a node waits for besides the one before it."""
        expected: set[int] = {nodes[at - 1].id} if at else set()
        waits = self._before.get(nodes[at].id, set()) - expected
        known = [flow.nodes[i] for i in sorted(waits) if i < len(flow.nodes)]
        names = [str(n.task) if n.task >= 0 else n.kind for n in known]
        return f"after {', '.join(names)}" if names else ""


def draw(
    flow: FlowRecord, width: int, line_of: Lines = lambda node: 0, ascii_only: bool = False
) -> list[FlowRow]:
    """The drawing in at most ``width`` columns, at least 24. line_of: the source line of a node."""
    glyph = _ASCII if ascii_only else _UNICODE
    return _Drawing(flow, _Tree(flow), line_of, glyph).below(-1, max(24, min(width, 72)))


class _Drawing:
    def __init__(
        self, flow: FlowRecord, tree: _Tree, line_of: Lines, glyph: dict[str, str]
    ) -> None:
        self._flow = flow
        self._tree = tree
        self._line_of = line_of
        self._glyph = glyph

    def below(self, parent: int, width: int) -> list[FlowRow]:
        """All nodes in ``parent``, one below the other."""
        nodes = self._tree.of(parent)
        out: list[FlowRow] = []
        for at, node in enumerate(nodes):
            if self._tree.chained(nodes, at):
                out[-1] = out[-1]._replace(text=_stub(out[-1].text, self._glyph["stub"]))
                out.append(FlowRow(f"  {self._glyph['v']}", -1, "link"))
            out += self._node(node, self._tree.after(nodes, at, self._flow), width)
        return out

    def _node(self, node: FlowNode, after: str, width: int) -> list[FlowRow]:
        title, details = labels(node, self._line_of(node))
        facts = ", ".join(text for text in (details, after) if text)
        inside: list[FlowRow] = []
        if node.kind == "parallel":
            inside = self._next_to(node, width - 4)
        elif self._tree.of(node.id):
            inside = self.below(node.id, width - (6 if node.kind == "do_while" else 4))
        if node.kind == "do_while":
            inside = self._looped(inside, node)
        elif loop_text(node):
            inside.append(FlowRow(loop_text(node), node.id, "text"))
        if facts and not inside:
            inside = [FlowRow(facts, node.id, "text")]
        elif facts:
            title += f", {facts}"
        return self._box(title, inside, node.id, width)

    def _looped(self, inside: list[FlowRow], node: FlowNode) -> list[FlowRow]:
        """The body with a lane that leads back to its top."""
        glyph = self._glyph
        rows = inside or [FlowRow("", node.id, "text")]
        heads = [f"{glyph['tl']}{glyph['back']}", *[f"{glyph['v']} "] * (len(rows) - 1)]
        out = [row._replace(text=head + row.text) for head, row in zip(heads, rows, strict=True)]
        end = f"{glyph['bl']}{glyph['h']} {loop_text(node)}"
        return [*out, FlowRow(end, node.id, "text")]

    def _next_to(self, node: FlowNode, width: int) -> list[FlowRow]:
        """The branches of a parallel part in columns."""
        branches = self._tree.of(node.id)
        each = (width - 2 * (len(branches) - 1)) // max(1, len(branches))
        if each < _LEAST:
            return [row for branch in branches for row in self._node(branch, "", width)]
        columns = [self._node(branch, "", each) for branch in branches]
        out: list[FlowRow] = []
        for i in range(max(map(len, columns), default=0)):
            cells = [c[i] if i < len(c) else FlowRow("", -1, "link") for c in columns]
            text = "  ".join(cell.text.ljust(each) for cell in cells).rstrip()
            owner = next((cell for cell in cells if cell.node >= 0), cells[0])
            out.append(FlowRow(text, owner.node, owner.kind))
        return out

    def _box(self, title: str, rows: list[FlowRow], node: int, width: int) -> list[FlowRow]:
        glyph = self._glyph
        head = self._clip(f" {title} ", width - 3)
        top = glyph["tl"] + glyph["h"] + head + glyph["h"] * (width - 3 - len(head)) + glyph["tr"]
        out = [FlowRow(top, node, "box")]
        for row in rows:
            text = self._clip(row.text, width - 4).ljust(width - 4)
            out.append(row._replace(text=f"{glyph['v']} {text} {glyph['v']}", node=_own(row, node)))
        bottom = glyph["bl"] + glyph["h"] * (width - 2) + glyph["br"]
        return [*out, FlowRow(bottom, node, "box")]

    def _clip(self, text: str, width: int) -> str:
        return text if len(text) <= width else text[: width - 1] + self._glyph["more"]


def _own(row: FlowRow, node: int) -> int:
    return row.node if row.node >= 0 else node


def _stub(text: str, stub: str) -> str:
    return f"{text[:2]}{stub}{text[3:]}"


# ---- SVG

_CHAR, _LINE, _PAD, _GAP, _LANE = 7.3, 17.0, 10.0, 18.0, 18.0


def _text(x: float, y: float, style: str, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{style}">{escape(text)}</text>'


class _Picture:
    """Parts of an SVG drawing, and the size of what was drawn."""

    def __init__(self, flow: FlowRecord, line_of: Lines) -> None:
        self.parts: list[str] = []
        self._flow = flow
        self._tree = _Tree(flow)
        self._line_of = line_of

    def below(self, parent: int, x: float, y: float) -> tuple[float, float]:
        """Draw the nodes in ``parent`` with their corner at x, y; return (right, bottom)."""
        nodes = self._tree.of(parent)
        right = x
        for at, node in enumerate(nodes):
            if at:
                if self._tree.chained(nodes, at):
                    self.parts.append(
                        f'<path class="cfg-edge" marker-end="url(#flow-arrow)" '
                        f'd="M{x + 24:.0f} {y:.0f}v{_GAP:.0f}"/>'
                    )
                y += _GAP
            far, y = self._node(node, self._tree.after(nodes, at, self._flow), x, y)
            right = max(right, far)
        return right, y

    def _node(self, node: FlowNode, after: str, x: float, y: float) -> tuple[float, float]:
        title, details = labels(node, self._line_of(node))
        lines = [text for text in (details, after, loop_text(node)) if text]
        slot = len(self.parts)
        self.parts.append("")
        texts = [_text(x + _PAD, y + 16, "cfg-title", title)]
        bottom = y + 22
        for text in lines:
            bottom += _LINE
            texts.append(_text(x + _PAD, bottom - 5, "cfg-op", text))
        right = x + max(len(t) for t in (title, *lines)) * _CHAR + 2 * _PAD
        loop = node.kind == "do_while"
        inner = x + _PAD + (_LANE if loop else 0)
        if self._tree.of(node.id):
            top = bottom + 4
            if node.kind == "parallel":
                far, bottom = self._next_to(node, inner, top)
            else:
                far, bottom = self.below(node.id, inner, top)
            right = max(right, far + _PAD)
            if loop:
                self.parts.append(
                    '<path class="cfg-edge cfg-back" marker-end="url(#flow-arrow)" '
                    f'd="M{inner:.0f} {bottom - 8:.0f}h-{_LANE - 4:.0f}V{top + 12:.0f}'
                    f'h{_LANE - 4:.0f}"/>'
                )
            bottom += _PAD
        self.parts[slot] = (
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{right - x:.0f}" height="{bottom - y:.0f}" '
            f'rx="4" class="cfg-box"/>' + "".join(texts)
        )
        return right, bottom

    def _next_to(self, node: FlowNode, x: float, y: float) -> tuple[float, float]:
        bottom = y
        right = x
        for branch in self._tree.of(node.id):
            far, low = self._node(branch, "", right if right == x else right + _GAP, y)
            right, bottom = far, max(bottom, low)
        return right, bottom


def to_svg(flow: FlowRecord, line_of: Lines = lambda node: 0) -> str:
    """The drawing as one SVG element, in the colours of control-flow graphs."""
    picture = _Picture(flow, line_of)
    right, bottom = picture.below(-1, 8, 8)
    body = "".join(picture.parts)
    return svg(right + 12, bottom + 12, "order of the tasks", _STYLE, "flow-arrow", body)


_STYLE: Final = (
    f"{BOX_STYLE}{TEXT_STYLE}{EDGE_STYLE}"
    ".cfg-back{stroke:var(--cfg-back,#bc4c00);stroke-dasharray:5 3}"
)
