"""The manager, its two loops, and the instruments that come with it."""

import inspect
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig, DebugSwitches
from qd_studio.engine.errors import (
    IRVerificationError,
    QuadrantsInternalError,
    QuadrantsTypeError,
)
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, to_text, walk
from qd_studio.engine.passes import registry
from qd_studio.engine.passes.needs import CHECKS, NEEDS
from qd_studio.engine.pipeline_kind import PipelineKind

from .qdir import all_cases, run_passes

CPU = PipelineKind.CPU

KERNEL = """kernel total(x: ndarray<f32, 1>, n: i32) -> (f32) stage=ast @0 {
  <*f32> $0 = alloca ['total'] @1
  <i32> $1 = const 0
  <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
  <i32> $3 = arg_load [1]
  <*f32> $4 = arg_addr [(0, False)]
  $5 : range_for $1, $2 body {
    <i32> $6 = loop_index $5 [0]
    <*f32> $7 = external_ptr $4, $6 ['unsafe'] @1
    <f32> $8 = global_load $7 @1
    <f32> $9 = truediv $8, $3 @1
    <f32> $10 = atomic_add $0, $9 @1
  }
  <f32> $11 = local_load $0
  $12 : return $11
}
loc @0 = 'k.py' 10:0 10:9 'total' -
loc @1 = 'k.py' 12:4 12:20 'total' -
"""


def kernel():
    return parse(KERNEL)


class Log(passes.Instrument):
    def __init__(self):
        self.events = []
        self.runs = []
        self.points = []

    def begin(self, func, cx):
        self.events.append("begin")

    def before(self, run, func):
        self.events.append("before")
        return True

    def after(self, run, func):
        self.events.append("after")
        self.runs.append(run)

    def failed(self, run, func, error):
        self.events.append("failed")

    def stage(self, name, func):
        self.points.append(name)

    def end(self, func):
        self.events.append("end")


@pytest.fixture
def bad_pass():
    """Registers passes that misbehave, and takes them out again."""
    known = dict(registry._passes)

    def add(name, fn, **kw):
        fn.__doc__ = "Misbehave."
        registry.register(name, **kw)(fn)

    yield add
    registry._passes.clear()
    registry._passes.update(known)


def test_watching_changes_nothing():
    bare = to_text(passes.run(kernel(), CompileConfig(), CPU), locs=True)
    for instruments in ((passes.Timer(),), (passes.Remarks(), passes.VerifyEach(), Log())):
        watched = passes.run(kernel(), CompileConfig(), CPU, instruments=instruments)
        assert to_text(watched, locs=True) == bare


@pytest.mark.parametrize("kind", ["cpu", "opencl", None])
def test_the_name_of_a_backend_is_no_kind_of_pipeline(kind):
    with pytest.raises(TypeError, match="needs a PipelineKind"):
        passes.run(kernel(), CompileConfig(), kind)


def test_what_an_instrument_sees():
    log = Log()
    passes.run(kernel(), CompileConfig(), CPU, instruments=(log,))
    assert log.events[0] == "begin"
    assert log.events[-1] == "end"
    assert log.events[1:-1] == ["before", "after"] * len(log.runs)
    assert [run.index for run in log.runs] == list(range(len(log.runs)))
    assert tuple(log.points) == passes.POINTS
    stages = list(dict.fromkeys(run.stage for run in log.runs))
    assert stages == [
        "lower", "simplify_I", "checks", "simplify_II", "offload", "simplify_III",
        "offload_to_executable", "before_lower_access", "lower_access", "simplify_IV",
    ]  # fmt: skip
    by_name = {run.name: run for run in log.runs}
    assert by_name["offload"].task is None
    assert [r.task for r in log.runs if r.name == "make_thread_local"] == [0, 1]
    assert [r.changed for r in log.runs if r.name == "make_thread_local"] == [True, False]
    assert all(run.ns > 0 for run in log.runs)
    rounds = [run.round for run in log.runs if run.stage == "simplify_I"]
    assert min(rounds) == 1
    assert rounds == sorted(rounds)
    assert str(by_name["make_thread_local"]) == "offload_to_executable/make_thread_local task 1"


@pytest.mark.parametrize("point", passes.POINTS)
def test_stopping_at_a_point(point):
    log = Log()
    func = passes.run(kernel(), CompileConfig(), CPU, instruments=(log,), upto=point)
    assert log.points[-1] == point
    assert log.events[-1] == "end"
    expected = {"from_ast": "ast", "quadrants1": "lowered", "after_simplify_II": "typed",
                "after_offload": "offloaded", "final": "accesses"}  # fmt: skip
    assert func.stage == expected.get(point, func.stage)


