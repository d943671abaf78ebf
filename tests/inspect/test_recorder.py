"""What the recorder keeps of a compile, and that watching changes nothing."""

import re

import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect, ir, passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import Recorder, capture_ir
from qd_studio.engine.inspect import recorder as recorder_module
from qd_studio.engine.inspect.graphs import live_graphs
from qd_studio.engine.inspect.listings import structure
from qd_studio.engine.inspect.moves import moved
from qd_studio.engine.ir import codes as C
from qd_studio.engine.pipeline_kind import PipelineKind

from tests.app.records import make_func
from tests.samples.sample_files import KERNELS, kernel_of


@pytest.fixture(scope="module")
def compiled():
    return capture_ir(make_func())


def test_snapshots_follow_the_runs_without_a_gap(compiled):
    now = 0
    for run in compiled.runs:
        assert run.before == now
        now = run.after
        assert (run.before != run.after) == (run.state == "changed")
    assert now == len(compiled.snapshots) - 1


def test_equal_ir_is_stored_once(compiled):
    texts = [snapshot.lines for snapshot in compiled.snapshots]
    assert len(set(texts)) == len(texts)
    assert len(texts) < len(compiled.runs) / 3


def test_a_snapshot_knows_op_and_place_of_each_line(compiled):
    first = compiled.snapshots[0]
    at = next(i for i, line in enumerate(first.lines) if "global_store" in line)
    assert first.lines[at].lstrip().startswith(f"${first.ids[at]} :")
    assert compiled.locs[first.locs[at]].line == 7
    assert (first.lines[-1], first.ids[-1], first.locs[-1]) == ("}", -1, -1)
    assert first.ops == sum(id >= 0 for id in first.ids)


def test_changes_are_counted_by_identity(compiled):
    for run in compiled.runs:
        old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
        before, after = set(old.ids) - {-1}, set(new.ids) - {-1}
        assert (run.added, run.removed) == (len(after - before), len(before - after))
        if run.state == "changed" and not (run.added or run.removed):
            texts = [dict(zip(s.ids, map(str.strip, s.lines), strict=True)) for s in (old, new)]
            changed = [id for id in before & after if texts[0][id] != texts[1][id]]
            assert run.rewritten == len(changed)


def test_metrics_describe_the_finished_function(compiled):
    last = compiled.snapshots[-1]
    for name, op in (("loads", "global_load"), ("stores", "global_store")):
        assert compiled.metrics[name] == sum(f" {op} " in f"{line} " for line in last.lines) == 1
    assert compiled.metrics["ops.final"] == last.ops
    assert compiled.metrics["atomics"] == 0
    assert set(passes.POINTS) <= {name.removeprefix("ops.") for name in compiled.metrics}
    (task,) = compiled.tasks
    assert (task.kind, task.axes, compiled.locs[task.loc].line) == ("range_for", 1, 6)


def test_graphs_are_around_each_cfg_optimization(compiled):
    for run in compiled.runs:
        found = live_graphs(compiled, run)
        assert bool(found) == (run.name == "cfg_optimization")
        for pair in found:
            assert [(g.when, g.run, g.stage) for g in pair] == [
                ("before", run.index, run.stage), ("after", run.index, run.stage)
            ]  # fmt: skip
            assert (pair[0].nodes[0].label, pair[0].nodes[-1].label) == ("start", "final")
            for graph, shot in zip(pair, (run.before, run.after), strict=True):
                lines = {line for node in graph.nodes for line in node.lines}
                assert lines
                assert lines <= {line.strip() for line in compiled.snapshots[shot].lines}
    live = [node.live_out for pair in found_graphs(compiled) for g in pair for node in g.nodes]
    assert any(live)


def found_graphs(compiled):
    return [pair for run in compiled.runs for pair in live_graphs(compiled, run)]


def test_watching_changes_nothing():
    texts = []
    for instruments in ((), (Recorder(),)):
        func = passes.run(make_func(), CompileConfig(), PipelineKind.CPU, instruments)
        texts.append(ir.to_text(func, locs=True))
    assert texts[0] == texts[1]


def test_runs_over_many_tasks_are_one(monkeypatch):
    """As many listings as passes, however many tasks there are; each is a true one."""

    @qd.kernel
    def loops(x: qd.types.ndarray(dtype=qd.f32, ndim=1), y: qd.types.ndarray(dtype=qd.f32, ndim=1)):
        for i in x:
            x[i] = x[i] * 2.0
        for i in y:
            s = y[i] * 3.0
            if s > 1.0:
                s = s - x[i]
            y[i] = s
        for i in x:
            x[i] = x[i] + y[i] * y[i]

    def captured():
        found = inspect.capture_kernel(loops, ("cpu",), CompileConfig(), launch=False)
        return found.backends[0].compile

    usual = captured()
    monkeypatch.setattr(recorder_module, "MANY_TASKS", 3)
    found = captured()
    assert {run.task for run in usual.runs} == {None, 0, 1, 2}
    assert {run.task for run in found.runs} == {None}
    assert found.snapshots[-1] == usual.snapshots[-1]
    assert found.tasks == usual.tasks and found.metrics == usual.metrics
    assert len(found.snapshots) < len(usual.snapshots)
    assert set(found.snapshots) <= set(usual.snapshots)
    test_snapshots_follow_the_runs_without_a_gap(found)
    test_changes_are_counted_by_identity(found)
    count = sum(len(run.rewrites) for run in usual.runs)
    assert sum(len(run.rewrites) for run in found.runs) == count
    last = {g.task: g.nodes for run in usual.runs for _, g in live_graphs(usual, run)}
    assert last == {g.task: g.nodes for run in found.runs for _, g in live_graphs(found, run)}
    assert last.keys() == {0, 1, 2}


