"""The control flow before and after passes of real compiles."""

from __future__ import annotations

import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.inspect.diff import diff_pass
from qd_studio.engine.inspect.graphs import GraphError, graphs_of, loops_of, pass_graphs
from qd_studio.engine.inspect.record import Snapshot


@qd.real_func
def clipped(v: qd.f32) -> qd.f32:
    r = v
    if v > 1.0:
        r = 1.0
    return r


@qd.kernel
def relax(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], n: qd.i32):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(n):
            if x[i] > y[j]:
                s += clipped(x[i] * y[j])
            else:
                s -= y[j]
        x[i] = s
    for i in range(y.shape[0]):
        y[i] = x[i] * 2.0


@pytest.fixture(scope="module")
def compiled():
    qd.init(arch=qd.cpu)
    found = inspect.capture_kernel(relax, ("cpu",), launch=False).backends[0].compile
    assert found is not None
    return found


def test_every_pass_has_its_graphs_and_counts_agree_with_the_diff(compiled):
    seen = set()
    for run in compiled.runs:
        if run.state != "changed":
            continue
        found = pass_graphs(compiled, run)
        assert found, run.name
        whole = {op for g in found for b in g.blocks for line in b.lines for op in [line.op]}
        diff = diff_pass(compiled, run)
        added = {r.op for r in diff.rows if r.kind == "added"}
        for graph in found:
            lines = [line for b in graph.blocks for line in b.lines]
            assert len({(line.op, line.kind == "left") for line in lines}) == len(lines)
            assert {line.op for line in lines if line.kind == "added"} <= added
            assert {graph.blocks[e.source].state for e in graph.edges} <= {
                "same", "changed", "moved", "added", "removed",
            }  # fmt: skip
        # The header of a task, which computes its bounds, is no part of the graph.
        shot = compiled.snapshots[run.after]
        missing = added - whole - _owners_and_headers(shot)
        assert not missing or run.name == "offload", (run.name, missing)
        seen.add(run.name)
    assert {"cfg_optimization", "offload"} <= seen


def _owners_and_headers(shot: Snapshot) -> set[int]:
    out: set[int] = set()
    header = False
    for op, text in zip(shot.ids, shot.lines, strict=True):
        header = (header or text.endswith(" header {")) and text.strip() != "} body {"
        if header or text.endswith("{"):
            out.add(op)
    return out


def test_a_task_has_one_graph_and_so_does_a_function(compiled):
    names = [g.name for g in graphs_of(compiled.snapshots[-1])]
    assert names[:2] == ["task 0", "task 1"] and names[2].startswith("function clipped")
    first = [g.name for g in graphs_of(compiled.snapshots[0])]
    assert first[0] == "kernel"


def test_unchanged_ir_has_no_difference(compiled):
    run = next(r for r in compiled.runs if r.state == "noop" and r.task is None)
    found = pass_graphs(compiled, run)
    assert found and not any(g.changed for g in found)
    assert all("none differs" in g.summary() for g in found)


def test_loops_are_found_by_their_back_edges(compiled):
    graph = pass_graphs(compiled, next(r for r in compiled.runs if r.state == "noop"))[0]
    assert [loop.depth for loop in loops_of(graph)][:2] == [0, 1]


def test_ir_that_cannot_be_read_is_an_error_with_a_reason():
    shot = Snapshot(lines=("kernel k() {", "  nonsense", "}"), ids=(-1, 0, -1), locs=(-1, -1, -1))
    with pytest.raises(GraphError, match="cannot be read"):
        graphs_of(shot)