def test_a_point_that_there_is_not():
    with pytest.raises(ValueError, match="after_everything"):
        passes.run(kernel(), CompileConfig(), CPU, upto="after_everything")


def test_timer_counts_runs_and_time():
    timer = passes.Timer()
    passes.run(kernel(), CompileConfig(), CPU, instruments=(timer,))
    assert timer.runs["offload"] == 1
    assert timer.runs["demote_atomics"] == 4, "two rounds over two tasks"
    assert timer.total_ns == sum(timer.ns.values()) > 0


def test_skipped_passes_do_not_run_and_needed_ones_cannot_be_skipped():
    log = Log()
    skip = passes.SkipPasses(["make_thread_local"])
    func = passes.run(kernel(), CompileConfig(), CPU, instruments=(skip, log))
    skipped = [run for run in log.runs if run.skipped]
    assert {run.name for run in skipped} == {"make_thread_local"}
    assert not any(run.changed for run in skipped)
    assert "accumulator" not in to_text(func)
    with pytest.raises(ValueError, match="cannot be skipped"):
        passes.SkipPasses(["offload"])
    with pytest.raises(KeyError, match="no pass is called"):
        passes.SkipPasses(["make_it_fast"])


def test_an_option_skips_passes():
    log = Log()
    config = CompileConfig(skip_passes="make_thread_local, die")
    func = passes.run(kernel(), config, CPU, instruments=(log,))
    assert not {run.name for run in log.runs} & {"make_thread_local", "die"}
    assert "accumulator" not in to_text(func)
    for names, text in (
        ("die,offload", "kernels need the pass 'offload'"), ("dei", 'did you mean "die"'),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=text):
            passes.run(kernel(), CompileConfig(skip_passes=names), CPU)


def test_fuel_lets_the_first_runs_happen():
    texts = []
    for limit in (0, 5, 10**6):
        fuel = passes.Fuel(limit)
        log = Log()
        texts.append(to_text(passes.run(kernel(), CompileConfig(), CPU, instruments=(fuel, log))))
        ran = [run for run in log.runs if run.optional and not run.skipped]
        assert len(ran) == fuel.used
        assert fuel.used == min(limit, fuel.used)
        if limit == 5:
            assert fuel.used == 5
            assert fuel.last is ran[-1]
    assert texts[2] == to_text(passes.run(kernel(), CompileConfig(), CPU))
    assert texts[0] != texts[2]


def test_opt_level_0_runs_no_optional_pass():
    log = Log()
    passes.run(kernel(), CompileConfig().replace(opt_level=0), CPU, instruments=(log,))
    assert log.runs
    assert not any(run.optional for run in log.runs)


def test_remarks_say_what_and_where():
    remarks = passes.Remarks()
    func = passes.run(kernel(), CompileConfig(), CPU, instruments=(remarks,))
    run, remark = next((r, m) for r, m in remarks.found if r.name == "offload")
    assert run.stage == "offload"
    assert "global temporary" in remark.text
    assert remark.op == 0
    assert remark.loc.line == 12
    assert func.loc.line == 10


def test_options_leave_passes_out():
    log = Log()
    config = CompileConfig().replace(
        make_thread_local=False, cache_loop_invariant_global_vars=False, detect_read_only=False,
        cfg_optimization=False,
    )  # fmt: skip
    passes.run(kernel(), config, CPU, instruments=(log,))
    left_out = {"make_thread_local", "cache_loop_invariant_global_vars", "detect_read_only",
                "cfg_optimization"}  # fmt: skip
    assert not left_out & {run.name for run in log.runs}


def test_debug_verifies_and_checks():
    func = passes.run(kernel(), CompileConfig().replace(debug=True), CPU)
    kinds = [op.attr.kind for op in walk(func.body) if op.code == C.ASSERT]
    assert kinds == ["bound"]


def test_without_threads_the_task_stays_whole():
    func = passes.run(kernel(), CompileConfig(), PipelineKind.INTERP)
    assert [task.attr.unit for task in func.tasks()] == ["cell", "cell"]
    func = passes.run(kernel(), CompileConfig(), CPU)
    assert [task.attr.unit for task in func.tasks()] == ["chunk", "cell"]


def test_a_fault_of_a_pass_names_it_and_keeps_the_line(bad_pass):
    def crash(func, cx):
        raise ZeroDivisionError("oops")

    bad_pass("crash", crash, per_task=True)
    func = passes.run(kernel(), CompileConfig(), CPU, upto="after_offload")
    log = Log()
    cx = passes.PassCx(func, CompileConfig(), (log,))
    cx.begin("simplify_III")
    with pytest.raises(QuadrantsInternalError) as caught:
        cx.run_pass("crash", round=2)
    message = "pass crash in stage simplify_III, round 2, task 0 failed: ZeroDivisionError: oops"
    assert caught.value.message == message
    assert (caught.value.stage, caught.value.pass_name) == ("simplify_III", "crash")
    assert caught.value.file == "k.py"
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert log.events == ["before", "failed"]
    assert cx.task is None


