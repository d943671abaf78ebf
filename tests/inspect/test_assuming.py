"""Assumptions in scratch compiles: what they gain, and where they cannot be made or are false."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig

from tests.inspect.test_tracking import line_of

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
QUICK = {"budget_s": 0.01}


@qd.kernel
def divided(a: F32, b: F32):
    for i in a:
        s = 0.0
        for j in range(8):  # inner
            s += qd.sqrt(a[i]) / (j + 3.0)
        b[i] = s


@qd.kernel
def bumped(a: F32, b: F32):
    qd.loop_config(serialize=True)
    for i in range(1, 64):
        b[i] = a[i - 1] + 1.0


@qd.kernel
def infinite(a: F32):
    for i in a:
        a[i] = a[i] * 0.0


@qd.kernel
def shifted(a: F32, back: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    for _ in range(1):
        for i in range(a.shape[0] // 2):  # over itself
            x = a[i + back[0]]
            a[i] = x * x + 0.5 * x + qd.sqrt(x)


def moved(back):
    a = np.linspace(0.5, 2.0, 4096, dtype=np.float32)
    return a, np.array([back], np.int32)


@infinite.workload(n=[64])
def infinities(n):
    return np.full(n, np.inf, np.float32)


@divided.workload(n=[64, 4096])
def arrays(n):
    a = qd.ndarray(qd.f32, n)
    a.from_numpy(np.linspace(0.5, 2.0, n, dtype=np.float32))
    return a, qd.ndarray(qd.f32, n)


@bumped.workload(n=[64])
def overlapping(n):
    a = np.zeros(n, np.float32)
    return a, a


@pytest.fixture(autouse=True)
def program():
    qd.init(qd.cpu)


def tried(kernel, text, **options):
    options.setdefault("fast_math", False)
    return inspect.what_if(kernel, text, "cpu", CompileConfig(**options), **QUICK)


def test_a_gain_is_measured_and_checked_and_its_change_is_named():
    found = tried(divided, "fast_math")
    assert found.verdict in ("faster", "slower", "within noise", "unknown")
    assert found.agreement == "ok"
    assert "n=64: compared with the interpreter" in found.compared
    assert found.workload == "n=4096"
    assert found.before_us > 0 and found.after_us > 0
    assert found.change == "qd.init(fast_math=True)"


def test_a_loop_is_unrolled_in_scratch_and_the_kernel_stays_as_it_is():
    line = line_of(divided, "# inner")
    found = tried(divided, f"unroll={line}")
    again = tried(divided, f"unroll={line}")
    counts = {c.name: (c.before, c.after) for c in found.counts}
    assert counts["loops"][1] == counts["loops"][0] - 1
    assert found.agreement == "ok"
    assert [c.before for c in again.counts] == [c.before for c in found.counts]
    assert found.change == f"use qd.static(range(...)) at line {line}"


def test_equal_code_is_not_timed():
    found = tried(divided, "print_ir=false", debug=False)
    assert found.verdict in ("same code", "cannot")
    assert not found.ratio


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("noalias", "the arrays of the launches do not overlap"),
        ("no_checks", "it holds already: check_out_of_bound, debug"),
        ("unroll=1", "has no for loop at line 1"),
    ],
)
def test_what_cannot_be_assumed_has_its_reason(text, why):
    found = tried(divided, text)
    assert found.verdict == "cannot"
    assert why in found.reason


def test_the_parallel_loop_is_not_unrolled():
    found = tried(divided, f"unroll={line_of(divided, 'for i in a')}")
    assert found.verdict == "cannot"
    assert "the parallel one" in found.reason


def test_a_false_assumption_shows_as_different_results():
    found = tried(infinite, "fast_math")
    assert found.agreement == "differs"
    assert "got 0.0, expected nan" in found.compared


def test_overlapping_arrays_are_named_as_the_reason():
    found = tried(bumped, "noalias")
    assert found.verdict == "cannot"
    assert "it is false: an array that a launch writes overlaps another" in found.reason


def independent(kernel, text, workload, **options):
    """Tried with one of the kernel's cases only."""
    line = line_of(kernel, text)
    before = list(kernel.workloads)
    try:
        kernel.workloads.clear()
        kernel.workload()(workload)
        return tried(kernel, f"independent={line}", **options), line
    finally:
        kernel.workloads[:] = before


def test_independent_iterations_are_computed_together_if_the_data_allows_it():
    found, line = independent(shifted, "# over itself", lambda: moved(2048))
    assert found.verdict in ("faster", "slower", "within noise", "unknown"), found
    assert found.agreement == "ok"
    assert "no two iterations touch an element that one writes" in found.compared
    assert f"make the loop at line {line} the outermost one" in found.change


def test_iterations_that_depend_on_each_other_are_named():
    found, line = independent(shifted, "# over itself", lambda: moved(1))
    assert found.verdict == "cannot"
    assert f"iterations 0 and 1 of the loop at line {line} touch element 1 of a" in found.reason


def test_a_loop_in_order_becomes_parallel_if_its_iterations_are_independent():
    line = line_of(bumped, "for i in range(1, 64)")
    found = tried(bumped, f"independent={line}")
    assert found.verdict == "cannot" and "touch element 1 of" in found.reason
    apart = lambda: (np.zeros(64, np.float32), np.zeros(64, np.float32))  # noqa: E731
    found, _ = independent(bumped, "for i in range(1, 64)", apart)
    assert found.verdict != "cannot" and found.agreement in ("ok", "unchecked"), found


def test_loops_that_cannot_be_assumed_independent_have_their_reason():
    found = tried(divided, f"independent={line_of(divided, 'for i in a')}")
    assert found.verdict == "cannot" and "in parallel already" in found.reason
    found = tried(divided, "independent=1")
    assert found.verdict == "cannot" and "no for loop at line 1" in found.reason


def test_unknown_assumptions_are_errors_that_list_the_known_ones():
    with pytest.raises(ValueError, match="there are: noalias, no_checks, fast_math"):
        inspect.assumption("faster")
    with pytest.raises(ValueError, match="unroll needs the line of a loop"):
        inspect.assumption("unroll=x")
    with pytest.raises(ValueError, match="independent needs the line of a loop"):
        inspect.assumption("independent=")
    with pytest.raises(ValueError, match="colour"):
        inspect.assumption("colour=3")
    assert inspect.assumption("block_dim=64", "cuda").options == {"default_gpu_block_dim": 64}
    assert inspect.assumption("max_vector_width=4").options == {"max_vector_width": 4}


def test_what_was_tried_is_in_the_record_and_remarks_choose_it():
    capture = inspect.KernelCapture(divided, ("cpu",), CompileConfig(fast_math=False))
    capture.compile()
    capture.launch(0.01)
    before = capture.record
    found = inspect.try_assumptions(capture, [("", inspect.SUGGESTED)], budget_s=0.01)
    assert [x.assumption for x in found.what_ifs][:1] == inspect.suggested(
        before.backends[0].compile
    )[:1]
    assert found.backends == before.backends
