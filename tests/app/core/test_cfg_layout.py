"""The drawing of control-flow graphs: complete, stable, and exportable."""

from __future__ import annotations

from xml.etree import ElementTree

from qd_studio.app.core.cfg_layout import edges, layout, to_dot, to_mermaid, to_svg
from qd_studio.engine.inspect.record import CfgNode, CfgRecord


def graph(*nexts: tuple[int, ...], ops: int = 2) -> CfgRecord:
    nodes = tuple(
        CfgNode(
            id=i,
            ops=tuple(range(10 * i, 10 * i + ops)),
            lines=tuple(f"    <i32> ${10 * i + k} = const {k}" for k in range(ops)),
            prev=tuple(j for j, n in enumerate(nexts) if i in n),
            next=n,
            label="loop body" if i == 1 else "",
            live_out=(3,) if i == 0 else (),
        )
        for i, n in enumerate(nexts)
    )
    return CfgRecord(stage="simplify_III", task=0, when="before", nodes=nodes)


LOOP = graph((1, 3), (2,), (1, 3), ())


def test_edges_take_lanes_by_direction():
    kinds = {(e.source, e.target): e.kind for e in edges(LOOP)}
    assert kinds == {
        (0, 1): "next", (0, 3): "forward", (1, 2): "next", (2, 1): "back", (2, 3): "next",
    }  # fmt: skip


def test_overlapping_jumps_get_different_lanes():
    lanes = {(e.source, e.target): e.lane for e in edges(graph((1, 3), (2, 4), (3,), (4,), ()))
             if e.kind == "forward"}  # fmt: skip
    assert lanes[(0, 3)] != lanes[(1, 4)]


def test_drawing_shows_every_op_and_stays_in_its_width():
    drawing = layout(LOOP, 60)
    text = "\n".join(r.text for r in drawing.rows)
    for node in LOOP.nodes:
        assert all(line.strip() in text for line in node.lines)
    assert all(len(r.text) <= 61 for r in drawing.rows)
    assert "►" in text and "◄" in text and "live $3" in text
    shown = [r.op for r in drawing.rows if r.op >= 0]
    assert shown == [op for n in LOOP.nodes for op in n.ops]


def test_ascii_drawing_is_ascii():
    assert all(r.text.isascii() for r in layout(LOOP, 60, ascii_only=True).rows)


def test_long_nodes_say_how_much_they_hide():
    drawing = layout(graph((1,), (), ops=30), 60, max_ops=5)
    assert any("26 more" in r.text for r in drawing.rows)


def test_unchanged_nodes_keep_their_place_when_a_later_one_grows():
    before = layout(LOOP, 60)
    bigger = LOOP.nodes[3]
    grown = CfgNode(id=3, ops=(90, 91, 92), lines=("a", "b", "c"), prev=bigger.prev, next=())
    after = layout(CfgRecord(stage="s", task=0, when="after", nodes=(*LOOP.nodes[:3], grown)), 60)
    assert {k: v for k, v in before.tops.items() if k < 4} == after.tops


def test_exports_name_every_node_and_edge():
    for text, arrow in ((to_dot(LOOP), "->"), (to_mermaid(LOOP), "-->")):
        for node in LOOP.nodes:
            assert f"n{node.id}" in text
            for target in node.next:
                assert f"n{node.id} {arrow} n{target}" in text


def test_svg_is_well_formed_and_escapes():
    node = CfgNode(id=0, ops=(1,), lines=('$1 : print ["<b>&"]',), prev=(), next=())
    svg = to_svg(CfgRecord(stage="s", task=0, when="before", nodes=(node,)))
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg") and "<b>" not in svg
    assert len(ElementTree.fromstring(to_svg(LOOP)).findall(".//{*}rect")) == 4


def test_200_nodes_fit():
    big = graph(*[(i + 1, (i + 7) % 200) for i in range(199)], ())
    assert len(layout(big, 120).tops) == 200
