"""Sparse matrices, and the builder that kernels add to.

A matrix is two arrays of the host: the positions of its elements as ``row * columns + column``,
ascending, and their values.
"""

# pyright: reportInvalidTypeForm=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray as Array

from ...errors import QuadrantsRuntimeError, QuadrantsTypeError
from ...types import BUILDER, ArrayHandle, DataType, f32, f64, i32
from ..atomics import atomic_add
from ..data_oriented import data_oriented
from ..fields.placed import Field
from ..func import func
from ..ndarray import ndarray

__all__ = ["SparseMatrix", "SparseMatrixBuilder", "vector_of"]


def _checked(dtype: Any) -> DataType:
    if dtype is f32 or dtype is f64:
        return dtype
    raise QuadrantsTypeError(f"sparse matrices have elements of type f32 or f64, not {dtype}")


def vector_of(b: Any) -> Array[Any]:
    """The elements of a NumPy array, ndarray or field. QuadrantsRuntimeError for others."""
    if isinstance(b, np.ndarray):
        return b
    if isinstance(b, ArrayHandle | Field):
        return b.to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    raise QuadrantsRuntimeError(
        f"The parameter type: {type(b)} is not supported in linear solvers for now."
    )


class SparseMatrix:
    """A matrix of ``n`` rows and ``m`` columns (``n`` if omitted) that stores few elements.

    dtype: f32 or f64. storage_format: accepted; elements are stored by rows. Operators: ``+``,
    ``-``, ``*`` (by a number, or element by element), ``@`` (a matrix or a vector: a NumPy array,
    field or ndarray), ``A[i, j]``.
    """

    def __init__(
        self,
        n: int | None = None,
        m: int | None = None,
        sm: SparseMatrix | None = None,
        dtype: Any = f32,
        storage_format: str = "col_major",
    ) -> None:
        if sm is not None:
            n, m, dtype = sm.n, sm.m, sm.dtype
        if n is None:
            raise QuadrantsTypeError("SparseMatrix needs its number of rows")
        self.n: int = int(n)
        self.m: int = int(m or n)
        self.dtype: DataType = _checked(dtype)
        self._keys: Array[Any] = np.zeros(0, np.int64) if sm is None else sm._keys.copy()
        self._values: Array[Any] = np.zeros(0, self._numpy) if sm is None else sm._values.copy()

    @property
    def _numpy(self) -> Any:
        return np.float32 if self.dtype is f32 else np.float64

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.n, self.m

    @property
    def nnz(self) -> int:
        """The number of elements that are stored."""
        return len(self._keys)

    def triplets(self) -> tuple[Array[Any], Array[Any], Array[Any]]:
        """The rows, columns and values of the elements that are stored, by rows."""
        return self._keys // self.m, self._keys % self.m, self._values

    def _filled(self, rows: Array[Any], columns: Array[Any], values: Array[Any]) -> SparseMatrix:
        """Take these elements in place of its own; those at one position are added."""
        if len(rows) and not (
            0 <= rows.min() <= rows.max() < self.n and 0 <= columns.min() <= columns.max() < self.m
        ):
            raise QuadrantsRuntimeError(
                f"an element is outside of the {self.n} rows and {self.m} columns of the matrix"
            )
        keys, where = np.unique(rows.astype(np.int64) * self.m + columns, return_inverse=True)
        sums = np.bincount(where.ravel(), values.astype(np.float64), len(keys))
        self._keys, self._values = keys, sums.astype(self._numpy)
        return self

    def _new(self, n: int, m: int) -> SparseMatrix:
        return SparseMatrix(n, m, dtype=self.dtype)

    def to_numpy(self) -> Array[Any]:
        """The matrix as a dense NumPy array."""
        out = np.zeros(self.shape, self._numpy)
        out.ravel()[self._keys] = self._values
        return out

    def _plus(self, other: Any, sign: float) -> SparseMatrix:
        if not isinstance(other, SparseMatrix):
            raise QuadrantsTypeError(f"a sparse matrix and {type(other).__name__} cannot be added")
        _same(self, other)
        parts = zip(self.triplets(), other.triplets(), strict=True)
        rows, columns, values = [np.concatenate(pair) for pair in parts]
        values[self.nnz :] *= sign
        return self._new(self.n, self.m)._filled(rows, columns, values)

    def __add__(self, other: Any) -> SparseMatrix:
        return self._plus(other, 1.0)

    def __sub__(self, other: Any) -> SparseMatrix:
        return self._plus(other, -1.0)

    def _become(self, other: SparseMatrix) -> SparseMatrix:
        self._keys, self._values = other._keys, other._values
        return self

    def __iadd__(self, other: Any) -> SparseMatrix:
        return self._become(self + other)

    def __isub__(self, other: Any) -> SparseMatrix:
        return self._become(self - other)

    def __mul__(self, other: Any) -> SparseMatrix:
        out = self._new(self.n, self.m)
        if isinstance(other, SparseMatrix):
            _same(self, other)
            keys, left, right = np.intersect1d(
                self._keys, other._keys, assume_unique=True, return_indices=True
            )
            out._keys, out._values = keys, self._values[left] * other._values[right]
            return out
        if not isinstance(other, int | float | np.number):
            return NotImplemented
        out._keys, out._values = self._keys.copy(), (self._values * other).astype(self._numpy)
        return out

    __rmul__ = __mul__

    def transpose(self) -> SparseMatrix:
        """The transposed matrix."""
        rows, columns, values = self.triplets()
        return self._new(self.m, self.n)._filled(columns, rows, values)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseMatrix):
            return self._times(other)
        vector = vector_of(other)
        if vector.shape[:1] != (self.m,):
            raise QuadrantsRuntimeError(
                f"Dimension mismatch between sparse matrix {self.shape} and vector {vector.shape}"
            )
        rows, columns, values = self.triplets()
        flat = vector.reshape(self.m, -1).astype(np.float64)
        out = np.zeros((self.n, flat.shape[1]))
        np.add.at(out, rows, values[:, None] * flat[columns])
        result = out.reshape(self.n, *vector.shape[1:]).astype(self._numpy)
        if not isinstance(other, ArrayHandle):
            return result
        made = ndarray(self.dtype, (self.n,))
        made.from_numpy(result)
        return made

    def _times(self, other: SparseMatrix) -> SparseMatrix:
        if self.m != other.n:
            raise QuadrantsRuntimeError(
                f"Dimension mismatch between sparse matrices {self.shape} and {other.shape}"
            )
        rows, inner, values = self.triplets()
        _, columns, others = other.triplets()
        starts = np.searchsorted(other._keys, np.arange(other.n + 1) * other.m)
        counts = (starts[1:] - starts[:-1])[inner]
        which = np.repeat(np.arange(len(inner)), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        at = starts[inner[which]] + np.arange(len(which)) - first
        out = self._new(self.n, other.m)
        return out._filled(rows[which], columns[at], values[which] * others[at])

    def _key(self, indices: tuple[int, int]) -> tuple[int, int, bool]:
        i, j = indices
        if not (0 <= i < self.n and 0 <= j < self.m):
            raise IndexError(f"({i}, {j}) is outside of a sparse matrix of shape {self.shape}")
        key = i * self.m + j
        at = int(np.searchsorted(self._keys, key))
        return key, at, at < self.nnz and self._keys[at] == key

    def __getitem__(self, indices: tuple[int, int]) -> float:
        _, at, found = self._key(indices)
        return float(self._values[at]) if found else 0.0

    def __setitem__(self, indices: tuple[int, int], value: float) -> None:
        key, at, found = self._key(indices)
        if found:
            self._values[at] = value
        else:
            self._keys = np.insert(self._keys, at, key)
            self._values = np.insert(self._values, at, value)

    def __str__(self) -> str:
        """All elements, row by row."""
        texts = [[f"{v:g}" for v in row] for row in self.to_numpy()]
        width = max((len(text) for row in texts for text in row), default=0)
        return "\n".join("[" + ", ".join(text.rjust(width) for text in row) + "]" for row in texts)

    __repr__ = __str__

    def build_from_ndarray(self, ndarray: Any) -> None:
        """Take the triplets (row, column, value) of an ndarray, one after the other."""
        rows, columns, values = vector_of(ndarray).reshape(-1, 3).T
        self._filled(rows.astype(np.int64), columns.astype(np.int64), values)

    def mmwrite(self, filename: str) -> None:
        """Write the matrix to a file in the Matrix Market format."""
        rows, columns, values = self.transpose().triplets()  # by columns, as the format has it
        with open(filename, "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n%\n")
            file.write(f"{self.n} {self.m} {self.nnz}\n")
            file.writelines(
                f"{i + 1} {j + 1} {v:.9g}\n" for j, i, v in zip(rows, columns, values, strict=True)
            )


def _same(a: SparseMatrix, b: SparseMatrix) -> None:
    if a.shape != b.shape:
        raise AssertionError(f"Dimension mismatch between sparse matrices {a.shape} and {b.shape}")


@data_oriented
class SparseMatrixBuilder:
    """Collects the elements of a matrix of ``num_rows`` x ``num_cols`` in kernels.

    A kernel declares it as ``A: qd.types.sparse_matrix_builder()`` and adds with ``A[i, j] += v``,
    or ``-=``. max_num_triplets: how many such additions there is room for. dtype: f32 or f64.
    """

    def __init__(
        self,
        num_rows: int | None = None,
        num_cols: int | None = None,
        max_num_triplets: int = 0,
        dtype: Any = f32,
        storage_format: str = "col_major",
    ) -> None:
        if num_rows is None:
            raise QuadrantsTypeError("SparseMatrixBuilder needs its number of rows")
        self.num_rows: int = int(num_rows)
        self.num_cols: int = int(num_cols or num_rows)
        self.dtype: DataType = _checked(dtype)
        self.capacity: int = int(max_num_triplets)
        if self.capacity < 1:
            raise QuadrantsRuntimeError(
                "SparseMatrixBuilder has no room for elements", hint="set max_num_triplets"
            )
        self.count: Final = ndarray(i32, 1)
        self.rows: Final = ndarray(i32, self.capacity)
        self.columns: Final = ndarray(i32, self.capacity)
        self.values: Final = ndarray(self.dtype, self.capacity)

    @func
    def add(self, i, j, value):
        """Keep one triplet; those beyond the capacity are counted only."""
        at = atomic_add(self.count[0], 1)
        if at < self.capacity:
            self.rows[at] = i
            self.columns[at] = j
            self.values[at] = value

    def _kept(self) -> tuple[Array[Any], Array[Any], Array[Any]]:
        count = int(self.count[0])
        if count > self.capacity:
            raise QuadrantsRuntimeError(
                f"{count} elements were added to a SparseMatrixBuilder with room for "
                f"{self.capacity}",
                hint=f"set max_num_triplets to {count} or more",
            )
        return tuple(a.to_numpy()[:count] for a in (self.rows, self.columns, self.values))  # pyright: ignore[reportReturnType]

    def print_triplets(self) -> None:
        """Print the elements in the order in which they were added."""
        rows, columns, values = self._kept()
        room = f"num_triplets={len(rows)} (max={self.capacity})"
        print(f"n={self.num_rows}, m={self.num_cols}, {room}")
        for i, j, v in zip(rows, columns, values, strict=True):
            print(f"[{i}, {j}] = {v:g}")

    def build(self, dtype: Any = None, _format: str = "CSR") -> SparseMatrix:
        """The matrix of all elements that were added, and begin again with none."""
        rows, columns, values = self._kept()
        out = SparseMatrix(self.num_rows, self.num_cols, dtype=self.dtype)
        out._filled(rows, columns, values)  # pyright: ignore[reportPrivateUsage]
        self.count.fill(0)
        return out


setattr(SparseMatrixBuilder, BUILDER, True)
