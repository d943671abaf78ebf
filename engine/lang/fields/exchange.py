"""Exchange between fields and arrays of NumPy and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...backends.base import Device
from ..elements import Elements, Window, assign, host_of
from ..host import mismatch, numbers_of, numpy_type
from ..interop import SHARED_TYPES, Exchanges, conversion_error, far_numpy, zero_copy_error

if TYPE_CHECKING:
    from .placed import PlacedField

__all__ = ["ExchangesNumpy"]

Array = np.ndarray[Any, Any]


def unshared(field: PlacedField) -> str:
    """Return why other libraries cannot share the memory without a copy; empty if they can."""
    at = field._placed()  # pyright: ignore[reportPrivateUsage]
    elements = field.grouped()
    if field.dtype not in SHARED_TYPES:
        return f"dtype={field.dtype}"
    if not at.shape:
        return "a field without axes"
    if not at.alone or field.part_of is not None:
        return "a field that shares its cells with others, or whose components are stored apart"
    if elements.shape != at.shape or field.memory_layout().span != elements.size:
        return "a field whose elements are not dense at fixed distances"
    return ""


class ExchangesNumpy(Exchanges):
    """The common part of fields of numbers, vectors and matrices; struct fields override it."""

    def _device(self) -> Device:
        return cast("PlacedField", self).program.device

    def _by_index(self) -> Elements:
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        elements = field.grouped()
        if elements.shape != shape:
            raise ValueError("the elements of a nested field are not at fixed distances")
        return elements

    def _strided_view(self) -> Elements:
        elements = self._by_index()
        cast("PlacedField", self).writes.untracked = True
        return elements

    def _written(self) -> None:
        cast("PlacedField", self).writes.touched = True

    def _shareable(self) -> str:
        return unshared(cast("PlacedField", self))

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as an array of the field's shape, then that of an element.

        dtype: a data type or NumPy type to convert to. copy: True makes a copy, None only where one
        is needed, False never: a ValueError where one is needed. A view shares the memory of the
        field, and stays valid after a reset. Memory of a device is always copied.
        """
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        wanted = numpy_type(field.dtype if dtype is None else dtype)
        elements = field.grouped()
        if isinstance(elements, Window):
            return far_numpy(elements, field.dtype, wanted, copy).reshape(shape)
        if not copy:
            if wanted != field.dtype.np:
                if copy is False:
                    raise conversion_error(field.dtype, wanted)
            else:
                reason = unshared(field)
                if not reason:
                    field.writes.untracked = True
                    return elements
                if copy is False:
                    raise zero_copy_error(reason)
        with np.errstate(all="ignore"):
            return np.array(elements, wanted, order="C").reshape(shape)

    def from_numpy(self, arr: Any) -> None:
        """Copy and convert the elements of an array that has the shape of `to_numpy()`."""
        self._assign(numbers_of(arr))

    def _take(self, source: Window) -> None:
        self._assign(source)

    def _assign(self, source: Elements) -> None:
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        elements = field.grouped()
        vectors, matrices = len(field.element_shape) == 1, field.element_shape[1:] == (1,)
        if (vectors and source.shape == (*shape, 1)) or (matrices and source.shape == shape[:-1]):
            source = source.reshape(shape)
        if source.shape != shape:
            raise ValueError(
                f"qd.field shape {shape} does not match the numpy array shape {source.shape}"
            )
        assign(elements, source.reshape(elements.shape))
        field.writes.touched = True

    def copy_from(self, other: Any) -> None:
        """Take the elements of a field of the same shape, converted.

        ValueError if the shapes differ, TypeError if ``other`` is no such field. Numbers can be
        copied to vectors: to each component.
        """
        field = cast("PlacedField", self)
        if not isinstance(other, ExchangesNumpy) or not hasattr(other, "grouped"):
            raise TypeError(f"Cannot copy from a non-field object: {other!r}")
        source = cast("PlacedField", other)
        if source.shape != field.shape:
            raise ValueError(
                f"qd.field shape {field.shape} does not match the source field shape {source.shape}"
            )
        target, given = field.grouped(), source.grouped()
        if source.element_shape == field.element_shape and given.shape == target.shape:
            assign(target, given)
            field.writes.touched = True
            return
        found = host_of(given).reshape(source._placed().shape)  # pyright: ignore[reportPrivateUsage]
        if source.element_shape != field.element_shape:
            if source.element_shape:
                raise mismatch(field.element_shape, source.element_shape)
            tail = (1,) * len(field.element_shape)
            found = np.broadcast_to(
                found.reshape(*source.shape, *tail), (*field.shape, *field.element_shape)
            )
        assign(target, found.reshape(target.shape))
        field.writes.touched = True
