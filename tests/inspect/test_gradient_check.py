"""`inspect.check_gradient`: planted faults with their causes, and gradients that are right."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.inspect import check_gradient
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes.autodiff import derivatives

from tests.inspect.gradient_arrays import F32, F64, I32, f32, f64, i32


@pytest.fixture(autouse=True)
def program():
    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=2)
    yield
    qd.reset()


# ---- wrong rules: an operation of one kernel has a wrong derivative


@qd.kernel
def functions(x: F32, y: F32):
    for i in x:
        y[0] += qd.sin(x[i]) + qd.cos(x[i]) + qd.tan(x[i]) + qd.tanh(x[i])
        y[0] += qd.exp(x[i]) + qd.log(x[i]) + qd.sqrt(x[i]) + qd.rsqrt(x[i])
        y[0] += qd.asin(x[i]) + qd.acos(x[i]) * 3.0 + abs(x[i])


@qd.kernel
def operations(x: F32, z: F32, y: F32):
    for i in x:
        y[0] += x[i] * z[i] + x[i] / z[i] + qd.atan2(x[i], z[i]) + x[i] ** z[i]
        y[0] += qd.max(x[i], 0.3) + qd.min(0.8, z[i]) - z[i] * z[i]
        y[0] += qd.select(x[i] > 0.1, z[i] * 3.0, x[i])


def scaled(partial, factor):
    """A rule that is wrong by a factor."""

    def apply(b, op, value, g):
        made = partial.apply(b, op, value, g)
        return b.binary(C.MUL, made, b.const(factor, made.type))

    return derivatives.Partial(partial.needs, apply)


UNARY = ("SIN", "COS", "TAN", "TANH", "EXP", "LOG", "SQRT", "RSQRT", "ASIN", "ACOS", "ABS")
BINARY = (
    ("MUL", 0), ("MUL", 1), ("DIV", 0), ("DIV", 1), ("ATAN2", 0), ("ATAN2", 1), ("POW", 0),
    ("POW", 1), ("MAX", 0), ("MIN", 1), ("SELECT", 1),
)  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_a_wrong_rule_of_a_function_is_named(monkeypatch, name):
    factor = 1.01 if UNARY.index(name) % 2 else -1.0
    code = getattr(C, name)
    monkeypatch.setitem(derivatives.RULES, code, (scaled(derivatives.RULES[code][0], factor),))
    found = check_gradient(functions, f32(0.25, 0.5, 0.75), f32(0.0))
    assert (found.state, found.cause, found.name) == ("wrong", "rule", "x")
    wrong = {row.op for row in found.path if row.wrong}
    assert wrong == {name.lower()}
    assert found.line == next(row.line for row in found.path if row.wrong)
    # Forward mode has the same rule.
    assert found.forward == pytest.approx(found.reverse, rel=1e-4)
    assert abs(found.differences - found.reverse) == pytest.approx(found.error)


@pytest.mark.parametrize(("name", "operand"), BINARY)
def test_a_wrong_rule_of_an_operation_is_named(monkeypatch, name, operand):
    code = getattr(C, name)
    row = list(derivatives.RULES[code])
    row[operand] = scaled(row[operand], 1.5)
    monkeypatch.setitem(derivatives.RULES, code, tuple(row))
    found = check_gradient(operations, f32(0.25, 0.5, 0.75), f32(0.4, 0.5, 0.6), f32(0.0))
    assert (found.state, found.cause) == ("wrong", "rule")
    wrong = {row.op for row in found.path if row.wrong}
    assert wrong & {name.lower(), "true" + name.lower()}, found


# ---- gradients that their authors wrote


@qd.kernel
def cube(x: F64, y: F64):
    for i in x:
        y[i] = x[i] * x[i] * x[i] + 2.0 * x[i]


@qd.ad.grad_replaced
def cubes(x, y):
    cube(x, y)


def custom(gradient):
    """A gradient in NumPy: gets x and the gradient of y, returns what x gets."""

    @qd.ad.grad_replaced
    def cubed(x, y):
        cube(x, y)

    @qd.ad.grad_for(cubed)
    def cubed_grad(x, y):
        held = x.grad.to_numpy()
        x.grad.from_numpy(held + gradient(x.to_numpy(), y.grad.to_numpy()))
        y.grad.from_numpy(np.zeros_like(held))

    return cubed


CUSTOM = {
    "a factor": lambda x, g: 2 * (3 * x * x + 2) * g,
    "a sign": lambda x, g: -(3 * x * x + 2) * g,
    "a missing term": lambda x, g: 3 * x * x * g,
    "a wrong power": lambda x, g: (3 * x + 2) * g,
    "nothing": lambda x, g: 0 * g,
    "another element": lambda x, g: np.roll((3 * x * x + 2) * g, 1),
    "one element": lambda x, g: (3 * x * x + 2) * g * (np.arange(x.size) != 2),
    "a small error": lambda x, g: (3 * x * x + 2.001) * g,
}


@pytest.mark.parametrize("fault", CUSTOM)
def test_a_wrong_gradient_of_an_author_is_found(fault):
    x, y = f64(0.5, 1.0, 1.5, 2.0), f64(0.0, 0.0, 0.0, 0.0)
    found = check_gradient(custom(CUSTOM[fault]), x, y)
    assert (found.state, found.cause, found.name) == ("wrong", "custom", "x")
    assert found.file == __file__ and found.line
    if fault == "one element":
        assert found.index == (2,)
    assert list(x.to_numpy()) == [0.5, 1.0, 1.5, 2.0] and not np.any(y.to_numpy())
    assert not np.any(x.grad.to_numpy())


def test_a_right_gradient_of_an_author():
    right = custom(lambda x, g: (3 * x * x + 2) * g)
    assert check_gradient(right, f64(0.5, 1.0), f64(0.0, 0.0)).state == "right"


# ---- overwritten values: the gradient reads what arrays hold after the kernel


@qd.kernel
def squares_then_constant(x: F32, y: F32, to: I32):
    for i in y:
        y[i] = x[i] * x[i]
    for i in x:
        x[to[i]] = 2.0


@qd.kernel
def sines_then_scaled(x: F32, y: F32, to: I32):
    for i in y:
        y[i] = qd.sin(x[i])
    for i in x:
        x[to[i]] *= 2.0


@qd.kernel
def product_then_other(x: F32, y: F32, to: I32):
    for i in y:
        y[i] += x[i] * qd.exp(x[i])
    for i in x:
        x[to[i]] = -1.0


@qd.kernel
def quotient_then_sum(x: F32, y: F32, to: I32):
    for i in y:
        y[i] = 1.0 / x[i]
    for i in x:
        x[to[i]] += 3.0


@qd.kernel
def power_then_zero(x: F32, y: F32, to: I32):
    for i in y:
        y[0] += x[i] ** 3
    for i in x:
        x[to[i]] = 0.0


OVERWRITTEN = (
    squares_then_constant, sines_then_scaled, product_then_other,
    quotient_then_sum, power_then_zero,
)  # fmt: skip


@pytest.mark.parametrize("kernel", OVERWRITTEN, ids=lambda k: k.__name__)
def test_an_overwritten_value_is_named(kernel):
    found = check_gradient(kernel, f32(1.5, 0.7, 3.0), f32(0.0, 0.0, 0.0), i32(0, 1, 2))
    assert (found.state, found.cause, found.name) == ("wrong", "overwritten", "x"), found
    assert found.file == __file__ and found.line
    assert found.forward == pytest.approx(found.differences, rel=1e-5)


# ---- races: iterations compete, and the gradient runs them in another order


@qd.kernel
def last_writer(x: F32, y: F32, to: I32):
    for i in x:
        y[to[i]] = x[i] * x[i]


@qd.kernel
def two_halves(x: F32, y: F32, to: I32):
    for i in x:
        y[to[i] // 2] = qd.sin(x[i])


@qd.kernel
def exchanged(x: F32, y: F32, to: I32):
    for i in x:
        y[to[2 - i]] = x[i] * x[2 - i]


@qd.kernel
def neighbour(x: F32, y: F32, to: I32):
    for i in x:
        y[to[i]] = x[i]
        y[to[i] + 1] = x[i] * 3.0


RACES = {
    "last writer": (last_writer, (0, 0, 0)),
    "two of three": (last_writer, (0, 1, 1)),
    "two halves": (two_halves, (0, 1, 2)),
    "exchanged": (exchanged, (1, 1, 2)),
    "a neighbour": (neighbour, (0, 1, 2)),
}


@pytest.mark.parametrize("fault", RACES)
def test_a_race_is_named(fault):
    kernel, to = RACES[fault]
    found = check_gradient(kernel, f32(1.5, 0.7, 3.0), f32(0.1, 0.2, 0.3, 0.4), i32(*to))
    assert (found.state, found.cause) == ("wrong", "race"), found
    assert "y" in found.why and found.line


# ---- points without a unique derivative


@qd.kernel
def relu(x: F32, y: F32):
    for i in x:
        y[0] += qd.max(x[i], 0.0)


@qd.kernel
def clipped(x: F32, y: F32):
    for i in x:
        y[0] += qd.min(x[i], 0.0) * 3.0


@qd.kernel
def branch(x: F32, y: F32):
    for i in x:
        if x[i] > 0.0:
            y[0] += x[i] * 2.0
        else:
            y[0] += x[i] * 5.0


@qd.kernel
def chosen(x: F32, y: F32):
    for i in x:
        y[0] += qd.select(x[i] > 0.0, x[i] * 4.0, -x[i])


@qd.kernel
def jump(x: F32, y: F32):
    for i in x:
        y[0] += qd.floor(x[i]) + x[i]


@qd.kernel
def largest(x: F32, y: F32):
    for i in x:
        y[i] = qd.max(x[i], x[0] * 0.0) * 2.0


@pytest.mark.parametrize(
    "kernel", [relu, clipped, branch, chosen, jump, largest], ids=lambda k: k.__name__
)
def test_a_kink_is_no_wrong_gradient(kernel):
    found = check_gradient(kernel, f32(1.5, 0.0, -3.5), f32(0.0, 0.0, 0.0))
    assert (found.state, found.cause) == ("unknown", "kink"), found
    assert (found.name, found.index) == ("x", (1,))


def test_a_wrong_entry_is_found_next_to_kinks(monkeypatch):
    row = derivatives.RULES[C.MAX]
    wrong = (scaled(row[0], 1.5), row[1])
    monkeypatch.setitem(derivatives.RULES, C.MAX, wrong)
    found = check_gradient(relu, f32(0.0, 0.0, 0.0, 2.0, 0.0), f32(0.0))
    assert (found.state, found.cause, found.index) == ("wrong", "rule", (3,))


@qd.kernel
def offset(x: F32, z: F32, y: F32):
    for i in x:
        v = x[i] + z[i]
        y[0] += v * v * 1.0e-12


def test_differences_that_do_not_settle_are_no_verdict():
    found = check_gradient(offset, f32(0.5, 0.25), f32(1e12, 1e12), f32(0.0))
    assert (found.state, found.cause) == ("unknown", "noise"), found


def test_rounding_is_no_wrong_gradient():
    @qd.kernel
    def cancels(x: F32, y: F32):
        for i in x:
            y[i] = (x[i] + 1.0e4) * (x[i] + 1.0e4) * x[i] - 1.0e8 * x[i]

    found = check_gradient(cancels, f32(1e-3, 2e-3), f32(0.0, 0.0))
    assert (found.state, found.cause) in {("unknown", "noise"), ("right", "")}, found


# ---- right ones


@qd.kernel
def carried(x: F32, y: F32):
    for i in x:
        v = x[i]
        for _ in range(8):
            v = qd.sin(v) + 0.5 * v
        y[i] = v


@qd.kernel
def conditions(x: F32, y: F32):
    for i in x:
        v = x[i] * x[i]
        if v > 1.0:
            v = qd.log(v) * x[i]
        elif x[i] < 0.0:
            v = -3.0 * v
        y[i] = v


@qd.kernel
def in_place(x: F32, y: F32):
    for i in x:
        x[i] = 3.0 * x[i]
    for i in x:
        y[i] = x[i] * x[i]


@qd.kernel
def accumulated(x: F32, y: F32):
    for i in x:
        for j in range(3):
            qd.atomic_add(y[0], x[i] * x[j])


@qd.kernel
def vectors(x: F32, y: F32):
    for i in range(1):
        v = qd.Vector([x[0], x[1], x[2]])
        m = qd.Matrix([[1.0, 2.0, x[0]], [x[1], 0.5, 1.0], [3.0, x[2], 1.0]])
        y[i] = (m @ v).norm() + v.dot(v)


@qd.kernel
def constant(x: F32, y: F32):
    for i in y:
        y[i] = 1.0


@qd.kernel
def local_array(x: F32, y: F32):
    for i in x:
        v = qd.Vector([x[i], x[0], 2.0])
        s = 0.0
        for j in range(3):
            s += v[j] * v[j] * x[i]
        y[i] = s


@qd.kernel
def remainder(x: F32, y: F32):
    for i in x:
        y[i] = (x[i] % 0.4) * x[i] + qd.floor(x[i])


@qd.kernel
def stopped(x: F32, y: F32):
    for i in x:
        y[i] = x[i] * x[i]
        y[i] += qd.pow(x[i], 2) * qd.exp(-x[i])


@qd.kernel
def doubles(x: F64, y: F64):
    for i in x:
        y[i] = qd.tanh(x[i]) / (1.0 + x[i] * x[i])


SMOOTH = (
    carried, conditions, in_place, accumulated, vectors, constant, local_array, remainder,
    stopped, relu, branch, chosen, functions,
)  # fmt: skip
POINTS = {"inside": (0.5, 0.7, 0.35), "spread": (0.9, 0.15, 0.55)}
CASES = [(k, "inside") for k in SMOOTH] + [(k, "spread") for k in SMOOTH[:6]]


@pytest.mark.parametrize(("kernel", "points"), CASES, ids=lambda c: getattr(c, "__name__", c))
def test_a_right_gradient_raises_no_alarm(kernel, points):
    found = check_gradient(kernel, f32(*POINTS[points]), f32(0.0, 0.0, 0.0))
    assert found.state == "right", found


def test_fields_of_vectors_have_indices_too(monkeypatch):
    place = qd.Vector.field(2, qd.f32, shape=(3, 2), needs_grad=True)
    energy = qd.field(qd.f32, shape=(), needs_grad=True)
    place.from_numpy(np.arange(1, 13, dtype=np.float32).reshape(3, 2, 2) / 8)

    @qd.kernel
    def stretch():
        for i, j in place:
            energy[None] += place[i, j][0] * 2.0
            if i == 2 and j == 1:
                energy[None] += qd.sin(place[i, j][1])

    right = check_gradient(stretch)
    assert right.state == "right" and right.entries == 13
    row = derivatives.RULES[C.SIN]
    monkeypatch.setitem(derivatives.RULES, C.SIN, (scaled(row[0], 2.0),))
    found = check_gradient(stretch)
    assert (found.cause, found.name, found.index) == ("rule", "place", (2, 1, 1)), found
    assert found.path[-1].text == "place[2, 1, 1]"


def test_a_right_gradient_in_f64():
    found = check_gradient(doubles, f64(-1.0, 0.3, 1e-5), f64(0.0, 0.0, 0.0))
    assert found.state == "right", found


def test_a_large_array_needs_tens_of_runs(monkeypatch):
    x, y = f32(*np.linspace(0.1, 0.9, 20_000)), f32(0.0)
    right = check_gradient(relu, x, y)
    assert right.state == "right" and right.evaluations <= 10
    row = derivatives.RULES[C.MAX]
    monkeypatch.setitem(derivatives.RULES, C.MAX, (scaled(row[0], 1.5), row[1]))
    wrong = check_gradient(relu, x, y)
    assert wrong.cause == "rule" and wrong.evaluations < 240 and wrong.entries == 20_001
    (count,) = wrong.counts
    assert (count.name, count.wrong, count.size, count.all) == ("x", 3, 20_000, False)


@qd.kernel
def refused(x: F32, y: F32):
    for i in x:
        x[i] = x[i] * x[i]


def test_what_has_no_gradient_says_why():
    found = check_gradient(refused, f32(1.0), f32(1.0))
    assert found.state == "unknown" and found.reason.startswith("the gradient cannot be compiled")

    @qd.kernel
    def whole(n: I32):
        for i in n:
            n[i] = i

    found = check_gradient(whole, i32(1, 2))
    assert found.state == "unknown" and "no gradient" in found.reason
    with pytest.raises(TypeError, match="has no gradient"):
        check_gradient(lambda: None)
