"""``qd.linalg``: sparse matrices, solvers of linear systems, and solvers without a matrix.

A kernel fills a `SparseMatrixBuilder`; its `build` returns a `SparseMatrix`, which `SparseSolver`
factorises and `SparseCG` iterates with. Both run on the host, in NumPy, whatever the arch.
`MatrixFreeCG` and `MatrixFreeBICGSTAB` run on the device; a kernel of the program is the matrix.
"""

from __future__ import annotations

from ...types.annotations import SparseMatrixBuilderType as sparse_matrix_builder
from .matrix_free import LinearOperator, MatrixFreeBICGSTAB, MatrixFreeCG
from .solver import SparseCG, SparseSolver
from .sparse import SparseMatrix, SparseMatrixBuilder

__all__ = [
    "LinearOperator", "MatrixFreeBICGSTAB", "MatrixFreeCG", "SparseCG", "SparseMatrix",
    "SparseMatrixBuilder", "SparseSolver", "sparse_matrix_builder",
]  # fmt: skip
