"""Values of the forward part that the reverse of a block reads, and which it can compute again.

Needed are the values that the rules of derivatives read, the indices of elements whose adjoints
are touched, and the conditions and bounds of ifs and loops in whose reverse there is something to
do. The last two *control* what happens: they have to be the same to the bit in both parts, and
compilers may round float arithmetic differently in two places. So such a value is computed again
only from integers, comparisons and copies.

A value in the block itself, not in an if or loop there, is visible in the reverse. Others are
computed again if that is possible: constants, arguments, extents, indices of loops, elements of
arrays (the gradient changes none but adjoints), cells, operations on such values. The rest has to
be kept.
"""

from __future__ import annotations

from typing import Final

from ...ir import Func, Op, base_of, walk
from ...ir import codes as C
from .activity import Activity
from .derivatives import RULES, flows, needs
from .independent_blocks import IndependentBlock

__all__ = ["CONTROL", "FREE", "READ", "Needs", "kept_values"]

READ: Final = 1
"""Flag of a needed value: a rule reads it."""
CONTROL: Final = 2
"""Flag of a needed value: it controls where something happens."""

_BOTH: Final = READ | CONTROL

FREE: Final = frozenset({
    C.CONST, C.ARG_LOAD, C.ARG_ADDR, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.LOOP_INDEX, C.GLOBAL_TMP,
})  # fmt: skip
"""Made again at no cost, from nothing."""

_EXACT: Final = frozenset({
    C.CAST_VALUE, C.CAST_BITS, C.NEG, C.ABS, C.MIN, C.MAX, C.FLOOR, C.CEIL, C.ROUND, C.SGN,
    C.SELECT,
})  # fmt: skip
"""Operations on floats that every compiler gets right to the bit."""


class Needs:
    """The values that the reverse of one independent block needs.

    how: needed value -> READ | CONTROL. nested: ops in ifs and loops of the block. flat: all ops.
    in_loop: those of them in an inner loop.
    """

    def __init__(self, func: Func, ib: IndependentBlock, activity: Activity) -> None:
        self.func: Final = func
        self.ib: Final = ib
        self.activity: Final = activity
        self.flat: Final[list[Op]] = []
        self.nested: Final[set[Op]] = set()
        self.in_loop: Final[set[Op]] = set()
        for op in ib.ops:
            self.flat.append(op)
            if op.regions:
                self._enter(op, False)
        self.how: Final[dict[Op, int]] = {}
        self._collect()

    def _enter(self, op: Op, loop: bool) -> None:
        loop = loop or C.LOOP[op.code]
        for region in op.regions:
            for inner in region.ops:
                self.flat.append(inner)
                self.nested.add(inner)
                if loop:
                    self.in_loop.add(inner)
                if inner.regions:
                    self._enter(inner, loop)

    def _collect(self) -> None:
        how, active, effects = self.how, self.activity.active, self.activity.effects
        get = how.get
        for op in self.flat:
            if op in effects:
                for x in _controls(op):
                    how[x] = get(x, 0) | CONTROL
            elif op in active and op.code in RULES:
                args = op.args
                for i in flows(op):
                    if args[i] in active:
                        for x in needs(op, i):
                            how[x] = get(x, 0) | READ

    @property
    def grads(self) -> set[int]:
        """Parameters that hold adjoints."""
        return {p.grad for p in self.func.params}

    def again(self, kept: dict[Op, Op], gone: set[Op] | None = None) -> dict[Op, int]:
        """Return the bits READ and CONTROL for which the reverse can obtain each nested value.

        A value that it cannot obtain is missing. kept: see `kept_values`. gone: gets those of them
        that need not be kept, in program order.
        """
        can: dict[Op, int] = {}
        nested, how = self.nested, self.how
        grads = {p.grad for p in self.func.params}
        for op in self.flat:
            if op not in nested:
                continue
            got = self._made_from(op, can, grads)
            if op in kept:
                if gone is not None and not how.get(op, 0) & ~got:
                    gone.add(op)
                else:
                    got = _BOTH
            if got:
                can[op] = got
        return can

    def _made_from(self, op: Op, can: dict[Op, int], grads: set[int]) -> int:
        code = op.code
        if code in FREE:
            return _BOTH
        if code == C.GLOBAL_LOAD:
            root = base_of(op.args[0])
            if root.code != C.ARG_ADDR or root.attr[1] or root.attr[0] in grads:
                return 0
        elif code == C.LOCAL_LOAD:
            return _BOTH if op.args[0] in self.activity.cells else 0
        elif not C.PURE[code]:
            return 0
        got = _BOTH
        nested = self.nested
        for a in op.args:
            if a in nested:
                got &= can.get(a, 0)
        if op.type.is_ptr and got != _BOTH:
            return 0
        if op.type.is_real and code != C.GLOBAL_LOAD and code not in _EXACT:
            got &= READ
        return got


def _controls(op: Op) -> tuple[Op, ...]:
    """The values that decide where the reverse of ``op`` happens."""
    code = op.code
    if code == C.IF or code == C.RANGE_FOR:
        return op.args
    ptr = op.args[0]
    found: list[Op] = []
    while ptr.code in (C.EXTERNAL_PTR, C.SHIFT_PTR):
        found += ptr.args[1:]
        ptr = ptr.args[0]
    return tuple(found)


def kept_values(ib: IndependentBlock) -> dict[Op, Op]:
    """Values that are kept where they are made -> the variable or stack in the block that keeps it.

    That is an `alloca` with one store and no load, or a stack with one push, in the block itself.
    """
    at: dict[Op, list[Op]] = {}
    for op in ib.ops:
        if op.code in (C.ALLOCA, C.AD_STACK_ALLOCA):
            at[op] = []
    if not at:
        return {}
    for op in ib.ops:
        for inner in [op, *[o for region in op.regions for o in walk(region)]]:
            for a in inner.args:
                if a in at:
                    at[a].append(inner)
    kept: dict[Op, Op] = {}
    for place, users in at.items():
        if len(users) == 1 and users[0].code in (C.LOCAL_STORE, C.AD_STACK_PUSH):
            value = users[0].args[1]
            if value.block is users[0].block is not ib.block:
                kept[value] = place
    return kept
