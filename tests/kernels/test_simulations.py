"""Small simulations give the same on CUDA and on the CPU as in the interpreter.

Each is a function that makes what it needs, runs some steps and gives the arrays of the end.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests import cuda_sim

F1, F2 = qd.types.NDArray[qd.f32, 1], qd.types.NDArray[qd.f32, 2]
F0, I0 = qd.types.NDArray[qd.f32, 0], qd.types.NDArray[qd.i32, 0]


def particles_in_bins():
    """Neighbours found through a grid of bins: atomics, a running sum, ragged loops, a result."""
    n, side, h = 60, 4, 0.25
    pos, vel = (qd.Vector.field(2, qd.f32, shape=n) for _ in range(2))
    count, start, room = qd.field(qd.i32, (side, side)), qd.field(qd.i32, 17), qd.field(qd.i32, 16)
    order, rho = qd.field(qd.i32, n), qd.field(qd.f32, n)
    random = np.random.default_rng(1)
    pos.from_numpy(random.random((n, 2)).astype(np.float32))
    vel.from_numpy(random.random((n, 2)).astype(np.float32))

    @qd.func
    def bin_of(p):
        return qd.min(qd.max(qd.cast(qd.floor(p / h), qd.i32), 0), side - 1)

    @qd.kernel
    def sort_in():
        for i, j in count:
            count[i, j] = 0
        for p in pos:
            count[bin_of(pos[p])] += 1
        qd.loop_config(serialize=True)
        for k in range(side * side):
            start[k + 1] = start[k] + count[k // side, k % side]
            room[k] = start[k]
        for p in pos:
            b = bin_of(pos[p])
            order[qd.atomic_add(room[b[0] * side + b[1]], 1)] = p

    @qd.kernel
    def move(dt: qd.f32) -> qd.f32:
        energy = 0.0
        for p in pos:
            b = bin_of(pos[p])
            total = 0.0
            for di, dj in qd.ndrange((-1, 2), (-1, 2)):
                c = b + qd.Vector([di, dj])
                if 0 <= c[0] < side and 0 <= c[1] < side:
                    for s in range(start[c[0] * side + c[1]], start[c[0] * side + c[1] + 1]):
                        total += qd.max(h * h - (pos[p] - pos[order[s]]).norm_sqr(), 0.0) ** 3
            rho[p] = total
        for p in pos:
            v = vel[p] / (1.0 + 1e3 * rho[p])
            x = pos[p] + dt * v
            for k in qd.static(range(2)):
                if x[k] < 0 or x[k] > 1:
                    v[k] = -v[k]
                    x[k] = qd.min(qd.max(x[k], 0.0), 1.0)
            pos[p], vel[p] = x, v
            energy += v.norm_sqr()
        return energy

    energies = []
    for _ in range(3):
        sort_in()
        energies.append(move(0.05))
    return [pos.to_numpy(), vel.to_numpy(), rho.to_numpy(), np.float32(energies), start.to_numpy()]


def flow_in_a_graph():
    """A graph with a loop until a residual is small, replayed with its arrays swapped."""
    n = 12
    u, v, p, q, d = (qd.ndarray(qd.f32, (n, n)) for _ in range(5))
    rest, again, rounds = qd.ndarray(qd.f32, ()), qd.ndarray(qd.i32, ()), qd.ndarray(qd.i32, ())

    @qd.func
    def across(a: qd.template(), i, j):
        return a[qd.min(i + 1, n - 1), j] - a[qd.max(i - 1, 0), j]

    @qd.func
    def along(a: qd.template(), i, j):
        return a[i, qd.min(j + 1, n - 1)] - a[i, qd.max(j - 1, 0)]

    @qd.kernel(graph=True)
    def step(u: F2, v: F2, p: F2, q: F2, d: F2, rest: F0, again: I0, rounds: I0, small: qd.f32):
        for i, j in d:
            d[i, j] = 0.5 * (across(u, i, j) + along(v, i, j))
            p[i, j] = 0.0
        rounds[()] = 0
        while qd.graph.do_while(again):
            rest[()] = 0.0
            for i, j in p:
                west, east = p[qd.max(i - 1, 0), j], p[qd.min(i + 1, n - 1), j]
                south, north = p[i, qd.max(j - 1, 0)], p[i, qd.min(j + 1, n - 1)]
                q[i, j] = 0.25 * (west + east + south + north - d[i, j])
            for i, j in p:
                qd.atomic_max(rest[()], abs(q[i, j] - p[i, j]))
                p[i, j] = q[i, j]
            rounds[()] += 1
            again[()] = 1 if rounds[()] < 30 and rest[()] > small else 0
        for i, j in u:
            u[i, j] -= 0.5 * across(p, i, j)
            v[i, j] -= 0.5 * along(p, i, j)

    random = np.random.default_rng(0)
    u.from_numpy(random.standard_normal((n, n)).astype(np.float32))
    v.from_numpy(random.standard_normal((n, n)).astype(np.float32))
    counts = []
    for t in range(4):
        a, b = (u, v) if t % 2 else (v, u)
        step(a, b, p, q, d, rest, again, rounds, 0.02 * (t + 1))
        counts.append(rounds[()])
    assert len(set(counts)) > 1
    return [u.to_numpy(), v.to_numpy(), p.to_numpy(), np.array(counts)]


def everything_changes_between_calls():
    """A kernel of many tasks called often: other arrays, sizes, numbers, bounds from memory."""
    f, bounds = qd.field(qd.f32, (6, 7)), qd.field(qd.i32, 2)

    @qd.kernel
    def k(x: F1, y: F1, a: qd.f32, n: qd.i32):
        for i in x:
            x[i] = x[i] * 0.5 + a
        for i in range(n):
            y[i % y.shape[0]] += a
        for i, j in f:
            f[i, j] += a * qd.cast(i - j, qd.f32)
        for i in range(bounds[0], bounds[1]):
            y[0] += qd.cast(i, qd.f32)
        total = 0.0
        for i in x:
            total += x[i]
        for i in y:
            y[i] = 0.5 * y[i] + total

    out = []
    xs, ys = ([qd.ndarray(qd.f32, n) for n in sizes] for sizes in ((5, 300), (9, 40)))
    for t in range(36):
        bounds[0], bounds[1] = t % 3, (t * 5) % 11
        if t == 22:
            xs[0] = qd.ndarray(qd.f32, 29)
        x, y = xs[t % 2 if t > 15 else 0], ys[t % 3 % 2 if t > 25 else 0]
        k(x, y, 0.25 * (t % 4) if t > 12 else 0.5, t % 13 if t > 10 else 4)
        out += [y.to_numpy()] if t % 9 == 0 else []
    host = np.arange(12, dtype=np.float32)
    k(host, ys[0], 0.125, 3)
    return [*out, host, f.to_numpy(), *[a.to_numpy() for a in (*xs, *ys)]]


def run(program, arch, **options):
    qd.init(arch=arch, offline_cache=False, enable_fallback=False, **options)
    try:
        return program()
    finally:
        qd.reset()


@pytest.mark.cuda
@pytest.mark.parametrize(
    "program", [particles_in_bins, flow_in_a_graph, everything_changes_between_calls]
)
def test_simulations_agree(program):
    want = run(program, qd.interp)
    with cuda_sim.cuda():
        for arch, options in (
            (qd.cpu, {}),
            (qd.cuda, {}),
            (qd.cuda, {"fast_math": False, "debug": True, "opt_level": 0}),
        ):
            for a, b in zip(want, run(program, arch, **options), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"{arch} {options}")
