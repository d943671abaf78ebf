"""Capturing kernels in this process: the library's own way, without a worker."""

import os
import re

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.func
def twice(v):
    return v + v


@qd.kernel
def double(x: F32, n: qd.i32):
    """Twice the first n."""
    for i in range(n):
        x[i] = twice(x[i])


@double.workload(n=[8], bytes=lambda n: 8 * n)
def some(n):
    return np.arange(n, dtype=np.float32), n


def capture(kernel, backends=("cpu", "interp"), **options):
    return inspect.capture_kernel(kernel, backends, budget_s=0.001, **options)


@pytest.fixture(scope="module")
def record():
    return capture(double)


def test_the_kernel_is_described(record):
    assert (record.name, record.doc) == ("double", "Twice the first n.")
    assert record.id == f"{os.path.basename(__file__)}:double"
    assert [(p.name, p.kind, p.dtype, p.ndim) for p in record.params] == [
        ("x", "ndarray", "f32", 1), ("n", "scalar", "i32", 0),
    ]  # fmt: skip
    (workload,) = record.workloads
    assert (workload.args, workload.bytes) == (("f32[8]", "8"), 64)


def test_inlined_code_is_traced_to_both_places(record):
    compiled = record.backend("cpu").compile
    inlined = [loc for loc in compiled.locs if loc.func == "twice"]
    assert inlined
    for loc in inlined:
        assert compiled.locs[loc.parent].func == "double"


def test_parts_of_the_compile_are_timed_without_the_watching(record):
    compiled = record.backend("cpu").compile
    assert compiled.passes_ms == pytest.approx(sum(run.us for run in compiled.runs) / 1e3)
    parts = compiled.frontend_ms + compiled.passes_ms + compiled.codegen_ms + compiled.load_ms
    assert compiled.cold_ms == pytest.approx(parts)
    assert compiled.code_bytes > 0


def test_code_is_linked_to_places(record):
    compiled = record.backend("cpu").compile
    llvm = next(a for a in compiled.artefacts if a.name == "llvm_ir")
    linked = {compiled.locs[i].line for i in llvm.lines if i >= 0}
    assert len(llvm.lines) in (0, len(llvm.text.splitlines()))
    assert not llvm.lines or linked


def test_every_layer_of_caches_says_what_it_would_answer(record):
    assert {layer.name: layer.state for layer in record.backend("cpu").caches} == {
        "in_process": "bypass", "fastcache": "off", "offline": "miss",
        "ptx": "not_applicable", "driver": "not_applicable",
    }  # fmt: skip
    assert all(layer.reason for layer in record.backend("cpu").caches)


def test_capturing_leaves_the_program_alone():
    qd.init(arch=qd.cpu, log_level="error")
    try:
        x = np.ones(4, np.float32)
        double(x, 4)
        launchers = dict(double.launchers.variants)
        capture(double)
        assert double.launchers.variants == launchers
        double(x, 2)
        assert x.tolist() == [4, 4, 2, 2]
    finally:
        qd.reset()


def test_the_options_are_those_of_the_running_program(monkeypatch):
    seen = []
    make = inspect.capture.KernelCapture

    def noted(kernel, backends, config, *rest):
        seen.append((config.default_fp, config.fast_math))
        return make(kernel, backends, config, *rest)

    monkeypatch.setattr(inspect.capture, "KernelCapture", noted)
    qd.reset()
    capture(double, ("interp",), launch=False)
    qd.init(arch=qd.cpu, log_level="error", default_fp=qd.f64, fast_math=False)
    try:
        capture(double, ("interp",), launch=False)
        capture(double, ("interp",), launch=False, config=CompileConfig())
    finally:
        qd.reset()
    assert seen == [("f32", True), ("f64", False), ("f32", True)]


def test_compiling_alone_launches_nothing():
    record = capture(double, launch=False)
    assert record.backend("cpu").launches == ()
    assert record.backend("cpu").agreement is None
    assert record.backend("cpu").compile.runs


def test_agreement_needs_no_interp_column():
    record = capture(double, ["cpu"])
    assert [b.backend for b in record.backends] == ["cpu"]
    assert record.backends[0].agreement.state == "ok"


def test_a_wrong_result_is_found(monkeypatch):
    from qd_studio.engine.backends.cpu.executable import CpuExecutable

    launch = CpuExecutable.launch

    def wrong(self, values, seed=0):
        results = launch(self, values, seed)
        values[0][3] += 1.0
        return results

    monkeypatch.setattr(CpuExecutable, "launch", wrong)
    agreement = capture(double).backend("cpu").agreement
    assert (agreement.state, agreement.max_abs) == ("differs", 1.0)
    assert agreement.first_difference == "x[3]: got 7.0, interpreter 6.0"


