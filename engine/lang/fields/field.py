"""Making fields: `qd.field`, and the base of `qd.Vector.field` and of the fields of types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from ...errors import QuadrantsRuntimeError, QuadrantsSyntaxError, QuadrantsTypeError
from ...runtime import program
from ...types import DataType, MatrixType, StructType
from ..host import MAX_AXES, InvalidDataType, items_of, value_type
from .axes import Layout, axes
from .builder import root
from .make import MatrixField, ScalarField
from .placed import Field
from .snode import extents, offsets
from .struct_field import StructField

__all__ = ["field", "matrix_field", "of_type"]


def field(
    dtype: Any,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    **options: Any,
) -> Any:
    """A new field of zeros.

    dtype: a data type (``int``, ``float``, ``bool`` mean the configured ones), or a vector or
        matrix type.
    shape: an integer or up to 12 of them; ``()`` is one element, read as ``x[None]``. None: the
        field waits to be placed, ``qd.root.dense(qd.i, n).place(x)``.
    order: the order of the axes in memory, outermost first: ``"ji"``. By default ``"ij..."``.
    name: its name in messages.
    offset: the first index of each axis.
    needs_grad, needs_dual: allocate gradients (`grad`), duals (`dual`).

    QuadrantsRuntimeError for an extent below 1, ValueError for an invalid data type,
    QuadrantsSyntaxError for an order or offset that does not fit the shape.
    """
    found = value_type(dtype)
    known = {
        "shape": shape, "order": order, "name": name, "offset": offset, "needs_grad": needs_grad,
        "needs_dual": needs_dual,
    }  # fmt: skip
    if isinstance(found, MatrixType):
        return matrix_field(found, **known, **options)
    if options:
        raise TypeError(f"field() got an unexpected keyword argument {next(iter(options))!r}")
    if not isinstance(found, DataType):
        raise InvalidDataType(f"Invalid data type {dtype}; use {dtype!r}.field(shape=...)")
    new = ScalarField(found, name)
    finish(new, [new], shape, order, offset, (needs_grad, needs_dual))
    return new


def matrix_field(
    t: MatrixType,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = Layout.AOS,
    ndim: int | None = None,
) -> MatrixField:
    """A field of vectors or matrices; see `field` and `Layout`."""
    found = cast(MatrixType, value_type(t))
    dtype = cast(DataType, found.dtype)
    check_layout(layout)
    if ndim is not None and ndim != found.ndim:
        raise QuadrantsTypeError(f"{t!r} has {found.ndim} axes, not {ndim}")
    new = MatrixField([ScalarField(dtype, name) for _ in range(found.size)], found.shape, name)
    for component in new.components:
        component.name = name and f"{name}{list(cast(Any, component.part_of)[1])}"
    parts: Sequence[Field] = new.components if layout is Layout.SOA else [new]
    finish(new, parts, shape, order, offset, (needs_grad, needs_dual))
    return new


def struct_field(
    t: StructType,
    shape: Any = None,
    name: str = "<Struct>",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    layout: Layout = Layout.AOS,
    order: str | None = None,
) -> StructField:
    """A field of structs; see `field` and `Layout`."""
    found = cast(StructType, value_type(t))
    check_layout(layout)
    label = "" if name == "<Struct>" else name
    members: dict[str, Any] = {}
    for key, member in found.members.items():
        inner = f"{label}.{key}" if label else key
        if isinstance(member, StructType):
            members[key] = struct_field(member, name=inner)
        else:
            members[key] = field(member, name=inner)
    new = StructField(found, members, label)
    parts: Sequence[Any] = new._get_field_members() if layout is Layout.SOA else [new]  # pyright: ignore[reportPrivateUsage]
    finish(new, parts, shape, order, offset, (needs_grad, needs_dual))
    return new


def check_real(dtype: DataType) -> None:
    """QuadrantsRuntimeError for a type that cannot have gradients."""
    if not dtype.is_real:
        raise QuadrantsRuntimeError(
            f"{dtype} is not supported for field with `needs_grad=True` or `needs_dual=True`.",
            hint="use a float type such as qd.f32",
        )


def check_layout(layout: Any) -> None:
    """Raise TypeError for a value that is not a `Layout`."""
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be qd.Layout.AOS or qd.Layout.SOA, not {layout!r}")


def finish(
    new: Any,
    parts: Sequence[Any],
    shape: Any,
    order: str | None,
    offset: Any,
    needs: tuple[bool, bool],
) -> None:
    """Place ``new`` if it has a shape, each of its ``parts`` in a node of its own."""
    kinds = [kind for kind, wanted in zip(("grad", "dual"), needs, strict=True) if wanted]
    for member in new._get_field_members():
        for kind in kinds:
            check_real(member.dtype)
            member._asked(kind)
    if shape is None:
        for what, given in (("order", order), ("offset", offset)):
            if given is not None:
                raise QuadrantsSyntaxError(f"shape cannot be None when {what} is set")
        return
    dims = extents(shape)
    if len(dims) > MAX_AXES:
        raise RuntimeError(
            f"Too many dimensions. The maximum dimensionality is {MAX_AXES}, got {len(dims)}"
        )
    sequence = _sequence(order, len(dims))
    first = None
    if offset is not None:
        count = len(items_of(offset))
        if count != len(dims):
            raise QuadrantsSyntaxError(
                f"The dimensionality of shape and offset must be the same ({len(dims)} != {count})"
            )
        first = offsets(offset, len(dims))
    if math.prod(dims) > 1 << 46:
        raise QuadrantsRuntimeError(f"there is not enough memory for a field of shape {dims}")
    nested = sequence != tuple(range(len(dims)))
    with program.current().lock:  # another thread's first use of a field finalises ``qd.root``
        for part in [*parts, *[getattr(p, kind) for kind in kinds for p in parts]]:
            node: Any = root
            if nested:
                for axis in sequence:
                    node = node.dense(axes(axis), dims[axis])
            elif dims:
                node = node.dense(axes(*sequence), dims)
            node.place(part, offset=first)
    if nested:
        new._set_layout(sequence)


def _sequence(order: str | None, ndim: int) -> tuple[int, ...]:
    """The axes in the order of memory, outermost first."""
    if order is None:
        return tuple(range(ndim))
    if len(order) != ndim:
        raise QuadrantsSyntaxError(
            f"The dimensionality of shape and order must be the same ({ndim} != {len(order)})"
        )
    if len(set(order)) != ndim:
        raise QuadrantsSyntaxError("The axes in order must be different")
    found: list[int] = []
    for ch in order:
        axis = ord(ch) - ord("i")
        if not 0 <= axis < ndim:
            raise QuadrantsSyntaxError(f"Invalid axis {ch}")
        found.append(axis)
    return tuple(found)


def of_type(t: Any, **options: Any) -> Any:
    """``t.field(...)`` of a compound type."""
    return matrix_field(t, **options) if isinstance(t, MatrixType) else struct_field(t, **options)
