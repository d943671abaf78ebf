"""``qd.Vector`` and ``qd.Matrix``: values of vectors and matrices in Python scope.

A value holds a NumPy array of one axis (a vector) or two (a matrix). Operators work element by
element and broadcast scalars; shapes must otherwise agree, as in kernels. Results of operators are
new values: of the type `Vector` with one axis, of the type `Matrix` with two.

A value may also be a *live* window on the memory of a field or an array (see `live`): then writing
an element writes there, and reading one returns a Python number.

In a kernel the same classes and constructors make values of run time: the frontend knows them by
their entries in the table of intrinsics.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np

from ...errors import QuadrantsIndexError, QuadrantsTypeError
from ...frontend.registry import INTRINSICS
from ...types import MAKERS, MatrixType, WriteCounter
from ..host import as_type
from . import matrix_makers as makers
from .linear import cofactor_inverse, determinant
from .number_types import numpy_type
from .operators import Operators, operand
from .swizzle import positions

__all__ = ["Matrix", "Vector", "wrapped"]

Array = np.ndarray[Any, Any]


def _entries(arr: Any, dt: Any) -> Array:
    """The array that a constructor's argument stands for."""
    if isinstance(arr, Matrix):
        arr = arr._data  # pyright: ignore[reportPrivateUsage]
    if not isinstance(arr, list | tuple | np.ndarray):
        raise QuadrantsTypeError(
            "An Matrix/Vector can only be initialized with an array-like object"
        )
    rows = cast("list[Any]", arr)
    if any(isinstance(row, Matrix) for row in rows):
        raise QuadrantsTypeError(
            "cols/rows required when using list of vectors",
            hint="use qd.Matrix.rows([...]) or qd.Matrix.cols([...])",
        )
    try:
        found = np.array(rows)
    except (ValueError, TypeError) as e:
        raise QuadrantsTypeError(
            f"{rows!r} cannot be the elements of a vector or matrix: {e}"
        ) from e
    if found.dtype.kind not in "biuf":
        raise QuadrantsTypeError(f"{rows!r} are no numbers")
    if found.ndim not in (1, 2) or not found.size:
        raise QuadrantsTypeError(f"A vector or matrix cannot have the shape {found.shape}")
    return found if dt is None else as_type(found, numpy_type(dt))


def _shape(n: int, m: int | None) -> tuple[int, ...]:
    return (n,) if m is None else (n, m)