def test_an_error_of_the_kernel_stays_what_it_is(bad_pass):
    def refuse(func, cx):
        raise QuadrantsTypeError("no such thing")

    bad_pass("refuse", refuse)
    cx = passes.PassCx(kernel(), CompileConfig())
    cx.begin("lower")
    with pytest.raises(QuadrantsTypeError) as caught:
        cx.run_pass("refuse")
    assert (caught.value.stage, caught.value.pass_name) == ("lower", "refuse")
    assert caught.value.line == 10


def test_verify_each_names_the_pass(bad_pass):
    def spoil(func, cx):
        func.body.ops.reverse()
        return True

    bad_pass("spoil", spoil)
    cx = passes.PassCx(kernel(), CompileConfig(), (passes.VerifyEach(),))
    cx.begin("lower")
    with pytest.raises(IRVerificationError, match="after lower/spoil"):
        cx.run_pass("spoil")


def test_analyses_are_kept_until_something_changes():
    func = kernel()
    cx = passes.PassCx(func, CompileConfig())
    made = []

    def make(f):
        made.append(f)
        return len(made)

    assert cx.analysis("n", make) == cx.analysis("n", make) == 1
    assert cx.analysis("m", make) == 2
    cx.run_pass("lower_ast")
    assert cx.analysis("n", make) == 3


def test_a_pass_is_not_called_again_after_one_that_keeps_it(bad_pass):
    calls = []
    bad_pass("quiet", lambda func, cx: bool(calls.append("quiet")))
    bad_pass("gentle", lambda func, cx: not calls.append("gentle"), keeps=("quiet",))
    bad_pass("rough", lambda func, cx: not calls.append("rough"))
    cx = passes.PassCx(kernel(), CompileConfig())
    for name in ("gentle", "quiet", "gentle", "quiet", "rough", "gentle", "quiet"):
        cx.run_pass(name)
    assert calls == ["gentle", "quiet", "gentle", "rough", "gentle", "quiet"]


def test_a_pass_that_needs_one_run_is_not_called_twice(bad_pass):
    calls = []
    bad_pass("once", lambda func, cx: not calls.append("once"), keeps=("once",))
    bad_pass("rough", lambda func, cx: not calls.append("rough"))
    cx = passes.PassCx(kernel(), CompileConfig())
    assert [cx.run_pass(name) for name in ("once", "once", "rough", "once")] == [1, 0, 1, 1]
    assert calls == ["once", "rough", "once"]


def test_a_pass_may_state_what_it_keeps_run_by_run(bad_pass):
    calls, keeping = [], [(), ("quiet", "some"), ("some",)]

    def some(func, cx):
        cx.keep(*keeping.pop())
        return not calls.append("some")

    bad_pass("quiet", lambda func, cx: bool(calls.append("quiet")))
    bad_pass("some", some)
    cx = passes.PassCx(kernel(), CompileConfig())
    for name in ("quiet", "some", "some", "quiet", "some", "quiet", "some"):
        cx.run_pass(name)
    assert calls == ["quiet", "some", "quiet"]


def test_a_pass_is_left_out_of_kernels_without_what_it_needs(bad_pass, monkeypatch):
    calls = []
    needs = {"one": (C.ATOMIC_ADD, 1), "two": (C.ATOMIC_ADD, 2), "random": (C.RAND, 1)}
    for name, (code, least) in needs.items():
        monkeypatch.setitem(NEEDS, name, (bytes([code]), least))
        bad_pass(name, lambda func, cx, name=name: bool(calls.append(name)))
    log = Log()
    for instruments in ((), (log,)):
        cx = passes.PassCx(kernel(), CompileConfig(), instruments)
        for name in needs:
            assert not cx.run_pass(name)
    assert calls == ["one", "one"]
    assert [run.name for run in log.runs] == [*needs]  # an instrument sees every run


@pytest.mark.parametrize("name", NEEDS)
def test_without_what_it_needs_a_pass_changes_and_says_nothing(name):
    tried = 0
    needed, least = NEEDS[name]
    for case in all_cases():
        func = parse(case.source)
        if not func.callees and sum(op.code in needed for op in walk(func.body)) < least:
            assert run_passes(func, [name], case.config) == []
            assert to_text(func) == to_text(parse(case.source)), str(case)
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("name", CHECKS)
def test_a_pass_that_has_nothing_to_do_is_not_loaded(name):
    """Its check says so before; and of what it does something to, that there is something."""
    skipped = changed = 0
    for case in all_cases():
        func = parse(case.source)
        cx = passes.PassCx(func, CompileConfig().replace(**case.config))
        cx.kind = CPU
        if name in case.run and not case.error:
            for before in case.run[: case.run.index(name)]:
                cx.run_pass(before)
        if func.callees or (not func.tasks() and passes.get(name).per_task):
            continue
        text = to_text(func)
        if not CHECKS[name](cx):
            assert not cx.run_pass(name)
            assert to_text(func) == text, str(case)
            skipped += 1
        elif cx.run_pass(name):
            changed += 1
    assert skipped > 20
    assert changed > 1


