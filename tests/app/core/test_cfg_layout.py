"""The drawing of control flow before and after a pass: complete, stable, and exportable."""

from __future__ import annotations

import time
from xml.etree import ElementTree

import msgspec
import pytest
from qd_studio.app.core.cfg_export import to_dot, to_mermaid, to_svg
from qd_studio.app.core.cfg_layout import GraphRow, draw, groups_of, lanes_of, outline, overview
from qd_studio.engine.inspect.graphs import GraphDiff, compare_graphs, loops_of
from qd_studio.engine.inspect.record import CfgNode, CfgRecord

Nexts = tuple[tuple[int, ...], ...]
LOOP: Nexts = ((1, 3), (2,), (1, 3), ())


def record(nexts: Nexts, change: dict[int, dict[int, str]] | None = None, ops: int = 2):
    """A graph; change: by node, the texts of some of its ops, empty to leave one out."""
    nodes: list[CfgNode] = []
    for i, following in enumerate(nexts):
        texts = {100 * i + k: f"<i32> ${100 * i + k} = const {k}" for k in range(ops)}
        texts |= (change or {}).get(i, {})
        texts = {op: text for op, text in texts.items() if text}
        label = {0: "start", len(nexts) - 1: "final"}.get(i, f"body ${i}")
        nodes.append(CfgNode(
            id=i, ops=tuple(texts), lines=tuple(texts.values()), next=following, label=label,
            prev=tuple(j for j, n in enumerate(nexts) if i in n),
        ))  # fmt: skip
    return CfgRecord(stage="", task=0, when="", nodes=tuple(nodes))


def diff(before: Nexts, after: Nexts, change: dict[int, dict[int, str]] | None = None) -> GraphDiff:
    return compare_graphs("task 0", record(before), record(after, change))


def text(rows: list[GraphRow]) -> str:
    return "\n".join(row.text for row in rows)


CHANGED = diff(LOOP, LOOP, {1: {100: "", 150: "<i32> $150 = neg $101"}})
LINE: Nexts = (*tuple((i + 1,) for i in range(9)), ())


def test_blocks_say_what_differs():
    assert [b.state for b in CHANGED.blocks] == ["same", "changed", "same", "same"]
    assert CHANGED.summary() == "1 of 4 blocks differs: +1 -1"
    shown = text(draw(CHANGED, 60))
    assert "- <i32> $100 = const 0" in shown and "+ <i32> $150 = neg $101" in shown
    assert "~ 1 body $1  changed +1 -1" in shown and "operations, unchanged" in shown


def test_an_op_that_changes_its_block_has_moved():
    before = record(LOOP)
    nodes = list(before.nodes)
    first, second = nodes[1], nodes[2]
    nodes[1] = msgspec.structs.replace(first, ops=first.ops[:1], lines=first.lines[:1])
    nodes[2] = msgspec.structs.replace(
        second, ops=(*first.ops[1:], *second.ops), lines=(*first.lines[1:], *second.lines)
    )
    after = msgspec.structs.replace(before, nodes=tuple(nodes))
    found = compare_graphs("task 0", before, after)
    kinds = [(line.kind, line.other) for b in found.blocks for line in b.lines if b.state != "same"]
    assert ("left", 2) in kinds and ("moved", 1) in kinds
    assert "from block 1" in text(draw(found, 60)) and "now in block 2" in text(draw(found, 60))


def test_a_replaced_op_is_one_change():
    new = record(LOOP, {1: {101: "", 900: "<i32> $900 = const 5"}})
    found = compare_graphs("task 0", record(LOOP), new, {900: 800, 800: 101})
    assert found.summary() == "1 of 4 blocks differs: ~1"


def test_added_and_removed_blocks_and_edges_are_marked():
    shorter: Nexts = ((1,), (2,), ())
    for found, sign, word in (
        (compare_graphs("t", record(shorter), _grown(shorter)), "+", "added"),
        (compare_graphs("t", _grown(shorter), record(shorter)), "-", "removed"),
    ):
        assert [b.state for b in found.blocks] == ["same", "same", word, "same"]
        assert f"{sign} " in text(draw(found, 50)) and word in text(draw(found, 50))
        assert {e.state for e in found.edges} == {"same", "added", "removed"}
        drawn = text(draw(found, 50))
        assert "━" in drawn and "╌" in drawn
        assert all(row.text.isascii() for row in draw(found, 50, ascii_only=True))


def _grown(nexts: Nexts) -> CfgRecord:
    """``nexts``, ((1,), (2,), ()), with a block more before the last, under other numbers."""
    old = record(nexts).nodes
    more = CfgNode(id=2, ops=(77,), lines=("<i32> $77 = const 1",), prev=(1,), next=(3,),
                   label="then $9")  # fmt: skip
    second = msgspec.structs.replace(old[1], next=(2,))
    last = msgspec.structs.replace(old[2], id=3, prev=(2,))
    return CfgRecord(stage="", task=0, when="", nodes=(old[0], second, more, last))


