"""Sizes of the stacks of real kernels: their formulas, that they suffice, and the errors."""

# ruff: noqa: B007  what is said names the loops

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.adstack import formula, parse
from qd_studio.engine.backends.stacks import stack_locations
from qd_studio.engine.errors import QuadrantsCompilationError
from qd_studio.engine.pipeline_kind import PipelineKind

from tests.autodiff.gradients import Problem, check, config, differentiated

i32 = qd.i32
X = qd.types.ndarray(qd.f64, 1)
A = qd.types.ndarray(qd.i32, 1)
A2 = qd.types.ndarray(qd.i32, 2)
x = np.array([0.3, 0.9, 0.6, 1.2])
y = np.zeros(4)


@pytest.fixture(autouse=True)
def _program():
    qd.init(arch=qd.cpu, default_fp=qd.f64, log_level="error")


@qd.kernel
def ragged(a: A, x: X, y: X):
    for i in range(a.shape[0]):
        v = x[i]
        for _ in range(a[i]):
            v = v * v * 0.95 + 0.01
        y[i] += v


@qd.kernel
def triangular(n: i32, x: X, y: X):
    for i in range(n):
        v = x[i]
        for j in range(i, n):
            v = qd.sin(v)
        y[i] += v


@qd.kernel
def rows(ptr: A, col: A, x: X, y: X):
    for i in range(ptr.shape[0] - 1):
        v = x[i]
        for j in range(ptr[i], ptr[i + 1]):
            v = qd.sin(v * x[col[j]])
        y[i] += v


@qd.kernel
def guarded(a: A, n: i32, x: X, y: X):
    for i in range(n):
        v = x[i]
        m = 1
        if i > 0:
            m = a[i - 1] // 2
        for j in range(m):
            for k in range(3):
                v = qd.sin(v)
        y[i] += v


@qd.kernel
def of_fields(total: qd.template(), counts: qd.template(), pairs: qd.template(), x: X, y: X):
    for i in counts:
        v = x[i]
        for j in range(total[None]):
            for k in range(counts[j]):
                v = qd.sin(v)
        y[i] += v
    for i in range(4):
        v = x[i]
        for j in range(pairs[i][1]):
            v = v * v
        for p, q in qd.ndrange(2, (1, counts[i])):
            v = v * qd.sin(v)
        y[i] += v


@qd.kernel
def of_variables(n: i32, x: X, y: X):
    for i in range(n):
        v = x[i]
        m = 0
        for k in range(i):
            m = max(m, k * 2)
        for j in range(m):
            v = qd.sin(v)
        y[i] += v


@qd.kernel
def in_time(n: i32, a: A2, x: X, y: X):
    for t in range(n):
        for i in range(4):
            v = x[i]
            for j in range(a[t, i]):
                v = qd.sin(v)
            y[i] += v


@qd.kernel
def halved(n: i32, x: X, y: X):
    for i in range(n):
        v = x[i]
        m = n
        for j in range(4):
            for k in range(m):
                v = qd.sin(v)
            m = m // 2
        y[i] += v


@qd.kernel
def of_a_vector(n: i32, x: X, y: X):
    for i in range(n):
        c = qd.Vector([1, 2, n])
        v = x[i]
        for j in range(3):
            for k in range(c[j]):
                v = qd.sin(v)
        y[i] += v


def ints(*values):
    return np.array(values, np.int32)


def formulas(problem: Problem) -> dict[str, str]:
    """Formulas of the stacks of ``v`` by the loops that force them, and the trip count."""
    func = differentiated(problem.source, "reverse")
    passes.run(func, config(default_fp="f64"), PipelineKind.CPU, upto="after_offload")
    found: dict[str, str] = {}
    for place in stack_locations(func):
        attr = place.op.attr
        size = formula(parse(attr.size), func.params) if attr.size else str(attr.max_size)
        if attr.name == "v":
            forced = attr.forced_by.replace("the loop over ", "").replace("the loops over ", "")
            found[" ".join(w for w in forced.split() if not w.isdigit())] = size
    trips = [formula(parse(t.attr.trip), func.params) for t in func.tasks() if t.attr.trip]
    return {**found, "trip": ", ".join(trips)}


