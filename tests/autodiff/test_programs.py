"""Whole programs as people write them, with gradients that agree with central differences.

A program is a function that makes fields and arrays and ends in `agree`: the forward run, the
loss, the parameters. Everything is f64.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

pytestmark = pytest.mark.usefixtures("backend")


def real(*shape):
    return qd.field(qd.f64, shape=shape, needs_grad=True)


def whole(values):
    """A field of integers without gradients."""
    field = qd.field(qd.i32, shape=np.shape(values))
    field.from_numpy(np.asarray(values, np.int32))
    return field


def filled(field, seed, low=0.2, high=1.0):
    shape = field.to_numpy().shape
    field.from_numpy(np.random.default_rng(seed).uniform(low, high, shape))
    return field


def agree(forward, loss, *params, picks=3, step=1e-5):
    """Gradients of the loss, by a tape, beside central differences at a few elements of each."""
    with qd.ad.Tape(loss=loss):
        forward()
    slopes = [p.grad.to_numpy() for p in params]
    rng = np.random.default_rng(0)

    def loss_at(p, values):
        p.from_numpy(values)
        loss.fill(0.0)
        forward()
        return float(loss.to_numpy().ravel()[0])

    for p, found in zip(params, slopes, strict=True):
        kept = p.to_numpy()
        for flat in rng.choice(kept.size, min(picks, kept.size), replace=False):
            at = np.unravel_index(flat, kept.shape)
            moved = np.zeros_like(kept)
            moved[at] = 1.0
            wide, near = (
                (loss_at(p, kept + h * moved) - loss_at(p, kept - h * moved)) / (2 * h)
                for h in (step, step / 2)
            )
            wanted = (4 * near - wide) / 3
            assert found[at] == pytest.approx(wanted, rel=1e-6, abs=1e-7), at
        p.from_numpy(kept)
    assert any(np.abs(s).max() > 1e-6 for s in slopes)


def test_a_network_of_two_layers():
    inputs, hidden, batch = 3, 4, 5
    x, target = filled(real(batch, inputs), 1), filled(real(batch), 2)
    w1, b1 = filled(real(hidden, inputs), 3, -1), filled(real(hidden), 4, -1)
    w2, out, loss = filled(real(hidden), 5, -1), real(batch, hidden), real()

    @qd.kernel
    def first():
        for n, h in out:
            s = b1[h]
            for i in range(inputs):
                s += w1[h, i] * x[n, i]
            out[n, h] = qd.tanh(s)

    @qd.kernel
    def second():
        for n in range(batch):
            s = 0.0
            for h in range(hidden):
                s += w2[h] * out[n, h]
            loss[None] += (s - target[n]) ** 2

    def forward():
        first()
        second()

    agree(forward, loss, w1, b1, w2, x)


def test_softmax_and_cross_entropy():
    rows, classes = 4, 5
    scores, loss = filled(real(rows, classes), 1, -2, 2), real()
    label = whole([0, 3, 4, 1])

    @qd.kernel
    def entropy():
        for r in range(rows):
            top = scores[r, 0]
            for c in range(1, classes):
                top = qd.max(top, scores[r, c])
            total = 0.0
            for c in range(classes):
                total += qd.exp(scores[r, c] - top)
            loss[None] += qd.log(total) + top - scores[r, label[r]]

    agree(entropy, loss, scores, picks=6)


def test_an_ordinary_differential_equation_by_runge_kutta():
    """A pendulum with drag: four stages a step, as many steps as an array says."""
    count = 3
    start, drag, loss = filled(real(count), 1), filled(real(count), 2), real()
    steps = qd.ndarray(qd.i32, shape=(count,))
    steps.from_numpy(np.array([7, 0, 13], np.int32))

    @qd.func
    def slope(angle, speed, k):
        return speed, -qd.sin(angle) - k * speed * qd.abs(speed)

    @qd.kernel
    def swing(steps: qd.types.ndarray(dtype=qd.i32, ndim=1)):
        for i in range(count):
            a, v = start[i], 0.1
            for _ in range(steps[i]):
                a1, v1 = slope(a, v, drag[i])
                a2, v2 = slope(a + 0.05 * a1, v + 0.05 * v1, drag[i])
                a3, v3 = slope(a + 0.05 * a2, v + 0.05 * v2, drag[i])
                a4, v4 = slope(a + 0.1 * a3, v + 0.1 * v3, drag[i])
                a += 0.1 / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
                v += 0.1 / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
            loss[None] += a * a + 0.5 * v

    agree(lambda: swing(steps), loss, start, drag)


def test_heat_that_is_controlled_over_time():
    """Each time step is a row: no element is overwritten after it was read."""
    steps, cells = 6, 8
    u, source, loss = real(steps, cells), filled(real(cells), 1), real()
    filled(u, 2)

    @qd.kernel
    def advance(t: qd.i32):
        for i in range(1, cells - 1):
            flow = u[t - 1, i - 1] - 2.0 * u[t - 1, i] + u[t - 1, i + 1]
            u[t, i] = u[t - 1, i] + 0.2 * flow + 0.05 * source[i] * u[t - 1, i] ** 2

    @qd.kernel
    def measure():
        for i in range(1, cells - 1):
            loss[None] += (u[steps - 1, i] - 0.5) ** 2

    def forward():
        for t in range(1, steps):
            advance(t)
        measure()

    agree(forward, loss, source)


def test_a_potential_of_all_pairs():
    n = 6
    place, mass = qd.Vector.field(3, qd.f64, shape=n, needs_grad=True), filled(real(n), 2)
    loss = real()
    filled(place, 1, -1)

    @qd.kernel
    def energy():
        for i in range(n):
            for j in range(n):
                if i < j:
                    arm = place[i] - place[j]
                    loss[None] -= mass[i] * mass[j] / qd.sqrt(arm.dot(arm) + 0.01)

    agree(energy, loss, place, mass)


def test_a_sparse_matrix_by_rows():
    """Products within rows of unequal length, one of them empty."""
    starts = whole([0, 2, 2, 5, 6])
    columns = whole([1, 3, 0, 2, 3, 1])
    value, x, loss = filled(real(6), 1), filled(real(4), 2), real()

    @qd.kernel
    def rows():
        for r in range(4):
            p = 1.0
            for k in range(starts[r], starts[r + 1]):
                p *= qd.sin(value[k] * x[columns[k]])
            loss[None] += p * p

    agree(rows, loss, value, x, picks=6)


def test_rays_against_spheres():
    """The nearest hit among some, in a loop with branches and a running minimum."""
    rays, spheres = 5, 3
    centre = qd.Vector.field(2, qd.f64, shape=spheres, needs_grad=True)
    radius, loss = filled(real(spheres), 3, 0.3, 0.6), real()
    centre.from_numpy(np.array([[2.0, 0.1], [3.0, -0.2], [2.5, 0.7]]))

    @qd.kernel
    def trace():
        for r in range(rays):
            aim = qd.Vector([1.0, 0.15 * r - 0.2])
            aim = aim / aim.norm()
            nearest = 10.0
            for s in range(spheres):
                b = centre[s].dot(aim)
                d = b * b - centre[s].dot(centre[s]) + radius[s] ** 2
                if d > 0.0:
                    t = b - qd.sqrt(d)
                    if t < nearest:
                        nearest = t
            loss[None] += nearest * nearest

    agree(trace, loss, centre, radius, picks=6)


def test_newton_until_a_count_of_its_own():
    """The cube root by Newton's method, each element with its number of rounds."""
    n = 4
    a, rounds, loss = filled(real(n), 1, 1.0, 3.0), whole([0, 1, 3, 6]), real()

    @qd.kernel
    def solve():
        for i in range(n):
            y = 1.0
            for _ in range(rounds[i]):
                y = y - (y * y * y - a[i]) / (3.0 * y * y)
            loss[None] += y * a[i]

    agree(solve, loss, a, picks=4)


