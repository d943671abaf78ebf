"""What cannot be differentiated is an error with the user's line, and nothing else is."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.pipeline_kind import PipelineKind

from .gradients import Problem, config, differentiated

f64, i32 = qd.f64, qd.i32
A1 = qd.types.ndarray(qd.f64, 1)
A2 = qd.types.ndarray(qd.f64, 2)
N1 = qd.types.ndarray(qd.i32, 1)


pytestmark = pytest.mark.usefixtures("program")


def arguments(kernel):
    made = []
    for p in kernel.decl.params:
        if p.kind == "ndarray":
            t = np.int32 if "i32" in p.annotation_text or p.name in "nm" else np.float64
            made.append(np.ones((4,) * (2 if p.name in "uv" else 1), t))
        else:
            made.append(2)
    return made


def passes_of(kernel, mode):
    """Run the passes up to the cut into tasks."""
    problem = Problem.of_kernel(kernel, *arguments(kernel))
    func = differentiated(problem.source, mode)
    passes.run(func, config(), PipelineKind.CPU, upto="after_offload")


def refused(kernel, mode, text, line):
    with pytest.raises(qd.QuadrantsCompilationError) as caught:
        passes_of(kernel, mode)
    error = caught.value
    assert text in error.message, error
    assert error.source_line.strip().startswith(line), error
    assert "^" in str(error)


@qd.real_func
def squared(a: f64) -> f64:
    return a * a


@qd.kernel
def calls_real(x: A1, y: A1):
    for i in x:
        y[i] = squared(x[i])


@qd.kernel
def reads_bits(x: A1, y: A1):
    for i in x:
        y[i] = x[i] * (qd.bit_cast(x[i], qd.i64) & 1)


@qd.kernel
def multiplies(x: A1, y: A1):
    for i in x:
        qd.atomic_mul(y[0], x[i])


@qd.kernel
def takes_maximum(x: A1):
    m = 0.0
    for i in x:
        qd.atomic_max(m, x[i])
    x[0] = m


@qd.kernel
def uses_old_value(x: A1, y: A1):
    for i in x:
        old = qd.atomic_add(y[i], x[i])
        x[i] = old


BOTH = [
    (calls_real, "Real functions cannot be differentiated: squared", "y[i] = squared"),
    (reads_bits, "bit_cast of a value", "y[i] = x[i] * (qd.bit_cast"),
    (multiplies, "atomic_mul on y cannot be differentiated", "qd.atomic_mul(y"),
    (takes_maximum, "atomic_max on m cannot be differentiated", "qd.atomic_max(m"),
    (uses_old_value, "the value that atomic_add returns", "old = qd.atomic_add"),
]


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize(("kernel", "text", "line"), BOTH, ids=lambda k: getattr(k, "name", ""))
def test_refused_in_both_modes(kernel, text, line, mode):
    refused(kernel, mode, text, line)


@qd.kernel
def loops_while(x: A1, y: A1):
    for i in x:
        k = 0
        s = x[i]
        while k < 3:
            s = s * x[i]
            k += 1
        y[i] = s


@qd.kernel
def breaks(x: A1, y: A1):
    for i in x:
        s = x[i]
        for j in range(10):
            if j > i:
                break
            s = s * x[i]
        y[i] = s


@qd.kernel
def draws(x: A1, y: A1):
    for i in x:
        y[i] = x[i] * qd.random(f64)


@qd.kernel
def draws_a_condition(x: A1, y: A1):
    for i in x:
        r = qd.random(f64)
        if r > 0.5:
            y[i] = x[i]


@qd.kernel
def times(x: A1, y: A1):
    for i in x:
        y[i] = x[i] * qd.cast(qd.clock_counter(), f64)


@qd.kernel
def appends(x: A1, y: A1, n: N1):
    for i in x:
        k = qd.atomic_add(n[0], 1)
        y[k] = x[i]


@qd.kernel
def shifts(x: A1):
    for i in range(3):
        x[i + 1] = x[i] * 2.0


@qd.kernel
def blurs(x: A1):
    for i in range(1, 3):
        x[i] += 0.5 * x[i - 1]


@qd.kernel
def squares_in_place(x: A1):
    for i in x:
        x[i] = x[i] * x[i]


@qd.kernel
def squares_again(x: A1, y: A1):
    qd.loop_config(serialize=True)
    for t in range(3):
        for i in range(4):
            x[i] = y[i] * t
            y[i] += x[i] * x[i]


@qd.kernel
def passes_on(x: A1, y: A1):
    for i in range(4):
        x[0] = y[i]
        y[i] = x[0] * x[0]


@qd.kernel
def overwrites_later(x: A1, y: A1):
    for i in x:
        y[i] = qd.sin(x[i])
    for i in x:
        x[i] = 0.0


@qd.kernel
def overwrites_bounds(x: A1, y: A1, n: N1):
    for i in x:
        for _j in range(n[i]):
            y[i] += x[i]
        n[i] = 0


REVERSE = [
    (loops_while, "WhileStmt is not supported in AutoDiff", "while k < 3"),
    (breaks, "WhileControlStmt (break) is not supported in AutoDiff", "break"),
    (draws, "RandStmt not supported in AutoDiff for now: the derivative of mul", "y[i] = x[i] *"),
    (draws_a_condition, "RandStmt not supported in AutoDiff for now: the condition", "r = qd.ran"),
    (times, "the gradient would read another time", "y[i] = x[i] * qd.cast"),
    (appends, "cannot compute it again: atomic_add on n", "k = qd.atomic_add"),
    (shifts, "Cross-iteration read-after-write on the `needs_grad` global ndarray `x`", "x[i + 1]"),
    (blurs, "Cross-iteration read-after-write on the `needs_grad` global ndarray `x`", "x[i] += 0"),
    (squares_in_place, "Breaks the global data access rule. Array x is overwritten", "x[i] = x[i]"),
    (squares_again, "Breaks the global data access rule. Array x", "y[i] += x[i] * x[i]"),
    (passes_on, "Breaks the global data access rule. Array x", "y[i] = x[0] * x[0]"),
    (overwrites_later, "Breaks the global data access rule. Array x", "y[i] = qd.sin(x[i])"),
    (overwrites_bounds, "Breaks the global data access rule. Array n", "for _j in range(n[i])"),
]


@pytest.mark.parametrize(("kernel", "text", "line"), REVERSE, ids=lambda k: getattr(k, "name", ""))
def test_refused_in_reverse_mode_only(kernel, text, line):
    refused(kernel, "reverse", text, line)
    passes_of(kernel, "forward")


def test_the_gradient_of_a_random_number_is_a_runtime_error_too():
    with pytest.raises(RuntimeError, match="RandStmt not supported in AutoDiff"):
        passes_of(draws, "reverse")


# What stays allowed.


@qd.kernel
def searches(x: A1, y: A1, n: N1):
    for i in x:
        k = 0
        while n[k] < 1:
            k += 1
        y[i] = x[k] * x[i]


@qd.kernel
def doubles_in_place(x: A1):
    for i in x:
        x[i] = x[i] * 2.0


@qd.kernel
def noise_is_added(x: A1, y: A1):
    for i in x:
        y[i] = x[i] + qd.random(f64)


@qd.kernel
def rows_in_time(u: A2, t: i32):
    for i in range(1, 3):
        u[t, i] = u[t - 1, i - 1] * u[t - 1, i + 1]


@qd.kernel
def columns_of_their_own(u: A2):
    for i in range(4):
        for t in range(1, 4):
            u[t, i] = u[t - 1, i] * 2.0


@qd.kernel
def inside_another_loop(x: A1):
    for _ in range(1):
        for i in range(3):
            x[i + 1] = x[i] * 2.0


@qd.kernel
def writes_then_reads(x: A1, y: A1):
    for i in x:
        x[i] = y[i] * 3.0
        y[i] += x[i] * x[i]


@qd.kernel
def one_or_the_other(x: A1, y: A1):
    for i in x:
        if i > 1:
            y[i] = x[i] * x[i]
        else:
            x[i] = 0.0


@qd.kernel
def triangles(u: A2):
    for i in range(4):
        for j in range(4):
            if i < j:
                u[i, i] += 0.0
            if j == 5:
                u[j, i] = u[j, i]


@qd.kernel
def other_arrays(x: A1, y: A1, n: N1):
    for i in x:
        y[i] = x[(i + 1) % 4] * x[i]
    for i in x:
        n[i] = qd.cast(x[i], i32)
        qd.atomic_max(n[0], i)


@qd.kernel
def counts_on_the_side(x: A1, y: A1, n: N1):
    for i in x:
        y[i] = x[i] * x[i]
        if x[i] > 0.5:
            n[qd.atomic_add(n[0], 1)] = i


@qd.kernel
def own_extremes(x: A1, y: A1):
    for i in x:
        m = x[i]
        for j in range(3):
            qd.atomic_max(m, x[j])
        y[i] = m


ALLOWED = [
    searches, doubles_in_place, noise_is_added, rows_in_time, columns_of_their_own,
    inside_another_loop, writes_then_reads, one_or_the_other, triangles, other_arrays,
    counts_on_the_side, own_extremes,
]  # fmt: skip


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("kernel", ALLOWED, ids=lambda k: k.name)
def test_allowed(kernel, mode):
    passes_of(kernel, mode)


def test_kernels_without_derivatives_are_not_looked_at():
    problem = Problem.of_kernel(loops_while, *arguments(loops_while))
    func = differentiated(problem.source, "none")
    passes.run(func, config(), PipelineKind.CPU, upto="after_offload")
