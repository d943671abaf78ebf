"""Vector, matrix and struct types.

``qd.types.vector(3, qd.f32)`` and ``qd.types.matrix(2, 2, float)`` are `MatrixType` objects,
``qd.types.struct(a=qd.i32, v=vec3)`` and classes decorated with ``qd.dataclass`` are `StructType`
objects. They annotate parameters and results, are element types of arrays and fields, and make
values when they are called: in a kernel the frontend does that, in Python scope `lang`, which
registers its constructors here (`lang` is a layer above this package).

Matrix types are interned per (shape, dtype), so they compare with ``is``. Struct types are compared
by identity, too; two struct types with equal members are `compatible`.

The dtype of an element may be ``int``, ``float`` or ``bool``: the configuration then decides what
that means, and `resolved` returns the type it means.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Union, cast

from .dtypes import DataType, dtype_of, u1

__all__ = [
    "MAKERS", "CompoundType", "ElementType", "MatrixType", "NumberType", "StructType", "compatible",
    "flat_names", "matrix_type", "resolved",
]  # fmt: skip

NumberType = DataType | type
"""A data type, or int, float or bool, whose meaning the configuration decides."""

MAKERS: Final[dict[type, Callable[..., Any]]] = {}
"""MatrixType, StructType -> what calling such a type does in Python scope; and makers of containers
of such types. Filled by `lang`, a layer above."""


def _number(dtype: Any) -> NumberType:
    return cast("NumberType", dtype if dtype in (int, float, bool) else dtype_of(dtype))


def _name_of(t: Any) -> str:
    return getattr(t, "__name__", None) or repr(t)


class CompoundType:
    """A type of values that have parts."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """A value of this type, in Python scope."""
        return MAKERS[type(self)](self, *args, **kwargs)

    def field(self, **options: Any) -> Any:
        """A field of such elements; options as `qd.field` has them."""
        return MAKERS[FieldMaker](self, **options)

    def ndarray(self, shape: Any, needs_grad: bool = False, needs_dual: bool = False) -> Any:
        """An ndarray of such elements."""
        return MAKERS[ArrayMaker](self, shape, needs_grad, needs_dual)

    def __or__(self, other: Any) -> Any:
        """``vec3 | None``, as an annotation: the argument may be None."""
        return Union[self, other]  # noqa: UP007


class _Shape(tuple[int, ...]):
    """The extents of vectors and matrices. Calling it returns a list: in Quadrants the shape of the
    element type of an array is a method."""

    __slots__ = ()

    def __call__(self) -> list[int]:
        return list(self)


class MatrixType(CompoundType):
    """A vector, shape ``(n,)``, or matrix, shape ``(n, m)``, of ``dtype``; see `matrix_type`."""

    __slots__ = ("dtype", "shape", "size")

    def __init__(self, shape: tuple[int, ...], dtype: NumberType) -> None:
        self.shape: Final = _Shape(shape)
        self.dtype: Final = dtype
        self.size: Final = math.prod(shape)

    @property
    def n(self) -> int:
        """Rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """Columns; 1 for a vector."""
        return self.shape[1] if len(self.shape) == 2 else 1

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def get_shape(self) -> tuple[int, ...]:
        """The shape: (n,) of a vector, (n, m) of a matrix."""
        return self.shape

    def element_type(self) -> NumberType:
        """The type of one element, `dtype`."""
        return self.dtype

    def to_string(self) -> str:
        """The name that messages show: ``[Tensor (3) f32]``."""
        return f"[Tensor ({', '.join(map(str, self.shape))}) {_name_of(self.dtype)}]"

    def __repr__(self) -> str:
        dtype = _name_of(self.dtype)
        if len(self.shape) == 1:
            return f"vector({self.shape[0]}, {dtype})"
        return f"matrix({self.shape[0]}, {self.shape[1]}, {dtype})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (matrix_type, (self.shape, self.dtype))


class FieldMaker:
    """Key of `MAKERS`: makes a field of a compound type."""


class ArrayMaker:
    """Key of `MAKERS`: makes an ndarray of a compound type."""


