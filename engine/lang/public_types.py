"""``qd.types``: every type of the language.

Data types, annotations and the constructors of vector, matrix and struct types. The package
`types` has all that the compiler itself needs; this module adds the functions that make values in
Python scope, and exports the names of that package too.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from ..types import (
    ALL_TYPES,
    DataType,
    MatrixType,
    NDArray,
    StructType,
    Template,
    matrix_type,
    template,
)
from ..types.annotations import AnyMatrix, ndarray
from ..types.later import unsupported

__all__ = [
    "NDArray", "Template", "is_integral", "is_real", "is_signed", "is_tensor", "matrix", "ndarray",
    "struct", "template", "vector",
]  # fmt: skip

# By its path: the engine calls this module its `types`.
_ROOM: Final = importlib.import_module("..types", __package__).__dict__
_LONG: Final = {"f": "float", "i": "int", "u": "uint"}
_ALIASES: Final = {_LONG[t.name[0]] + t.name[1:]: t for t in ALL_TYPES if t.name != "void"}


def vector(n: int | None = None, dtype: Any = float, unpacked: bool = False) -> Any:
    """The type of vectors of ``n`` elements of data type ``dtype``.

    Without arguments: vectors of any length and data type, as the ``dtype`` of an array parameter,
    ``qd.types.ndarray(dtype=qd.types.vector())``. unpacked: changes nothing, since the elements of
    a vector are separate variables in every kernel.

    Called, it makes one: ``vec3(1, 2, 3)``, ``vec3(0)``, ``vec3(v.xy, 1)``. ValueError or TypeError
    for an invalid extent or data type.
    """
    if n is None and dtype is float:
        return AnyMatrix(1)
    return matrix_type(_extents("vector", n), _element(dtype))


def matrix(n: int | None = None, m: int | None = None, dtype: Any = float) -> Any:
    """The type of matrices of ``n`` rows and ``m`` columns of data type ``dtype``.

    Without arguments: matrices of any extents and data type, as the ``dtype`` of an array
    parameter.

    Called, it makes one: ``mat2(1, 2, 3, 4)`` row by row, ``mat2([[1, 2], [3, 4]])``, ``mat2(0)``.
    """
    if n is None and m is None and dtype is float:
        return AnyMatrix(2)
    return matrix_type(_extents("matrix", n, m), _element(dtype))


def _extents(name: str, *extents: Any) -> tuple[int, ...]:
    """The extents. TypeError if one is missing."""
    if None in extents:
        raise TypeError(
            f"qd.types.{name}() needs its extents, or no arguments at all as the dtype of"
            " qd.types.ndarray()"
        )
    return extents


def _element(dtype: Any) -> Any:
    if isinstance(dtype, str):
        from .host import InvalidDataType

        raise InvalidDataType(f"Invalid data type {dtype}; use one such as qd.f32 or qd.i32")
    return float if dtype is None else dtype


_METHODS: Final = "__struct_methods"


def struct(**members: Any) -> StructType:
    """The type of structs with these members, each a data type or a vector, matrix or struct type.

    ``__struct_methods`` may hold a dict of functions that become methods. QuadrantsTypeError for
    an invalid type of a member.
    """
    from .values.struct import struct_type  # programs without structs do not load it

    methods = members.pop(_METHODS, None)
    return struct_type("struct", members, methods)


def _dtype(t: Any) -> DataType:
    if not isinstance(t, DataType):
        raise TypeError(f"{t!r} is not a data type; use one such as qd.f32 or qd.i32")
    return t


def is_integral(dtype: DataType) -> bool:
    """True if values of ``dtype`` are integers (``u1`` included)."""
    return _dtype(dtype).is_int


def is_real(dtype: DataType) -> bool:
    """True if values of ``dtype`` are real numbers."""
    return _dtype(dtype).is_real


def is_signed(dtype: DataType) -> bool:
    """True if values of ``dtype`` may be below zero."""
    return _dtype(dtype).is_signed


def is_tensor(dtype: Any) -> bool:
    """True if ``dtype`` is a vector or matrix type."""
    return isinstance(dtype, MatrixType)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _ROOM:
        return _ROOM[name]
    if name in _ALIASES:
        return _ALIASES[name]
    if name == "buffer_view_type":
        return importlib.import_module("..types.buffer_view", __package__)
    if name == "argpack":
        return importlib.import_module(".compat.argpacks", __package__).argpack
    raise unsupported("qd.types", name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ALIASES, *[n for n in _ROOM if not n.startswith("_")]})
