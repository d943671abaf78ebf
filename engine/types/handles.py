"""The interface through which the compiler reads the containers that Python code holds.

Fields, arrays, tensors and data-oriented objects live in `lang`, a layer above the compiler. They
derive from the classes here, or are marked by names from here, so that the frontend can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .compound import StructType
from .dtypes import DataType
from .layout import ElementLayout
from .write_counter import WriteCounter

__all__ = [
    "BUILDER", "DATA_ORIENTED", "ArrayHandle", "BufferViewHandle", "FieldHandle", "NodeHandle",
    "StructFieldHandle", "TensorHandle", "array_class", "is_data_oriented", "set_array_class",
]  # fmt: skip

BUILDER: Final = "_qd_matrix_builder"
"""Attribute of classes whose elements kernels can only add to, through the method ``add``."""
DATA_ORIENTED: Final = "_qd_data_oriented"
"""Class attribute of classes decorated with ``qd.data_oriented``."""


class FieldHandle:
    """A scalar, vector or matrix field.

    name: as the user named it, or "". dtype: of one scalar. element_shape: () for a scalar field,
    (n,) for vectors, (n, m) for matrices. grad, dual: the companion fields; None where there can
    be none, and a field that is not placed (its use is an error) where there could be one.

    part_of: a scalar field that is one component of a vector or matrix field has that field and
    the component's element index here; others have None. Two such handles name the same memory.
    writes: counts what is written to that memory.
    """

    __slots__ = ()

    name: str
    dtype: DataType
    element_shape: tuple[int, ...]
    part_of: tuple[FieldHandle, tuple[int, ...]] | None
    writes: WriteCounter

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of its axes; QuadrantsRuntimeError if it is not placed."""
        raise NotImplementedError

    @property
    def grad(self) -> FieldHandle | None:
        """The field of its gradients."""
        raise NotImplementedError

    @property
    def dual(self) -> FieldHandle | None:
        """The field of its duals."""
        raise NotImplementedError

    def is_freed(self) -> bool:
        """True if its memory was released, for good."""
        raise NotImplementedError

    def memory_layout(self) -> ElementLayout:
        """The layout of its elements in memory; allocates fields that wait for it.

        (``field.layout`` is what users see: the order of the axes, or None.)

        QuadrantsRuntimeError if the field is not placed, and after a reset.
        """
        raise NotImplementedError

    def address(self) -> int:
        """The address of its base."""
        raise NotImplementedError

    def flat(self, buffer: Any = None) -> Any:
        """Its scalars as a 1-D NumPy array that starts at the base and ends at the last one.

        A view of the field's own memory, or of ``buffer``, a copy of the block that contains the
        field. For memory on a device, a `backends.array_memory.DeviceArray`.
        """
        raise NotImplementedError


class NodeHandle:
    """A node that fields are placed in; a loop over it visits the indices of its cells.

    shape: the extents of its axes. field: the scalar field that is placed in it, if one is.
    """

    __slots__ = ()

    field: Any

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError


class StructFieldHandle:
    """A field of structs: a field for each member, which share their shape and axes.

    members: by name, in the order of the type. struct_type: the resolved type of an element.
    """

    __slots__ = ()

    name: str
    struct_type: StructType

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def members(self) -> Mapping[str, FieldHandle | StructFieldHandle]:
        raise NotImplementedError


class ArrayHandle:
    """An ndarray."""

    __slots__ = ()


_array_class: type = ArrayHandle


def array_class() -> type:
    """The class of all ndarrays; while its module is not imported, one without objects."""
    return _array_class


def set_array_class(cls: type) -> None:
    """Note the class of all ndarrays."""
    global _array_class
    _array_class = cls


class BufferViewHandle:
    """A range of an array: `buffer_view.BufferView`, which is imported only where one is used."""


class TensorHandle:
    """A wrapper around a field or an ndarray."""

    __slots__ = ()

    def _unwrap(self) -> FieldHandle | ArrayHandle:
        raise NotImplementedError


def is_data_oriented(value: object) -> bool:
    """True if ``value`` is an object of a class decorated with ``qd.data_oriented``."""
    return getattr(type(value), DATA_ORIENTED, None) is not None
