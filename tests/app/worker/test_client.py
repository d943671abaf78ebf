"""The worker at its daily work: compile, launch, refresh, options, helpers."""

import json
import os

import pytest
from qd_studio.app.report import render
from qd_studio.app.show import show
from qd_studio.app.worker import events
from qd_studio.app.worker.client import WorkerClient
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import LAST, Limits
from qd_studio.engine.inspect.graphs import live_graphs

from .live import HEAD, SCALE, Live, backend, kernel_file


def test_a_kernel_is_compiled_launched_and_compared(path):
    with Live(path) as live:
        record = live.complete()
    (kernel,) = record.kernels
    assert (kernel.id, kernel.line, record.errors) == ("kernels.py:scale", 5, ())
    assert [(w.label, w.origin) for w in kernel.workloads] == [
        ("n=64", "workload"), ("n=1000", "workload"),
    ]  # fmt: skip
    cpu, interp = kernel.backend("cpu"), kernel.backend("interp")
    assert (cpu.status, interp.status) == ("ok", "ok")
    assert [x.workload for x in cpu.launches] == ["n=64", "n=1000"]
    assert (cpu.agreement.state, cpu.agreement.check) == ("ok", "passed")
    assert cpu.agreement.workload == "n=64; n=1000"
    runs = cpu.compile.runs
    assert [r.index for r in runs] == list(range(len(runs)))
    assert all((r.before != r.after) == (r.state == "changed") for r in runs)
    assert {"llvm_ir", "asm"} <= {a.name for a in cpu.compile.artefacts}
    assert any(live_graphs(cpu.compile, run) for run in runs)
    assert record.files[0].text == SCALE


def test_news_come_in_a_sensible_order(path):
    with Live(path) as live:
        live.complete()
    assert isinstance(live.seen[0], events.Started)
    listed = live.of(events.RecordUpdated)[0]
    assert (listed.complete, [k.name for k in listed.record.kernels]) == (False, ["scale"])
    updates = live.of(events.KernelUpdated)
    # Compiled IR first, launches later.
    assert updates[0].kernel.backend("cpu").compile is not None
    assert updates[0].kernel.backend("cpu").compile.snapshots
    assert updates[0].kernel.backend("cpu").compile.artefacts == ()
    assert updates[0].kernel.backend("cpu").launches == ()
    assert [u.final for u in updates].count(True) == 1
    assert updates[-1].final


@pytest.mark.slow
def test_launches_of_a_save_are_timed_in_turns_with_those_of_the_save_before(path):
    longer = SCALE.replace("* a", "* a + 1.0").replace("before[1])", "before[1] + 1.0)")
    broken = SCALE.replace("x[i] * a", "y[i]")
    with Live(path, backends=("cpu",), keep=LAST, against=LAST) as live:
        first = backend(live.complete()).launches[-1]
        live.after(path, broken)
        second = backend(live.after(path, longer)).launches[-1]
        third = backend(live.after(path, "# moved\n" + longer)).launches[-1]
    assert first.stamp and first.earlier is None
    # A save that does not compile is not in between.
    assert second.earlier.stamp == first.stamp and second.earlier.n >= 3
    assert third.earlier is None and third.stamp not in ("", second.stamp)


# In the worker: comparisons are never clear, and are measured for so long.
UNCLEAR = """
from qd_studio.engine.inspect import earlier, timing
earlier.decided = timing.decided = lambda one, other: False
earlier._LONGER_S = earlier._LONGER_BUSY_S = {seconds}
"""
LONGER = SCALE.replace("* a", "* a + 1.0").replace("before[1])", "before[1] + 1.0)")


def again(event):
    return isinstance(event, events.RecordUpdated) and event.again


def launches_of(record):
    return [x.earlier for x in backend(record).launches]


