"""Kernels that measure a machine: see `peaks`. Compiled only where it is measured."""

# Annotations are read when a kernel is compiled.
# pyright: reportGeneralTypeIssues=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeArgument=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportUnknownArgumentType=false, reportInvalidTypeForm=false
# pyright: reportMissingParameterType=false

from typing import Any, Final

from ..lang.atomics import atomic_add
from ..lang.func import func
from ..lang.kernel import kernel
from ..lang.loops import static
from ..types import NDArray, f32, f64, i32

__all__ = [
    "POLYNOMIAL_FLOPS", "chain", "chase", "copy", "copy_parts", "nothing", "polynomial",
    "polynomial_wide", "sum_parts", "tickets", "total", "wake",
]  # fmt: skip

F32: Any = NDArray[f32, 1]
F64: Any = NDArray[f64, 1]
I32: Any = NDArray[i32, 1]
_DEGREE: Final = 32
POLYNOMIAL_FLOPS: Final = 2 * 4 * _DEGREE + 3
"""Operations of `polynomial` for an element."""


@kernel
def nothing(x: F32):
    """A store by one thread."""
    x[0] = 1.0


@kernel
def wake(x: F32, n: i32, none: i32):
    """A loop for all threads that does nothing: its body seems long to the compiler."""
    for i in range(n):
        for k in range(none):
            x[i] += x[i] * k


@func
def four_chains(a):
    """Chains of multiplications and additions that do not need each other."""
    p, q, r, s = a, a, a, a
    for _ in static(range(_DEGREE)):
        p = p * a + 0.5
        q = q * a + 0.25
        r = r * a + 0.125
        s = s * a + 0.75
    return p + q + r + s


@kernel
def polynomial(x: F32, y: F32):
    """Four chains of multiplications and additions for each element."""
    for i in range(x.shape[0]):
        y[i] = four_chains(x[i])


@kernel
def polynomial_wide(x: F64, y: F64):
    """`polynomial` of f64."""
    for i in range(x.shape[0]):
        y[i] = four_chains(x[i])


@kernel
def chain(out: F32, n: i32):
    """Multiplications and additions that each need the one before."""
    s = out[0]
    k = 0
    while k < n:
        s = s * s + 0.1
        k += 1
    out[0] = s


@kernel
def chase(following: I32, out: I32, n: i32):
    """Loads that each need the one before."""
    p = 0
    k = 0
    while k < n:
        p = following[p]
        k += 1
    out[0] = p


@kernel
def sum_parts(a: F32, b: F32, c: F32, y: F32, parts: i32, each: i32, times: i32):
    """Reads of three arrays and writes of another one, each thread in a part of its own."""
    for part in range(parts):
        for turn in range(times):
            for j in range(each):
                k = part * each + j
                y[k] = a[k] + b[k] + c[k] + turn


@kernel
def copy_parts(x: F32, y: F32, parts: i32, each: i32, times: i32):
    """Reads of one array and writes of another one, each thread in a part of its own."""
    for part in range(parts):
        for turn in range(times):
            for j in range(each):
                k = part * each + j
                y[k] = x[k] + turn


@kernel
def total(a: F32, b: F32, c: F32, d: F32, y: F32):
    """Reads of four arrays and writes of another one."""
    for i in range(y.shape[0]):
        y[i] = a[i] + b[i] + c[i] + d[i]


@kernel
def copy(x: F32, y: F32):
    """Reads of one array and writes of another one."""
    for i in range(y.shape[0]):
        y[i] = x[i]


@kernel
def tickets(count: I32, out: I32):
    """Atomic operations on one cell whose results are used, so that none can be left out."""
    for i in range(out.shape[0]):
        out[i] = atomic_add(count[0], 1)
