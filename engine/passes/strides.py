"""The accesses of a loop's body as functions of the index of one of its axes.

An address of stage ``accesses`` is ``base + offset``, and for most the offset of iteration ``j`` is
``step * j + place + rest``: `access` finds the step and the place in elements of the array. What
the rest holds (other indices, extents) only matters for one question: is the address of iteration
0 a multiple of 16 bytes if that of the array is? `Access.even` says no, or under which conditions:
that certain extents, times a factor, are multiples of 16.
"""

from __future__ import annotations

from typing import Final

from ..analysis import contains, is_index
from ..analysis.alias import apart
from ..ir import Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import DataType, PointerType
from .linear_form import form_of

__all__ = ["WIDEST", "Access", "access", "apart"]

WIDEST: Final = 16
"""Bytes of the widest access."""


class Access(NamedTuple):
    """The dependence of an address on a loop's index along one axis.

    base: the op of the array's address. size: bytes of an element. step, place: see the module
    docstring. even: conditions under which the rest is a multiple of 16 bytes, each the axis and
    the array of an extent and the bytes that it is to be multiplied by; None if it may not be.
    """

    base: Op
    size: int
    step: int
    place: int
    even: tuple[tuple[tuple[int, int], int], ...] | None

    def align(self, iteration: int, width: int) -> int:
        """Alignment of this access for ``iteration`` more than a multiple of ``width``
        iterations."""
        if self.even is None:
            return self.size
        bits = (
            WIDEST
            | self.step * width * self.size
            | (self.step * iteration + self.place) * self.size
        )
        return bits & -bits


def access(loop: Op, axis: int, pointer: Op) -> Access | None:
    """The `Access` of ``pointer`` along ``axis`` of ``loop``; None if its step is not known."""
    if pointer.code != C.SHIFT_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    base, offset = pointer.args
    t = base.type
    if not isinstance(t, PointerType) or not isinstance(t.elem, DataType):
        return None
    size = t.elem.size
    indices: tuple[Op, ...] = (offset,)
    extents: tuple[Op, ...] = ()
    if offset.code == C.LINEARIZE:
        indices, extents = offset.args[: offset.attr], offset.args[offset.attr :]
    step, place, factor = 0, 0, 1
    unknown: Op | None = None
    even: dict[tuple[int, int], int] | None = {}
    for k in range(len(indices) - 1, -1, -1):
        form = form_of(indices[k])
        for op, times in form.terms.items():
            if is_index(op, loop, axis):
                if unknown is not None:
                    return None
                step += factor * times
            elif _moves(op, loop, axis):
                return None
            elif unknown is None and factor * times * size % WIDEST:
                even = None
        if unknown is None:
            place += factor * form.constant
        elif even is not None and (form.constant or form.terms):
            if unknown.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
                even[unknown.attr] = factor * size
            else:
                even = None
        if k and unknown is None:
            extent = extents[k - 1]
            if extent.code == C.CONST:
                factor *= int(extent.attr)
            else:
                unknown = extent
    return Access(base, size, step, place, None if even is None else tuple(even.items()))


def _moves(op: Op, loop: Op, axis: int, depth: int = 8) -> bool:
    """True if ``op`` may change with the index along ``axis``: it does, or that is not known."""
    if op.code == C.LOOP_INDEX and (op.args[0] is loop or contains(loop, op.args[0])):
        return op.args[0] is not loop or op.attr == axis
    if op.block is not loop.regions[-1]:
        return op.block is not None and op.block is not loop.regions[0]
    return (
        not C.PURE[op.code] or depth == 0 or any(_moves(a, loop, axis, depth - 1) for a in op.args)
    )
