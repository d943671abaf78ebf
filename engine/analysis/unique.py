"""Arrays that a parallel task divides among its iterations, each element to one of them."""

from __future__ import annotations

from ..ir import Func, Op, walk
from ..ir import codes as C
from .loops import bounds_of, cell_loop

__all__ = ["uniquely_accessed"]

Space = tuple[int, bool]


def uniquely_accessed(func: Func, task: Op) -> frozenset[Space]:
    """Arrays (parameter, is_grad) where no two iterations of ``task`` touch the same element.

    That is so when every address into the array has the loop indices of all axes of the task
    among its indices, always at the same places. If arrays may overlap, it can only be said of
    the one array of a task that uses no other, or where there are fields alone. Empty for a serial
    task.
    """
    loop = cell_loop(task)
    if loop is None:
        return frozenset()
    axes = len(bounds_of(loop)) // 2
    places: dict[Space, tuple[int, ...] | None] = {}
    for op in walk(task.regions[1]):
        if op.code == C.CALL:
            return frozenset()  # who knows what it touches
        if op.code == C.EXTERNAL_PTR:
            space: Space = op.args[0].attr
            mine = _index_places(op, loop, axes)
            if places.setdefault(space, mine) != mine or op.attr == "clamp":
                places[space] = None
    arrays = [number for number, _ in places if func.params[number].kind != "field"]
    if not func.noalias and arrays and len(places) > 1:
        return frozenset()
    return frozenset([space for space, found in places.items() if found is not None])


def _index_places(ptr: Op, loop: Op, axes: int) -> tuple[int, ...] | None:
    """For each axis of ``loop``, the place of its index in ``ptr``; None if one is missing."""
    found: dict[int, int] = {}
    for place, index in enumerate(ptr.args[1:]):
        if index.code == C.LOOP_INDEX and index.args[0] is loop:
            found.setdefault(index.attr, place)
    return tuple([found[axis] for axis in range(axes)]) if len(found) == axes else None
