"""Factors of small matrices, one per thread: ``qd.polar_decompose``, ``qd.svd``, ``qd.solve``.

Written in the language itself; kernels inline them, Python may call them. Matrices are scaled to a
largest element of 1 first, so that squares neither overflow nor vanish.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportConstantRedefinition=false

from __future__ import annotations

import math

from ...errors import QuadrantsTypeError
from ...types import template
from ..func import pyfunc
from ..functions import abs, cast, max, min, sqrt
from ..loops import static
from ..values.matrix import Matrix, Vector
from ..values.number_types import epsilon, real_type
from .eigen import check_size, largest

__all__ = ["polar_decompose", "solve", "svd"]


@pyfunc
def polar_decompose(A, dt=None):
    """The factors U, orthogonal, and P, symmetric, of A = U P, for 2 x 2 and 3 x 3.

    dt: the data type to compute in; default_fp by default. For 2 x 2, P has no negative eigenvalue
    and U is a reflection if the determinant of A is negative; for 3 x 3, U is always a rotation,
    and P has a negative eigenvalue then. QuadrantsTypeError for other sizes.
    """
    static(check_size("Polar decomposition", A.n, A.m, 2, 3))
    t = static(real_type(dt))
    U = Matrix.identity(t, A.n)
    P = Matrix.identity(t, A.n)
    B = cast(A, t)
    if static(A.n == 2):
        size = largest(B)
        U, P = polar_2(B / size)
        P = size * P
    else:
        W, S, V = svd(B, t)
        U = W @ V.transpose()
        P = V @ S @ V.transpose()
    return U, P


@pyfunc
def polar_2(B):
    """The factors of a matrix of 2 x 2 whose largest element is 1, or 0.

    The nearest rotation to B is that by the angle of (a + d, c - b); the nearest reflection has its
    first column along (a - d, b + c). The sign of the determinant decides which of the two is
    nearer; the vector of the nearer one is no shorter than B.
    """
    x = B[0, 0] + B[1, 1]
    y = B[1, 0] - B[0, 1]
    turn = 1.0 + 0.0 * x
    if B[0, 0] * B[1, 1] - B[0, 1] * B[1, 0] < 0.0:
        x = B[0, 0] - B[1, 1]
        y = B[0, 1] + B[1, 0]
        turn = -turn
    size = sqrt(x * x + y * y)
    if size > 0.0:
        x = x / size
        y = y / size
    else:
        x = 1.0
    U = Matrix([[x, -turn * y], [y, turn * x]])
    P = U.transpose() @ B
    side = 0.5 * (P[0, 1] + P[1, 0])
    return U, Matrix([[P[0, 0], side], [side, P[1, 1]]])


@pyfunc
def svd(A, dt=None):
    """The factors U, S and V of A = U S V^T, U and V orthogonal, for 2 x 2 and 3 x 3.

    dt: the data type to compute in; default_fp by default. S is diagonal, its magnitudes descend.
    V is a rotation. For 2 x 2, S has no negative element and U is a reflection if the determinant
    of A is negative; for 3 x 3, U is a rotation and the last element of S is negative then.
    QuadrantsTypeError for other sizes.
    """
    static(check_size("SVD", A.n, A.m, 2, 3))
    t = static(real_type(dt))
    U = Matrix.identity(t, A.n)
    S = Matrix.identity(t, A.n)
    V = Matrix.identity(t, A.n)
    B = cast(A, t)
    size = largest(B)
    if static(A.n == 2):
        U, S, V = svd_2(B / size, epsilon(t))
    else:
        U, S, V = svd_3(B / size, epsilon(t))
    return U, size * S, V


@pyfunc
def svd_2(B, eps: template()):  # pyright: ignore[reportInvalidTypeForm]
    """`svd` of a scaled matrix of 2 x 2: the eigenvectors of its symmetric polar factor."""
    R, P = polar_2(B)
    tan = 0.0 * P[0, 0]
    x = P[0, 1]
    if abs(x) > static(0.125 * eps):
        d = P[1, 1] - P[0, 0]
        w = sqrt(d * d + 4.0 * x * x)
        if d < 0.0:
            w = -w
        tan = 2.0 * x / (d + w)
    c = 1.0 / sqrt(tan * tan + 1.0)
    s = tan * c
    first = max(P[0, 0] - tan * x, 0.0)
    second = max(P[1, 1] + tan * x, 0.0)
    if first < second:
        other = first
        first = second
        second = other
        other = c  # a further quarter turn
        c = -s
        s = other
    V = Matrix([[c, s], [-s, c]])
    zero = 0.0 * c
    return R @ V, Matrix([[first, zero], [zero, second]]), V


@pyfunc
def svd_3(B, eps: template()):  # pyright: ignore[reportInvalidTypeForm]
    """`svd` of a scaled matrix of 3 x 3.

    One-sided Jacobi (M. R. Hestenes, Inversion of matrices by biorthogonalization, 1958): rotations
    of pairs of columns until all are orthogonal. They are then U S, and their product is V.

    The angles, which decide what signs V gets, are the approximate ones of A. McAdams and others,
    Computing the singular value decomposition of 3x3 matrices with minimal branching and elementary
    floating point operations, 2011; they become exact as the columns become orthogonal.
    """
    C = 1.0 * B
    V = 0.0 * B
    for i in static(range(3)):
        V[i, i] = 1.0
    sweep = 0
    turned = 1
    while turned != 0 and sweep < 20:
        turned = 0
        for p, q in static(((0, 1), (1, 2), (2, 0))):
            a = C[0, p] * C[0, p] + C[1, p] * C[1, p] + C[2, p] * C[2, p]
            b = C[0, q] * C[0, q] + C[1, q] * C[1, q] + C[2, q] * C[2, q]
            x = C[0, p] * C[0, q] + C[1, p] * C[1, q] + C[2, p] * C[2, q]
            if x * x > static(eps * eps) * a * b:
                turned = 1
                # Cosine and sine of half the angle, of at most pi / 8, then of the angle. Literals
                # may be of less precision than the matrix: what they give is made a rotation.
                h = 2.0 * (a - b)
                g = x
                if static(3.0 + 2.0 * math.sqrt(2.0)) * g * g >= h * h:
                    h = static(math.cos(math.pi / 8))
                    g = static(math.sin(math.pi / 8))
                size = sqrt(h * h + g * g)
                h = h / size
                g = g / size
                c = h * h - g * g
                s = 2.0 * h * g
                for r in static(range(3)):
                    v = C[r, p]
                    C[r, p] = c * v + s * C[r, q]
                    C[r, q] = c * C[r, q] - s * v
                    v = V[r, p]
                    V[r, p] = c * v + s * V[r, q]
                    V[r, q] = c * V[r, q] - s * v
        sweep = sweep + 1
    for p, q in static(((0, 1), (2, 0), (1, 2))):
        a = C[0, p] * C[0, p] + C[1, p] * C[1, p] + C[2, p] * C[2, p]
        b = C[0, q] * C[0, q] + C[1, q] * C[1, q] + C[2, q] * C[2, q]
        if (a < b) == static(p < q) and a != b:
            for r in static(range(3)):  # a quarter turn
                v = C[r, p]
                C[r, p] = C[r, q]
                C[r, q] = -v
                v = V[r, p]
                V[r, p] = V[r, q]
                V[r, q] = -v
    U, S = bases_of(C, eps)
    return U, S, V


@pyfunc
def bases_of(C, eps: template()):  # pyright: ignore[reportInvalidTypeForm]
    """The factors U, a rotation, and S of C = U S, for orthogonal columns of descending length."""
    first = Vector([C[0, 0], C[1, 0], C[2, 0]])
    second = Vector([C[0, 1], C[1, 1], C[2, 1]])
    third = Vector([C[0, 2], C[1, 2], C[2, 2]])
    one = first.norm()
    u = Vector([1.0, 0.0, 0.0]) + 0.0 * first
    if one > 0.0:
        u = first / one
    # What of the second column the first does not hold; some other normal where nothing is left.
    v2 = second - u.dot(second) * u
    two = v2.norm()
    w2 = normal_to(u)
    if two > static(0.125 * eps) * one:
        w2 = v2 / two
        w2 = w2 - u.dot(w2) * u
        w2 = w2 / w2.norm()
    w3 = u.cross(w2)
    zero = 0.0 * one
    U = Matrix([[u[0], w2[0], w3[0]], [u[1], w2[1], w3[1]], [u[2], w2[2], w3[2]]])
    # Rounding must not turn the order of equal ones around.
    two = min(max(w2.dot(second), 0.0), one)
    three = max(min(w3.dot(third), two), -two)
    return U, Matrix([[one, zero, zero], [zero, two, zero], [zero, zero, three]])


@pyfunc
def normal_to(u):
    """A unit vector at a right angle to the unit vector u of three elements."""
    axis = 0.0 * u
    if abs(u[1]) <= abs(u[0]):
        axis[1] = 1.0
    else:
        axis[0] = 1.0
    side = axis - u.dot(axis) * u
    return side / side.norm()


@pyfunc
def solve(A, b, dt=None):
    """The vector x with A x = b, for A of 2 x 2 and 3 x 3; not finite if A is singular.

    dt: the data type to compute in; default_fp by default. QuadrantsTypeError for other sizes.

    Gaussian elimination with partial pivoting: Golub and Van Loan, section 3.4.
    """
    static(check_size("solve", A.n, A.m, 2, 3))
    static(check_right_side(A.n, b.n, b.m))
    t = static(real_type(dt))
    M = cast(A, t)
    x = cast(b, t)
    for k in static(range(A.n)):
        for i in static(range(k + 1, A.n)):
            if abs(M[i, k]) > abs(M[k, k]):
                for j in static(range(k, A.n)):
                    other = M[k, j]
                    M[k, j] = M[i, j]
                    M[i, j] = other
                other = x[k]
                x[k] = x[i]
                x[i] = other
        for i in static(range(k + 1, A.n)):
            factor = M[i, k] / M[k, k]
            for j in static(range(k + 1, A.n)):
                M[i, j] = M[i, j] - factor * M[k, j]
            x[i] = x[i] - factor * x[k]
    for k in static(range(A.n - 1, -1, -1)):
        for j in static(range(k + 1, A.n)):
            x[k] = x[k] - M[k, j] * x[j]
        x[k] = x[k] / M[k, k]
    return x


def check_right_side(n: int, rows: int, columns: int) -> None:
    """QuadrantsTypeError unless the right side is a vector of n elements."""
    if columns != 1 or rows != n:
        raise QuadrantsTypeError(f"solve: A has {n} rows, b {rows} x {columns} elements")
