"""Inner loops that only add up: what `subgroup_reduce` must know of one.

`sums_of` finds the variables that the iterations of a loop add to, `plan_of` the rest: which parts
of the task's iteration are around the loop, and whether its loads would be neighbours on lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..analysis import contains, use_counts
from ..ir import Block, Func, Op, base_of, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import f16, row_major
from .grid import is_plain
from .iterations import held, number_type
from .linear_form import form_of
from .map_to_grid import weight
from .strides import apart

__all__ = ["Extent", "Plan", "Sum", "plan_of"]

_NEAR: Final = 4
"""Elements between accesses of neighbours that are still near each other."""
_SHORT: Final = 8
_MOST_SUMS: Final = 4
_MOST_WORK: Final = 96
"""Simple operations around the loop, which all lanes run, or one while the others wait."""
_CLASS: Final[dict[int, int]] = {
    C.ADD: C.ATOMIC_ADD, C.SUB: C.ATOMIC_ADD, C.MUL: C.ATOMIC_MUL, C.MIN: C.ATOMIC_MIN,
    C.MAX: C.ATOMIC_MAX, C.BIT_AND: C.ATOMIC_BIT_AND, C.BIT_OR: C.ATOMIC_BIT_OR,
    C.BIT_XOR: C.ATOMIC_BIT_XOR,
}  # fmt: skip
_ROUNDS: Final = frozenset({C.ATOMIC_ADD, C.ATOMIC_MUL})
_PORTABLE: Final = frozenset({
    C.CONST, C.ARG_LOAD, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.MIN, C.MAX, C.ADD, C.SUB,
})  # fmt: skip
_ROW, _INNER = 1, 2
"""A value may depend on the task's index, and on that of the inner loop."""


class Sum(NamedTuple):
    """A variable that the loop only adds to.

    code: the atomic operation of its updates. updates: for each store to it the ops from the load
    of the old value to the last operation.
    """

    local: Op
    code: int
    updates: dict[Op, list[Op]]


class Extent(NamedTuple):
    """The number of iterations of the inner loop, as far as a launch knows it.

    It is ``op``, or ``end - begin`` where those are given, or the extent of the array ``shape``
    (the axis, the parameter); of one iteration of the task, or of all of them.
    """

    bounds: tuple[Op, Op] | None
    shape: tuple[int, int]
    total: bool


class Plan(NamedTuple):
    """path: the conditions around the loop, from the outermost. sums: see `Sum`. after: ops that
    follow the loop."""

    loop: Op
    path: list[Op]
    sums: list[Sum]
    after: list[Op]
    extent: Extent


def plan_of(func: Func, task: Op, fast_math: bool) -> Plan | str | None:
    """The plan; None where the loop is of another kind, the reason where it must stay."""
    found = _path(task.regions[1])
    if found is None:
        return None
    path, loop = found
    blocks = [task.regions[1], *[op.regions[0] for op in path]]
    block = blocks[-1]
    after = block.ops[block.ops.index(loop) + 1 :]
    before = [op for one in blocks for op in one.ops if op not in path]
    before = before[: before.index(loop)]
    sums = sums_of(loop, fast_math)
    if isinstance(sums, str):
        return sums
    extent = _Profit(func, task, loop).extent()
    if isinstance(extent, str):
        return extent
    why_not = _why_not(func, loop, before, after, sums)
    return why_not or Plan(loop, path, sums, after, extent)


def _path(block: Block) -> tuple[list[Op], Op] | None:
    """The only loop of a task, and the conditions around it, which are the last of their blocks."""
    path: list[Op] = []
    while True:
        loops = [op for op in block.ops if any(C.LOOP[x.code] for x in _and_inside(op))]
        if len(loops) != 1:
            return None
        (op,) = loops
        if op.code == C.RANGE_FOR:
            return (path, op) if len(op.args) == 2 else None
        if op.code != C.IF or op is not block.ops[-1] or op.regions[1].ops:
            return None
        path.append(op)
        block = op.regions[0]


def _and_inside(op: Op) -> list[Op]:
    return [op, *[x for region in op.regions for x in walk(region)]]


def _flat(ops: Iterable[Op]) -> list[Op]:
    return [x for op in ops for x in _and_inside(op)]


# What the loop adds up


