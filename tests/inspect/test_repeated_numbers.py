"""Records of many tasks show those that differ from an earlier one in numbers as one line."""

from __future__ import annotations

import re
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
from qd_studio.engine.inspect.code_forms import readable_code
from qd_studio.engine.inspect.discover import Subject
from qd_studio.engine.inspect.edit_file import edit_text, read_edit
from qd_studio.engine.inspect.edited import EditedCapture
from qd_studio.engine.inspect.metrics import Without
from qd_studio.engine.inspect.readable import readable_ir
from qd_studio.engine.passes import loop_templates, pipeline, share_numbers, task_templates

from ..passes import test_loop_templates as loops
from ..passes import test_task_templates as kernels
from .test_repeated_tasks import compiled, stated

pytestmark = pytest.mark.not_on_device("it is about records for processors")

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
CONFIG = CompileConfig(arch="cpu", cpu_max_num_threads=4, fast_math=False)


@qd.kernel
def scaled(x: F32, y: F32):
    for i in x:
        y[i] = y[i] * 0.3 + x[i] * 0.7
    for j in x:
        y[j] = y[j] * 0.6 + x[j] * 0.1
    for k in x:
        y[k] = y[k] * 0.6 + x[k] * 0.1
    for i in range(1, x.shape[0]):
        x[i] = qd.max(x[i - 1], 0.3)
    for i in x:
        y[i] = y[i] * 0.3 + x[i] * 0.7
    for n in x:
        y[n] = y[n] * 0.3 + x[n] * 0.9
    y[0] += x[1]


@qd.kernel
def looped(x: F32, y: F32):
    """Nothing but loops: they are set aside before they are tasks."""
    for i in x:
        y[i] = y[i] * 0.3 + x[i] * 0.7
    for j in x:
        y[j] = y[j] * 0.6 + x[j] * 0.1
    for k in x:
        y[k] = y[k] * 0.6 + x[k] * 0.1
    for i in range(1, x.shape[0]):
        x[i] = qd.max(x[i - 1], 0.3)
    for i in x:
        y[i] = y[i] * 0.3 + x[i] * 0.7
    for n in x:
        y[n] = y[n] * 0.3 + x[n] * 0.9


@qd.kernel
def summed(x: F32, y: F32):
    """Values go from task to task, and those of the last loop nowhere."""
    total = 0.0
    for i in x:
        total += x[i]
    for j in x:
        total += x[j] * 0.7
    for n in x:
        y[n] = x[n] * 2.3
    for i in x:
        total += x[i]
    for i in x:
        total += x[i] * 0.9
    for i in x:
        y[i] = x[i] * 3.4
    y[0] = total
    for i in x:
        total += x[i]
    for i in x:
        total += x[i] * 0.3


@scaled.workload(n=[16])
@looped.workload(n=[16])
@summed.workload(n=[16])
def arrays(n):
    return np.linspace(0, 1, n, dtype=np.float32), np.linspace(2, 1, n, dtype=np.float32)


def name_of(kernel):
    return kernel.decl.name


def share_early(monkeypatch, number=3):
    """Kernels of few loops and tasks are recorded as those of many."""
    monkeypatch.setattr(recorder_module, "MANY_TASKS", number)
    monkeypatch.setattr(pipeline, "_LOOPS", number)
    monkeypatch.setattr(share_numbers, "_OTHERS", 1)
    for module in (task_templates, loop_templates):
        monkeypatch.setattr(module, "MANY", number)


@pytest.fixture
def many(monkeypatch):
    share_early(monkeypatch)


def captured(kernel, launch=False):
    qd.init(arch=qd.cpu, offline_cache=False)
    return inspect.capture_kernel(Subject(kernel, name_of(kernel)), ("cpu", "interp"), CONFIG,
                                  launch=launch)  # fmt: skip


@cache
def both_of(kernel):
    """The kernel recorded and launched: with tasks set aside, and with each task in full."""
    found = captured(kernel, launch=True)
    with pytest.MonkeyPatch.context() as patch:
        share_early(patch)
        return captured(kernel, launch=True), found


@pytest.fixture(params=[scaled, looped, summed], ids=name_of)
def both(request):
    return both_of(request.param)


def repeats_in(shot):
    found = [re.search(r" : (?:offloaded|range_for) (\$\d+(?: \{[^=]*\})?)$", line)
             for line in shot.lines]  # fmt: skip
    return [match[1] for match in found if match]