@pytest.mark.slow
def test_times_that_are_not_clear_follow_after_the_look(path):
    with Live(path, backends=("cpu",), keep=LAST, against=LAST) as live:
        live.complete()
        before = launches_of(live.after(path, LONGER + UNCLEAR.format(seconds=0.2)))
        after = launches_of(live.wait(again).record)
        assert [x.more_s for x in (*before, *after)] == [0.2, 0.2, 0.0, 0.0]
        assert all(a.n > b.n and a.stamp == b.stamp for a, b in zip(after, before, strict=True))
        assert not [e for e in live.of(events.Progress) if "for longer" in e.text]


INIT = "qd.init(arch=qd.cpu, log_level='error')\ny = qd.field(qd.f32, 4)"


@pytest.mark.slow
def test_rows_of_all_files_of_a_save_go_on_within_one_budget(path, tmp_path):
    helper, second = tmp_path / "factor.py", tmp_path / "second.py"
    text = SCALE.replace("* a", "* a + FACTOR").replace("before[1])", "before[1] + FACTOR)")
    text = "from factor import FACTOR\n" + text
    text = text.replace("@qd.kernel", f"{INIT}\n@qd.kernel")
    path.write_text(text.replace("+ FACTOR\n", "+ FACTOR + y[1]\n"))
    second.write_text(text)
    helper.write_text("FACTOR = 1.0\n")
    with Live(path, second, backends=("cpu",), keep=LAST, against=LAST) as live:
        live.complete()
        live.save(helper, "FACTOR = 2.0\n" + UNCLEAR.format(seconds=0.2))
        before = live.complete()
        after = live.wait(again).record
    for record, seconds in ((before, 0.2), (after, 0.0)):
        rows = [x.earlier for k in record.kernels for x in k.backend("cpu").launches]
        assert len(rows) == 4 and {x.more_s for x in rows} == {seconds}
    pairs = [
        (x, y)
        for old, new in zip(before.kernels, after.kernels, strict=True)
        for x, y in zip(old.backends[0].launches, new.backends[0].launches, strict=True)
    ]
    assert all(y.earlier.n > x.earlier.n and y.stamp == x.stamp for x, y in pairs)
    assert all(y.earlier.stamp == x.earlier.stamp for x, y in pairs)


@pytest.mark.slow
def test_a_save_ends_launches_for_longer_and_the_worker_stays(path):
    with Live(path, backends=("cpu",), keep=LAST, against=LAST) as live:
        live.complete()
        shown = live.after(path, LONGER + UNCLEAR.format(seconds=60.0))
        assert launches_of(shown)[0].more_s == 24.0  # at most, for all of a look
        last = live.after(path, SCALE + UNCLEAR.format(seconds=60.0))
        assert launches_of(last)[-1].stamp == backend(shown).launches[-1].stamp
        assert not last.kernels[0].stale and len(live.of(events.Started)) == 1
        # Cancelled: what is known stays, and nothing waits.
        live.client.cancel()
        record = live.wait(again).record
        assert launches_of(record)[0].more_s == 0.0 and not record.kernels[0].stale


def test_a_save_is_taken_up_by_the_same_worker(path):
    with Live(path) as live:
        live.complete()
        record = live.after(path, SCALE.replace("* a", "+ a").replace("before[0] *", "before[0] +"))
        assert len(live.of(events.Started)) == 1
    assert "add" in "".join(backend(record).compile.snapshots[-1].lines)
    assert backend(record).agreement.check == "passed"
    assert not record.kernels[0].stale


def test_options_change_the_compile_and_say_so(path, monkeypatch):
    monkeypatch.delenv("QD_TIERED", raising=False)
    with Live(path) as live:
        before = live.complete()
        live.client.set_config({"cfg_optimization": False, "default_fp": "f64"})
        after = live.complete()
    names = [{run.name for run in backend(one).compile.runs} for one in (before, after)]
    assert ["cfg_optimization" in some for some in names] == [True, False]
    changed = {
        e.name: (e.value, e.default, e.origin) for e in after.config if e.origin != "default"
    }
    assert changed == {
        "cfg_optimization": (False, True, "studio"), "default_fp": ("f64", "f32", "studio"),
    }  # fmt: skip