def test_arrays_that_overlap_are_compiled_for():
    @qd.kernel
    def shift(a: F32, b: F32):
        qd.loop_config(serialize=True)
        for i in range(a.shape[0] - 1):
            b[i + 1] = a[i]

    @shift.workload(n=[16])
    def same(n):
        x = np.arange(n, dtype=np.float32)
        return x, x

    @shift.check
    def smeared(before, after, result):
        assert (after[0] == 0).all()

    agreement = capture(shift).backend("cpu").agreement
    assert (agreement.state, agreement.check) == ("ok", "passed")


def test_template_arguments_come_from_the_workload():
    @qd.kernel
    def fill(size: qd.Template, x: F32):
        for i in range(size):
            x[i] = 1.0

    fill.workload(size=[2, 4])(lambda size: (size, np.zeros(4, np.float32)))
    record = capture(fill)
    assert [x.workload for x in record.backend("cpu").launches] == ["size=2", "size=4"]
    assert record.backend("cpu").agreement.workload == "size=2; size=4"


def test_results_are_compared():
    @qd.kernel
    def total(x: F32) -> qd.f32:
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    seen = []
    total.check(lambda before, after, result: seen.append(result))
    record = capture(total)
    assert record.backend("cpu").agreement.state == "ok"
    assert record.workloads[0].origin == "synthetic"
    assert len(seen) == 2
    assert seen[0] == pytest.approx(seen[1])


def test_options_reach_the_compile():
    plain = capture(double, ["cpu"], launch=False)
    raw = capture(double, ["cpu"], config=CompileConfig(opt_level=0), launch=False)
    assert len(raw.backends[0].compile.runs) < len(plain.backends[0].compile.runs)


def test_an_error_of_the_kernel_is_a_record_with_its_line():
    @qd.kernel
    def wrong(x: F32):
        for i in x:
            x[i] = nobody_knows  # noqa: F821

    record = capture(wrong)
    (error,) = record.backend("cpu").errors
    assert (error.kind, error.stage) == ("QuadrantsNameError", "frontend")
    assert error.source.strip().startswith("x[i] = nobody_knows")
    assert error.source.encode()[error.col : error.end_col] == b"nobody_knows"


def test_kernels_of_a_module_are_found_once_in_source_order():
    space = dict(globals(), alias=double)
    assert [k.name for k in inspect.kernels_in(space, __file__)] == ["double"]
    assert inspect.kernels_in(space, "/other/file.py") == []
    assert inspect.has_functions(space, __file__)
    assert not inspect.has_functions(space, "/other/file.py")


def test_calls_are_recorded_and_forgotten_about():
    qd.init(arch=qd.interp, log_level="error")
    call = type(double).__call__
    try:
        with inspect.recorded_calls() as calls:
            x = np.ones(4, np.float32)
            double(x, n=2)
            double(x, 2)
            double(x, 3)
        (recorded,) = calls.values()
        assert [c.args[1] for c in recorded] == [2, 3]
        assert recorded[0].args[0].tolist() == [1, 1, 1, 1]
        assert x.tolist() == [8, 8, 2, 1]
    finally:
        qd.reset()
    assert type(double).__call__ is call


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fast_math", "write NAME=VALUE"),
        ("fast_mth=1", 'did you mean "fast_math"'),
        ("fast_math=perhaps", "does not fit: 0 or 1"),
        ("arch=cpu", "backends are chosen"),
        ("_test_mode=1", "there is no option"),
    ],
)
def test_settings_are_checked(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        inspect.parse_setting(text)


def test_settings_are_typed():
    assert inspect.parse_setting("fast_math = 0") == ("fast_math", False)
    assert inspect.parse_setting("opt_level=2") == ("opt_level", 2)
    assert inspect.parse_setting("default_fp=f64") == ("default_fp", "f64")
    names = [info.name for info in inspect.options()]
    assert "fast_math" in names
    assert "arch" not in names


def test_backends_prove_themselves():
    known = {info.name: info for info in inspect.backends()}
    assert known["cpu"].works and known["interp"].works
    assert all(info.works or info.reason for info in known.values())
    assert (inspect.self_test("cpu"), inspect.self_test("interp")) == ("", "")
    assert "cuda" in inspect.self_test("cuda")
    with pytest.raises(ValueError, match="there is no backend 'cpuu'"):
        inspect.backends(["cpuu"])