def test_a_check_is_asked_of_passes_that_are_not_loaded(monkeypatch):
    monkeypatch.setitem(CHECKS, "extract_constant", lambda cx: False)
    passes.get("extract_constant")
    for loaded in (True, False):
        monkeypatch.setattr(registry, "is_loaded", lambda name, loaded=loaded: loaded)
        assert passes.PassCx(kernel(), CompileConfig()).run_pass("extract_constant") == loaded


TASKS = """kernel k() stage=offloaded {
  $0 : offloaded header {
    $1 : bounds
  } body {
  }
  $2 : offloaded header {
    $3 : bounds
  } body {
  }
}
"""


def test_a_silent_pass_makes_no_remarks():
    silent = [info for info in passes.all_passes() if info.silent is True]
    assert silent
    for info in silent:
        assert ".remark(" not in Path(inspect.getfile(info.fn)).read_text(), info.name


def test_the_rules_of_passes_that_fast_math_silences_make_remarks_without_it_alone():
    silent = [info for info in passes.all_passes() if info.silent == "fast_math"]
    assert {info.name for info in silent} == {"alg_simp", "binary_op_simplify"}
    files = {Path(inspect.getfile(info.fn)) for info in silent}
    files |= set((Path(passes.__file__).parent / "rules").glob("*.py"))
    found = 0
    for file in files:
        lines = file.read_text("utf-8").splitlines()
        for before, line in pairwise(lines):
            if ".remark(" in line:
                assert re.match(r" +if .*not \(?rw\.fast_math", before), (file, line)
                found += 1
    assert found == 2


def test_what_holds_for_all_tasks_is_made_once_for_a_pass(bad_pass):
    made = []

    def make(func):
        made.append(func)
        return "it"

    bad_pass("asks", lambda func, cx: cx.for_tasks(make) == "it", per_task=True)
    func = parse(TASKS)
    cx = passes.PassCx(func, CompileConfig())
    assert cx.run_pass("asks") and made == [func]
    assert cx.run_pass("asks") and made == [func, func]
    assert cx.for_tasks(make) == cx.for_tasks(make) and len(made) == 4


def test_the_list_of_ops_is_that_of_the_function_at_every_pass(monkeypatch):
    ops = passes.PassCx.ops

    def checked(self):
        found = ops(self)
        assert found.ops == walk(self.func.body)
        assert list(found.codes) == [op.code for op in found.ops]
        seen.append(self.phase)
        return found

    seen = []
    monkeypatch.setattr(passes.PassCx, "ops", checked)
    for kind in PipelineKind:
        passes.run(kernel(), CompileConfig(), kind)
    assert {"lower", "simplify_I", "simplify_IV"} <= set(seen)


def test_names_of_passes_are_taken_once():
    with pytest.raises(ValueError, match="two passes are called 'die'"):
        registry.register("die")(lambda func, cx: False)
    folder = Path(passes.__file__).parent
    files = [path for path in folder.rglob("*.py") if "@register(" in path.read_text("utf-8")]
    assert [info.name for info in passes.all_passes()] == sorted(path.stem for path in files)


def test_dumps_are_asked_for_by_options_and_switches():
    assert passes.instruments_for(CompileConfig()) == ()
    (printer,) = passes.instruments_for(CompileConfig().replace(print_preprocessed_ir=True))
    assert not printer.all_stages
    switches = DebugSwitches(dump_ir=True, dump_cfg=True)
    (dump,) = passes.instruments_for(CompileConfig(), switches)
    assert (dump.ir, dump.simplify, dump.wants_notes) == (True, False, True)


def test_passes_need_no_docstrings_where_python_drops_them():
    program = "from qd_studio.engine import passes; print(passes.get('die').summary)"
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


@pytest.mark.parametrize("skips", [False, True])
def test_a_pass_that_was_skipped_in_each_task_may_have_work(skips, bad_pass):
    class Skips(passes.Instrument):
        def before(self, run, func):
            return False

    bad_pass("each", lambda func, cx: False, per_task=True, optional=True)
    cx = passes.PassCx(parse(TASKS), CompileConfig(), (Skips(),) if skips else ())
    assert not cx.run_pass("each")
    assert cx.was_idle("each") is not skips
