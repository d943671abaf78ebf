"""Kernels whose gradients were wrong once."""

import numpy as np
import pytest
from qd_studio import engine as qd

from .gradients import Problem, check

A1 = qd.types.ndarray(qd.f64, 1)
A2 = qd.types.ndarray(qd.f64, 2)
N1 = qd.types.ndarray(qd.i32, 1)


pytestmark = pytest.mark.usefixtures("f64_program")


X = np.array([0.3, 0.9, 0.6, 1.2])
Y = np.array([0.1, 0.2, 0.3, 0.4])
W = np.arange(12.0).reshape(3, 4) / 8
C = np.array([2, 1, 3, 0], np.int32)


@qd.kernel
def stacks_of_two_serial_tasks(x: A1, y: A1, w: A2, c: N1, n: qd.i32):
    for i in x:
        v = x[i]
        for _j in range(x.shape[0]):
            v /= 1.5 + qd.abs(x[(i + 1) % 4])
        for _k in range(n):
            y[i] = 0.3 * qd.tanh(v) ** 3
    for i, j in qd.ndrange(3, 4):
        v = x[j]
        for _k in range(c[i]):
            v = qd.sin(v)
        w[i, j] -= v


@qd.kernel
def a_result_that_its_own_rule_reads(x: A1, y: A1):
    for i in x:
        v = -qd.sin(x[i])
        for j in range(i, 4):
            v = 0.6 * v + x[j]
            y[i] += qd.tanh(v)


CASES = {
    stacks_of_two_serial_tasks: (X, Y, W, C, 3),
    a_result_that_its_own_rule_reads: (X, Y),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda k: k.name)
def test_gradients_are_differences(kernel):
    report = check(Problem.of_kernel(kernel, *CASES[kernel], default_fp="f64"), default_fp="f64")
    assert report.compared and not report.kinks