class TensorMaker:
    """Key of `MAKERS`: makes a tensor of a compound type."""


_matrix_types: dict[tuple[tuple[int, ...], NumberType], MatrixType] = {}


def matrix_type(shape: tuple[int, ...], dtype: Any) -> MatrixType:
    """The (one) type of vectors or matrices of this shape and element type.

    ValueError for an extent below 1, TypeError for what is no data type.
    """
    number = _number(dtype)
    key = (tuple(shape), number)
    found = _matrix_types.get(key)
    if found is None:
        # Extents may be numbers of NumPy, which find the same entry from now on.
        plain = [operator.index(n) if hasattr(n, "__index__") else n for n in key[0]]
        key = (tuple(plain), number)
        for extent in key[0]:
            if type(extent) is not int or extent < 1:
                raise ValueError(f"{key[0]} is no shape of a vector or matrix")
        found = _matrix_types.setdefault(key, MatrixType(*key))
    return found


ElementType = DataType | type | CompoundType
"""The type of a member of a struct, or of an element of an array."""


class StructType(CompoundType):
    """A struct: ``members`` by name, in order, and ``methods`` (functions that kernels inline)."""

    __slots__ = ("members", "methods", "name")

    def __init__(
        self,
        members: Mapping[str, Any],
        methods: Mapping[str, Any] | None = None,
        name: str = "struct",
    ) -> None:
        self.name: Final = name
        self.members: Final[dict[str, ElementType]] = {
            key: t if isinstance(t, CompoundType) else _number(t) for key, t in members.items()
        }
        self.methods: Final[dict[str, Any]] = dict(methods or {})

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={_name_of(t)}" for key, t in self.members.items())
        return f"{self.name}({inside})"


_resolved: dict[tuple[Any, DataType, DataType], Any] = {}


def resolved(t: Any, default_ip: DataType, default_fp: DataType) -> Any:
    """Return ``t`` with int, float and bool replaced by what they mean.

    A struct type that holds none of them is returned unchanged; the result for the same type is
    always the same object.
    """
    if isinstance(t, DataType):
        return t
    if t is bool:
        return u1
    if t is int:
        return default_ip
    if t is float:
        return default_fp
    key = (t, default_ip, default_fp)
    found = _resolved.get(key)
    if found is None:
        if isinstance(t, MatrixType):
            found = matrix_type(t.shape, resolved(t.dtype, default_ip, default_fp))
        elif isinstance(t, StructType):
            inner = {k: resolved(m, default_ip, default_fp) for k, m in t.members.items()}
            same = all(inner[k] is m for k, m in t.members.items())
            found = t if same else StructType(inner, t.methods, t.name)
        else:
            raise TypeError(f"{t!r} is not a type of values")
        _resolved[key] = found
    return found


def compatible(a: Any, b: Any) -> bool:
    """True if values of (resolved) type ``a`` can be used unchanged where ``b`` is needed."""
    if a is b:
        return True
    if isinstance(a, StructType) and isinstance(b, StructType):
        return list(a.members) == list(b.members) and all(
            compatible(x, y) for x, y in zip(a.members.values(), b.members.values(), strict=True)
        )
    return False


def flat_names(t: Any, name: str) -> list[tuple[str, DataType]]:
    """The scalars of a value of (resolved) type ``t`` called ``name``, in order.

    ``p`` of a struct with a vector ``v`` of two has ``p.v[0]`` and ``p.v[1]``; matrices are
    row-major: ``m[0, 1]``.
    """
    if isinstance(t, DataType):
        return [(name, t)]
    if isinstance(t, MatrixType):
        dtype = cast(DataType, t.dtype)
        if len(t.shape) == 1:
            return [(f"{name}[{i}]", dtype) for i in range(t.shape[0])]
        return [(f"{name}[{i}, {j}]", dtype) for i in range(t.shape[0]) for j in range(t.shape[1])]
    assert isinstance(t, StructType), t
    return [leaf for key, m in t.members.items() for leaf in flat_names(m, f"{name}.{key}")]