def test_a_failing_pass_keeps_what_came_before(monkeypatch):
    def fail(func, cx):
        func.body.ops.clear()
        raise RuntimeError("a fault")

    registry = passes.registry
    broken = registry.get("lower_access")._replace(fn=fail)
    monkeypatch.setitem(registry._passes, "lower_access", broken)
    reported = []
    recorder = Recorder(lambda *run: reported.append(run))
    with pytest.raises(Exception, match="a fault"):
        passes.run(make_func(), CompileConfig(), PipelineKind.CPU, (recorder,))
    last = recorder.runs[-1]
    assert (last.name, last.state, last.before) == ("lower_access", "failed", last.after)
    assert "offloaded" in "".join(recorder.snapshots[last.after].lines)
    assert reported[-1] == ("lower_access/lower_access", recorder.snapshots[last.before].ops)


def test_call_sites_come_before_what_was_inlined_there():
    func = make_func()
    inner = ir.get_loc("lib.py", 3, 4, 3, 9, "f", parent=ir.get_loc("scale.py", 7, 8))
    store = next(op for op in ir.walk(func.body) if op.code == C.GLOBAL_STORE)
    store.loc = inner
    found = capture_ir(func)
    at = next(i for i, loc in enumerate(found.locs) if loc.file == "lib.py")
    parent = found.locs[at].parent
    assert 0 <= parent < at
    assert (found.locs[parent].file, found.locs[parent].line) == ("scale.py", 7)


def test_ops_that_only_moved_are_counted():
    @qd.kernel
    def invariant(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
        for i in x:
            total = 0.0
            for _ in range(10):
                total += qd.sin(a) * x[i]
            x[i] = total

    captured = inspect.capture_kernel(invariant, ("cpu",), CompileConfig(), launch=False)
    runs = captured.backends[0].compile.runs
    moving = [r for r in runs if r.name == "loop_invariant_code_motion" and r.state == "changed"]
    assert moving and all(r.moved and not (r.added or r.removed) for r in moving)
    assert all(r.moved == 0 for r in runs if r.state != "changed")


def test_a_loop_around_ops_has_not_moved_them_and_passing_the_end_of_one_has():
    def shot(lines, ids):
        return structure(lines, ids)

    flat = shot(["k {", " a", " b", "}"], [-1, 1, 2, -1])
    inside = shot(["k {", " for {", "  a", "  b", " }", "}"], [-1, 3, 1, 2, -1, -1])
    behind = shot(["k {", " for {", "  a", " }", " b", "}"], [-1, 3, 1, -1, 2, -1])
    turned = shot(["k {", " b", " a", "}"], [-1, 2, 1, -1])
    assert moved(flat, inside) == moved(inside, flat) == 0
    assert moved(inside, behind) == moved(behind, inside) == 1
    assert moved(flat, turned) == 1 and moved(flat, flat) == 0
    either = shot(["if {", " a", "} else {", "}"], [3, 1, -1, -1])
    other = shot(["if {", "} else {", " a", "}"], [3, -1, 1, -1])
    assert moved(either, other) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("sample", "name"), [k for k in KERNELS if k[0] != "geometry"][::3][:10])
def test_the_list_of_passes_is_the_sequence_of_dump_files(sample, name, tmp_path):
    """Apart from runs on single tasks, which share the file of their pass."""
    captured = inspect.capture_kernel(kernel_of(sample, name), ("cpu",), launch=False)
    first = captured.backends[0].compile.snapshots[0]
    recorder = Recorder()
    dump = passes.DumpToFiles(tmp_path, simplify=True)
    head, *rest = first.lines
    func = ir.parse("\n".join((f"{head[:-1]}stage=ast {{", *rest)) + "\n")
    passes.run(func, CompileConfig(), PipelineKind.CPU, (recorder, dump))
    form = re.compile(r".*simplify_I_call(\d+)_iter(\d+)_(\d\d)_(\w+)\.ir")
    found = [form.fullmatch(path.name).groups() for path in tmp_path.iterdir()]
    dumped = sorted((int(call), int(round), step, name) for call, round, step, name in found)
    listed = [(run.stage, run.round, run.name) for run in recorder.runs if run.round]
    listed = [key for i, key in enumerate(listed) if i == 0 or key != listed[i - 1]]
    assert [(round, name) for _, round, name in listed] == [
        (round, name) for _, round, step, name in dumped if step != "00"
    ]