def test_a_cell_with_memory():
    """A recurrent cell over sequences of unequal lengths, weights shared by all of them."""
    lengths = whole([3, 0, 5])
    x, w, loss = filled(real(3, 5), 1, -1), filled(real(6), 2, -1), real()

    @qd.func
    def sigmoid(z):
        return 1.0 / (1.0 + qd.exp(-z))

    @qd.kernel
    def run():
        for s in range(3):
            h, c = 0.0, 0.0
            for t in range(lengths[s]):
                gate = sigmoid(w[0] * x[s, t] + w[1] * h)
                keep = sigmoid(w[2] * x[s, t] + w[3] * h)
                c = keep * c + gate * qd.tanh(w[4] * x[s, t] + w[5] * h)
                h = qd.tanh(c) * gate
            loss[None] += (h - 0.3) ** 2 + 0.1 * c

    agree(run, loss, w, x, picks=6)


def test_arrays_as_arguments():
    """ndarrays of numbers and of vectors; one without gradients is a constant."""
    points = qd.Vector.ndarray(2, qd.f64, shape=(4,), needs_grad=True)
    scale = qd.ndarray(qd.f64, shape=(4,), needs_grad=True)
    fixed = qd.ndarray(qd.f64, shape=(4,))
    loss = qd.ndarray(qd.f64, shape=(1,), needs_grad=True)
    filled(points, 1)
    filled(scale, 2)
    filled(fixed, 3)

    @qd.kernel
    def lengths(
        points: qd.types.ndarray(dtype=qd.types.vector(2, qd.f64), ndim=1),
        scale: qd.types.ndarray(dtype=qd.f64, ndim=1),
        fixed: qd.types.ndarray(dtype=qd.f64, ndim=1),
        loss: qd.types.ndarray(dtype=qd.f64, ndim=1),
    ):
        for i in range(4):
            v = points[i] * scale[i]
            loss[0] += v.norm() * fixed[i] + v.x * v.y

    agree(lambda: lengths(points, scale, fixed, loss), loss, points, scale, picks=6)


