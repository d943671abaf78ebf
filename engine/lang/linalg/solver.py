"""Solvers of A x = b for sparse matrices, on the host."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray as Array

from ...errors import QuadrantsRuntimeError
from ...types import ArrayHandle, f32
from ..ndarray import ndarray
from .sparse import SparseMatrix, vector_of

__all__ = ["SparseCG", "SparseSolver"]

_TYPES: Final = ("LLT", "LDLT", "LU")
_ORDERINGS: Final = ("AMD", "COLAMD")
DENSE_LIMIT: Final = 4096
"""Unknowns up to which a matrix is factorised as a dense one where SciPy is missing: 128 MiB."""

_Solve = Callable[[Array[Any]], Array[Any]]


class SparseSolver:
    """Solves A x = b through a factorisation of A.

    dtype: f32 or f64, that of A. solver_type: ``LLT`` and ``LDLT`` for symmetric matrices
    (they read the lower triangle), ``LU`` for all. ordering: accepted. Factors are in f64. With
    SciPy they are sparse; without it, matrices of up to 4096 unknowns are factorised as dense ones.
    """

    def __init__(self, dtype: Any = f32, solver_type: str = "LLT", ordering: str = "AMD") -> None:
        if solver_type not in _TYPES or ordering not in _ORDERINGS:
            raise QuadrantsRuntimeError(
                f"The solver type {solver_type} with {ordering} is not supported for now. Only "
                f"{list(_TYPES)} with {list(_ORDERINGS)} are supported."
            )
        self.dtype: Final = dtype
        self.solver_type: Final = solver_type
        self.matrix: SparseMatrix | None = None
        self._solve: _Solve | None = None

    def _take(self, sparse_matrix: Any) -> SparseMatrix:
        if not isinstance(sparse_matrix, SparseMatrix):
            raise QuadrantsRuntimeError(
                f"The parameter type: {type(sparse_matrix)} is not supported in linear solvers for "
                "now."
            )
        if sparse_matrix.dtype is not self.dtype:
            raise QuadrantsRuntimeError(
                f"The SparseSolver's dtype {self.dtype} is not consistent with the SparseMatrix's "
                f"dtype {sparse_matrix.dtype}."
            )
        if sparse_matrix.n != sparse_matrix.m:
            raise QuadrantsRuntimeError(f"a matrix of shape {sparse_matrix.shape} is not square")
        return sparse_matrix

    def compute(self, sparse_matrix: SparseMatrix) -> None:
        """Factorise the matrix. `info` reports whether that succeeded."""
        self.factorize(sparse_matrix)

    def analyze_pattern(self, sparse_matrix: SparseMatrix) -> None:
        """Check the matrix; `factorize` does all the work."""
        self._take(sparse_matrix)

    def factorize(self, sparse_matrix: SparseMatrix) -> None:
        """Factorise the matrix. `info` reports whether that succeeded."""
        self.matrix = self._take(sparse_matrix)
        rows, columns, values = self.matrix.triplets()
        if self.solver_type != "LU":  # the lower triangle, mirrored
            below = rows >= columns
            rows, columns, values = rows[below], columns[below], values[below]
            off = rows > columns
            rows, columns, values = (
                np.concatenate((rows, columns[off])),
                np.concatenate((columns, rows[off])),
                np.concatenate((values, values[off])),
            )
        definite = self.solver_type == "LLT"
        self._solve = _factorised(self.matrix.n, rows, columns, values, definite)

    def solve(self, b: Any) -> Any:
        """The solution for ``b``, a NumPy array or field; an ndarray for an ndarray."""
        if self.matrix is None:
            raise QuadrantsRuntimeError("Please call compute() before calling solve().")
        right = vector_of(b)
        if right.shape[:1] != (self.matrix.n,):
            raise QuadrantsRuntimeError(
                f"b has the shape {right.shape}, the matrix {self.matrix.shape}"
            )
        if self._solve is None:
            raise QuadrantsRuntimeError(
                f"the matrix has no {self.solver_type} factorisation", hint="ask info() before"
            )
        kind = np.float32 if self.dtype is f32 else np.float64
        x = self._solve(right.astype(np.float64)).astype(kind)
        if not isinstance(b, ArrayHandle):
            return x
        made = ndarray(self.dtype, x.shape)
        made.from_numpy(x)
        return made

    def info(self) -> bool:
        """True if the last factorisation succeeded."""
        return self._solve is not None


def _factorised(
    n: int, rows: Array[Any], columns: Array[Any], values: Array[Any], definite: bool
) -> _Solve | None:
    """A function that solves for a right side; None if the matrix has no such factors."""
    doubles = values.astype(np.float64)
    try:
        scipy: Any = importlib.import_module("scipy.sparse")
        linalg: Any = importlib.import_module("scipy.sparse.linalg")
    except ImportError:
        return _dense(n, rows, columns, doubles, definite)
    matrix = scipy.csc_matrix((doubles, (rows, columns)), shape=(n, n))
    options: dict[str, Any] = {}
    if definite:  # no pivots, so that their signs are those of Cholesky factors
        options = {
            "permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0,
            "options": {"SymmetricMode": True},
        }  # fmt: skip
    try:
        factors = linalg.splu(matrix, **options)
    except RuntimeError:  # singular
        return None
    if definite and not bool((factors.U.diagonal() > 0).all()):
        return None
    return factors.solve


def _dense(
    n: int, rows: Array[Any], columns: Array[Any], values: Array[Any], definite: bool
) -> _Solve | None:
    if n > DENSE_LIMIT:
        raise QuadrantsRuntimeError(
            f"a sparse factorisation of {n} unknowns needs SciPy, which is not installed",
            hint="pip install scipy, or solve it with qd.linalg.SparseCG",
        )
    matrix = np.zeros((n, n))
    np.add.at(matrix, (rows, columns), values)
    try:
        if definite:
            np.linalg.cholesky(matrix)
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None

    def solve(b: Array[Any]) -> Array[Any]:
        x = inverse @ b
        return x + inverse @ (b - matrix @ x)  # one step of refinement

    return solve


class SparseCG:
    """Solves A x = b by conjugate gradients, with the diagonal as preconditioner.

    A: a symmetric positive definite `SparseMatrix`. b, x0: NumPy arrays, fields or ndarrays; x0 is
    the first guess, zeros by default. atol: the residual's norm, relative to that of b, to reach.
    """

    def __init__(
        self, A: SparseMatrix, b: Any, x0: Any = None, max_iter: int = 50, atol: float = 1e-6
    ) -> None:
        self.matrix: Final = A
        self.b: Final = b
        self._x0: Final = x0
        self._max_iter: Final = max_iter
        self._atol: Final = atol

    def solve(self) -> tuple[Any, bool]:
        """The solution, and True if it was reached within ``max_iter`` iterations."""
        kind = np.float32 if self.matrix.dtype is f32 else np.float64
        b = vector_of(self.b).astype(np.float64)
        x = np.zeros_like(b) if self._x0 is None else vector_of(self._x0).astype(np.float64)
        rows, columns, values = self.matrix.triplets()
        on_diagonal = rows == columns
        weights = np.ones_like(b)
        weights[rows[on_diagonal]] = values[on_diagonal]
        weights[weights == 0] = 1.0

        def times(v: Array[Any]) -> Array[Any]:
            return np.bincount(rows, values * v[columns], len(b))

        r = b - times(x)
        p = z = r / weights
        rz, norm = float(r @ z), float(np.linalg.norm(b)) or 1.0
        done, error = 0, float(np.linalg.norm(r)) / norm
        while error > self._atol and done < self._max_iter:
            Ap = times(p)
            alpha = rz / float(p @ Ap)
            x, r = x + alpha * p, r - alpha * Ap
            z = r / weights
            before, rz = rz, float(r @ z)
            p = z + (rz / before) * p
            done, error = done + 1, float(np.linalg.norm(r)) / norm
        return x.astype(kind), error <= self._atol