def sums_of(loop: Op, fast_math: bool) -> list[Sum] | str:
    """The variables that the iterations of ``loop`` add to; the reason if they do more."""
    body = loop.regions[0]
    ops = walk(body)
    if loop.attr.strictly_serialized:
        return "the inner loop is to run in order"
    if any(op.code == C.RANGE_FOR or op.code == C.WHILE for op in ops):
        return "there is a loop in the inner loop"
    if any(C.ATOMIC[op.code] or not _is_simple(op) for op in ops):
        return "the inner loop does more than compute and load"
    stores: dict[Op, list[Op]] = {}
    for op in ops:
        if C.WRITE[op.code]:
            if op.args[0].code != C.ALLOCA:
                return "the inner loop stores to memory"
            if not contains(loop, op.args[0]):
                stores.setdefault(op.args[0], []).append(op)
    counts = use_counts(body)
    found = [_sum(local, stores[local], ops, counts) for local in stores]
    sums = [one for one in found if one is not None]
    if len(sums) != len(found):
        return "a variable is set in the inner loop and not only added to"
    if not sums or len(sums) > _MOST_SUMS:
        return f"the inner loop adds to {len(sums)} variables"
    if not fast_math and any(s.code in _ROUNDS and number_type(s.local).is_real for s in sums):
        return "another order of a float sum would round otherwise, and fast_math is off"
    return sums


def _is_simple(op: Op) -> bool:
    return is_plain(op) and not C.FENCE[op.code]


def _sum(local: Op, stores: list[Op], ops: list[Op], counts: dict[Op, int]) -> Sum | None:
    """The updates of a variable; None if a loop does anything else with it."""
    t = held(local)
    if t is None or t is f16:
        return None
    updates: dict[Op, list[Op]] = {}
    codes: set[int] = set()
    for store in stores:
        chain = _chain(store.args[1], local, store.block, counts)
        if not chain or len(chain) < 2:
            return None
        codes |= {_CLASS[op.code] for op in chain[1:]}
        updates[store] = chain
    loads = [op for op in ops if op.code == C.LOCAL_LOAD and op.args[0] is local]
    if len(codes) != 1 or len(loads) != len(stores):
        return None
    (code,) = codes
    if not t.is_int and code not in (C.ATOMIC_ADD, C.ATOMIC_MUL, C.ATOMIC_MIN, C.ATOMIC_MAX):
        return None
    # One update after the other: no load comes between that of an update and its store.
    order = [op for op in ops if op in updates or op in loads]
    pairs = zip(order[::2], order[1::2], strict=True)
    if any(store not in updates or updates[store][0] is not load for load, store in pairs):
        return None
    return Sum(local, code, updates)


def _chain(value: Op, local: Op, block: Block | None, counts: dict[Op, int]) -> list[Op]:
    """The ops from the load of ``local`` to ``value``, each used by the next; empty if none."""
    if value.block is not block or counts.get(value) != 1 or value.type is not held(local):
        return []
    if value.code == C.LOCAL_LOAD:
        return [value] if value.args[0] is local else []
    if value.code not in _CLASS:
        return []
    for arg in value.args[: 1 if value.code == C.SUB else 2]:
        found = _chain(arg, local, block, counts)
        if found:
            return [*found, value]
    return []


# What is around it


def _why_not(func: Func, loop: Op, before: list[Op], after: list[Op], sums: list[Sum]) -> str:
    """The reason that lanes must not share the loop; empty if there is none."""
    early, late = _flat(before), _flat(after)
    if not all(map(_is_simple, (*early, *late))):
        return "an iteration does more than compute, load and store"
    if any(C.ATOMIC[op.code] for op in early):
        return "an atomic update is before the inner loop"
    if sum(weight(op) for op in (*early, *late)) > _MOST_WORK:
        return "there is much work around the inner loop"
    return _why_seen(func, loop, early, {one.local for one in sums})


def _why_seen(func: Func, loop: Op, early: list[Op], sums: set[Op]) -> str:
    """The reason that what one lane stores before the loop may be seen by others in it.

    The first values of ``sums`` matter to the one lane alone.
    """
    stores = [op for op in early if op.code == C.GLOBAL_STORE]
    if not stores:
        return ""
    written = {_array(op.args[0]) for op in stores}
    alone = apart(func)
    everything = _and_inside(loop)
    seen: set[Op] = set()
    for op in (*early, *everything):
        if op.code == C.GLOBAL_LOAD:
            mine = _array(op.args[0])
            if mine is None or mine in written or None in written or not alone[mine[0]]:
                seen.add(op)
        if not any(arg in seen for arg in op.args):
            continue
        if op.code == C.LOCAL_STORE:
            if op.args[0] not in sums:
                seen.add(op.args[0])
        elif op.code != C.GLOBAL_STORE:
            seen.add(op)
    bad = [op for op in seen if op.code == C.IF or op in everything]
    return "the inner loop uses what its iteration has stored" if bad else ""


