"""Memory of fields: blocks of bytes, and the positions of a field's elements in them.

A tree of `snode.SNode` is turned into memory once, when it is finalised. Each child of the root
becomes one `Block`; children that hold components of one vector field share a block, so that the
field has one base. Inside, a dense node is an array of cells, row-major over its axes in the order
of their numbers, and a cell has the node's children in sequence, each aligned to its element size.

So a field's element is found by *digits*: each dense node from the root to the field has one digit
for each of its axes, and adds its value times a stride. `Placement` holds them in bytes;
`layout_of` turns placements into the `types.ElementLayout` that the compiler reads, `grouped_view`
into the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...backends.array_memory import ArrayMemory
from ...errors import QuadrantsRuntimeError
from ...named_tuple import NamedTuple
from ...types import DataType, WriteCounter, row_major
from ...types.layout import ElementLayout, Term
from ..elements import Elements, placed, release

__all__ = ["Block", "Digit", "Placement", "grouped_view", "guard", "joined", "layout_of"]

Array = np.ndarray[Any, Any]
ALIGN: Final = 64
"""Bytes that the start of each block, and of each child of a root in it, is a multiple of."""

_LEAST_GUARD: Final = 64 << 10
_MOST_GUARD: Final = 4 << 20


def guard(size: int) -> int:
    """The unused bytes before and after the fields of a block with ``size`` bytes of them.

    A kernel that writes a little out of range, such as a stencil one row or plane past the edge,
    writes there and not into other memory. A sixteenth of the size is a plane of a cube of 16 or
    more elements a side. On the CPU pages that nothing touches take no memory.
    """
    wanted = min(max(size // 16, _LEAST_GUARD), _MOST_GUARD)
    return -(-wanted // ALIGN) * ALIGN


class Block:
    """The memory of one or more children of a root.

    memory: None when the program ended or the tree was destroyed. NumPy views of it keep the bytes
    alive, whatever happens to the block.
    writes: what counts the writes to the fields in it that were used.
    """

    __slots__ = ("__weakref__", "memory", "size", "writes")

    def __init__(self, memory: ArrayMemory) -> None:
        self.size: Final = memory.nbytes
        self.memory: ArrayMemory | None = memory
        self.writes: Final[set[WriteCounter]] = set()

    @property
    def data(self) -> Array | None:
        """The bytes where the host sees them."""
        memory = self.memory
        return None if memory is None else memory.host

    def program_ended(self) -> None:
        """Let go of the memory."""
        memory, self.memory = self.memory, None
        if memory is not None:
            release(memory)


class Digit(NamedTuple):
    """One digit of the index along an axis (by position): its extent, and its stride in bytes."""

    axis: int
    extent: int
    stride: int


class Placement(NamedTuple):
    """The position of a scalar field in memory.

    base: bytes from the start of the block to the element at the origin. shape, origin: of the
    field's axes. digits: outermost first; those of one axis are from the largest to the smallest.
    alone: True if the child of the root that contains it holds nothing but one field.
    """

    block: Block
    base: int
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    digits: tuple[Digit, ...]
    alone: bool


def joined(parts: Sequence[Placement], element_shape: tuple[int, ...]) -> Placement:
    """The placement of a vector or matrix field whose components are at ``parts``, row-major.

    QuadrantsRuntimeError if the distances between them are not equal.
    """
    first = parts[0]
    ndim = len(first.shape)
    strides: list[int] = []
    step = len(parts)
    for extent in element_shape:
        step //= extent
        strides.append(parts[step].base - first.base if extent > 1 else 0)
    for number, part in enumerate(parts):
        rest, wanted = number, first.base
        for extent, stride in zip(reversed(element_shape), reversed(strides), strict=True):
            wanted += rest % extent * stride
            rest //= extent
        if part._replace(base=0) != first._replace(base=0) or part.base != wanted:
            raise QuadrantsRuntimeError(
                "The components of a vector or matrix field must have the same shape and offset,"
                "and be at equal distances in memory",
                hint="place the whole field at once, or each component in its own node, in order",
            )
    if any(s < 0 for s in strides):
        raise QuadrantsRuntimeError(
            "The components of a vector or matrix field must be placed in order"
        )
    inner = [
        Digit(ndim + a, extent, stride)
        for a, (extent, stride) in enumerate(zip(element_shape, strides, strict=True))
    ]
    digits = tuple(sorted([*first.digits, *inner], key=lambda d: -d.stride))
    zeros = (0,) * len(element_shape)
    return first._replace(
        shape=first.shape + element_shape, origin=first.origin + zeros, digits=digits
    )


def _merged(digits: Sequence[Digit], axis: int) -> list[Digit]:
    """The digits of one axis: neighbours that run on become one, extents of 1 are left out."""
    out: list[Digit] = []
    for digit in digits:
        if digit.axis != axis or digit.extent == 1:
            continue
        if out and out[-1].stride == digit.stride * digit.extent:
            digit = digit._replace(extent=out.pop().extent * digit.extent)
        out.append(digit)
    return out


def by_axis(at: Placement) -> list[list[Digit]]:
    """For each axis its digits, from the largest to the smallest, as few as there can be."""
    return [_merged(at.digits, axis) for axis in range(len(at.shape))]


def layout_of(at: Placement, dtype: DataType) -> ElementLayout:
    """The layout of a field of ``dtype`` with the placement ``at``."""
    terms: list[Term] = []
    for digits in by_axis(at):
        divisor = 1
        for number in reversed(range(len(digits))):
            axis, extent, stride = digits[number]
            terms.append((axis, divisor, extent if number else 0, stride // dtype.size))
            divisor *= extent
    terms.sort(key=lambda t: (-t[3], t[0]))
    found = ElementLayout(at.shape, at.origin, tuple(terms))
    return row_major(at.shape, at.origin) if found.is_row_major() else found


def grouped_view(at: Placement, dtype: DataType, memory: ArrayMemory) -> Elements:
    """The elements of the field in ``memory``, that of its block, with an axis for each digit.

    Digits are grouped by axis, so that the view has the elements in the order of the field; a
    reshape to the field's shape returns them by index. An axis without digits has extent 1.
    """
    shape: list[int] = []
    strides: list[int] = []
    for digits in by_axis(at):
        for _, extent, stride in digits or [Digit(0, 1, dtype.size)]:
            shape.append(extent)
            strides.append(stride)
    return placed(memory, at.base, shape, strides, dtype)
