"""Forward mode: derivatives beside the values, through everything a kernel may do."""

import numpy as np
import pytest
from qd_studio import engine as qd

from .gradients import Problem, check, compiled, differentiated, duals

f64, i32 = qd.f64, qd.i32
A0 = qd.types.ndarray(qd.f64, 0)
A1 = qd.types.ndarray(qd.f64, 1)
N1 = qd.types.ndarray(qd.i32, 1)
V1 = qd.types.ndarray(qd.types.vector(2, qd.f64), 1)


pytestmark = pytest.mark.usefixtures("f64_program")


X = np.array([0.3, 0.9, 0.6, 1.2])
Y = np.array([0.1, 0.2, 0.3, 0.4])
C = np.array([0, 3, 1, 2], np.int32)


def forward(kernel, *args, **options):
    problem = Problem.of_kernel(kernel, *args, default_fp="f64")
    report = check(problem, ("forward",), default_fp="f64", **options)
    assert report.compared and not report.kinks


@qd.kernel
def elementwise(x: A1, y: A1):
    for i in x:
        y[i] = qd.sin(x[i]) * x[i] + x[i] ** 3 / (1.0 + x[i])


@qd.kernel
def ragged(x: A1, y: A1, c: N1):
    for i in x:
        s = x[i]
        for j in range(c[i]):
            for k in range(j, c[j]):
                s = s * x[k] + qd.cos(s)
        y[i] += s


@qd.kernel
def newton(x: A1, y: A1):
    for i in x:
        s = x[i]
        k = 0
        while True:
            s = 0.5 * (s + x[i] / s)
            k += 1
            if k > 3 + i:
                break
        y[i] = s


@qd.kernel
def branches(x: A1, y: A1):
    for i in x:
        s = 0.0
        if x[i] > 0.5:
            s = x[i] * x[i]
        elif i == 0:
            s = qd.exp(x[i])
        for j in range(4):
            if j == i:
                continue
            s += qd.max(x[j], 0.7) * qd.select(j > 1, x[i], s)
        y[i] = s


@qd.kernel
def in_place(x: A1):
    for i in x:
        x[i] = x[i] * x[i]
        x[i] -= 0.25
        x[i] = qd.sqrt(x[i] + 2.0)


@qd.kernel
def local_updates(x: A1, y: A1):
    for i in x:
        a = x[i]
        a *= x[i]
        a /= 2.0
        qd.atomic_mul(a, x[(i + 1) % 4])
        qd.atomic_max(a, 0.2 * x[i])
        qd.atomic_min(a, x[0])
        b = qd.atomic_add(a, x[i])
        c = qd.atomic_exchange(a, b * x[i])
        y[i] = a * b + c


@qd.kernel
def reductions(x: A1, total: A0):
    s = x[0]
    for i in x:
        s += x[i] * x[i]
        total[None] += qd.sin(x[i])
    t = s * s
    for i in x:
        total[None] -= t * x[i]


@qd.func
def norm(v):
    return qd.sqrt(v.dot(v) + 1.0)


@qd.kernel
def vectors(p: V1, x: A1):
    for i in p:
        v = p[i]
        m = qd.Matrix([[x[i], 1.0], [0.5, v[0]]])
        k = i % 2
        v[k] = v[k] * 2.0 + m[k, 1]
        p[i] = m @ v / norm(v)


@qd.kernel
def integers_between(x: A1, y: A1, c: N1):
    for i in x:
        k = qd.cast(x[i] * 2.0, i32) % 4
        y[k] += x[i] * c[k] + qd.cast(c[i], qd.f64) * x[k]
        c[i] = c[i] + 1


@qd.real_func
def index_of(i: i32) -> i32:
    return (i + 1) % 4


@qd.kernel
def calls_for_indices(x: A1, y: A1):
    for i in x:
        y[i] = x[index_of(i)] * x[i]


CASES = {
    elementwise: (X, Y), ragged: (X, Y, C), newton: (X, Y), branches: (X, Y), in_place: (X,),
    local_updates: (X, Y), reductions: (X, np.array(0.5)),
    vectors: (np.arange(8.0).reshape(4, 2) / 7 + 0.2, X), integers_between: (X, Y, C),
    calls_for_indices: (X, Y),
}  # fmt: skip