def _array(pointer: Op) -> tuple[int, bool] | None:
    pointer = base_of(pointer)
    return pointer.attr if pointer.code == C.ARG_ADDR else None


# What its loads would be on lanes


class _Profit:
    """Compares the addresses of neighbours: of tasks' iterations now, of the inner loop's later."""

    def __init__(self, func: Func, task: Op, loop: Op) -> None:
        self.func: Final = func
        self.task: Final = task
        self.loop: Final = loop
        self.depends: Final[dict[Op, int]] = {}
        for op in walk(task.regions[1]):
            found = 0
            for arg in op.args:
                found |= self.depends.get(arg, 0)
            if op.code == C.LOOP_INDEX:
                found = _ROW if op.args[0] is task else self.depends.get(loop.args[0], 0) | _INNER
            elif op.code == C.LOCAL_LOAD or C.ATOMIC[op.code]:
                found = _ROW | _INNER
            self.depends[op] = found

    def extent(self) -> Extent | str:
        """The length of the loop where lanes gain; else why not."""
        begin, end = self.loop.args
        constant = begin.code == C.CONST and end.code == C.CONST
        if constant and end.attr - begin.attr < _SHORT:
            return "the inner loop is short"
        first: Op | None = None
        for op in walk(self.loop.regions[0]):
            if op.code != C.GLOBAL_LOAD or not self.depends[op] & _INNER:
                continue
            near, now = self.is_near(op.args[0]), self.is_near_now(op.args[0])
            if now and not near:
                return "neighbouring iterations load neighbouring elements, or the same ones"
            if near and not now and first is None:
                first = op.args[0]
        if first is None:
            return "no load runs along the inner loop alone"
        p = self.func.params[int(first.args[0].attr[0])]
        shape = (p.ndim - 1, int(first.args[0].attr[0]))
        if all(map(self.portable, (begin, end))):
            return Extent((begin, end), shape, False)
        rows = any(self.depends[op] & _ROW for op in first.args[1 : p.ndim])
        return Extent(None, shape, not rows)

    def portable(self, op: Op) -> bool:
        """True for a value that the launch can compute."""
        return op.code in _PORTABLE and all(map(self.portable, op.args))

    def scale(self, pointer: Op) -> int:
        """Scalars of an element of a row-major array; 0 for an address of another kind."""
        if pointer.code != C.EXTERNAL_PTR or pointer.args[0].code != C.ARG_ADDR:
            return 0
        p = self.func.params[int(pointer.args[0].attr[0])]
        if p.ndim < 1 or p.axes is not None or pointer.attr != "unsafe":
            return 0
        if p.layout is not None and p.layout != row_major(p.layout.shape, p.layout.origin):
            return 0
        found = 1
        for n in p.element_shape:
            found *= n
        return found

    def last(self, pointer: Op, what: int) -> Op | None:
        """The index of the last axis, if the others do not depend on ``what``."""
        p = self.func.params[int(pointer.args[0].attr[0])]
        others = (*pointer.args[1 : p.ndim], *pointer.args[p.ndim + 1 :])
        return None if any(self.depends[op] & what for op in others) else pointer.args[p.ndim]

    def is_near(self, pointer: Op) -> bool:
        """True if the inner loop's neighbours are near each other."""
        scale = self.scale(pointer)
        index = self.last(pointer, _INNER) if scale else None
        if index is None:
            return False
        step = 0
        for op, factor in form_of(index).terms.items():
            if op.code == C.LOOP_INDEX and op.args[0] is self.loop:
                step += factor
            elif self.depends[op] & _INNER:
                return False
        return 0 < abs(step) * scale <= _NEAR

    def is_near_now(self, pointer: Op) -> bool:
        """True if the task's neighbours are near each other, or the same."""
        if not self.depends[pointer] & _ROW:
            return True
        scale = self.scale(pointer)
        index = self.last(pointer, _ROW) if scale else None
        step = None if index is None else self.step(index)
        return step is not None and abs(step) * scale <= _NEAR

    def step(self, op: Op) -> int | None:
        """The change of a value from one iteration of the task to the next; None if unknown."""
        total = 0
        for term, factor in form_of(op).terms.items():
            if not self.depends.get(term, 0) & _ROW:
                continue
            found: int | None = None
            if term.code == C.LOOP_INDEX:
                found = 1 if term.args[0] is self.task else self.step(self.loop.args[0])
            elif term.code in (C.MIN, C.MAX):  # of a range that the ends of an array cut off
                steps = [self.step(arg) for arg in term.args]
                if steps[0] is not None and steps[1] is not None:
                    found = max(steps, key=lambda n: abs(n or 0))
            if found is None:
                return None
            total += factor * found
        return total