@pytest.mark.parametrize("kernel, name", [(scaled, "offload"), (looped, "share_loops")])
def test_later_tasks_are_one_line_with_their_numbers(kernel, name):
    ours, _ = map(compiled, both_of(kernel))
    run = next(run for run in ours.runs if run.name == name)
    after = ours.snapshots[run.after]
    first = next(
        id for line, id in zip(after.lines, after.ids, strict=True) if line[-1] == "{" and id >= 0
    )
    own = f"${first} {{0.3: 0.6, 0.7: 0.1}}"
    assert repeats_in(after) == [own, own, f"${first}", f"${first} {{0.7: 0.9}}"]
    assert not repeats_in(ours.snapshots[run.before])
    for later in ours.runs[run.index :]:
        assert repeats_in(ours.snapshots[later.after]) == repeats_in(after)
    assert {r.task for r in ours.runs} == {None}


def test_the_rest_of_the_record_is_that_of_tasks_in_full(both):
    new, old = map(compiled, both)
    assert {r.name for r in old.runs} == {r.name for r in new.runs} - {"share_loops"}
    assert new.tasks == old.tasks
    # Until offload, values at the top that only repeats have are gone at once.
    until = {"ops.before_simplify_I", "ops.after_simplify_I", "ops.after_simplify_II"}
    assert {k: v for k, v in new.metrics.items() if k not in until} == {
        k: v for k, v in old.metrics.items() if k not in until
    }
    assert all(new.metrics[name] <= old.metrics[name] for name in until)
    assert new.params == old.params
    assert new.snapshots[-1].ops == old.snapshots[-1].ops
    for kind in ("statements", *ir_counts.KINDS):
        for task in (None, *range(len(new.tasks))):
            one, two = (
                [re.sub(r"\$\d+", "$", s.text)
                 for s in ir_counts.statements(c, c.snapshots[-1], kind, task)]
                for c in (new, old)
            )  # fmt: skip
            one = [line for line in one if "offloaded" not in line]
            two = [line for line in two if "offloaded" not in line]
            if task is None:
                one = [line for line in one if " = const" not in line]
                two = [line for line in two if " = const" not in line]
            assert sorted(one) == sorted(two), (kind, task)


@pytest.mark.parametrize("kernel", [scaled, looped, summed], ids=name_of)
def test_every_listing_is_read_back_and_gives_the_same_results(kernel):
    expected = outcome(finished(kernel))
    ours = compiled(both_of(kernel)[0])
    shown = [shot for shot in ours.snapshots if repeats_in(shot)]
    assert len(shown) > 4
    for shot in shown:
        stage = "accesses" if any("shift_ptr" in line for line in shot.lines) else "offloaded"
        if not ir_counts.task_count(shot):
            stage = "typed"
        read = ir.parse(stated(shot, stage))
        assert not ir.verify(read)
        # Sums have another order until there are chunks.
        np.testing.assert_allclose(outcome(read), expected, rtol=3e-7 if kernel is summed else 0)
        again = ir.to_text(read)
        assert ir.to_text(ir.parse(again)) == again
        assert not any(line.endswith("}") and " : " in line for line in again.splitlines())


def finished(kernel, instruments=(), config=CONFIG):
    grad = kernel is kernels.differentiated.grad
    array = ndarray_key(qd.f32, 1, needs_grad=grad)
    last = qd.f32 if kernel in loops.KERNELS else ndarray_key(qd.f64, 1, needs_grad=grad)
    keys = (array, array, last)[: len(kernel.decl.params)]
    func = build.build(kernel.decl, keys, config).func
    return passes.run(func, config, BACKEND.pipeline(config), instruments)


def outcome(func):
    values = list(arrays(16))
    interp.run(func, values)
    return [value.tolist() for value in values]


