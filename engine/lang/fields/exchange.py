"""Exchange between fields and arrays of NumPy and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...types import f32, f64, i32, i64, u1
from ..host import assign, mismatch, numbers_of, numpy_type
from ..interop import Exchanges

if TYPE_CHECKING:
    from .placed import PlacedField

__all__ = ["ExchangesNumpy", "zero_copy_error"]

Array = np.ndarray[Any, Any]
SHARED_TYPES = frozenset([i32, i64, f32, f64, u1])
"""Types of elements that other libraries may see without a copy."""


def zero_copy_error(reason: str) -> ValueError:
    """The error for ``copy=False`` where a copy is needed."""
    return ValueError(f"Zero-copy not available for {reason}; use copy=True or copy=None")


def shared_view(field: PlacedField) -> Array | str:
    """A view of the field's memory, indexed as the field is; or why there can be none."""
    at = field._placed()  # pyright: ignore[reportPrivateUsage]
    elements = field.grouped()
    if field.dtype not in SHARED_TYPES:
        return f"dtype={field.dtype}"
    if not at.shape:
        return "a field without axes"
    if not at.alone or field.part_of is not None:
        return "a field that shares its cells with others, or whose components lie apart"
    if elements.shape != at.shape or field.memory_layout().span != elements.size:
        return "a field whose elements do not lie densely at fixed distances"
    return elements


class ExchangesNumpy(Exchanges):
    """What fields of numbers, vectors and matrices have in common; struct fields override it."""

    def _strided_view(self) -> Array:
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        elements = field.grouped()
        if elements.shape != shape:
            raise ValueError("the elements of a nested field do not lie at fixed distances")
        field.writes.untracked = True
        return elements

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as an array of the field's shape, then that of an element.

        dtype: a data type or NumPy type to convert to. copy: True makes a copy, None only where one
        is needed, False never: a ValueError where one is needed. A view shares the memory of the
        field, and stays valid after a reset.
        """
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        wanted = numpy_type(field.dtype if dtype is None else dtype)
        out: Array | None = None
        if not copy:
            view = shared_view(field)
            if wanted != field.dtype.np:
                if copy is False:
                    raise ValueError(
                        f"copy=False is incompatible with dtype conversion ({field.dtype} ->"
                        f" {wanted})"
                    )
            elif not isinstance(view, str):
                out = view
                field.writes.untracked = True
            elif copy is False:
                raise zero_copy_error(view)
        if out is None:
            with np.errstate(all="ignore"):
                out = np.array(field.grouped(), wanted, order="C").reshape(shape)
        return out

    def from_numpy(self, arr: Any) -> None:
        """Take the elements of an array of the shape that `to_numpy` gives, converted."""
        field = cast("PlacedField", self)
        shape = field._placed().shape  # pyright: ignore[reportPrivateUsage]
        elements = field.grouped()
        source = numbers_of(arr)
        if len(field.element_shape) == 1 and source.shape == (*shape, 1):
            source = source[..., 0]
        elif field.element_shape[1:] == (1,) and source.shape == shape[:-1]:
            source = source[..., np.newaxis]
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
        from .placed import Field

        field = cast("PlacedField", self)
        if not isinstance(other, Field) or not hasattr(other, "grouped"):
            raise TypeError(f"Cannot copy from a non-field object: {other!r}")
        source = cast("PlacedField", other)
        if source.shape != field.shape:
            raise ValueError(
                f"qd.field shape {field.shape} does not match the source field shape {source.shape}"
            )
        target = field.grouped()
        found = source.grouped().reshape(source._placed().shape)  # pyright: ignore[reportPrivateUsage]
        if source.element_shape != field.element_shape:
            if source.element_shape:
                raise mismatch(field.element_shape, source.element_shape)
            tail = (1,) * len(field.element_shape)
            found = np.broadcast_to(
                found.reshape(*source.shape, *tail), (*field.shape, *field.element_shape)
            )
        assign(target, found.reshape(target.shape))
        field.writes.touched = True