class Matrix(Operators):
    """A matrix, ``qd.Matrix([[1, 2], [3, 4]])``.

    arr: nested lists, tuples, a NumPy array or another value. dt: the data type of the elements; by
    default the one that NumPy chooses for them.

    n, m: rows and columns (m is 1 for a vector). shape, ndim: as NumPy has them.

    QuadrantsTypeError for anything that cannot be the elements of a vector or matrix.
    """

    __slots__ = ("_data", "_live", "_truth")

    _data: Array
    _live: WriteCounter | None
    _truth: str  # the reduction that bool() means, of results of == and != only

    def __init__(self, arr: Any, dt: Any = None) -> None:
        self._data = _entries(arr, dt)
        self._live = None

    # Shape and contents

    @property
    def entries(self) -> Array:
        """The array that holds the elements; writing to it changes the value."""
        if self._live is not None:
            self._live.untracked = True
        return self._data

    def plain(self) -> Array:
        """The elements to compute with: those of a live window as Python's numbers are."""
        if not self._live or self._data.dtype.itemsize == 8:
            return self._data
        return self._data.astype(np.float64 if self._data.dtype.kind == "f" else np.int64)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,) for a vector, (n, m) for a matrix."""
        return self._data.shape

    def get_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    @property
    def ndim(self) -> int:
        """1 for a vector, 2 for a matrix."""
        return len(self.shape)

    @property
    def n(self) -> int:
        """Rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """Columns; 1 for a vector."""
        return self.shape[1] if self.ndim == 2 else 1

    def to_numpy(self) -> Array:
        """A copy of the elements."""
        return self._data.copy()

    def to_list(self) -> list[Any]:
        """The elements as Python numbers, in nested lists."""
        return self.plain().tolist()

    def __copy__(self) -> Any:
        """A value of its own; of a live one, another window on the same memory."""
        if self._live is None:
            return wrapped(self._data.copy())
        made = wrapped(self._data)
        made._live = self._live
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._data.astype(dtype) if dtype is not None else self._data.copy()

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self._data.ndim == 1:
            return iter([self._number(value) for value in self._data])
        return iter([[self._number(value) for value in row] for row in self._data])

    def __repr__(self) -> str:
        return str(self.plain())

    def __bool__(self) -> bool:
        """True, as for every list that is not empty; ``a == b`` is true if all elements are equal,
        ``a != b`` if some differ. ValueError for the result of another comparison.
        """
        reduction = getattr(self, "_truth", "")
        if reduction:
            return bool(getattr(self._data, reduction)())
        if self._data.dtype.kind != "b":
            return True
        if self._data.size == 1:
            return bool(self._data.item())
        raise ValueError("The truth value of a vector or matrix is ambiguous. Use .any() or .all()")

    # Elements

    def _number(self, value: Any) -> Any:
        if not self._live:
            return value
        found = value.item()
        return int(found) if isinstance(found, bool) else found

    def _checked(self, key: Any) -> Any:
        keys: tuple[Any, ...] = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
        if len(keys) == 1 and isinstance(keys[0], tuple | list | Matrix):
            keys = tuple(cast(Any, keys[0]))
        if len(keys) != self._data.ndim:
            text = f"Expected {self._data.ndim} indices, got {len(keys)}"
            raise QuadrantsIndexError(text)
        for one, extent in zip(keys, self._data.shape, strict=True):
            if isinstance(one, slice):
                continue
            if not -extent <= operator.index(one) < extent:
                raise QuadrantsIndexError(f"index {one} is out of range for {extent} elements")
        return keys

    def __getitem__(self, key: Any) -> Any:
        found: Any = self._data[self._checked(key)]
        return wrapped(found.copy()) if np.ndim(found) else self._number(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._store(self._checked(key), value)

    def _store(self, keys: Any, value: Any) -> None:
        new: Any = value._data if isinstance(value, Matrix) else np.asarray(value)
        if new.dtype.kind not in "biuf":
            raise TypeError(f"an element of a vector or matrix cannot be set to {value!r}")
        target = self._data[keys]
        if new.ndim and new.shape != np.shape(target):
            raise QuadrantsTypeError(f"Cannot store {new.shape} elements in {np.shape(target)}")
        real = self._data.dtype.kind in "iu" and new.dtype.kind == "f"
        if self._live and real and (new.itemsize == 8 or np.any(new % 1)):
            raise TypeError(f"an integer element cannot be set to the real number {value!r}")
        self._data[keys] = as_type(new, self._data.dtype)
        if self._live is not None:
            self._live.touched = True

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and self._data.ndim == 1:
            places = positions(name, len(self._data))
            if places is not None:
                if len(places) == 1:
                    return self._number(self._data[places[0]])
                return wrapped(self.plain()[places])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Matrix.__slots__:
            object.__setattr__(self, name, value)
            return
        places = positions(name, len(self._data)) if self._data.ndim == 1 else None
        if places is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if len(places) == 1:
            self._store((places[0],), value)
            return
        values = list(value)
        if len(values) != len(places):
            raise QuadrantsTypeError(f".{name} takes {len(places)} values, got {len(values)}")
        for place, one in zip(places, values, strict=True):
            self._store((place,), one)

    def fill(self, value: Any) -> None:
        """Set every element."""
        self._store(Ellipsis, value)

    # Operators

    def _result(self, found: Any) -> Any:
        return wrapped(found)

    def __matmul__(self, other: Any) -> Any:
        """The matrix product; of two vectors, their dot product."""
        left, right = self.plain(), operand(other)
        if right is None or not np.ndim(right):
            return NotImplemented
        if left.shape[-1] != right.shape[0]:
            raise QuadrantsTypeError(
                f"dimension mismatch between {left.shape} and {right.shape} for matrix "
                "multiplication"
            )
        with np.errstate(all="ignore"):
            found = left @ right
        return wrapped(found) if np.ndim(found) else self._number(found)

    def __rmatmul__(self, other: Any) -> Any:
        left = operand(other)
        if left is None or not np.ndim(left):
            return NotImplemented
        return wrapped(np.asarray(left)).__matmul__(self)

    # Reductions and linear algebra

    def sum(self) -> Any:
        """The sum of the elements."""
        return self._number(self.plain().sum())

    def max(self) -> Any:
        """The largest element."""
        return self._number(self.plain().max())

    def min(self) -> Any:
        """The smallest element."""
        return self._number(self.plain().min())

    def any(self) -> bool:
        """True if some element is not 0."""
        return bool(self._data.any())

    def all(self) -> bool:
        """True if no element is 0."""
        return bool(self._data.all())

    def norm_sqr(self) -> Any:
        """The sum of the squares of the elements."""
        array = self.plain()
        return self._number((array * array).sum())

    def norm(self, eps: float = 0) -> Any:
        """``sqrt(norm_sqr() + eps)``."""
        return self._number(np.sqrt(self.norm_sqr() + eps))

    def norm_inv(self, eps: float = 0) -> Any:
        """``1 / norm(eps)``."""
        with np.errstate(all="ignore"):
            return self._number(1.0 / np.sqrt(self.norm_sqr() + eps))

    def normalized(self, eps: float = 0) -> Any:
        """The elements divided by ``norm() + eps``."""
        with np.errstate(all="ignore"):
            return wrapped(self.plain() / (self.norm() + eps))

    def _pair(self, other: Any, name: str, ndim: int) -> tuple[Array, Array]:
        """The two operands of ``name``, both of ``ndim`` axes."""
        left, right = self.plain(), operand(other)
        if left.ndim != ndim or np.ndim(right) != ndim:
            kind = "vectors" if ndim == 1 else "matrices"
            raise QuadrantsTypeError(f"{name}() takes two {kind}")
        return left, np.asarray(right)

    def dot(self, other: Any) -> Any:
        """The dot product of two vectors."""
        left, right = self._pair(other, "dot", 1)
        if left.shape != right.shape:
            raise QuadrantsTypeError(f"dot() of {left.shape[0]} and {right.shape[0]} elements")
        return self._number((left * right).sum())

    def frobenius_inner(self, other: Any) -> Any:
        """The sum of the products of elements of two matrices."""
        return self._number((self * other).sum())

    def cross(self, other: Any) -> Any:
        """The cross product of two vectors: a vector of three elements, a number for two."""
        left, right = self._pair(other, "cross", 1)
        if left.shape != right.shape or left.shape not in ((2,), (3,)):
            raise QuadrantsTypeError("cross() takes two vectors of 2 or two of 3 elements")
        if left.shape == (2,):
            return self._number(left[0] * right[1] - left[1] * right[0])
        a, b, c = left
        x, y, z = right
        return wrapped(np.array([b * z - c * y, c * x - a * z, a * y - b * x]))

    def outer_product(self, other: Any) -> Matrix:
        """The matrix of all products of an element of this vector and one of another."""
        left, right = self._pair(other, "outer_product", 1)
        return wrapped(left[:, None] * right[None, :])

    def transpose(self) -> Matrix:
        """Rows and columns exchanged."""
        if self._data.ndim == 1:
            raise QuadrantsTypeError(
                "`transpose()` cannot apply to a vector. If you want something like "
                "`a @ b.transpose()`, write `a.outer_product(b)` instead."
            )
        return wrapped(self.plain().T.copy())

    def _square(self, name: str) -> Array:
        array = self.plain()
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise QuadrantsTypeError(f"{name}() takes a square matrix, not one of {array.shape}")
        return array

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return self._number(self._square("trace").trace())

    def determinant(self) -> Any:
        """The determinant of a matrix of up to 4 rows."""
        return self._number(determinant(self._square("determinant")))

    def inverse(self) -> Matrix:
        """The inverse of a matrix of up to 4 rows; infinities and NaN if it has none."""
        return wrapped(cofactor_inverse(self._square("inverse")))

    def cast(self, dtype: Any) -> Any:
        """The elements converted to ``dtype``."""
        with np.errstate(all="ignore"):
            if dtype is bool or numpy_type(dtype) is np.bool_:
                return wrapped(self._data != 0)
            return wrapped(self._data.astype(numpy_type(dtype)))

    # Constructors

    @staticmethod
    def zero(dt: Any, n: int, m: int | None = None) -> Any:
        """A vector of n zeros, or a matrix of n x m, of data type ``dt``."""
        return wrapped(np.zeros(_shape(n, m), numpy_type(dt)))

    @staticmethod
    def one(dt: Any, n: int, m: int | None = None) -> Any:
        """A vector of n ones, or a matrix of n x m, of data type ``dt``."""
        return wrapped(np.ones(_shape(n, m), numpy_type(dt)))

    @staticmethod
    def identity(dt: Any, n: int) -> Any:
        """The identity matrix of n rows."""
        return wrapped(np.eye(n, dtype=numpy_type(dt)))

    @staticmethod
    def unit(n: int, i: int, dt: Any = None) -> Any:
        """The vector of n elements where the one at ``i`` is 1 and the others are 0."""
        if not 0 <= i < n:
            raise ValueError(f"A unit vector of {n} elements has no element {i}")
        array = np.zeros(n, numpy_type(int if dt is None else dt))
        array[i] = 1
        return wrapped(array)

    @staticmethod
    def diag(dim: int, val: Any) -> Any:
        """The matrix of ``dim`` rows with ``val`` on its diagonal and zeros elsewhere."""
        return wrapped(np.eye(dim, dtype=np.asarray(val).dtype) * val)

    @staticmethod
    def rows(rows: Any) -> Any:
        """The matrix with these vectors, or lists, as its rows."""
        return wrapped(makers.stacked(rows, "rows"))

    @staticmethod
    def cols(cols: Any) -> Any:
        """The matrix with these vectors, or lists, as its columns."""
        return wrapped(makers.stacked(cols, "cols").T.copy())

    field = staticmethod(makers.matrix_field)
    ndarray = staticmethod(makers.matrix_ndarray)
    tensor = staticmethod(makers.matrix_tensor)


class Vector(Matrix):
    """A vector, ``qd.Vector([1, 2, 3])``: a `Matrix` of one axis."""

    __slots__ = ()

    field = staticmethod(makers.vector_field)
    ndarray = staticmethod(makers.vector_ndarray)
    tensor = staticmethod(makers.vector_tensor)


def wrapped(found: Any) -> Any:
    """A NumPy array as the value that holds it; a number as it is."""
    if not isinstance(found, np.ndarray) or not found.ndim:
        return cast(Any, found)
    value = Vector.__new__(Vector) if found.ndim == 1 else Matrix.__new__(Matrix)
    # `Matrix.__setattr__` would look for swizzles first.
    _set_data(value, found)
    _set_live(value, None)
    return value


_set_data: Final = Matrix.__dict__["_data"].__set__
_set_live: Final = Matrix.__dict__["_live"].__set__


def made(t: MatrixType, *args: Any) -> Any:
    """``vec3(1, 2, 3)``, ``vec3(v.xy, 0)``, ``mat2([[1, 2], [3, 4]])``; one number fills."""
    return wrapped(makers.typed(t, args))


MAKERS[MatrixType] = made
INTRINSICS.update({
    Vector: "Vector", Matrix: "Matrix", Matrix.zero: "Matrix.zero", Matrix.one: "Matrix.one",
    Matrix.identity: "Matrix.identity", Matrix.unit: "Matrix.unit", Matrix.diag: "Matrix.diag",
    Matrix.rows: "Matrix.rows", Matrix.cols: "Matrix.cols",
})  # fmt: skip