def test_options_of_the_files_own_init_count(tmp_path, monkeypatch):
    monkeypatch.delenv("QD_TIERED", raising=False)
    path = tmp_path / "k.py"
    path.write_text(SCALE + "\nqd.init(arch=qd.cpu, default_fp=qd.f64, log_level='error')\n")
    record = collect([path], {"fast_math": False}, ["cpu"], limits=Limits(measure_s=0.01))
    origins = {e.name: e.origin for e in record.config if e.origin != "default"}
    assert origins == {"default_fp": "init", "log_level": "init", "fast_math": "studio"}
    assert record.errors == ()


def test_each_file_has_options_of_its_own(tmp_path):
    inits = {"one.py": "qd.init(arch=qd.cpu, default_fp=qd.f64)", "two.py": "qd.init(arch=qd.cpu)"}
    for name, init in inits.items():
        (tmp_path / name).write_text(SCALE + f"\n{init}\n")
    paths = [str(tmp_path / name) for name in inits]
    record = collect(paths, backends=["cpu"], launch=False, limits=Limits(measure_s=0.01))
    changed = {f.path: [e.name for e in f.config if e.origin == "init"] for f in record.files}
    assert changed == {paths[0]: ["default_fp"], paths[1]: []}
    text, page = render(record, ".md").replace("\\", "").replace("`", ""), render(record, ".html")
    for said in ("Options of one.py: default_fp=f64 (init)", "Options of two.py: the defaults"):
        assert said in text and said in page
    one, two = record.kernels
    assert "options: default_fp=f64 (init)" in show(record, "launch", one.id)
    assert "options:" not in show(record, "launch", two.id)
    reported = json.loads(show(record, "launch", as_json=True))
    assert [[e["name"] for e in x["options"]] for x in reported] == [["default_fp"], []]
    assert json.loads(render(record, ".json"))["files"][0]["config"]


def test_a_helper_counts_and_is_read_again(tmp_path):
    helper, path, other = tmp_path / "helper.py", tmp_path / "kernels.py", tmp_path / "other.py"
    helper.write_text(HEAD + "@qd.func\ndef f(v):\n    return v + 1.5\n")
    path.write_text("from helper import f\n" + kernel_file("for i in x:\n    x[i] = f(x[i])"))
    other.write_text(SCALE)
    with Live(path, other) as live:
        record = live.complete()
        assert {os.path.basename(f.path) for f in record.files} == {
            "kernels.py", "helper.py", "other.py",
        }  # fmt: skip
        assert "1.5" in "\n".join(backend(record).compile.snapshots[-1].lines)
        live.forget()
        # The same size within the same second: a cached helper would not notice.
        record = live.after(helper, HEAD + "@qd.func\ndef f(v):\n    return v + 2.5\n")
        assert {u.kernel.id for u in live.of(events.KernelUpdated)} == {"kernels.py:k"}
    assert "2.5" in "\n".join(backend(record).compile.snapshots[-1].lines)
    loc = next(x for x in backend(record).compile.locs if x.file == str(helper))
    assert backend(record).compile.locs[loc.parent].file == str(path)


def test_a_burst_of_requests_ends_with_the_last_content(path):
    with Live(path) as live:
        live.complete()
        live.forget()
        for i in range(20):
            live.save(path, SCALE.replace("a: qd.f32", f"a{i}: qd.f32").replace("* a", f"* a{i}"))
        live.save(path, SCALE.replace("scale", "last"))
        record = live.wait(
            lambda e: isinstance(e, events.RecordUpdated)
            and e.complete and [k.name for k in e.record.kernels] == ["last"]
        ).record  # fmt: skip
    assert backend(record).agreement.check == "passed"
    assert not record.kernels[0].stale


