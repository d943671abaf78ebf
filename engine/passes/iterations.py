"""Common parts of passes that run the iterations of a nest of loops in another order.

No iteration may then use what another one writes. `analysis.uniquely_accessed` says that of the
iterations of a task; `why_shared`, also of those of loops inside of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir import Func, Op, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import DataType, PointerType, row_major

__all__ = ["Accesses", "accesses_of", "flat", "held", "is_row_major", "number_type", "why_shared"]

Space = tuple[int, bool]
"""An array: the parameter, and whether it is its gradient."""


class Accesses(NamedTuple):
    """spaces: addresses in each array. written: arrays. others: memory of other kinds is used."""

    spaces: dict[Space, list[Op]]
    written: set[Space]
    others: bool


def accesses_of(ops: Iterable[Op]) -> Accesses:
    """The accesses of some ops to memory other than variables."""
    spaces: dict[Space, list[Op]] = {}
    written: set[Space] = set()
    others = False
    for op in ops:
        if not (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) or not op.args:
            continue
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            continue
        plain = pointer.code == C.EXTERNAL_PTR and pointer.args[0].code == C.ARG_ADDR
        if not plain or pointer.attr != "unsafe":
            others = True
            continue
        space: Space = pointer.args[0].attr
        spaces.setdefault(space, []).append(pointer)
        if op.code != C.GLOBAL_LOAD:
            written.add(space)
    return Accesses(spaces, written, others)


def why_shared(func: Func, found: Accesses, axes: Sequence[tuple[Op, int]]) -> str:
    """The reason that an iteration may use what another one writes; empty if there is none.

    axes: the loops whose indices make an iteration, and which of their axes.
    """
    if found.others:
        return "it accesses memory other than arrays"
    arrays = [number for number, _ in found.spaces if func.params[number].kind != "field"]
    if found.written and not func.noalias and arrays and len(found.spaces) > 1:
        return "its arrays may overlap"
    for space in found.written:
        places = {_places(pointer, axes) for pointer in found.spaces[space]}
        if len(places) != 1 or None in places:
            return "several iterations may access an element that one of them writes"
    return ""


def _places(pointer: Op, axes: Sequence[tuple[Op, int]]) -> tuple[int, ...] | None:
    """The place of each axis's index in an address; None if one is missing."""
    found: dict[tuple[Op, int], int] = {}
    for place, index in enumerate(pointer.args[1:]):
        if index.code == C.LOOP_INDEX:
            found.setdefault((index.args[0], index.attr), place)
    return tuple([found[axis] for axis in axes]) if all(axis in found for axis in axes) else None


def flat(ops: Iterable[Op]) -> list[Op]:
    """The ops with those of conditions."""
    found: list[Op] = []
    for op in ops:
        found.append(op)
        for region in op.regions:
            found += walk(region)
    return found


def held(op: Op) -> DataType | None:
    """The type of a variable, if that is a number."""
    t = op.type.elem if isinstance(op.type, PointerType) else None
    return t if isinstance(t, DataType) else None


def number_type(op: Op) -> DataType:
    """The type of a number, or of a variable that holds one."""
    t = held(op) or op.type
    assert isinstance(t, DataType)
    return t


def is_row_major(func: Func, pointer: Op) -> bool:
    """True for an address in an array whose last axis has its elements next to each other."""
    number, grad = pointer.args[0].attr
    p = func.params[int(number)]
    if grad or p.element_shape or p.ndim < 1 or pointer.attr != "unsafe":
        return False
    row = p.layout is None or p.layout == row_major(p.layout.shape, p.layout.origin)
    return p.axes is None and row
