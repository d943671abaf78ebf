"""Gradients of kernels with locals, ifs, loops and mixed roots agree with central differences.

All kernels have the same parameters: ``x`` and ``z`` are read, ``y`` is added to, ``c`` holds the
integers from 0 to 4.
"""

import numpy as np
import pytest
from qd_studio import engine as qd

from .gradients import Problem, check
from .random_reverse import HEAD, source

SIGNATURE = (
    "@qd.kernel\ndef k(x: qd.types.NDArray[qd.f64, 1], y: qd.types.NDArray[qd.f64, 1], "
    "z: qd.types.NDArray[qd.f64, 1], c: qd.types.NDArray[qd.i32, 1], n: qd.i32):\n"
)
BODIES = {
    "straight": """
    for i in range(x.shape[0]):
        y[i] += qd.sin(x[i]) * x[i] / z[i]
""",
    "loop_carried": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            a = qd.sin(a) * z[j]
        y[i] += a * a
""",
    "ragged_nest_with_ifs": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(c[i]):
            b = a * 1.5
            for l in range(j):
                b = qd.cos(b) + a
                if b > 0.3:
                    a = a * b * 0.5
                else:
                    a += qd.sin(b) * 0.2
            a = a + b * z[j]
        y[i] += a * a
""",
    "values_of_ifs": """
    for i in range(x.shape[0]):
        a = x[i]
        b = 0.0
        if a > 0.6:
            a = qd.exp(a)
            if z[i] > 0.5:
                b = a * a
                a = b * a
            else:
                b = qd.sqrt(a)
        else:
            b = a
        y[i] = a * b
        if c[i] > 1:
            y[i] += qd.max(a, b) * b
""",
    "vector_with_an_index_of_run_time": """
    for i in range(x.shape[0]):
        v = qd.Vector([x[i], z[i], 1.0])
        for j in range(n):
            v[j % 3] += v[(j + 1) % 3] * x[j % 5] * 0.1
            v = v * qd.sqrt(v.norm() + 0.2)
        y[i] += v.dot(v)
""",
    "array_with_an_index_of_run_time": """
    for i in range(x.shape[0]):
        v = qd.Vector([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        for j in range(n):
            v[(j * 3 + i) % 7] += v[j] * x[i]
            v[j] = qd.sin(v[(j + 2) % 7])
        s = 0.0
        for j in range(7):
            s += v[j] * z[j % 5]
        y[i] = s
""",
    "array_made_in_a_loop": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            v = qd.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
            v[j] = a * z[j]
            v[(j + c[i]) % 6] += a
            a = v[c[j]] + v[j] * v[j] * 0.5
        y[i] += a
""",
    "loops_around_independent_blocks": """
    for i in range(x.shape[0]):
        for j in range(n):
            t = 0.1
            for l in range(c[j]):
                t = t * x[i] + qd.sin(t)
            y[j] += t * z[j]
        if c[i] > 1:
            for j in range(c[i]):
                y[i] += x[j] * z[i] * x[j]
""",
    "serial_loop_around_an_independent_block": """
    qd.loop_config(serialize=True)
    for i in range(n):
        for j in range(2):
            y[j] = x[i] * x[i + j] + y[j + 1] * 0.0
        y[0] = z[i] * z[i]
""",
    "no_loop_at_the_root": """
    a = x[0]
    b = z[1]
    if a > 0.3:
        a *= b
    y[2] = a * b
    y[3] = 1.0
""",
    "serial_root_loop": """
    a = x[0]
    qd.loop_config(serialize=True)
    for i in range(n):
        a = a * x[i] + qd.sin(a)
    y[2] = a
""",
    "added_to_in_place": """
    for i in range(x.shape[0]):
        x[i] = x[i] + z[i] * z[i]
        y[i] -= z[i]
""",
    "read_after_it_was_written": """
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
        z[i] += y[i] * y[i]
""",
    "overwritten_by_later_iterations": """
    for i in range(1):
        for j in range(n):
            y[0] = x[j] * z[j]
            if j % 2 == 0:
                y[1] = x[j] * x[j]
        y[1] += y[0]
""",
    "two_loops_and_a_shared_number": """
    m = n * 2 - 3
    for i in range(x.shape[0]):
        y[i] += x[i] * x[i]
    for i in range(x.shape[0]):
        for j in range(m):
            z[i] += y[i] * x[j % 5]
""",
    "sums_that_cross_loops": """
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    for i in range(x.shape[0]):
        y[i] += x[i] / s
    s = qd.sqrt(s) + x[0]
    for i in range(x.shape[0]):
        z[i] += s * y[i]
    for i in range(x.shape[0]):
        s += qd.sin(x[i])
    if n > 2:
        z[0] += s * s
""",
    "values_that_cross_loops": """
    a = x[0] * 2.0
    b = a * z[1]
    for i in range(x.shape[0]):
        y[i] += x[i] * qd.sin(b)
    t = 0.1
    qd.loop_config(serialize=True)
    for j in range(n):
        t = t * b + x[j]
    for i in range(qd.min(c[1] + n, 5)):
        y[i] += x[i] * qd.sin(a) * t
""",
    "integers_that_cross_loops": """
    lo = 0
    m = 0
    qd.loop_config(serialize=True)
    for j in range(n):
        m += c[j]
    for i in range(x.shape[0]):
        y[i] += x[i] * x[i] * m
        lo += c[i]
    for i in range(lo // 4):
        y[i] += x[i] * lo
        u = x[i]
        for j in range(n):
            u = qd.sin(u) * x[j]
        z[i] += u
    y[2] = z[1] * m
""",
    "a_cell_without_a_derivative_in_a_branch": """
    m = 0
    for i in range(x.shape[0]):
        m += c[i]
    for i in range(x.shape[0]):
        if c[i] > 1:
            y[i] += qd.sin(x[i] * m) * m
""",
    "old_values_of_atomics_on_locals": """
    for i in range(x.shape[0]):
        a = x[i]
        b = 0.2
        for j in range(n):
            old = qd.atomic_add(a, b * z[j])
            b = old * old + qd.atomic_max(b, 0.4) * a
        y[i] += qd.atomic_sub(a, b) * b
""",
    "a_local_without_a_value_yet": """
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(n):
            t = 0.0
            if j != c[i]:
                t = x[j] * s
            s += t * t + x[i]
        y[i] += s
""",
    "integers_changed_in_loops": """
    for i in range(x.shape[0]):
        m = c[i]
        a = x[i]
        for j in range(n):
            a = a * x[m] + z[(m + j) % 5]
            if a > 0.8:
                m = (m + 1) % 5
            if m == 2:
                continue
            a = a * 0.7
        y[m] += a
""",
    "an_index_found_by_a_while": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            m = 0
            while m < 4 and c[m] != j:
                m += 1
            a = qd.sin(a) * z[m]
        y[i] += a
""",
    "indices_and_branches_from_floats": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(n):
            a = a * 0.9 + 0.05 * x[qd.cast(a * 3.0, qd.i32) % 5] * a
            if a * z[j] * 1.1 > 0.4:
                a = a * 0.6 + 0.1
        y[i] += a
""",
    "bounds_that_are_empty": """
    for i in range(x.shape[0]):
        a = x[i]
        for j in range(3, c[i]):
            a = a * a
        for j in range(0):
            a = a * a
        for j, l in qd.ndrange(c[i], (1, 3)):
            a = a * z[l] + x[j]
        y[i] += a * a
""",
    "continue_of_the_root_loop": """
    for i in range(x.shape[0]):
        if c[i] < 2:
            continue
        a = x[i]
        for j in range(c[i]):
            if j == 1:
                continue
            a *= qd.cos(a)
        y[i] += a
""",
    "effects_that_the_gradient_has_not": """
    for i in range(x.shape[0]):
        c[i] += 0
        assert x[i] > 0.0
        y[i] += x[i] * x[i] + 0.0 * qd.cast(c[i], qd.f64)
""",
}


pytestmark = pytest.mark.usefixtures("interp")


def problem(text, tmp_path, seed=0, n=4):
    path = tmp_path / "case.py"
    path.write_text(HEAD + text)
    names = {"__name__": "case"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    random = np.random.default_rng(seed)
    arrays = [random.uniform(0.2, 1.0, 5), np.zeros(5), random.uniform(0.2, 1.0, 5)]
    made = []
    for array in [*arrays, random.permutation(5).astype(np.int32)]:
        made.append(qd.ndarray(qd.i32 if array.dtype.kind == "i" else qd.f64, array.shape))
        made[-1].from_numpy(array)
    return Problem.of_kernel(names["k"], *made, n, default_fp="f64")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BODIES)
def test_agrees_with_differences(name, tmp_path):
    found = check(problem(SIGNATURE + BODIES[name], tmp_path), ("reverse",), pieces=True)
    assert found.compared > found.kinks


@pytest.mark.parametrize("name", ["ragged_nest_with_ifs", "sums_that_cross_loops"])
@pytest.mark.parametrize("options", [{"check_out_of_bound": True}, {"debug": True}])
def test_with_checks(name, options, tmp_path):
    check(problem(SIGNATURE + BODIES[name], tmp_path), ("reverse",), **options)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    "name", ["loop_carried", "values_that_cross_loops", "integers_changed_in_loops"]
)
def test_loops_of_no_and_of_one_iteration(name, n, tmp_path):
    check(problem(SIGNATURE + BODIES[name], tmp_path, n=n), ("reverse",))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
def test_random_kernels(seed, tmp_path):
    made = problem(source(seed), tmp_path, seed, n=seed % 5)
    check(made, ("reverse",), seed=seed, pieces=seed % 2 == 0)
