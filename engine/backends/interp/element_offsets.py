"""Offsets of elements of arrays and fields, as Python expressions that also work on arrays."""

from __future__ import annotations

from typing import Any

from ...ir import Op, Param, base_of, operand_type
from ...ir import codes as C
from ...types import ElementLayout, PointerType, Type

__all__ = ["Limit", "address_number", "element", "wanted"]

Limit = tuple[str, str, str]
"""An index, the least it may be, and the least it may not be any more."""


def wanted(op: Op, index: int) -> Type | None:
    """The type that typed IR asks of an operand; None if any will do.

    An index that is clamped keeps its type: converted first, one of a wider type would wrap.
    """
    if op.code == C.EXTERNAL_PTR and op.attr == "clamp":
        return None
    return operand_type(op.code, index, tuple([x.type for x in op.args]), op.type)


def element(indices: list[str], extents: list[str], param: Param) -> tuple[str, list[Limit]]:
    """The offset of an element of ``param`` in its memory, and within what its indices must be."""
    if param.layout is not None:
        return _in_field(indices, param.layout)
    return _in_array(indices, extents, param)


def _in_array(indices: list[str], extents: list[str], param: Param) -> tuple[str, list[Limit]]:
    extents = [*extents, *map(str, param.element_shape)]
    limits = [(i, "0", e) for i, e in zip(indices, extents, strict=True)]
    first, *others = [*(param.axes or range(param.ndim)), *range(param.ndim, len(indices))]
    offset = indices[first]
    for axis in others:
        offset = f"({offset} * {extents[axis]} + {indices[axis]})"
    return offset, limits


def _in_field(indices: list[str], layout: ElementLayout) -> tuple[str, list[Limit]]:
    origin = layout.origin
    limits = [
        (i, str(first), str(first + n))
        for i, first, n in zip(indices, origin, layout.shape, strict=True)
    ]
    terms: list[str] = []
    for axis, div, mod, stride in layout.terms:
        text = f"({indices[axis]} - {origin[axis]})" if origin[axis] else indices[axis]
        text += f" // {div}" if div != 1 else ""
        text += f" % {mod}" if mod else ""
        terms.append(f"{text} * {stride}" if stride != 1 else text)
    return f"({' + '.join(terms) or '0'})", limits


def address_number(e: Any, op: Op) -> None:
    """Emit the number of an address: bytes after the first of its memory, which has its own."""
    pointer = base = op.args[0]
    base = base_of(base)
    # An array of a caller comes without its number: its elements count from one place.
    number = base.attr[0] if base.code == C.ARG_ADDR else base.id
    size = pointer.type.elem.size if isinstance(pointer.type, PointerType) else 1
    e.value(op, f"{1 + number << 40} + {e.values[pointer]} * {size}")
