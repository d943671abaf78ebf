"""The pipeline that each kernel gets of LLVM, and the blocks that it gets for long ones."""

import gc

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.llvm import cuts, short, toolchain
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.ir import Func, Op

from tests.backends.targetkit import artifact

PARTS = 36
F32 = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def branches(x: F32, n: qd.i32):
    qd.loop_config(serialize=True)
    for _ in range(1):
        for k in qd.static(range(PARTS)):
            for i in range(n):
                if x[(i * 3 + k) % n] > 0.25 * k:
                    x[(i * 5 + 2 * k) % n] -= 0.5 * k
                else:
                    x[(i * 7 + k) % n] += 0.125


@qd.kernel
def rows(x: F32, y: F32, n: qd.i32):
    qd.loop_config(serialize=True)
    for _ in range(1):
        for k in qd.static(range(2 * PARTS)):
            for i in range(n):
                x[i] = x[i] * 1.5 + y[i] * (x[i] - 0.25 * k) - y[i] * x[i]


@qd.kernel
def straight(x: F32):
    qd.loop_config(serialize=True)
    for i in range(x.shape[0]):
        v = x[i]
        for k in qd.static(range(4 * PARTS)):
            v = v * 1.0625 + qd.sin(v - k)
        x[i] = v


@qd.kernel
def few_loops(x: F32, n: qd.i32):
    qd.loop_config(serialize=True)
    for i in range(n):
        v = x[i]
        for k in qd.static(range(PARTS)):
            if qd.static(k % 4 == 0):
                for j in range(n):
                    v += x[(j * 3 + k) % n]
            for p in qd.static(range(16)):
                v = v * (1.0 + 0.5**p) + qd.sin(v - k - p)
        x[i] = v


@qd.kernel
def parallel(x: F32, y: F32, n: qd.i32):
    for j in range(n):
        for k in qd.static(range(PARTS)):
            for i in range(n):
                if x[(i * 3 + k) % n] > 0.25 * k:
                    y[j] -= 0.5 * k
                else:
                    y[j] += 0.125


def shortened(monkeypatch, kernel, *args, **options):
    """The pipeline of each module of a first call."""
    seen = []
    whole = toolchain.Module.optimise

    def optimise(self, level, pipeline="whole"):
        seen.append(pipeline)
        whole(self, level, pipeline)

    monkeypatch.setattr(toolchain.Module, "optimise", optimise)
    qd.init(arch=qd.cpu, offline_cache=False, tiered=False, unrolling_limit=0, **options)
    kernel(*args)
    return seen


def filled(n=37):
    return np.linspace(-3, 3, n).astype(np.float32)


@pytest.mark.not_on_device("it is about LLVM's pipeline for processors")
@pytest.mark.parametrize(
    ("kernel", "arguments", "pipeline"),
    [
        (branches, (filled(), 37), "short"),
        (rows, (filled(), filled(), 37), "whole"),  # vectors make it faster
        (straight, (filled(),), "whole"),
        (few_loops, (filled(), 37), "short"),
        (parallel, (filled(5), filled(5), 5), "whole"),
    ],
)
def test_what_gets_the_short_pipeline(monkeypatch, kernel, arguments, pipeline):
    IN_PROCESS.clear()
    assert set(shortened(monkeypatch, kernel, *arguments)) == {pipeline}


@pytest.mark.not_on_device("it is about LLVM's pipeline for processors")
@pytest.mark.parametrize(
    ("kernel", "very_long", "pipeline"),
    [(straight, 9999, "straight"), (straight, 400, "short"), (rows, 9999, "whole")],
)
def test_a_long_body_of_one_loop_is_not_vectorised(monkeypatch, kernel, very_long, pipeline):
    """LLVM's time grows with the square of its length; the bodies of `rows` are short ones."""
    IN_PROCESS.clear()
    monkeypatch.setattr(short, "_LONG", 300)
    monkeypatch.setattr(short, "_VERY_LONG", very_long)
    arguments = (filled(),) if kernel is straight else (filled(), filled(), 37)
    assert set(shortened(monkeypatch, kernel, *arguments)) == {pipeline}


@pytest.mark.not_on_device("it is about LLVM's pipeline for processors")
@pytest.mark.parametrize(("name", "value"), [("_MANY_LOOPS", PARTS), ("_MANY_TASKS", 1)])
def test_many_loops_or_tasks_get_the_short_pipeline(monkeypatch, name, value):
    IN_PROCESS.clear()
    monkeypatch.setattr(short, name, value)
    assert set(shortened(monkeypatch, parallel, filled(5), filled(5), 5)) == {"short"}


@pytest.mark.not_on_device("it is about LLVM's pipeline for processors")
@pytest.mark.parametrize("level", [1, 3])
def test_level_3_gives_all_code_the_whole_pipeline(monkeypatch, level):
    IN_PROCESS.clear()
    found = shortened(monkeypatch, branches, filled(), 37, external_optimization_level=level)
    assert set(found) == {"short" if level < 3 else "whole"}


def test_gradients_get_the_whole_pipeline(monkeypatch):
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache=False, tiered=False, unrolling_limit=0)
    x, y = [qd.field(qd.f32, (), needs_grad=True) for _ in range(2)]

    @qd.kernel
    def k():
        qd.loop_config(serialize=True)
        for _ in range(1):
            for part in qd.static(range(3 * PARTS)):
                if x[None] > part:
                    y[None] += 0.5 * x[None]

    seen = []
    whole = toolchain.Module.optimise
    monkeypatch.setattr(
        toolchain.Module,
        "optimise",
        lambda m, level, pipeline="whole": (seen.append(pipeline), whole(m, level)),
    )
    k.grad()
    assert set(seen) <= {"whole"}