@pytest.mark.parametrize("kernel", CASES, ids=lambda k: k.name)
def test_duals_are_differences(kernel):
    forward(kernel, *CASES[kernel])


def test_fields_of_every_layout_have_duals():
    a = qd.Vector.field(2, qd.f64, shape=(3,))
    b = qd.field(qd.f64)
    c = qd.field(qd.f64)
    qd.root.dense(qd.ij, (2, 3)).place(b, c)
    a.from_numpy(np.arange(6.0).reshape(3, 2) / 5 + 0.1)
    b.from_numpy(np.arange(6.0).reshape(2, 3) / 4 + 0.3)

    @qd.kernel
    def mixed():
        for i, j in b:
            c[i, j] = b[i, j] * a[j][i] + qd.exp(b[i, (j + 1) % 3])
            a[j].norm()

    forward(mixed)


def test_a_value_without_dependence_has_the_derivative_zero():
    @qd.kernel
    def constant(x: A1, y: A1):
        for i in x:
            y[i] = 3.0
            x[i] = qd.floor(x[i]) + qd.cast(qd.cast(x[i], i32), qd.f64)

    problem = Problem.of_kernel(constant, X, Y, default_fp="f64")
    launch = compiled(differentiated(problem.source, "forward"), "interp", default_fp="f64")
    _, made = duals(launch, problem.values, [np.ones(4), np.ones(4)])
    assert all((d == 0.0).all() for d in made)


def test_duals_flow_where_arrays_have_them_only():
    """A parameter without one is a constant."""

    @qd.kernel
    def product(x: A1, y: A1):
        for i in x:
            y[i] = x[i] * x[i]

    problem = Problem.of_kernel(product, X, Y, default_fp="f64")
    func = differentiated(problem.source, "forward")
    first, *rest = func.params
    func.params = (first._replace(grad=-1), *rest)
    launch = compiled(func, "cpu", default_fp="f64")
    values, made = duals(launch, problem.values, [np.ones(4), np.ones(4)])
    np.testing.assert_allclose(values[1], X * X)
    assert (made[1] == 0.0).all()


def test_ties_and_edges_go_as_the_table_says():
    @qd.kernel
    def edges(x: A1, y: A1):
        y[0] = qd.max(x[0], x[1])
        y[1] = qd.abs(x[2])
        y[2] = qd.sqrt(x[2])
        y[3] = x[2] ** 2 + x[3] % 0.5

    x = np.array([1.0, 1.0, 0.0, 1.2])
    problem = Problem.of_kernel(edges, x, Y, default_fp="f64")
    for backend in ("interp", "cpu"):
        launch = compiled(differentiated(problem.source, "forward"), backend, default_fp="f64")
        _, made = duals(launch, problem.values, [np.array([10.0, 20.0, 30.0, 40.0]), np.zeros(4)])
        np.testing.assert_array_equal(made[1], [20.0, 0.0, np.inf, 40.0])


@pytest.mark.parametrize("real", ["f32", "f16"])
def test_narrow_types_agree_on_both_backends(real):
    t = getattr(qd, real)
    array = qd.types.ndarray(t, 1)

    @qd.kernel
    def narrow(x: array, y: array):
        for i in x:
            s = x[i]
            for _j in range(i):
                s = s * x[i] + qd.cast(0.5, t)
            y[i] = s

    args = [v.astype(t.np) for v in (X, Y)]
    report = check(
        Problem.of_kernel(narrow, *args, default_fp=real),
        ("forward",),
        differences=False,
        default_fp=real,
    )
    assert report.backends == ("interp", "cpu")


@pytest.mark.parametrize(
    "options",
    [{"debug": True}, {"check_out_of_bound": True}, {"advanced_optimization": False},
     {"fast_math": True}, {"skip": ("cfg_optimization", "simplify")}, {"pieces": True}],
    ids=str,
)  # fmt: skip
def test_with_other_options(options):
    forward(ragged, X, Y, C, **options)
