"""Records of many tasks show those that repeat an earlier one as one line, and mean the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace
from qd_studio import engine as qd
from qd_studio.engine import inspect, ir, passes
from qd_studio.engine.backends import interp
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.inspect import graphs, ir_counts, store, tracking
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect import recorder as recorder_module
from qd_studio.engine.inspect.capture import KernelCapture
from qd_studio.engine.inspect.discover import Subject
from qd_studio.engine.inspect.edit_file import edit_text, read_edit
from qd_studio.engine.inspect.edited import EditedCapture
from qd_studio.engine.inspect.readable import readable_ir

pytestmark = pytest.mark.not_on_device("it is about records for processors")

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def sweeps(x: F32, y: F32):
    for i in range(1, x.shape[0] - 1):
        y[i] = 0.5 * (x[i - 1] + x[i + 1])
    for i in range(1, x.shape[0] - 1):
        x[i] = 0.5 * (y[i - 1] + y[i + 1])
    for i in range(1, x.shape[0] - 1):
        y[i] = 0.5 * (x[i - 1] + x[i + 1])
    for i in x:
        x[i] += qd.random(qd.f32)
    for i in range(1, x.shape[0] - 1):
        left = x[i - 1]
        y[i] = 0.5 * (left + x[i + 1])
    y[0] += x[1]


@sweeps.workload(n=[16])
def arrays(n):
    return np.linspace(0, 1, n, dtype=np.float32), np.linspace(2, 1, n, dtype=np.float32)


CONFIG = CompileConfig(arch="cpu", cpu_max_num_threads=4, fast_math=False)


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(recorder_module, "MANY_TASKS", 3)


def captured(launch=False):
    qd.init(arch=qd.cpu, offline_cache=False)
    return inspect.capture_kernel(Subject(sweeps, "sweeps"), ("cpu", "interp"), CONFIG,
                                  launch=launch)  # fmt: skip


@cache
def both():
    """The kernel recorded and launched: with tasks set aside, and with each task in full."""
    found = captured(launch=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder_module, "MANY_TASKS", 3)
        return captured(launch=True), found


def compiled(record):
    assert not record.errors
    return record.backends[0].compile


def stated(shot, stage):
    """A listing as a whole text."""
    first, *rest = shot.lines
    head, end, size = first.rpartition(")")
    return "\n".join([f"{head}{end} stage={stage}{size}", *rest])


def test_later_tasks_are_one_line_from_the_pass_on():
    ours, _ = map(compiled, both())
    run = next(run for run in ours.runs if run.name == "offload")
    after = ours.snapshots[run.after]
    first = next(id for line, id in zip(after.lines, after.ids, strict=True) if "offloaded" in line)
    repeated = [line for line in after.lines if line.endswith(f" : offloaded ${first}")]
    assert len(repeated) == 2 and repeated == [
        line for line in ours.snapshots[-1].lines if line.endswith(f" : offloaded ${first}")
    ]
    assert ir_counts.task_count(after) == ir_counts.task_count(ours.snapshots[-1]) == 6
    assert {r.task for r in ours.runs} == {None}


@pytest.mark.parametrize("backend", ["opencl", "cross", "amdgpu"])
def test_other_generators_of_code_get_each_task_in_full(many, backend):
    """PoCL's tasks have chunks, as those of the CPU."""
    qd.init(arch=qd.cpu, offline_cache=False)
    config = CONFIG.replace(opencl_mapping="chunks")
    found = inspect.capture_kernel(Subject(sweeps, "sweeps"), (backend,), config, launch=False)
    (one,) = found.backends
    assert (one.status, one.errors) == ("ok", ())
    assert not [line for line in one.compile.snapshots[-1].lines if " : offloaded $" in line]


def test_the_rest_of_the_record_is_that_of_tasks_in_full():
    ours, theirs = both()
    new, old = compiled(ours), compiled(theirs)
    assert new.tasks == old.tasks
    assert new.metrics == old.metrics
    assert new.snapshots[-1].ops == old.snapshots[-1].ops
    found = [graphs.live_graphs(new, run) for run in new.runs]
    assert {graph.task for pairs in found for _, graph in pairs} == {0, 1, 3, 5}
    for kind in ("statements", *ir_counts.KINDS):
        for task in (None, *range(6)):
            one, two = (
                len(ir_counts.statements(c, c.snapshots[-1], kind, task)) for c in (new, old)
            )
            assert one == two, (kind, task)
    assert new.params == old.params


