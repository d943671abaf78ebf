# mypy: ignore-errors
# pyright: basic, reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Vectors, matrices and structs, and the vector types of `qd.math`."""

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any, Protocol, SupportsFloat, TypeVar

from ..lang.values import matrix as _matrix
from ..lang.values import struct as _struct
from ..types.compound import MatrixType
from .containers import MatrixField
from .numbers import Operators

class Matrix(Operators, _matrix.Matrix):
    __doc__: str
    @staticmethod
    def field(
        n: int,
        m: int,
        dtype: Any = ...,
        shape: Any = None,
        order: str | None = None,
        name: str = "",
        offset: Any = None,
        needs_grad: bool = False,
        needs_dual: bool = False,
        layout: Any = ...,
        ndim: int | None = None,
    ) -> MatrixField:
        """A new field of matrices with ``n`` rows and ``m`` columns; see `qd.field`."""

    @staticmethod
    def ndarray(n: int, m: int, dtype: Any, shape: Any, **options: Any) -> Any:
        """A new array of matrices with ``n`` rows and ``m`` columns; see `qd.ndarray`."""

    @staticmethod
    def tensor(n: int, m: int, dtype: Any, shape: Any, **options: Any) -> Any:
        """A new tensor of matrices with ``n`` rows and ``m`` columns; see `qd.tensor`."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __call__(self, *key: Any) -> Any: ...
    def __bool__(self) -> bool: ...
    def __hash__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __rmatmul__(self, other: Any, /) -> Any: ...

class Vector(Matrix):
    """A vector, ``qd.Vector([1, 2, 3])``; see `Matrix`."""

    def __init__(self, arr: Any, dt: Any = None, **options: Any) -> None: ...
    @staticmethod
    def field(  # type: ignore[override]
        n: int,
        dtype: Any = ...,
        shape: Any = None,
        order: str | None = None,
        name: str = "",
        offset: Any = None,
        needs_grad: bool = False,
        needs_dual: bool = False,
        layout: Any = ...,
        ndim: int | None = None,
    ) -> MatrixField:
        """A new field of vectors with ``n`` elements; see `qd.field`."""

    @staticmethod
    def ndarray(n: int, dtype: Any, shape: Any, **options: Any) -> Any:  # type: ignore[override]
        """A new array of vectors with ``n`` elements; see `qd.ndarray`."""

    @staticmethod
    def tensor(n: int, dtype: Any, shape: Any, **options: Any) -> Any:  # type: ignore[override]
        """A new tensor of vectors with ``n`` elements; see `qd.tensor`."""

class MatrixTypeClass(MatrixType, ABCMeta):
    """The class of the vector and matrix types."""

    def __call__(cls, *elements: Any) -> Any: ...

class _Elements(Protocol):
    def __getitem__(self, key: Any, /) -> SupportsFloat: ...
    def __len__(self) -> int: ...

class _Rows(Protocol):
    def __getitem__(self, key: Any, /) -> _Elements: ...
    def __len__(self) -> int: ...

class _Vector(Vector):
    def __init__(self, *elements: Any) -> None: ...

class _Matrix(Matrix):
    def __init__(self, *elements: Any) -> None: ...

class vec2(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 2 floats."""

class vec3(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 3 floats."""

class vec4(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 4 floats."""

class ivec2(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 2 integers."""

class ivec3(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 3 integers."""

class ivec4(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 4 integers."""

class uvec2(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 2 unsigned integers."""

class uvec3(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 3 unsigned integers."""

class uvec4(_Vector, _Elements, Protocol, metaclass=MatrixTypeClass):
    """A vector of 4 unsigned integers."""

class mat2(_Matrix, _Rows, Protocol, metaclass=MatrixTypeClass):
    """A matrix of 2 rows and 2 columns."""

class mat3(_Matrix, _Rows, Protocol, metaclass=MatrixTypeClass):
    """A matrix of 3 rows and 3 columns."""

class mat4(_Matrix, _Rows, Protocol, metaclass=MatrixTypeClass):
    """A matrix of 4 rows and 4 columns."""

class Struct(_struct.Struct, Any):
    __doc__: str

_C = TypeVar("_C", bound=type)

def dataclass(cls: _C) -> Any:
    """Make a struct type of a class: its annotations are the members, its functions the methods.

    Called, the type makes a value: ``Particle(mass=1.0)``; members that are not given are 0. It has
    ``field(shape=...)`` and ``ndarray(shape)``.
    """
