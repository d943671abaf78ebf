"""cache_loop_invariant_global_vars: an element that a loop always uses is kept in a local.

::

    $1 : range_for $b, $e body {            <*f32> $20 = alloca ['cached']
      ...                                   <u1> $21 = cmp_lt $b, $e
      <f32> $5 = global_load $3             $22 : if $21 then {  $20 <- global_load $3  } else {}
      <f32> $6 = add $5, $4                 $1 : range_for $b, $e body {
      $7 : global_store $3, $6                ...
    }                                         <f32> $5 = local_load $20
                                              <f32> $6 = add $5, $4
                                              $7 : local_store $20, $6
                                            }
                                            $30 : if $21 then {  global_store $3 <- $20  } else {}

where ``$3`` does not change in the loop. The outermost loop that meets all these conditions is
used:

* no other thread accesses the element during the loop: the task is serial, or divides the array
  among its iterations (`analysis.uniquely_accessed`), or does not write to it at all;
* no atomic in the task has the array as its target, and no other access in the loop may hit the
  element (a store, or, if the loop stores to the element, a load);
* the loop accesses the element in every iteration, not only under an ``if``; or the kernel
  accessed it before; or it certainly exists: it is one of a field, at constants and at indices of
  loops with constant bounds. So the pass adds no load or store outside of the field, or of an
  element of an array that the kernel does not access itself. If the loop certainly runs, or the
  kernel accessed the element before, the load and the write-back need no guard;
* if the loop stores to the element, it contains no check or assert that may end the loop.

The task's own parallel loop never counts as a loop here.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

from ..analysis import (
    Location,
    MemoryLocations,
    enclosing_loops,
    is_invariant,
    uniquely_accessed,
)
from ..analysis.effects import FENCE, KIND, LOAD
from ..analysis.uses import OpList, code_mask
from ..ir import Block, Builder, Func, Op
from ..ir import codes as C
from ..types import PointerType
from .hoist import before_loop
from .manager import PassCx
from .registry import register

_TRIES = 4
_SEEN = code_mask(
    bool(KIND[code]) or code in (C.RANGE_FOR, C.WHILE, C.RETURN, C.ASSERT)
    for code in range(C.COUNT)
)  # fmt: skip


@register("cache_loop_invariant_global_vars", optional=True, per_task=True)
def cache_loop_invariant_global_vars(func: Func, cx: PassCx) -> bool:
    """Keep elements that an inner loop always uses in locals around it."""
    task = cx.task
    if task is None:
        return False
    ops = cx.task_ops()
    if C.RANGE_FOR not in ops.codes and C.WHILE not in ops.codes:
        return False
    if C.CALL in ops.codes:
        return False  # the function may touch any element
    cacher = _Cacher(func, cx, task, ops)
    cacher.block(task.regions[1], set())
    return cacher.changed


class _Cacher:
    def __init__(self, func: Func, cx: PassCx, task: Op, ops: OpList) -> None:
        self.func = func
        self.cx = cx
        self.memory = MemoryLocations(func)
        self.changed = False
        self.leaving: dict[Block, Op | None] = {}  # the first that may leave the iteration
        self.serial = task.attr.kind == "serial"
        self.unique = uniquely_accessed(func, task)
        self.atomic: set[object] = set()  # spaces that are the target of an atomic
        self.written: set[object] = set()
        self.around: set[Block] = set()  # the blocks with a loop in them, at any depth
        self.inside: dict[Op, list[Op]] = {}  # the accesses in a loop, at any depth
        self.ends: set[Op] = set()  # the loops with a return in them
        self.checked: set[Op] = set()  # those with a check
        loops: dict[Block | None, list[Op]] = {}
        for op in ops.of(_SEEN):
            code = op.code
            if code == C.RANGE_FOR or code == C.WHILE:
                _add_blocks_around(op, self.around)
            elif KIND[code] and _touches(op):
                for loop in _loops_around(op.block, loops):
                    self.inside.setdefault(loop, []).append(op)
                where = _space(self.memory.location(op.args[0]))
                if C.ATOMIC[code]:
                    self.atomic.add(where)
                if not C.READ[code]:
                    self.written.add(where)
            elif code == C.RETURN:
                self.ends.update(_loops_around(op.block, loops))
            elif code == C.ASSERT:
                self.checked.update(_loops_around(op.block, loops))

    def block(self, block: Block, seen: set[Location]) -> None:
        """Treat the loops of a block. ``seen``: locations touched before, on every way here."""
        out: list[Op] = []
        for op in block.ops:
            if op.code == C.RANGE_FOR or op.code == C.WHILE:
                self.loop(op, block, seen, out)
            else:
                out.append(op)
            for region in op.regions:
                if region in self.around:
                    self.block(region, set(seen))
            if KIND[op.code] and _touches(op):
                seen.add(self.memory.location(op.args[0]))
        block.ops = out

    def loop(self, loop: Op, block: Block, seen: set[Location], out: list[Op]) -> None:
        """Cache what can be cached around ``loop``; the loop and what goes around it to ``out``."""
        touching: dict[Location, list[Op]] = {}
        touched = written = 0  # bit sets of locations
        by_ptr = self.memory.by_ptr
        for op in self.inside.get(loop, ()):
            ptr = op.args[0]
            if ptr.code != C.ALLOCA:  # it is not kept in a local of a loop around this one
                location = by_ptr[ptr]
                touching.setdefault(location, []).append(op)
                touched |= location.bit
                if KIND[op.code] != LOAD:
                    written |= location.bit
        before = Builder(self.func, block, loop.loc, out)
        after = Builder(self.func, block, loop.loc, [])
        fixed: dict[Op, bool] = {}
        for location, accesses in touching.items():
            if loop in self.ends or not is_invariant(location.ptr, loop, fixed):
                continue
            why_not = self.why_not(location, touched, written, loop in self.checked)
            if (
                not why_not
                and location not in seen
                and not self.always_runs(accesses, loop)
                and not self.exists(location.ptr)
            ):
                why_not = "the loop does not touch it in every iteration"
            if why_not:
                self.cx.remark(accesses[0], f"not cached around ${loop.id}: {why_not}")
                continue
            self.cache(location, accesses, loop, location in seen, before, after)
            self.changed = True
        out.append(loop)
        out += after.ops

    def always_runs(self, accesses: list[Op], loop: Op) -> bool:
        """True if one of the accesses happens whenever the body of ``loop`` is entered."""
        return any(self.reached(op, loop) for op in accesses[:_TRIES])

    def exists(self, ptr: Op) -> bool:
        """True if ``ptr`` is certainly the address of an element of a field."""
        base = ptr.args[0] if ptr.code == C.EXTERNAL_PTR else ptr
        if base.code != C.ARG_ADDR or base is ptr:
            return False
        number: int = base.attr[0]
        layout = self.func.params[number].layout
        if layout is None:
            return False
        for index, origin, extent in zip(ptr.args[1:], layout.origin, layout.shape, strict=True):
            low, high = _values(index)
            if low < origin or high >= origin + extent:
                return False
        return True

    def reached(self, op: Op, loop: Op) -> bool:
        """True if ``op`` runs whenever the body of ``loop`` is entered."""
        while True:
            block = op.block
            assert block is not None
            if block not in self.leaving:
                self.leaving[block] = next(filter(_leaves_iteration, block.ops), None)
            leaving = self.leaving[block]
            if leaving is not None and leaving is next(o for o in block.ops if o in (op, leaving)):
                return False
            owner = block.owner
            if owner is loop:
                return True
            if owner is None or owner.code != C.RANGE_FOR or not _runs(owner):
                return False
            op = owner

    def why_not(self, location: Location, touched: int, written: int, checked: bool) -> str:
        """The reason that a location must not be cached around a loop; empty if it may. touched,
        written: the locations that the loop touches, and those that it does not only load."""
        where = _space(location)
        noalias = self.func.noalias
        stored = bool(written & location.bit)
        if where in self.atomic or (self.atomic and not noalias):
            return "its array is the target of an atomic"
        if (
            not self.serial
            and not location.own
            and location.space not in self.unique
            and (where in self.written or (self.written and not noalias))
        ):
            return "other iterations may touch the element"
        if stored and checked:
            return "a check in the loop may end it before the element is written back"
        if self.memory.may_alias(location) & (touched if stored else written):
            return "another access in the loop may hit the same element"
        return ""

    def cache(
        self,
        location: Location,
        accesses: list[Op],
        loop: Op,
        touched_before: bool,
        before: Builder,
        after: Builder,
    ) -> None:
        """Replace the accesses by a local, filled before the loop and written back after it."""
        ptr = before_loop(self.func, accesses[0].args[0], loop, before)
        before.loc = after.loc = accesses[0].loc
        guard = None
        if not touched_before and not _runs(loop):
            for begin, end in zip(loop.args[0::2], loop.args[1::2], strict=True):
                one = before.binary(C.CMP_LT, begin, end)
                guard = one if guard is None else before.binary(C.BIT_AND, guard, one)
        assert isinstance(ptr.type, PointerType)
        local = before.alloca(ptr.type.elem, "cached")
        with _guarded(before, guard):
            before.store(local, before.load(ptr))
        stored = False
        for op in accesses:
            if op.code == C.GLOBAL_LOAD:
                op.code = C.LOCAL_LOAD
            else:
                op.code = C.LOCAL_STORE
                stored = True
            op.args = (local, *op.args[1:])
            self.cx.rewrote(op, op, f"the element is kept in ${local.id} around loop ${loop.id}")
        if stored:
            with _guarded(after, guard):
                after.store(ptr, after.load(local))


def _values(index: Op) -> tuple[float, float]:
    """The least and the greatest value that an index may have, infinite where not known."""
    if index.code == C.CONST:
        return index.attr, index.attr
    if index.code == C.LOOP_INDEX:
        loop = index.args[0]
        bounds = loop.regions[0].ops[-1].args if loop.code == C.OFFLOADED else loop.args
        begin, end = bounds[2 * index.attr : 2 * index.attr + 2]
        if begin.code == C.CONST and end.code == C.CONST:
            return begin.attr, end.attr - 1
    return -math.inf, math.inf


def _add_blocks_around(op: Op, found: set[Block]) -> None:
    """Add the blocks around ``op``, up to one that is known."""
    block = op.block
    while block is not None and block not in found:
        found.add(block)
        block = block.owner.block if block.owner is not None else None


def _loops_around(block: Block | None, known: dict[Block | None, list[Op]]) -> list[Op]:
    """The loops around ``block``, in a task or also it; ``known`` keeps answers."""
    found = known.get(block)
    if found is None:
        found = known[block] = enclosing_loops(block)
    return found


def _touches(op: Op) -> bool:
    """True if ``op`` loads or stores memory that is not local."""
    kind = KIND[op.code]
    return bool(kind and kind != FENCE and op.args and op.args[0].code != C.ALLOCA)


def _space(location: Location) -> object:
    """The memory that an atomic or a store to ``location`` may touch: an array or one slot."""
    return location.space if location.kind == "array" else location.ptr.attr


def _runs(loop: Op) -> bool:
    """True if the body of ``loop`` is certainly entered."""
    return all(
        begin.code == C.CONST and end.code == C.CONST and begin.attr < end.attr
        for begin, end in zip(loop.args[0::2], loop.args[1::2], strict=True)
    )


def _leaves_iteration(op: Op) -> bool:
    """True if the ops after ``op`` in its block may be skipped."""
    if op.code == C.IF:
        return any(_leaves_iteration(inner) for region in op.regions for inner in region.ops)
    return op.code == C.CONTINUE or op.code == C.WHILE_CONTROL


@contextmanager
def _guarded(b: Builder, guard: Op | None) -> Generator[None]:
    """Emit under an ``if`` of ``guard``, if there is one."""
    if guard is None:
        yield
        return
    with b.inside(b.if_(guard).regions[0]):
        yield