def test_a_rotation_of_matrices_in_a_loop():
    turns, loss = filled(real(3), 1), real()

    @qd.kernel
    def spin():
        for i in range(3):
            m = qd.Matrix([[1.0, 0.2], [0.0, 1.0]])
            for k in range(4):
                c, s = qd.cos(turns[i] * (k + 1)), qd.sin(turns[i])
                m = qd.Matrix([[c, -s], [s, c]]) @ m
            loss[None] += m[0, 1] * m[1, 0] + m.trace() ** 2

    agree(spin, loss, turns)


def test_an_object_with_a_method():
    @qd.data_oriented
    class Model:
        def __init__(self, n):
            self.n = n
            self.w = filled(real(n), 1)
            self.loss = real()

        @qd.kernel
        def cost(self):
            for i in range(self.n):
                z = self.w[i]
                for _ in range(self.n):
                    z = qd.sin(z) * self.w[i]
                self.loss[None] += z

    model = Model(3)
    agree(model.cost, model.loss, model.w)


def test_the_same_kernel_with_two_templates():
    a, b, loss = filled(real(3), 1), filled(real(4), 2), real()

    @qd.kernel
    def cubes(x: qd.template(), factor: qd.f64):
        for i in x:
            loss[None] += factor * x[i] ** 3

    def forward():
        cubes(a, 2.0)
        cubes(b, -1.0)

    agree(forward, loss, a, b)


def test_a_local_vector_filled_in_a_loop():
    x, loss = filled(real(3), 1), real()

    @qd.kernel
    def collect():
        for i in range(3):
            v = qd.Vector([0.1, 0.2, 0.3])
            for k in range(3):
                v[k] = v[(k + 1) % 3] * x[i] + 0.1 * k
            loss[None] += v.dot(v)

    agree(collect, loss, x)