def test_arguments_are_made_up_where_none_are_declared(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(
        HEAD
        + """
@qd.kernel
def gather(x: qd.types.ndarray(dtype=qd.f32, ndim=1), at: qd.types.ndarray(dtype=qd.i32, ndim=1),
           n: qd.i32) -> qd.f32:
    total = 0.0
    for i in range(n):
        total += x[at[i]]
    return total


@qd.kernel
def unfit(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        x[i + 100000000] = 1.0


@qd.kernel
def shaped(size: qd.Template, x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(size):
        x[i] = 1.0
"""
    )
    record = collect([path], limits=Limits(measure_s=0.01))
    gather, unfit, shaped = record.kernels
    assert gather.workloads[0].origin == "synthetic"
    assert gather.workloads[0].args == ("f32[64]", "i32[64]", "32")
    assert gather.backend("cpu").agreement.state == "ok"
    # What would have gone astray never reached compiled code.
    assert unfit.backend("cpu").launches == ()
    for name in ("cpu", "interp"):
        agreement = unfit.backend(name).agreement
        assert agreement.state == "unknown"
        assert "do not fit" in agreement.reason and "(line 17)" in agreement.reason
    # A template argument cannot be made up, and the message says so.
    assert shaped.workloads[0].origin == "none"
    assert "parameter size is a template" in shaped.workloads[0].reason
    assert shaped.backend("cpu").status == "not_run"


@pytest.mark.slow
def test_run_records_the_calls_of_main(tmp_path):
    path = tmp_path / "k.py"
    body = kernel_file("for i in x:\n    x[i] = x[i] + 1.0")
    path.write_text(
        body
        + """
def main():
    print("main runs")
    x = np.zeros(7, np.float32)
    k(x)
    k(x)
    k(np.zeros(9, np.float32))


if __name__ == "__main__":
    qd.init(arch=qd.cpu)
    main()
"""
    )
    record = collect([path], run=True, limits=Limits(measure_s=0.01))
    (kernel,) = record.kernels
    assert [(w.label, w.origin) for w in kernel.workloads] == [
        ("call 1 (7,)", "recorded"), ("call 2 (9,)", "recorded"),
    ]  # fmt: skip
    assert kernel.backend("cpu").agreement.state == "ok"
    assert "main runs" in [line.text for line in record.log]


@pytest.mark.slow
def test_the_calls_of_a_file_without_main_are_those_of_its_import(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(
        """from qd_studio import engine as qd

qd.init(arch=qd.cpu)
x = qd.field(qd.f32, shape=4)
marks = qd.ndarray(qd.u8, shape=(4,))


@qd.kernel
def k(f: qd.template(), m: qd.Tensor, a: qd.f32):
    for i in f:
        f[i] += a * m[i]


k(x, marks, 2.0)
"""
    )
    (kernel,) = collect([path], run=True, limits=Limits(measure_s=0.01)).kernels
    assert [(w.label, w.origin) for w in kernel.workloads] == [("call 1 (4,)", "recorded")]
    assert kernel.backend("cpu").agreement.state == "ok"


@pytest.mark.slow
def test_files_of_one_name_are_distinguished(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.py").write_text(SCALE)
    record = collect([tmp_path / "a/k.py", tmp_path / "b/k.py"], limits=Limits(measure_s=0.01))
    assert [k.id for k in record.kernels] == ["a/k.py:scale", "b/k.py:scale"]


def test_absent_backends_say_why(path):
    record = collect([path], backends=["metal", "amdgpu"], limits=Limits(measure_s=0.01))
    assert backend(record, "metal").status == "absent"
    assert backend(record, "metal").reason.startswith("metal: ")
    amd = backend(record, "amdgpu")
    assert (amd.status, amd.unlaunched) == ("ok", "no runtime: inspection only")


def test_a_client_can_be_stopped_at_any_moment(path):
    seen = []
    client = WorkerClient([path], on_event=seen.append)
    client.stop()
    client.stop()
    client.request_refresh()
    assert not client.alive
    # Stopping from within an event does not wait for itself.
    clients = []

    def stop_at_once(event):
        if isinstance(event, events.Started):
            clients[0].stop()

    clients.append(WorkerClient([path], on_event=stop_at_once))
    clients[0].request_refresh()
    clients[0]._thread.join(60)
    assert not clients[0].alive


def test_a_job_can_be_cancelled_and_the_next_one_works(path):
    with Live(path) as live:
        live.client.cancel()  # before there is a worker, or while it starts: no harm
        live.complete()
        live.client.request_refresh()
        live.complete()
        path.write_text("import time\ntime.sleep(1000)\n" + SCALE)
        live.forget()
        live.client.request_refresh([str(path)])
        live.wait(lambda e: isinstance(e, events.Progress) and "import" in e.text)
        live.client.cancel()
        record = live.complete()
        assert record.kernels[0].stale and backend(record).compile is not None
        assert [e.reason for e in live.of(events.Exited)] == ["cancelled"]
        assert live.of(events.Failed) == []
        live.client.cancel()  # nothing is in work: no harm
        assert not live.after(path, SCALE).kernels[0].stale


SCRIPT = """\
import quadrants as qd

qd.init(arch=qd.cpu)

import held  # noqa: E402


@qd.data_oriented
class Counter:
    def __init__(self):
        self.count = qd.field(qd.i32, shape=4)

    @qd.kernel
    def tick(self, by: qd.i32):
        for i in self.count:
            self.count[i] += by + held.offsets[i]


counter = Counter()

if __name__ == "__main__":
    held.offsets.fill(10)
    counter.count.fill(100)
    counter.tick(1)
    counter.count.fill(500)
"""


@pytest.mark.slow
def test_fields_of_a_script_and_its_helpers_live_as_long_as_its_program(tmp_path):
    """Run as a script the file starts another program, in which the first one's fields are gone."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    (tmp_path / "held.py").write_text(
        "import quadrants as qd\n\noffsets = qd.field(qd.i32, shape=4)\n"
    )
    quick = Limits(measure_s=0.01)
    for run, origin in ((False, "synthetic"), (True, "recorded")):
        (kernel,) = collect([path], run=run, limits=quick).kernels
        assert (kernel.id, kernel.instance) == ("script.py:Counter.tick", "counter")
        assert [w.origin for w in kernel.workloads] == [origin]
        cpu = kernel.backend("cpu")
        assert (cpu.status, cpu.agreement.state) == ("ok", "ok"), cpu.errors
        names = {p.name: p.origin for p in cpu.compile.params}
        assert names == {"by": "argument", "self.count": "field", "held.offsets": "field"}


def test_what_is_shown_is_pending_from_the_save_on_and_nothing_is_at_the_end(path):
    with Live(path) as studio:
        studio.complete()
        studio.forget()
        studio.save(path, "import time; time.sleep(1.0)\n" + SCALE.replace("* a", "* a + 0"))
        # Before the slow import is over.
        first = studio.wait(lambda e: isinstance(e, events.RecordUpdated)).record
        assert backend(first).earlier == ("passes", "code", "launches", "caches")
        assert backend(first).agreement is None and backend(first).launches
        assert "sleep" not in first.files[0].text
        last = studio.complete()
        states = [e.kernel.backend("cpu") for e in studio.of(events.KernelUpdated)]
        assert all(b.agreement is None or not b.earlier for b in states)
        assert backend(last).earlier == () and backend(last).agreement.state == "ok"


def test_a_look_that_is_cancelled_leaves_nothing_pending(path):
    with Live(path) as studio:
        studio.complete()
        studio.save(path, "import time; time.sleep(60.0)\n" + SCALE)
        studio.wait(lambda e: isinstance(e, events.Progress) and e.text.startswith("importing"))
        studio.client.cancel()
        last = studio.complete()
        assert last.kernels[0].stale and backend(last).agreement is None


def test_an_error_that_was_mended_is_gone_when_the_next_look_begins(path):
    with Live(path) as studio:
        studio.complete()
        assert backend(studio.after(path, SCALE.replace("* a", "* nothing"))).errors
        studio.save(path, "import time; time.sleep(0.5)\n" + SCALE)
        first = studio.wait(lambda e: isinstance(e, events.RecordUpdated)).record
        assert not backend(first).errors and not first.kernels[0].stale
        assert not backend(studio.complete()).errors