def test_every_listing_is_read_back_and_gives_the_same_results():
    func = finished(())
    expected = outcome(func)
    ours = compiled(both()[0])
    shown = [shot for shot in ours.snapshots if any("offloaded" in line for line in shot.lines)]
    assert len(shown) > 4
    for shot in shown:
        stage = "accesses" if any("shift_ptr" in line for line in shot.lines) else "offloaded"
        read = ir.parse(stated(shot, stage))
        assert not ir.verify(read)
        if not any(" = rand" in line for line in shot.lines):
            assert outcome(read) == expected
        again = ir.to_text(read)
        assert ir.to_text(ir.parse(again)) == again and "offloaded $" not in again


def finished(instruments):
    array = ndarray_key(qd.f32, 1)
    func = build.build(sweeps.decl, (array, array), CONFIG).func
    return passes.run(func, CONFIG, BACKEND.pipeline(CONFIG), instruments)


def outcome(func):
    values = list(arrays(16))
    interp.run(func, values)
    return [value.tolist() for value in values]


def test_what_an_instrument_may_not_share_has_all_tasks(many):
    from qd_studio.engine.inspect.recorder import Recorder

    assert finished((Recorder(),)).shared is not None
    assert finished((Recorder(), passes.Instrument())).shared is None


def test_the_finished_function_has_each_task_in_full_at_its_own_lines(many):
    ours = KernelCapture(Subject(sweeps, "sweeps"), ("cpu",), CONFIG)
    ours.compile()
    func = ours.compiled("cpu", ours.spec_keys).func
    regions = [region for task in func.tasks() for region in task.regions]
    assert len(set(regions)) == len(regions)
    assert not ir.verify(func)
    assert len(func.repeats) == 2
    whole = finished(())
    lines = [[op.loc.line for op in ir.walk(task.regions[1])] for task in whole.tasks()]
    assert [sorted({op.loc.line for op in ir.walk(task.regions[1])}) for task in func.tasks()] == [
        sorted(set(found)) for found in lines
    ]
    assert outcome(func) == outcome(whole)


def test_costs_are_those_of_tasks_in_full():
    ours, theirs = (record.backends[0] for record in both())
    assert ours.agreement.verdict == theirs.agreement.verdict == "ok"
    (new,), (old,) = ours.costs, theirs.costs
    assert len(new.lines) > 6 and {c.task for c in new.lines} == set(range(6))
    counted = [
        [replace(c, us=None, cycles=0, limited_by="") for c in costs.lines] for costs in (new, old)
    ]
    assert counted[0] == counted[1]


def test_a_value_is_followed_into_the_task_that_is_repeated():
    ours = compiled(both()[0])
    run = next(run for run in ours.runs if run.name == "offload")
    here = set(ours.snapshots[run.before].ids)
    op = next(one.op for one in run.rewrites if "repeats" in one.how and one.op in here)
    found = tracking.track(ours, op)
    assert any("the task repeats $" in event.how for event in found.events)


def test_every_graph_and_every_readable_listing_is_made():
    ours = compiled(both()[0])
    for run in ours.runs:
        assert graphs.pass_graphs(ours, run)
    last = readable_ir(ours, ours.snapshots[-1])
    assert sum("task repeats $" in line for line in last.lines) == 2


def test_a_record_is_saved_and_read(tmp_path):
    record = rec.Record(kernels=(both()[0],))
    store.save(record, tmp_path / "one.qds")
    assert store.load(tmp_path / "one.qds") == record


@pytest.mark.parametrize("name", ["offload", "detect_read_only", "simplify"])
def test_ir_is_edited_where_tasks_are_set_aside(many, name):
    """An edit of a task is one of those that repeat it."""
    ours = compiled(captured())
    index = max(run.index for run in ours.runs if run.name == name)
    text = edit_text(ours, index, "k.py:sweeps", "k.py", "cpu")
    assert "const 0.5" in text
    for new in ("const 0.5", "const 0.25"):
        edit = read_edit(text.replace("const 0.5", new, 1), "k.qdir")
        capture = EditedCapture(Subject(sweeps, "sweeps"), ("cpu",), CONFIG, edit)
        capture.compile()
        record = capture.launch(0.01)
        assert not record.errors
        verdict = "ok" if new == "const 0.5" else "differs"
        assert record.backend("cpu").agreement.verdict == verdict