CASES = [
    (ragged, (ints(1, 0, 3, 2), x, y),
     {"_ at line": "max over i < a.shape[0] of a[i]", "trip": "a.shape[0]"}),
    (triangular, (4, x, y), {"j at line": "n", "trip": "n"}),
    (rows, (ints(0, 2, 2, 5), ints(3, 1, 0, 0, 2), x, y),
     {"j at line": "max over i < ptr.shape[0] - 1 of ptr[i + 1] - ptr[i]",
      "trip": "ptr.shape[0] - 1"}),
    (guarded, (ints(5, 2, 4), 4, x, y),
     {"j at line and over k at line":
      "max over i < n of 3 * max(1, a[max(0, min(i - 1, a.shape[0] - 1))] // 2)", "trip": "n"}),
    (of_variables, (4, x, y), {"j at line": "2 * n - 4", "trip": "n"}),
    (in_time, (2, np.arange(8, dtype=np.int32).reshape(2, 4) % 3, x, y),
     {"j at line": "max over i < n, j < 4 of a[i, j]", "trip": "n"}),
    (halved, (4, x, y), {"j at line and over k at line": "4 * n", "trip": "n"}),
    (of_a_vector, (4, x, y), {"j at line and over k at line": "3 * max(2, n)", "trip": "n"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "args", "shown"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_sizes_of(kernel, args, shown):
    problem = Problem.of_kernel(kernel, *args, default_fp="f64")
    assert formulas(problem) == shown
    report = check(problem, ("reverse",), default_fp="f64")
    assert report.compared and not report.kinks


def test_sizes_of_fields():
    total, counts = qd.field(i32, ()), qd.field(i32, (4,))
    pairs = qd.Vector.field(2, i32, (4,))
    total[None] = 3
    counts.from_numpy(ints(1, 0, 3, 2))
    pairs.fill(1)
    problem = Problem.of_kernel(of_fields, total, counts, pairs, x, y, default_fp="f64")
    assert formulas(problem) == {
        "j at line and over k at line":
            "max(0, total[None]) * (max over i < total[None] of counts[i])",
        "j at line": "max over i < 4 of pairs[i][1]",
        "p, q at line": "max over i < 4 of 2 * counts[i] - 2",
        "trip": "4, 4",
    }  # fmt: skip
    assert check(problem, ("reverse",), default_fp="f64").compared


# --- what no formula states ---------------------------------------------------------------------


@qd.kernel
def of_a_real(x: X, y: X):
    for i in range(4):
        v = x[i]
        m = int(x[i] * 4.0) + 1
        for j in range(m):
            v = qd.sin(v)
        y[i] += v


@qd.kernel
def grown(n: i32, x: X, y: X):
    for i in range(4):
        v = x[i]
        m = 1
        for j in range(n):
            for k in range(m):
                v = qd.sin(v)
            m = m * 2
        y[i] += v


@qd.kernel
def of_bits(n: i32, x: X, y: X):
    for i in range(4):
        v = x[i]
        for j in range(n ^ 3):
            v = qd.sin(v)
        y[i] += v


@qd.kernel
def of_a_root(x: X, y: X):
    for i in range(4):
        v = x[i]
        for j in range(qd.cast(qd.sqrt(x[i]), i32)):
            v = qd.sin(v)
        y[i] += v


@qd.func
def called(v, m, x: qd.template()):
    for j in range(qd.floor(x[m] * 2.0, i32)):
        v = qd.sin(v)
    return v


@qd.kernel
def calling(x: X, y: X):
    for i in range(4):
        y[i] += called(x[i], i, x)


@pytest.mark.parametrize(
    ("kernel", "args", "line", "part"),
    [
        (of_a_real, (x, y), "for j in range(m):",
         r"`int\(x\[i\] \* 4.0\)` at line \d+ is an integer made from a number of the type f64"),
        (grown, (3, x, y), "for k in range(m):",
         "it depends on the variable m, which a loop changes"),
        (of_bits, (3, x, y), "for j in range(n ^ 3):", r"`n \^ 3` is an operation on bits"),
        (of_a_root, (x, y), "for j in range(qd.cast(qd.sqrt(x[i]), i32)):",
         r"`qd.cast\(qd.sqrt\(x\[i\]\), i32\)` is an integer made from"),
        (calling, (x, y), "for j in range(qd.floor(x[m] * 2.0, i32)):",
         r"`qd.floor\(x\[m\] \* 2.0, i32\)` is an integer made from"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_a_bound_that_cannot_be_reported_is_an_error_at_the_loop(kernel, args, line, part):
    problem = Problem.of_kernel(kernel, *args, default_fp="f64")
    func = differentiated(problem.source, "reverse")
    with pytest.raises(QuadrantsCompilationError, match=part) as caught:
        passes.run(func, config(default_fp="f64"), PipelineKind.CPU, upto="after_offload")
    error = caught.value
    assert error.span is not None and error.span.source_line.strip() == line
    assert "keeps the values of v of each iteration of the loop over" in error.message
    assert "ad_stack_size" in (error.hint or "")


@pytest.mark.parametrize("kernel", [of_a_real, of_a_root])
def test_a_fixed_size_takes_the_place_of_what_cannot_be_reported(kernel):
    problem = Problem.of_kernel(kernel, x, y, default_fp="f64")
    report = check(problem, ("reverse",), default_fp="f64", ad_stack_size=9)
    assert report.compared