@pytest.mark.parametrize("kernel", [scaled, looped], ids=name_of)
def test_the_finished_function_has_each_task_in_full_at_its_own_lines(many, kernel):
    ours = KernelCapture(Subject(kernel, name_of(kernel)), ("cpu",), CONFIG)
    ours.compile()
    func = ours.compiled("cpu", ours.spec_keys).func
    regions = [region for task in func.tasks() for region in task.regions]
    assert len(set(regions)) == len(regions)
    ids = [op.id for op in ir.all_ops(func)]
    assert len(set(ids)) == len(ids)
    assert not ir.verify(func)
    tasks = func.tasks()
    assert func.repeats == {tasks[2]: tasks[1], tasks[4]: tasks[0]}
    assert func.renumbered == {tasks[1]: tasks[0], tasks[5]: tasks[0]}
    whole = finished(kernel)
    assert ir.difference(func, whole, ids=False) is None
    lines = [{op.loc.line for op in ir.walk(task.regions[1])} for task in whole.tasks()]
    ours = [{op.loc.line for op in ir.walk(task.regions[1])} for task in tasks]
    # A constant of several loops has the line of the first one; that of a repeat has its own.
    for k, (some, every) in enumerate(zip(ours, lines, strict=True)):
        others = set().union(*lines[:k]) if kernel is looped else set()
        assert some <= every <= some | others


def test_tasks_that_use_the_same_values_of_others_are_set_aside(many):
    """The last loop is like the second one, but none reads what it stores."""
    ours = KernelCapture(Subject(summed, "summed"), ("cpu",), CONFIG)
    ours.compile()
    func = ours.compiled("cpu", ours.spec_keys).func
    tasks = func.tasks()
    assert func.repeats == {tasks[3]: tasks[0], tasks[7]: tasks[0]}
    assert func.renumbered == {tasks[4]: tasks[1], tasks[5]: tasks[2]}
    assert ir.difference(func, finished(summed), ids=False) is None


def test_code_has_the_lines_of_its_own_task_and_ops_of_the_listing(both):
    ours, theirs = map(compiled, both)
    listed = {*ours.snapshots[-1].ids}
    for new, old in zip(ours.artefacts, theirs.artefacts, strict=True):
        if new.name != "llvm_ir":
            continue
        assert set(new.ops) <= listed
        found = [{c.locs[i].line for i in x.lines if i >= 0} for c, x in
                 ((ours, new), (theirs, old))]  # fmt: skip
        # Code of tasks that are equal has the lines of the first one.
        assert found[0] == found[1]


def test_loops_of_code_are_those_of_the_source(both):
    kernel, _ = both
    ours = compiled(kernel)
    path = ours.locs[0].file
    with open(path, encoding="utf-8") as file:
        files = [rec.FileRecord(path=path, text=file.read(), sha256="")]
    code = next(x for x in ours.artefacts if x.name == "llvm_ir")
    form = readable_code(ours, code, files)
    assert form is not None
    for name in ("i", "j", "n"):
        assert any(f"loop: for {name}" in line for line in form.lines), name


def test_costs_are_those_of_tasks_in_full(both):
    ours, theirs = (record.backends[0] for record in both)
    assert ours.agreement.verdict == theirs.agreement.verdict == "ok"
    (new,), (old,) = ours.costs, theirs.costs
    counted = [
        [replace(c, us=None, cycles=0, limited_by="") for c in costs.lines] for costs in (new, old)
    ]
    assert counted[0] == counted[1]


@pytest.mark.parametrize("kernel, name", [(scaled, "offload"), (looped, "share_loops")])
def test_a_product_is_followed_into_the_task_that_is_repeated(kernel, name):
    ours = compiled(both_of(kernel)[0])
    run = next(run for run in ours.runs if run.name == name)
    before = ours.snapshots[run.before]
    lines = list(zip(before.lines, before.ids, strict=True))
    number = next(id for line, id in lines if "const 0.9" in line)
    op = next(id for line, id in lines if " mul " in line and line.endswith(f"${number}"))
    events = tracking.track(ours, op).events
    assert any(event.how.endswith(" with 0.9 for 0.7") for event in events)


def test_every_graph_and_every_readable_listing_is_made(both):
    ours = compiled(both[0])
    for run in ours.runs:
        assert graphs.pass_graphs(ours, run)
    last = readable_ir(ours, ours.snapshots[-1])
    found = [line.partition(" with ") for line in last.lines if "task repeats $" in line]
    assert len(found) == 4
    numbers = [text for _, _, text in found if text]
    if both[0].name == "summed":
        assert numbers == ["0.9 for 0.7", "3.4 for 2.3"]
    else:
        assert numbers == ["0.6 for 0.3, 0.1 for 0.7", "0.6 for 0.3, 0.1 for 0.7", "0.9 for 0.7"]


def test_a_record_is_saved_and_read(tmp_path):
    record = rec.Record(kernels=(both_of(looped)[0],))
    store.save(record, tmp_path / "one.qds")
    assert store.load(tmp_path / "one.qds") == record


