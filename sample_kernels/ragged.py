"""Ragged loops: an array holds how often each element is worked on, and gradients follow.

The inner loop runs `a[i]` times, another number for each `i`. What its reverse needs is kept on a
stack for each thread, and the depth of that stack is the largest number in `a`: a formula, here
max over i < a.shape[0] of a[i] (and a little), which is evaluated in parallel before a launch and
not again while `a` is as it was. The length of `a` has no limit.

This file says `import quadrants as qd` and runs as it is on Quadrants and on this engine. Look at

- *Autodiff* of `compute.grad`: the formula in the names of this file, what its parts are worth,
  and how many bytes follow from that.
- *Passes* of `compute.grad`: the sum is linear and needs nothing, `v` is kept before each step.
"""

import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu, default_fp=qd.f64, ad_stack_experimental_enabled=True)

CELLS = 16
MANY = (1 << 24) + 8  # above the limit of the sequential sizer of Quadrants

x = qd.field(qd.f64, shape=CELLS, needs_grad=True)
y = qd.field(qd.f64, shape=(), needs_grad=True)


@qd.kernel
def compute(a: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    for i in range(a.shape[0]):
        v = x[i % CELLS]
        for _ in range(a[i]):
            v = v * 0.95 + 0.01 * v * v
        y[None] += v


@qd.kernel
def triangle(a: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    """Bounds at both ends, one of them an array's, the other a loop's."""
    for i in range(a.shape[0]):
        v = x[i % CELLS]
        for j in range(i % 3, a[i]):
            for _ in range(j):
                v = qd.sin(v) + 0.1
        y[None] += v


def trips(cells):
    """0 to 4 trips each, and one element with more."""
    a = qd.ndarray(qd.i32, shape=(cells,))
    numbers = (np.arange(cells, dtype=np.int64) * 7 % 5).astype(np.int32)
    numbers[cells // 2] = 9
    a.from_numpy(numbers)
    return a


def few_trips(cells):
    """None for nearly every element: a long array costs no more than to look at it."""
    a = qd.ndarray(qd.i32, shape=(cells,))
    numbers = np.zeros(cells, np.int32)
    numbers[:: max(cells // 1000, 1)] = 3
    numbers[-1] = 7
    a.from_numpy(numbers)
    return a


def begin():
    for i in range(CELLS):
        x[i] = 0.1 + 0.05 * i
    y[None] = 0.0
    y.grad[None] = 1.0
    x.grad.fill(0.0)


def gradient_of(kernel, a):
    """y, and its gradients with respect to x."""
    begin()
    kernel(a)
    kernel.grad(a)
    return y.to_numpy(), x.grad.to_numpy()


def simulate(steps):
    """Both kernels on ``steps`` elements, and the first one again after the bounds changed."""
    a = trips(steps)
    found = {}
    found["compute"], found["compute_grad"] = gradient_of(compute, a)
    found["triangle"], found["triangle_grad"] = gradient_of(triangle, a)
    a[0] = 40
    found["changed"], found["changed_grad"] = gradient_of(compute, a)
    return found


begin()  # so that the kernels have something to work on wherever this file is opened

if hasattr(compute, "workload"):  # this engine: arguments for the studio

    @triangle.workload(cells=[40, 400])
    @compute.workload(cells=[40, 1 << 12, 1 << 16])
    def numbers_of_trips(cells):
        return (trips(cells),)


def main():
    for name, found in simulate(400).items():
        print(f"{name:14} {np.array2string(np.ravel(found)[:4], precision=4)}")
    value, slopes = gradient_of(compute, few_trips(MANY))
    print(f"{MANY} elements: y = {value:.6g}, dy/dx[0] = {slopes[0]:.6g}")


if __name__ == "__main__":
    main()
