"""Conjugate gradients for a matrix that is a kernel.

The vectors of an iteration are fields of the shape of the unknowns; sums and updates are kernels,
so that everything but the loop runs on the device.
"""

# Functions of kernels have no annotations that a type checker accepts; see `algorithms`. Their
# annotations are objects: those that name a data type of an enclosing function have no text.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportInvalidTypeForm=false

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import Any

from ...errors import QuadrantsRuntimeError, QuadrantsTypeError
from ...named_tuple import NamedTuple
from ...types import DataType, f32, f64, template
from ..fields.axes import axes
from ..fields.builder import FieldsBuilder
from ..fields.field import field
from ..kernel import kernel
from ..loops import grouped

__all__ = ["LinearOperator", "MatrixFreeBICGSTAB", "MatrixFreeCG"]


class LinearOperator:
    """A matrix as a kernel of two fields, ``matvec_kernel(x, Ax)``, which stores A x to Ax."""

    def __init__(self, matvec_kernel: Callable[[Any, Any], Any]) -> None:
        self._matvec = matvec_kernel

    def matvec(self, x: Any, Ax: Any) -> None:
        """Store A x to ``Ax``. QuadrantsRuntimeError if the shapes differ."""
        if x.shape != Ax.shape:
            raise QuadrantsRuntimeError(
                f"Dimension mismatch x.shape{x.shape} != Ax.shape{Ax.shape}."
            )
        self._matvec(x, Ax)


class _Kernels(NamedTuple):
    """The kernels for fields of one data type."""

    dot: Any
    """The sum of the products of the elements of two fields."""
    combine: Any
    """``out = x + a y``."""


@cache
def _kernels(dtype: Any) -> _Kernels:
    @kernel
    def dot(x: template(), y: template()) -> dtype:
        total = dtype(0.0)
        for index in grouped(x):
            total += x[index] * y[index]
        return total

    @kernel
    def combine(out: template(), x: template(), a: dtype, y: template()):
        for index in grouped(out):
            out[index] = x[index] + a * y[index]

    return _Kernels(dot, combine)


class _Vectors:
    """Fields of the shape and type of the unknowns, until `free`."""

    def __init__(self, name: str, b: Any, x: Any, count: int) -> None:
        if b.dtype != x.dtype:
            raise QuadrantsTypeError(f"Dtype mismatch b.dtype({b.dtype}) != x.dtype({x.dtype}).")
        self.dtype: DataType = b.dtype
        if self.dtype not in (f32, f64):
            raise QuadrantsTypeError(f"Not supported dtype: {b.dtype}")
        if b.shape != x.shape:
            text = f"Dimension mismatch b.shape{b.shape} != x.shape{x.shape}."
            raise QuadrantsRuntimeError(text)
        if not 1 <= len(b.shape) <= 3:
            text = f"{name} only support 1D, 2D, 3D inputs; your inputs is {len(b.shape)}-D."
            raise QuadrantsRuntimeError(text)
        builder = FieldsBuilder()
        self.fields = [field(self.dtype) for _ in range(count)]
        builder.dense(axes(*range(len(b.shape))), b.shape).place(*self.fields)
        self._tree = builder.finalize()

    def free(self) -> None:
        """Release their memory."""
        self._tree.destroy()


def MatrixFreeCG(
    A: Any, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by conjugate gradients, for a symmetric positive definite A.

    A: a `LinearOperator`. b, x: scalar fields of f32 or f64 with one to three axes; x holds the
    first guess, then the solution. The iteration ends when the norm of the residual is below
    ``tol``. Returns True if the square of that norm is below ``tol`` at the end, as the reference.
    quiet: print nothing.
    """
    vectors = _Vectors("MatrixFreeCG", b, x, 3)
    run = _kernels(vectors.dtype)
    p, r, Ap = vectors.fields
    A._matvec(x, Ap)
    run.combine(r, b, -1.0, Ap)
    p.copy_from(r)
    rr = run.dot(r, r)
    _say(quiet, f">>> Initial residual = {rr:e}")
    for i in range(maxiter if sqrt(rr) >= tol else 0):
        A._matvec(p, Ap)
        alpha = rr / run.dot(p, Ap)
        run.combine(x, x, alpha, p)
        run.combine(r, r, -alpha, Ap)
        before, rr = rr, run.dot(r, r)
        if sqrt(rr) < tol:
            _say(quiet, f">>> Conjugate Gradient method converged.\n>>> #iterations {i}")
            break
        run.combine(p, r, rr / before, p)
        _say(quiet, f">>> Iter = {i + 1:4}, Residual = {sqrt(rr):e}")
    vectors.free()
    if rr >= tol:
        what = f"Conjugate Gradient method failed to converge in {maxiter} iterations"
        _say(quiet, f">>> {what}: Residual = {sqrt(rr):e}")
    return rr < tol


def MatrixFreeBICGSTAB(
    A: Any, b: Any, x: Any, tol: float = 1e-6, maxiter: int = 5000, quiet: bool = True
) -> bool:
    """Solve A x = b by stabilised biconjugate gradients, for any A that is regular.

    Arguments and result are those of `MatrixFreeCG`. Also returns False if the method breaks down.
    """
    vectors = _Vectors("MatrixFreeBICGSTAB", b, x, 6)
    run = _kernels(vectors.dtype)
    p, r, shadow, s, t, Ap = vectors.fields
    A._matvec(x, Ap)
    run.combine(r, b, -1.0, Ap)
    shadow.copy_from(b)
    rr = run.dot(r, r)
    _say(quiet, f">>> Initial residual = {rr:e}")
    rho = alpha = omega = 1.0
    for i in range(maxiter if sqrt(rr) >= tol else 0):
        before, rho = rho, run.dot(r, shadow)
        if rho == 0.0:
            _say(quiet, ">>> BICGSTAB failed because r@r_tld = 0.")
            vectors.free()
            return False
        if i == 0:
            p.copy_from(r)
        else:
            run.combine(p, p, -omega, Ap)
            run.combine(p, r, (rho / before) * (alpha / omega), p)
        A._matvec(p, Ap)
        alpha = rho / run.dot(shadow, Ap)
        run.combine(s, r, -alpha, Ap)
        A._matvec(s, t)
        tt = run.dot(t, t)
        omega = run.dot(t, s) / (tt or 1e-16)
        run.combine(x, x, alpha, p)
        run.combine(x, x, omega, s)
        run.combine(r, s, -omega, t)
        rr = run.dot(r, r)
        _say(quiet, f">>> Iter = {i + 1:4}, Residual = {sqrt(rr):e}")
        if sqrt(rr) < tol:
            _say(quiet, f">>> BICGSTAB method converged at #iterations {i}")
            break
    vectors.free()
    if rr >= tol:
        what = f"BICGSTAB failed to converge in {maxiter} iterations"
        _say(quiet, f">>> {what}: Residual = {sqrt(rr):e}")
    return rr < tol


def _say(quiet: bool, text: str) -> None:
    if not quiet:
        print(text)