def test_every_op_is_drawn_once_in_its_width():
    same = diff(LOOP, LOOP)
    rows = draw(same, 60)
    assert [row.op for row in rows if row.op >= 0] == [
        line.op for block in same.blocks for line in block.lines
    ]
    assert all(len(row.text) <= 60 for row in rows)
    assert "►" in text(rows) and "◄" in text(rows)


def test_straight_runs_without_a_difference_are_folded():
    found = diff(LINE, LINE, {6: {600: "<i32> $600 = const 9"}})
    assert [tuple(g) for g in groups_of(found, False)] == [
        (0, 0), (1, 5), (6, 6), (7, 8), (9, 9),
    ]  # fmt: skip
    rows = draw(found, 60)
    assert "1 body $1 to 5 body $5" in text(rows)
    assert any("<i32> $301 = const 1" in row.folded for row in rows), "a search finds it"
    assert len(groups_of(found, True)) == 10


def test_a_block_keeps_its_place_unless_one_above_changes():
    """From pass to pass: the drawing of one, and that of the next."""
    last = {8: {801: ""}}
    one = compare_graphs("t", record(LINE), record(LINE, last))
    two = compare_graphs("t", record(LINE, last), record(LINE, {**last, 7: {700: ""}}))
    for whole in (False, True):
        tops = [
            {
                row.block: (i, len(row.left))
                for i, row in reversed(list(enumerate(draw(g, 60, whole=whole))))
                if row.kind == "border"
            }
            for g in (one, two)
        ]
        places = [tops[k].get(1) for k in (0, 1)]
        assert places[0] == places[1] is not None
        if whole:
            assert all(tops[0][i] == tops[1][i] for i in range(7))


def test_a_loop_more_moves_nothing_sideways():
    straight, looped = diff(LINE, LINE), diff(LOOP, LOOP)
    assert len(draw(straight, 60)[0].left) == len(draw(looped, 60)[0].left)


def test_overview_has_loops_inside_loops():
    nested: Nexts = ((1,), (2, 5), (3,), (2, 4), (1, 5), ())
    found = diff(nested, nested, {3: {300: ""}})
    assert [tuple(loop) for loop in loops_of(found)] == [(1, 4, 0), (2, 3, 1)]
    shown = text(overview(found, 70, {1: 12, 2: 13}))
    assert "┌─ loop body $1, line 12: 4 blocks, 1 differs" in shown
    assert "│ ┌─ loop body $2, line 13: 2 blocks, 1 differs" in shown
    assert "│ │ ~ block 3 body $3: 1 operation, changed -1" in shown
    assert len({len(row.text) for row in overview(found, 70, {}) if row.left}) == 1


def test_outline_is_plain_text():
    shown = text(outline(CHANGED, {1: 7}))
    assert "loop body $1, line 7" in shown
    assert "~ block 1 body $1: 2 operations, changed +1 -1 -> 2" in shown
    assert "- <i32> $100 = const 0" in shown and shown.isascii()


def test_overlapping_jumps_get_different_lanes():
    lanes = {(a, b): lane for a, b, lane in lanes_of([(0, 3), (1, 4), (5, 7)])}
    assert lanes[0, 3] != lanes[1, 4] and lanes[5, 7] == 0


@pytest.mark.parametrize("export", [to_dot, to_mermaid])
def test_exports_name_every_block_and_edge_and_what_differs(export):
    found = export([CHANGED])
    for i in range(4):
        assert f"g0n{i}" in found
    assert found.count("g0n") == 4 + 2 * len(CHANGED.edges)
    assert "~ 1 body $1 (changed +1 -1)" in found and "- &lt;i32" in found.replace("<i", "&lt;i")


def test_svg_is_well_formed_and_escapes():
    node = CfgNode(id=0, ops=(1,), lines=('$1 : print ["<b>&"]',), prev=(), next=())
    one = CfgRecord(stage="s", task=0, when="before", nodes=(node,))
    svg = to_svg([compare_graphs("t<1>", one, one)])
    assert ElementTree.fromstring(svg).tag.endswith("svg") and "<b>" not in svg
    root = ElementTree.fromstring(to_svg([CHANGED, CHANGED]))
    assert len(root.findall(".//{*}rect")) == 8 and "cfg-changed" in to_svg([CHANGED])


def test_200_blocks_are_laid_out_in_100_ms():
    nexts: Nexts = (*tuple((i + 1, (i + 7) % 200) for i in range(199)), ())
    change = {i: {100 * i: ""} for i in range(1, 199, 3)}
    took: list[float] = []
    for _ in range(3):
        start = time.process_time()
        found = compare_graphs("t", record(nexts, ops=8), record(nexts, change, ops=8))
        assert len({row.block for row in draw(found, 120, whole=True)}) >= 200
        took.append(time.process_time() - start)
    assert min(took) < 0.1
