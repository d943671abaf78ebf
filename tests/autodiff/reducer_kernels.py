"""Kernels and counters for the tests of what the max-reducer promises.

A kernel here does the same to each element of `x`: ``v = sin(v) + 0.1`` for as many rounds as its
bounds say, and the sum of all results. So its gradients are known without differences, and its
stack must hold as many entries as the largest number of rounds.
"""

import math
from typing import Any

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

__all__ = [
    "Sum",
    "array",
    "capacities",
    "dispatches",
    "evaluations",
    "expected",
    "integers",
]


def dispatches() -> int:
    return program.current().get_max_reducer_dispatch_count()


def evaluations() -> int:
    """How often any size was worked out."""
    return program.current().stacks.evaluated


def capacities(kernel: Any) -> list[int]:
    """Entries of each stack at the last gradient launch of a kernel."""
    reverse = kernel.in_mode("reverse")
    (variant,) = set(reverse.launchers.variants.values())
    plan = program.current().stacks.sizer(variant.executable).ready.plan
    return [entries for task in plan.tasks if task for entries in task.capacities]


def integers(values: Any, dtype: Any = qd.i32) -> Any:
    """A field of integers."""
    values = np.asarray(values)
    field = qd.field(dtype, shape=values.shape)
    for at in np.ndindex(values.shape):
        field[at] = int(values[at])
    return field


def array(values: Any, dtype: Any = qd.i32) -> Any:
    """An ndarray of integers."""
    values = np.asarray(values)
    made = qd.ndarray(dtype, shape=values.shape)
    for at in np.ndindex(values.shape):
        made[at] = int(values[at])
    return made


def expected(start: float, rounds: int) -> float:
    """d v / d start after so many rounds of v = sin(v) + 0.1."""
    v, slope = start, 1.0
    for _ in range(rounds):
        slope *= math.cos(v)
        v = math.sin(v) + 0.1
    return slope


class Sum:
    """A kernel of the kind above: its fields, its launches, and what its gradients must be."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.x = qd.field(qd.f64, shape=cells, needs_grad=True)
        self.y = qd.field(qd.f64, shape=(), needs_grad=True)
        for i in range(cells):
            self.x[i] = 0.2 + 0.05 * i

    def looping(self, bound: Any, dtype: Any = qd.i32) -> Any:
        """The kernel whose rounds are given by a function of an ndarray and the index."""
        x, y = self.x, self.y
        numbers = qd.types.ndarray(dtype=dtype, ndim=1)

        @qd.kernel
        def compute(a: numbers):
            for i in range(a.shape[0]):
                v = x[i % x.shape[0]]
                for _ in range(bound(a, i)):
                    v = qd.sin(v) + 0.1
                y[None] += v

        return compute

    def by_array(self, dtype: Any = qd.i32) -> Any:
        """The kernel whose rounds are the elements of an ndarray."""

        @qd.func
        def bound(a, i):
            return a[i]

        return self.looping(bound, dtype)

    def by_field(self, f: Any) -> Any:
        """The kernel whose rounds are the elements of a field."""
        x, y = self.x, self.y

        @qd.kernel
        def compute():
            for i in range(f.shape[0]):
                v = x[i]
                for _ in range(f[i]):
                    v = qd.sin(v) + 0.1
                y[None] += v

        return compute

    def slopes(self, kernel: Any, *args: Any) -> np.ndarray:
        """dy/dx, by one launch of the kernel's gradient."""
        self.x.grad.fill(0.0)
        self.y.grad[None] = 1.0
        kernel.grad(*args)
        return self.x.grad.to_numpy()

    def agree(self, kernel: Any, rounds: Any, *args: Any) -> None:
        """The gradients are those of so many rounds for each element."""
        wanted = [expected(0.2 + 0.05 * i, int(n)) for i, n in enumerate(rounds)]
        np.testing.assert_allclose(self.slopes(kernel, *args), wanted, rtol=1e-9)
