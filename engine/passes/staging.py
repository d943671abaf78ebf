"""The loads of a loop that `stage_shared` and `tile_iterations` copy to tiles."""

from __future__ import annotations

from typing import Final

from ..analysis.loops import is_index
from ..ir import Func, Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import DataType
from .grid import is_plain
from .iterations import is_row_major
from .linear_form import form_of

__all__ = ["Staging", "contiguous_axis", "find_staging", "is_element"]

_MOST_STAGED: Final = 2
_MOST_OPS: Final = 96


class Staging(NamedTuple):
    """lanes: the axis of the loop that a warp runs along. staged: the loads of the other axis."""

    lanes: int
    staged: list[Op]


def find_staging(func: Func, loop: Op, balanced: bool = False) -> Staging | None:
    """The loads to stage; None if there are none, or if other accesses would be across rows.

    loop: a task, or the loop over the iterations of a chunk of one. balanced: not if more accesses
    are along rows.
    """
    ops = loop.regions[-1].ops
    if len(ops) > _MOST_OPS or any(
        op.regions or op.code == C.CONTINUE or not is_plain(op) for op in ops
    ):
        return None
    along: dict[int, list[Op]] = {0: [], 1: []}
    written: set[int] = set()
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            continue
        if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
            return None
        if op.code != C.GLOBAL_LOAD:
            written.add(int(pointer.args[0].attr[0]))
        axis = contiguous_axis(func, loop, pointer)
        if axis >= 0:
            along[axis].append(op)
    for lanes in (1, 0):
        staged, others = along[1 - lanes], along[lanes]
        if not others or not 0 < len(staged) <= _MOST_STAGED:
            continue
        if balanced and len(others) > len(staged):
            continue
        if all(_can_be_staged(func, loop, op, written, 1 - lanes) for op in staged):
            return Staging(lanes, staged)
    return None


def contiguous_axis(func: Func, loop: Op, pointer: Op) -> int:
    """The axis of the loop along which an address moves by one element; -1 for none."""
    if not is_row_major(func, pointer):
        return -1
    terms = form_of(pointer.args[-1]).terms
    for axis in (0, 1):
        steps = [factor for op, factor in terms.items() if is_index(op, loop, axis)]
        if steps == [1] and not any(is_index(op, loop, 1 - axis) for op in terms):
            return axis
    return -1


def _can_be_staged(func: Func, loop: Op, op: Op, written: set[int], axis: int) -> bool:
    """True for a load of ``x[..., i, j]`` of the loop's indices, of an array that keeps its values.

    axis: that of the last index.
    """
    if op.code != C.GLOBAL_LOAD or not isinstance(op.type, DataType):
        return False
    pointer = op.args[0]
    number = int(pointer.args[0].attr[0])
    if number in written or (written and not func.noalias):
        return False
    return is_element(loop, pointer, axis)


def is_element(loop: Op, pointer: Op, axis: int) -> bool:
    """True for the address of ``x[..., i, j]`` of the loop's indices; axis: that of the last."""
    indices = pointer.args[1:]
    if len(indices) < 2:
        return False
    *outer, row, column = indices
    exact = is_index(row, loop, 1 - axis) and is_index(column, loop, axis)
    return exact and all(index.code == C.CONST for index in outer)
