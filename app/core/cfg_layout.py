"""The control flow before and after a pass in one drawing of characters.

`draw` puts a box for each block below the one before, in program order, with lanes for forward
jumps to the right of the boxes and for back edges (loops) to the left. A box keeps its place unless
a block above it changes: nothing is moved to save crossings, and the left margin seldom depends on
the number of loops. Signs at the borders and on the lines say what differs (``+ - ~ >``); edges
that were added are heavy, removed ones broken. Straight runs of blocks without a difference are
folded into one box, and so are ops without one.

`overview` draws the loops as boxes inside each other with a line a block, `outline` is indented
text without any drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...engine.inspect.graphs import BlockDiff, BlockLine, GraphDiff, Loop, loops_of

__all__ = ["SIGNS", "GraphRow", "Group", "draw", "groups_of", "lanes_of", "outline", "overview"]

SIGNS: Final = {
    "same": " ", "changed": "~", "added": "+", "removed": "-", "moved": ">", "left": "<",
}  # fmt: skip
_UNICODE: Final = {
    "same": "─│", "added": "━┃", "removed": "╌┆", "tl": "┌", "tr": "┐", "bl": "└", "br": "┘",
    "x": "┼", "left": "◄", "right": "►", "stub": "┬", "more": "…", "fold": "⋯",
}  # fmt: skip
_ASCII: Final = {
    "same": "-|", "added": "=#", "removed": ".:", "tl": "+", "tr": "+", "bl": "+", "br": "+",
    "x": "+", "left": "<", "right": ">", "stub": "+", "more": "~", "fold": "...",
}  # fmt: skip
_LANES: Final = 2
"""Lanes for loops that there is always room for, so that boxes seldom move sideways."""
_CONTEXT: Final = 1
"""Lines without a difference shown around one with a difference."""

Glyphs = Mapping[str, str]
_Body = tuple[str, str, int, int, str]
"""`GraphRow.body` and what follows in a row, but for ``right``."""


class GraphRow(NamedTuple):
    """One line of a drawing. left, right: lanes and borders; body: between them.

    kind: border, gap, head, fold, or the kind of a `BlockLine` (``before`` for its text before).
    block: index into `GraphDiff.blocks`, -1 for none. op: the op of the line, -1 for none. folded:
    the text that the line hides.
    """

    left: str
    body: str
    right: str
    kind: str
    block: int = -1
    op: int = -1
    folded: str = ""

    @property
    def text(self) -> str:
        return (self.left + self.body + self.right).rstrip()


class Group(NamedTuple):
    """The blocks [first, last] in one box."""

    first: int
    last: int


def groups_of(graph: GraphDiff, whole: bool) -> list[Group]:
    """The boxes: straight runs of blocks without a difference are one, unless ``whole``."""
    n = len(graph.blocks)
    if whole or not graph.changed:
        return [Group(i, i) for i in range(n)]
    leave: list[list[int]] = [[] for _ in range(n)]
    enter: list[list[int]] = [[] for _ in range(n)]
    touched: set[int] = set()
    for edge in graph.edges:
        leave[edge.source].append(edge.target)
        enter[edge.target].append(edge.source)
        if edge.state != "same":
            touched |= {edge.source, edge.target}
    plain = [b.state == "same" and i not in touched for i, b in enumerate(graph.blocks)]
    out: list[Group] = []
    for i in range(n):
        if (
            out
            and plain[i]
            and plain[i - 1]
            and leave[i - 1] == [i]
            and enter[i] == [i - 1]
            and graph.blocks[i].label != "final"
            and graph.blocks[i - 1].label != "start"
        ):
            out[-1] = Group(out[-1].first, i)
        else:
            out.append(Group(i, i))
    return out


def lanes_of(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """(source, target, lane) of jumps of one direction; no two that overlap share a lane."""
    out: list[tuple[int, int, int]] = []
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
        out.append((source, target, lane))
    return out


# ---- the drawing


def draw(
    graph: GraphDiff, width: int, *, whole: bool = False, ascii_only: bool = False, most: int = 40
) -> list[GraphRow]:
    """Draw the graph in ``width`` columns. whole: fold nothing. most: lines of a box."""
    return _Drawing(graph, width, whole, _ASCII if ascii_only else _UNICODE, most).rows()


@dataclass(slots=True)
class _Jump:
    source: int
    target: int
    lane: int
    state: str


class _Drawing:
    def __init__(self, graph: GraphDiff, width: int, whole: bool, glyph: Glyphs, most: int) -> None:
        self.graph, self.whole, self.glyph, self.most = graph, whole, glyph, most
        self.groups = groups_of(graph, whole)
        box_of = {i: g for g, (first, last) in enumerate(self.groups)
                  for i in range(first, last + 1)}  # fmt: skip
        self.nexts: dict[int, str] = {}
        states: dict[str, dict[tuple[int, int], str]] = {"forward": {}, "back": {}}
        for edge in graph.edges:
            a, b = box_of[edge.source], box_of[edge.target]
            if b == a + 1:
                self.nexts[a] = edge.state if a not in self.nexts else "same"
            elif a != b or edge.target <= edge.source:
                states["forward" if b > a else "back"][a, b] = edge.state
        self.jumps = {
            kind: [_Jump(a, b, lane, pairs[a, b]) for a, b, lane in lanes_of(list(pairs))]
            for kind, pairs in states.items()
        }
        lanes = {k: 1 + max((j.lane for j in jumps), default=-1) for k, jumps in self.jumps.items()}
        self.left = 2 * max(_LANES, lanes["back"]) + 1
        self.right = 2 * lanes["forward"] + 1
        self.box = max(24, width - self.left - self.right)

    def rows(self) -> list[GraphRow]:
        """All rows, with the lanes drawn."""
        bodies: list[_Body] = []
        tops: list[int] = []
        ends: list[int] = []
        line = self.glyph
        for at, group in enumerate(self.groups):
            tops.append(len(bodies))
            bodies += self._box(group)
            ends.append(len(bodies) - 1)
            if at in self.nexts:
                text, kind, block, op, hid = bodies[-1]
                bodies[-1] = (text[:1] + line["stub"] + text[2:], kind, block, op, hid)
                bodies.append((" " + line[self.nexts[at]][1], "gap", -1, -1, ""))
        sides = {kind: self._lanes(kind, len(bodies), tops, ends) for kind in ("back", "forward")}
        return [
            GraphRow("".join(reversed(left)), f"{body:<{self.box}}", "".join(right), kind, block,
                     op, hid)
            for left, right, (body, kind, block, op, hid) in zip(
                sides["back"], sides["forward"], bodies, strict=True
            )
        ]  # fmt: skip

    def _lanes(self, kind: str, n: int, tops: list[int], ends: list[int]) -> list[list[str]]:
        """The cells next to each row, those next to the box first."""
        line = self.glyph
        width = self.left if kind == "back" else self.right
        cells = [[" "] * width for _ in range(n)]
        back = kind == "back"
        arrow = line["right"] if back else line["left"]
        for jump in self.jumps[kind]:
            column = 2 * jump.lane + 1 + back
            leave, enter = ends[jump.source], tops[jump.target]
            flat, upright = line[jump.state]
            for row in range(min(leave, enter) + 1, max(leave, enter)):
                cell = cells[row][column]
                cells[row][column] = upright if cell == " " else line["x"]
            corners = ("bl", "tl") if back else ("tr", "br")
            for row, corner in zip((leave, enter), corners, strict=True):
                here = cells[row]
                for at in range(column):
                    if here[at] != arrow:
                        here[at] = flat if here[at] in (" ", flat) else line["x"]
                here[column] = line[corner] if here[column] == " " else line["x"]
            cells[enter][0] = arrow
        return cells

    # ---- boxes

    def _border(self, corners: str, text: str, state: str) -> str:
        flat = self.glyph[state if state in ("added", "removed") else "same"][0]
        text = self._clip(f" {text} " if text else "", self.box - 3)
        left, right = self.glyph[f"{corners}l"], self.glyph[f"{corners}r"]
        return left + flat + text + flat * (self.box - 3 - len(text)) + right

    def _clip(self, text: str, width: int) -> str:
        return text if len(text) <= width else text[: width - 1] + self.glyph["more"][:1]

    def _line(self, sign: str, text: str, state: str) -> str:
        edge = self.glyph[state if state in ("added", "removed") else "same"][1]
        body = self._clip(text, self.box - 6)
        return f"{edge} {sign} {body:<{self.box - 6}} {edge}"

    def _box(self, group: Group) -> list[_Body]:
        blocks = self.graph.blocks[group.first : group.last + 1]
        first, last = blocks[0], blocks[len(blocks) - 1]
        title, state = first.title, first.state
        if len(blocks) > 1:
            title = f"{first.title} to {last.title}"
        elif state != "same":
            title = f"{SIGNS[state]} {first.title}  {state} {first.summary()}".rstrip()
        out = [(self._border("t", title, state), "border", group.first, -1, "")]
        out += self._ops(group, blocks)
        footer = f"live {last.live}" if last.live_out else ""
        return [*out, (self._border("b", footer, state), "border", group.first, -1, "")]

    def _ops(self, group: Group, blocks: Sequence[BlockDiff]) -> list[_Body]:
        out: list[_Body] = []
        state = blocks[0].state
        lines = [(group.first + i, line) for i, b in enumerate(blocks) for line in b.lines]
        for fold, part in self._parts([line for _, line in lines]):
            if fold:
                hidden = [lines[i] for i in part]
                ops = f"{len(part)} operation{'' if len(part) == 1 else 's'}"
                text = f"{self.glyph['fold']} {ops}" + (", unchanged" if fold == "same" else "")
                hid = "\n".join(line.text for _, line in hidden)
                at, line = hidden[0]
                out.append((self._line(" ", text, state), "fold", at, line.op, hid))
                continue
            for at, line in (lines[i] for i in part):
                note = ""
                if line.other >= 0:
                    number = self.graph.blocks[line.other].title.split()[0]
                    note = f"   {'from' if line.kind == 'moved' else 'now in'} block {number}"
                if line.before:
                    text = self._line("-", line.before.strip(), state)
                    out.append((text, "before", at, line.op, ""))
                sign = "+" if line.before else SIGNS[line.kind]
                out.append((self._line(sign, line.text.strip() + note, state), line.kind, at,
                            line.op, ""))  # fmt: skip
        return out

    def _parts(self, lines: Sequence[BlockLine]) -> list[tuple[str, list[int]]]:
        """Runs of lines: (why they are folded, or empty, their indices)."""
        n = len(lines)
        every = list(range(n))
        if self.whole:
            return [("", every)]
        if not self.graph.changed:
            if n <= self.most:
                return [("", every)]
            return [("", every[: self.most - 1]), ("long", every[self.most - 1 :])]
        shown = {
            k
            for i, line in enumerate(lines)
            if line.kind != "same"
            for k in range(max(0, i - _CONTEXT), min(n, i + _CONTEXT + 1))
        }
        out: list[tuple[str, list[int]]] = []
        for i in every:
            why = "" if i in shown else "same"
            if out and out[-1][0] == why:
                out[-1][1].append(i)
            else:
                out.append((why, [i]))
        return [("" if len(part) == 1 and shown else why, part) for why, part in out]


# ---- the overview


class _Item(NamedTuple):
    """A line of the overview: of blocks [first, last]; depth: of the loops around it."""

    first: int
    last: int
    depth: int


def _name(graph: GraphDiff, loop: Loop, lines: Mapping[int, int]) -> str:
    label = graph.blocks[loop.first].label
    owner = label.rpartition("$")[2]
    line = lines.get(int(owner), 0) if owner.isdigit() else 0
    return f"loop {label}" + (f", line {line}" if line else "")


def _state_of(graph: GraphDiff, first: int, last: int) -> str:
    states = {graph.blocks[i].state for i in range(first, last + 1)}
    return states.pop() if len(states) == 1 else "changed"


def _what(graph: GraphDiff, first: int, last: int) -> str:
    """``block 3 then $4: 12 operations, changed +1``."""
    blocks = graph.blocks[first : last + 1]
    ops = sum(b.ops for b in blocks)
    name = f"block {blocks[0].title}" if first == last else (
        f"blocks {blocks[0].title.split()[0]} to {blocks[-1].title.split()[0]}"
    )  # fmt: skip
    text = f"{name}: {ops} operation{'' if ops == 1 else 's'}"
    state = _state_of(graph, first, last)
    return text if state == "same" else f"{text}, {state} {blocks[0].summary()}".rstrip()


def _items(graph: GraphDiff, loops: Sequence[Loop]) -> list[_Item | Loop]:
    """Loops where they begin, and the lines between; runs without a difference are one line."""
    begins = {loop.first: loop for loop in loops}
    depth = [0] * len(graph.blocks)
    inside = [-1] * len(graph.blocks)
    for number, loop in enumerate(loops):
        for i in range(loop.first, loop.last + 1):
            depth[i], inside[i] = loop.depth + 1, number
    out: list[_Item | Loop] = []
    for i, block in enumerate(graph.blocks):
        if i in begins:
            out.append(begins[i])
        last = out[-1] if out else None
        if (
            isinstance(last, _Item)
            and block.state == "same"
            and inside[last.last] == inside[i]
            and graph.blocks[last.last].state == "same"
        ):
            out[-1] = _Item(last.first, i, depth[i])
        else:
            out.append(_Item(i, i, depth[i]))
    return out


def overview(
    graph: GraphDiff, width: int, lines: Mapping[int, int], *, ascii_only: bool = False
) -> list[GraphRow]:
    """The loops as boxes inside each other. lines: the source line of each op."""
    glyph = _ASCII if ascii_only else _UNICODE
    flat, upright = glyph["same"]
    loops = loops_of(graph)
    out: list[GraphRow] = []
    open_loops: list[Loop] = []

    def close(until: int) -> None:
        while open_loops and open_loops[-1].last < until:
            loop = open_loops.pop()
            room = width - 4 * len(open_loops)
            body = glyph["bl"] + flat * (room - 2) + glyph["br"]
            out.append(row(len(open_loops), body, "border", loop.first))

    def row(depth: int, body: str, kind: str, block: int) -> GraphRow:
        pad = (upright + " ") * depth
        return GraphRow(pad, body, (" " + upright) * depth, kind, block)

    for item in _items(graph, loops):
        close(item.first)
        depth = len(open_loops)
        room = max(20, width - 4 * depth)
        if isinstance(item, Loop):
            blocks = item.last - item.first + 1
            changed = sum(b.state != "same" for b in graph.blocks[item.first : item.last + 1])
            text = f" {_name(graph, item, lines)}: {blocks} block{'s' * (blocks != 1)}"
            text += f", {changed} differ" + "s" * (changed == 1) if changed else ""
            text = (text + " ")[: room - 3]
            body = glyph["tl"] + flat + text + flat * (room - 3 - len(text)) + glyph["tr"]
            out.append(row(depth, body, "border", item.first))
            open_loops.append(item)
            continue
        state = _state_of(graph, item.first, item.last)
        text = f"{SIGNS[state]} {_what(graph, item.first, item.last)}"
        if len(text) > room:
            text = text[: room - 1] + glyph["more"][:1]
        out.append(row(depth, f"{text:<{room}}", state if state != "same" else "head", item.first))
    close(len(graph.blocks))
    return out


def outline(graph: GraphDiff, lines: Mapping[int, int]) -> list[GraphRow]:
    """The graph as indented text: loops, blocks with where they lead, and what differs in them."""
    loops = {loop.first: loop for loop in loops_of(graph)}
    depth = [0] * len(graph.blocks)
    for loop in loops.values():
        for i in range(loop.first, loop.last + 1):
            depth[i] = loop.depth + 1
    out: list[GraphRow] = []
    for i, block in enumerate(graph.blocks):
        if i in loops:
            text = "  " * (depth[i] - 1) + _name(graph, loops[i], lines)
            out.append(GraphRow("", text, "", "border", i))
        pad = "  " * depth[i]
        leads = [_lead(graph, e.target, e.state) for e in graph.edges if e.source == i]
        text = f"{pad}{SIGNS[block.state]} {_what(graph, i, i)}"
        text += f" -> {', '.join(leads)}" if leads else ""
        out.append(GraphRow("", text, "", block.state if block.state != "same" else "head", i))
        for line in block.lines if block.state != "same" else ():
            if line.before:
                text = f"{pad}    - {line.before.strip()}"
                out.append(GraphRow("", text, "", "before", i, line.op))
            if line.kind != "same":
                sign = "+" if line.before else SIGNS[line.kind]
                text = f"{pad}    {sign} {line.text.strip()}"
                out.append(GraphRow("", text, "", line.kind, i, line.op))
    return out


def _lead(graph: GraphDiff, target: int, state: str) -> str:
    number = graph.blocks[target].title.split()[0]
    return number if state == "same" else f"{number} ({state})"
