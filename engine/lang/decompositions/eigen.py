"""Eigenvalues of small matrices, one per thread: ``qd.sym_eig``, ``qd.eig``, ``qd.make_spd``.

Written in the language itself; kernels inline them, Python may call them. Matrices are scaled to a
largest element of 1 first, so that squares neither overflow nor vanish.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportConstantRedefinition=false

from __future__ import annotations

from ...errors import QuadrantsTypeError
from ..func import pyfunc
from ..functions import abs, cast, max, min, sqrt
from ..loops import static
from ..values.matrix import Matrix, Vector
from ..values.number_types import epsilon, real_type

__all__ = ["check_size", "eig", "largest", "make_spd", "sym_eig"]

_MAX_ROWS = 6


def check_size(what: str, n: int, m: int, least: int, most: int) -> None:
    """QuadrantsTypeError unless a matrix of n x m is square and of least to most rows."""
    if n != m or not least <= n <= most:
        sizes = f"{least}×{least}" if least == most else f"{least}×{least} to {most}×{most}"
        raise QuadrantsTypeError(f"{what} only supports {sizes} matrices, not {n}×{m}.")


@pyfunc
def largest(A):
    """The largest magnitude among the elements of A; 1 if all are 0."""
    size = abs(A).max()
    if size == 0.0:
        size = size + 1.0
    return size


@pyfunc
def turned_once(A, t):
    """Diagonal form and eigenvectors of a symmetric matrix of 2 x 2: one rotation is exact.

    Without a loop, and turned whenever its eigenvalues differ, so that it can be differentiated,
    the eigenvectors of a diagonal matrix as well.
    """
    S = 1.0 * A
    V = Matrix.identity(t, 2)
    x = A[0, 1]
    d = A[1, 1] - A[0, 0]
    square = d * d + 4.0 * x * x
    if square > 0.0:
        w = sqrt(square)
        if d < 0.0:
            w = -w
        tan = 2.0 * x / (d + w)
        c = 1.0 / sqrt(tan * tan + 1.0)
        s = tan * c
        S[0, 0] = A[0, 0] - tan * x
        S[1, 1] = A[1, 1] + tan * x
        V[0, 0] = c
        V[0, 1] = s
        V[1, 0] = -s
        V[1, 1] = c
    return S, V


@pyfunc
def turned_until_diagonal(A, t):
    """Diagonal form and eigenvectors of a symmetric matrix; only its upper triangle is read.

    Cyclic Jacobi rotations: Golub and Van Loan, Matrix Computations, 4th ed., section 8.5.
    """
    tiny = static(0.125 * epsilon(t))  # its square is far above the smallest number
    rows = static(range(A.n))
    S = 1.0 * A
    V = Matrix.identity(t, A.n)
    sweep = 0
    turned = 1
    while turned != 0 and sweep < 20:
        turned = 0
        for p in static(rows):
            for q in static(range(p + 1, A.n)):
                x = S[p, q]
                if abs(x) > tiny:
                    turned = 1
                    d = S[q, q] - S[p, p]
                    w = sqrt(d * d + 4.0 * x * x)
                    if d < 0.0:
                        w = -w
                    tan = 2.0 * x / (d + w)
                    c = 1.0 / sqrt(tan * tan + 1.0)
                    s = tan * c
                    S[p, p] = S[p, p] - tan * x
                    S[q, q] = S[q, q] + tan * x
                    S[p, q] = 0.0
                    for r in static(rows):
                        if static(r != p and r != q):
                            y = S[min(r, p), max(r, p)]
                            z = S[min(r, q), max(r, q)]
                            S[min(r, p), max(r, p)] = c * y - s * z
                            S[min(r, q), max(r, q)] = s * y + c * z
                        v = V[r, p]
                        u = V[r, q]
                        V[r, p] = c * v - s * u
                        V[r, q] = s * v + c * u
        sweep = sweep + 1
    return S, V


@pyfunc
def sym_eig(A, dt=None):
    """The eigenvalues, ascending, and eigenvectors of a symmetric matrix of up to 6 rows.

    dt: the data type to compute in; default_fp by default. Returns the vector of eigenvalues and
    the matrix whose columns are eigenvectors, of length 1 and orthogonal. Only the upper triangle
    of A is read. QuadrantsTypeError for other sizes. Up to 2 rows it can be differentiated.
    """
    static(check_size("Symmetric eigen solver", A.n, A.m, 1, _MAX_ROWS))
    t = static(real_type(dt))
    rows = static(range(A.n))
    B = cast(A, t)
    size = largest(B)
    S = B / size
    V = Matrix.identity(t, A.n)
    if static(A.n == 2):
        S, V = turned_once(S, t)
    if static(A.n > 2):
        S, V = turned_until_diagonal(S, t)
    for i in static(rows):
        for j in static(range(i + 1, A.n)):
            if S[j, j] < S[i, i]:
                low = S[j, j]
                S[j, j] = S[i, i]
                S[i, i] = low
                for r in static(rows):
                    v = V[r, j]
                    V[r, j] = V[r, i]
                    V[r, i] = v
    return size * Vector([S[i, i] for i in rows]), V


@pyfunc
def make_spd(A, dt=None):
    """The matrix without negative eigenvalues that is nearest to a symmetric one; up to 6 rows.

    Nearest in the Frobenius norm: negative eigenvalues are replaced by 0 (N. J. Higham, Computing a
    nearest symmetric positive semidefinite matrix, 1988).
    """
    static(check_size("make_spd", A.n, A.m, 1, _MAX_ROWS))
    w, Q = sym_eig(A, dt)
    B = 1.0 * Q
    for i in static(range(A.n)):
        for j in static(range(A.n)):
            B[i, j] = Q[i, j] * max(w[j], 0.0)
    return B @ Q.transpose()


@pyfunc
def direction(first, second, otherwise):
    """The unit vector along two parallel vectors, computed from the longer and more exact one.

    It has the direction of ``first``; if both are 0, it is ``otherwise``.
    """
    found = 1.0 * first
    if abs(second).max() > abs(first).max():
        found = 1.0 * second
        if first.dot(second) < 0.0:
            found = -1.0 * second
    found = found / largest(found)
    size = found.norm()
    if size > 0.0:
        found = found / size
    if size == 0.0:
        found = 1.0 * otherwise
    return found


@pyfunc
def eig(A, dt=None):
    """The eigenvalues and right eigenvectors of a matrix of 2 x 2.

    dt: the data type to compute in; default_fp by default. Returns a matrix whose rows are the
    eigenvalues, their real and imaginary parts, and a matrix of 4 x 2 whose columns are the
    eigenvectors, of length 1, each element in two rows: its real and its imaginary part. The
    eigenvalue with the larger real part comes first, or that with the positive imaginary part.

    From the roots of the characteristic polynomial, the smaller difference by the product of both
    so that nothing cancels.
    """
    static(check_size("Eigen solver", A.n, A.m, 2, 2))
    t = static(real_type(dt))
    B = cast(A, t)
    size = largest(B)
    B = B / size
    mean = 0.5 * (B[0, 0] + B[1, 1])
    half = 0.5 * (B[0, 0] - B[1, 1])
    square = half * half + B[0, 1] * B[1, 0]
    values = Matrix.zero(t, 2, 2)
    vectors = Matrix.zero(t, 4, 2)
    root = sqrt(abs(square))
    if square >= 0.0:
        # plus and minus: the eigenvalues less B[1, 1].
        plus = half + root
        minus = half - root
        if half >= 0.0 and plus > 0.0:
            minus = -(B[0, 1] * B[1, 0]) / plus
        if half < 0.0:
            plus = -(B[0, 1] * B[1, 0]) / minus
        values[0, 0] = size * (mean + root)
        values[1, 0] = size * (mean - root)
        one = direction(
            Vector([plus, B[1, 0]]), Vector([B[0, 1], -minus]), Vector([1.0, 0.0])
        )  # fmt: skip
        two = direction(
            Vector([minus, B[1, 0]]), Vector([B[0, 1], -plus]), Vector([0.0, 1.0])
        )  # fmt: skip
        vectors[0, 0] = one[0]
        vectors[2, 0] = one[1]
        vectors[0, 1] = two[0]
        vectors[2, 1] = two[1]
    else:
        length = sqrt(half * half + root * root + B[1, 0] * B[1, 0])
        values[0, 0] = size * mean
        values[0, 1] = size * root
        values[1, 0] = size * mean
        values[1, 1] = -(size * root)
        vectors[0, 0] = half / length
        vectors[1, 0] = root / length
        vectors[2, 0] = B[1, 0] / length
        vectors[0, 1] = half / length
        vectors[1, 1] = -(root / length)
        vectors[2, 1] = B[1, 0] / length
    return values, vectors