@pytest.mark.parametrize("kernel, name", [
    (scaled, "offload"), (scaled, "simplify"), (looped, "share_loops"), (looped, "offload"),
    (looped, "merge_global_ptrs"), (looped, "simplify"), (summed, "offload"),
])  # fmt: skip
def test_ir_is_edited_where_tasks_are_set_aside(many, kernel, name):
    ours = compiled(captured(kernel))
    index = max(run.index for run in ours.runs if run.name == name)
    text = edit_text(ours, index, f"k.py:{name_of(kernel)}", "k.py", "cpu")
    assert "{0.7: 0.9}" in text
    for new in ("{0.7: 0.9}", "{0.7: 0.5}"):
        edit = read_edit(text.replace("{0.7: 0.9}", new, 1), "k.qdir")
        capture = EditedCapture(Subject(kernel, name_of(kernel)), ("cpu",), CONFIG, edit)
        capture.compile()
        record = capture.launch(0.01)
        assert not record.errors
        verdict = "ok" if new == "{0.7: 0.9}" else "differs"
        assert record.backend("cpu").agreement.verdict == verdict


# ---- what numbers decide


@qd.kernel
def named(x: F32, y: F32, z: F32):
    """The text of a number is that of another constant, too."""
    for k in qd.static(range(4)):
        for i in x:
            y[i] = qd.pow(x[i], 0.7) * (k + 0.7)


def shared(kernel, config=CONFIG):
    """The finished function of a record, and how many of its tasks were repeats, with numbers and
    without."""
    recorder = recorder_module.Recorder()
    func = finished(kernel, (recorder,), config)
    found = repeats_in(recorder.snapshots[-1])
    passes.share_tasks.unshare(func)
    numbers = sum("{" in text for text in found)
    return func, numbers, len(found) - numbers


@pytest.mark.parametrize("kernel", [scaled, looped, summed], ids=name_of)
def test_where_passes_are_left_out_only_equal_tasks_are_repeats(kernel, many):
    recorder = recorder_module.Recorder()
    finished(kernel, (recorder, Without(["alg_simp"], ())))
    found = repeats_in(recorder.snapshots[-1])
    assert found and not any("{" in text for text in found)


@pytest.mark.parametrize("kernel, least, found", [(summed, 1, 2), (summed, 2, 0), (scaled, 2, 3)])
def test_a_single_task_with_other_numbers_is_listed_in_full(
    kernel, least, found, many, monkeypatch
):
    monkeypatch.setattr(share_numbers, "_OTHERS", least)
    assert shared(kernel)[1:] == (found, 2 if kernel is summed else 1)


def test_a_number_has_its_own_text(many):
    _, numbers, equal = shared(named)
    assert (numbers, equal) == (2, 0)


@pytest.mark.parametrize("kernel", [*kernels.KERNELS, *loops.KERNELS], ids=name_of)
@pytest.mark.parametrize("fast_math", [False, True])
def test_what_a_number_decides_keeps_a_task_on_its_own(kernel, fast_math, many):
    config = CONFIG.replace(fast_math=fast_math)
    if kernel is kernels.fields:
        qd.init(arch=qd.cpu)
        kernels.place()
    ours, numbers, _ = shared(kernel, config)
    assert ir.difference(ours, finished(kernel, config=config), ids=False) is None
    decides = kernel is kernels.stored or (kernel is kernels.meeting and fast_math)
    if kernel in (kernels.simple, kernels.nested, kernels.drawn):
        assert numbers >= 18
    elif kernel is kernels.special or (kernel is kernels.stored and decides):
        assert numbers == 0


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_tasks(first, many):
    total = 0
    for seed in range(first, first + 20):
        config = CompileConfig(cpu_max_num_threads=1 + seed % 4, fast_math=seed % 3 > 0)
        kind = BACKEND.pipeline(config)
        recorder = recorder_module.Recorder()
        ours = passes.run(kernels.copies(seed, 40), config, kind, (recorder,))
        total += sum("{" in text for text in repeats_in(recorder.snapshots[-1]))
        passes.share_tasks.unshare(ours)
        assert not ir.verify(ours)
        whole = passes.run(kernels.copies(seed, 40), config, kind)
        assert ir.difference(ours, whole, ids=False) is None, seed
    assert total >= 3