def test_the_short_pipeline_changes_no_result():
    results = []
    for options in ({"arch": qd.interp}, {"arch": qd.cpu}, {"arch": qd.cpu, "debug": True}):
        qd.init(fast_math=False, tiered=False, unrolling_limit=0, **options)
        x = filled()
        branches(x, 37)
        results.append(x.tolist())
    assert results[0] == results[1] == results[2]


@pytest.mark.not_on_device("it is about LLVM's blocks for processors")
@pytest.mark.parametrize("kernel", [branches, straight])
@pytest.mark.parametrize("fast_math", [False, True])
def test_cuts_of_long_blocks_change_no_result(monkeypatch, kernel, fast_math):
    """With `fast_math` neither: no product is in another block than the sum that it goes into."""
    monkeypatch.setattr(short, "_LONG", 300)
    results = []
    for most in (10**9, 3):
        IN_PROCESS.clear()
        monkeypatch.setattr(cuts, "_MOST", most)
        monkeypatch.setattr(cuts, "_LONG", 1)
        qd.init(
            arch=qd.cpu, offline_cache=False, tiered=False, unrolling_limit=0, fast_math=fast_math
        )
        x = filled()
        kernel(x, 37) if kernel is branches else kernel(x)
        results.append(x.tolist())
    assert results[0] == results[1]


def test_a_long_block_is_cut(monkeypatch):
    monkeypatch.setattr(cuts, "_MOST", 4)
    monkeypatch.setattr(cuts, "_LONG", 1)
    lines = [f"  %s{k + 1} = fadd contract float %p{k}, %a" for k in range(9)]
    body = [part for k, line in enumerate(lines)
            for part in (f"  %p{k} = fmul contract float %s{k}, %a", line)]  # fmt: skip
    head = "define internal void @f(ptr %q, float %a) {"
    text = "\n".join([
        head, "entry:", "  %m = alloca i64", "  br label %long", "long:    ; preds = %entry",
        "  %s0 = phi float [ %a, %entry ], [ %s9, %long ]", *body, "  store float %s9, ptr %q",
        "  br i1 undef, label %long, label %end", "end:",
        "  %z = phi float [ %s9, %long ]", "  ret void", "}", "!llvm.x = !{!7}", "!7 = !{}",
    ])  # fmt: skip
    out = cuts.cut(text)
    blocks = out.split("\nqd.cut.")
    assert len(blocks) == 5
    assert all(block.splitlines()[-2].startswith("  %s") for block in blocks[:-1])
    assert "%s0 = phi float [ %a, %entry ], [ %s9, %qd.cut.3 ]" in out
    assert "%z = phi float [ %s9, %qd.cut.3 ]" in out
    toolchain.binding().parse_assembly(out).verify()
    monkeypatch.setattr(cuts, "_MOST", 500)
    assert cuts.cut(text) is text


@pytest.mark.not_on_device("it is about the texts of code for processors")
def test_each_line_of_code_that_was_cut_has_its_op(monkeypatch):
    """The texts with and without locations are cut at the same lines."""
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu)
    monkeypatch.setattr(cuts, "_MOST", 3)
    monkeypatch.setattr(cuts, "_LONG", 1)
    found = artifact("cpu", branches, filled(), 37)
    assert "qd.cut." in found.lazy["llvm_ir_optimized"]()
    found.lazy["asm"]()
    for name in ("llvm_ir_optimized", "asm"):
        assert max(found.lines[name], default=-1) >= 0


def test_the_shown_code_is_that_of_the_short_pipeline(monkeypatch, capfd):
    found = shortened(monkeypatch, branches, filled(), 37, print_kernel_llvm_ir_optimized=True)
    assert len(found) > 1
    assert set(found) == {"short"}


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_pauses_during_a_compile(enabled):
    seen = []
    qd.init(arch=qd.cpu)

    @qd.kernel
    def k(fails: qd.template()):
        qd.static(seen.append(gc.isenabled()))
        if qd.static(fails):
            qd.static(1 // 0)

    try:
        if not enabled:
            gc.disable()
        k(False)
        assert gc.isenabled() == enabled
        with pytest.raises(qd.QuadrantsCompilationError):
            k(True)
        assert gc.isenabled() == enabled
        assert seen
        assert True not in seen
    finally:
        gc.enable()


def test_ir_goes_without_the_collector():
    """All of it but for some ops that tables of the emitter refer to, such as loops."""

    @qd.kernel
    def k(x: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            for _ in qd.static(range(30)):
                if x[i] > 0:
                    x[i] = qd.sin(x[i]) + 1.0

    def ops():
        return sum(isinstance(item, Op) for item in gc.get_objects())

    qd.init(arch=qd.cpu, offline_cache=False)
    gc.collect()
    before = ops()
    try:
        gc.disable()
        k(np.ones(3, np.float32))
        assert ops() < before + 100
    finally:
        gc.enable()


def test_a_program_keeps_no_ir_of_a_compiled_kernel():
    @qd.kernel
    def k(x: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            x[i] += 1.0

    def functions():
        gc.collect()
        return sum(isinstance(item, Func) for item in gc.get_objects())

    qd.init(arch=qd.cpu, offline_cache=False)
    before = functions()
    k(np.ones(3, np.float32))
    assert functions() == before
