"""What the compiler must know of the containers that Python code holds.

Fields, arrays, tensors and data-oriented objects live in `lang`, which stands above the compiler.
They derive from, or are marked by, what is defined here, so that the frontend can read them.
"""

from __future__ import annotations

from typing import Any, Final

from .compound import StructType
from .dtypes import DataType
from .layout import Layout

__all__ = [
    "DATA_ORIENTED", "ArrayHandle", "FieldHandle", "StructFieldHandle", "TensorHandle",
    "is_data_oriented",
]  # fmt: skip

DATA_ORIENTED: Final = "_qd_data_oriented"
"""Class attribute of classes decorated with ``qd.data_oriented``."""


class FieldHandle:
    """A scalar, vector or matrix field.

    name: as the user named it, or "". dtype: of one scalar. element_shape: () for a scalar field,
    (n,) for vectors, (n, m) for matrices. grad, dual: the companion fields, None without.

    part_of: a scalar field that is one component of a vector or matrix field has that field and
    the component's element index here; others have None. Two such handles name the same memory.
    """

    __slots__ = ()

    name: str
    dtype: DataType
    shape: tuple[int, ...]
    element_shape: tuple[int, ...]
    grad: FieldHandle | None
    dual: FieldHandle | None
    part_of: tuple[FieldHandle, tuple[int, ...]] | None

    def memory_layout(self) -> Layout:
        """Where its elements lie; allocates fields that wait for it.

        (``field.layout`` is what users see: the order of the axes, or None.)

        RuntimeError if the field is not placed, QuadrantsRuntimeError after a reset.
        """
        raise NotImplementedError

    def address(self) -> int:
        """The address of its base."""
        raise NotImplementedError

    def flat(self, buffer: Any = None) -> Any:
        """Its scalars as a 1-D NumPy array that starts at the base and ends at the last one.

        A view of the field's own memory, or of ``buffer``, a copy of the block it lies in.
        """
        raise NotImplementedError


class StructFieldHandle:
    """A field of structs: a field for each member, which share their shape and axes."""

    __slots__ = ()

    name: str
    shape: tuple[int, ...]
    struct_type: StructType
    members: dict[str, FieldHandle | StructFieldHandle]


class ArrayHandle:
    """An ndarray."""

    __slots__ = ()


class TensorHandle:
    """A wrapper around a field or an ndarray."""

    __slots__ = ()

    def _unwrap(self) -> FieldHandle | ArrayHandle:
        raise NotImplementedError


def is_data_oriented(value: Any) -> bool:
    """Whether ``value`` is an object of a class decorated with ``qd.data_oriented``."""
    return getattr(type(value), DATA_ORIENTED, None) is not None
