"""A small array that a loop updates, and its copies: what passes share that count into copies."""

from __future__ import annotations

from typing import Final

from ..analysis import is_invariant, use_counts
from ..ir import Builder, Func, Op, walk
from ..ir import codes as C
from ..types import PointerType, i32
from .grid import has_plain_bounds

__all__ = ["SmallArray", "array_of"]


def array_of(func: Func, task: Op, updates: list[Op], most: int) -> tuple[int | None, str]:
    """The number of the parameter that only updates touch, or the reason that there is none.

    most: elements of a copy.
    """
    body = task.regions[1]
    ops = walk(body)
    if not has_plain_bounds(task):
        return None, "its bounds are computed"
    first = updates[0]
    if any(op.code != first.code or op.type is not first.type for op in updates):
        return None, "its updates are of several kinds"
    counts = use_counts(body)
    if any(op in counts for op in updates):
        return None, "the old value is used"
    spaces = {_space(op.args[0]) for op in updates}
    (number,) = spaces if len(spaces) == 1 else (None,)
    if number is None:
        return None, "it updates more than one array"
    p = func.params[number]
    if p.element_shape or (p.layout is not None and _count(func, number) > most):
        return None, "the array is larger than a copy may be"
    if all(is_invariant(op.args[0], task) for op in updates):
        return None, "the address does not vary: threads add up for themselves"
    others = {
        _space(op.args[0]) for op in ops
        if op.args and isinstance(op.args[0].type, PointerType) and op not in updates
        and (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code])
    }  # fmt: skip
    if number in others or None in others:
        return None, "the array is also accessed otherwise"
    if p.layout is None and not func.noalias and others - {-1}:
        return None, "other arrays may overlap it"
    return number, ""


def _space(pointer: Op) -> int | None:
    """The number of the parameter that ``pointer`` leads to; -1 for a local, None for others."""
    if pointer.code == C.ALLOCA:
        return -1
    if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
        return None
    number, grad = pointer.args[0].attr
    return None if grad else int(number)


def _count(func: Func, number: int) -> int:
    layout, total = func.params[number].layout, 1
    assert layout is not None
    for extent in layout.shape:
        total *= extent
    return total


class SmallArray:
    """An array that a loop updates, in the code of a pass that lets it update a copy.

    updated: an address that an update has. most: elements of a copy. extents: of the array, once
    `size` has made them.
    """

    def __init__(self, func: Func, b: Builder, number: int, updated: Op, most: int) -> None:
        self.func: Final = func
        self.b: Final = b
        self.number: Final = number
        self.updated: Final = updated
        self.most: Final = most
        self.extents: list[Op] = []

    def size(self) -> tuple[Op, Op]:
        """The number of elements, at most one more than a copy has, and whether a copy has them."""
        b, (number, p) = self.b, (self.number, self.func.params[self.number])
        most = b.const(self.most + 1, i32)
        self.extents = []
        total = b.const(1, i32)
        for axis in range(p.ndim):
            extent = (
                b.const(p.layout.shape[axis], i32) if p.layout is not None
                else b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)
            )  # fmt: skip
            self.extents.append(extent)
            few = b.binary(C.MIN, extent, most)
            total = b.binary(C.MIN, b.binary(C.MUL, total, few), most)
        return total, b.binary(C.CMP_LE, total, b.const(self.most, i32))

    def redirect(self, update: Op, copy: Op) -> None:
        """Let an update go to the copy."""
        block = update.block
        assert block is not None
        pointer, value = update.args
        b = Builder(self.func, block, update.loc, [])
        p = self.func.params[self.number]
        indices = list(pointer.args[1:])
        if p.layout is not None:
            for axis, first in enumerate(p.layout.origin[: p.ndim]):
                if first:
                    indices[axis] = b.binary(C.SUB, indices[axis], b.const(first, i32))
        # A `linearize` needs constant extents before lower_access, and an ndarray has none. 32 bits
        # are enough for a place in a copy.
        place = indices[0]
        for index, extent in zip(indices[1:], self.extents[1:], strict=True):
            place = b.binary(C.ADD, b.binary(C.MUL, place, extent), index)
        update.args = (b.element(copy, place), value)
        at = block.ops.index(update)
        block.ops[at:at] = b.ops

    def element(self, place: Op) -> Op:
        """The address of an element of the array by its number."""
        b, p = self.b, self.func.params[self.number]
        indices: list[Op] = []
        for axis in range(p.ndim - 1, -1, -1):
            index = place
            if axis:
                index = b.binary(C.MOD, place, self.extents[axis])
                place = b.binary(C.DIV, place, self.extents[axis])
            first = p.layout.origin[axis] if p.layout is not None else 0
            indices.append(b.binary(C.ADD, index, b.const(first, i32)) if first else index)
        old = self.updated
        base = b.emit(C.ARG_ADDR, (), old.args[0].attr, old.args[0].type)
        return b.emit(C.EXTERNAL_PTR, (base, *reversed(indices)), old.attr, old.type)
