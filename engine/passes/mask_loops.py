"""mask_loops: iterations with a loop of unknown length run together on a CPU, under masks.

In an escape-time loop every iteration leaves its ``while`` at another time, so LLVM does not
vectorise the iterations. Instead, 16 neighbours along the innermost axis run together. Arrays hold
their variables and a mask of those that are still in the loop; a loop over the 16 does four rounds
of the body, in which selects keep the variables of the others::

    $9 : range_for $b, $e, <0>, $m body {     if the innermost axis is long enough
      <*f32> $7 = alloca                        <*f32> $50 = array_alloca
      $8 : local_store $7, ...                  <*i32> $51 = array_alloca  (the mask)
      $12 : while body {                        for groups of 16
        <u1> $13 = ...                            for each: $50[l] = ..., $51[l] = 1
        $14 : while_control $13                   while any is in the loop
        ...                                         for each, 4 times: m = m if not m else $13
        $15 : local_store $7, $16                     $50[l] = select m, $16, $50[l]
      }                                           for each: out[i, j] = $50[l]
      out[i, j] = $7                          else the loop as it was
    }

The axis may also be that of a loop inside of a parallel loop. A task qualifies if there is one
such loop, with straight code around it, whose body computes numbers from variables and from values
made before it, with conditions, `break` and `continue`. It leaves alone bodies that access arrays,
call functions of the C library or contain loops. No iteration may use what another one writes.
Every iteration does the same operations in the same order, so that the results have the same bits,
unless ``fast_math`` allows LLVM to change them.
"""

from __future__ import annotations

from typing import Final

from ..analysis import chunk_loop
from ..ir import Builder, ForAttr, Func, Op, walk
from ..ir import codes as C
from ..ir.edit import clone, clone_into
from ..named_tuple import NamedTuple
from ..types import DataType, i32, i64, u1
from .grid import is_plain
from .iterations import accesses_of, flat, held, number_type, why_shared
from .manager import PassCx
from .registry import register

__all__ = ["LANES", "mask_loops"]

LANES: Final = "lanes"
"""The name of the arrays that this pass makes."""

_LANES: Final = 16
_BITS: Final = _LANES.bit_length() - 1
_ROUNDS: Final = 4
_LEAST: Final = 8
"""Shorter axes would leave most of a group without work."""
_MOST_OPS: Final = 80
_VECTOR_MATH: Final = frozenset({C.SQRT, C.RSQRT, C.INV, C.FLOOR, C.CEIL})
_DIVISIONS: Final = frozenset({C.DIV, C.FLOORDIV, C.MOD, C.FLOORMOD})
_FLOW: Final = frozenset({C.WHILE_CONTROL, C.CONTINUE})
_INSIDE: Final = frozenset({C.IF, C.ALLOCA, C.LOCAL_LOAD, C.LOCAL_STORE}) | _FLOW


class _Nest(NamedTuple):
    """loop / axis: whose iterations run together. axes: all that make an iteration. before /
    after: ops around the `while`."""

    loop: Op
    axis: int
    axes: list[tuple[Op, int]]
    before: list[Op]
    inner: Op
    after: list[Op]


@register("mask_loops", optional=True, per_task=True)
def mask_loops(func: Func, cx: PassCx) -> bool:
    """Run iterations with a loop of unknown length together, under masks."""
    loop = chunk_loop(cx.task)
    if loop is None or not any(op.code == C.WHILE for op in walk(loop.regions[0])):
        return False
    nest = _nest(loop)
    if nest is None:
        cx.remark(loop, "iterations with a loop of unknown length do not run together: it is not "
                  "the only loop in one")  # fmt: skip
        return False
    why_not = _why_not(func, nest)
    if why_not:
        cx.remark(nest.inner, f"iterations around this loop do not run together: {why_not}")
        return False
    _Masking(func, nest).run()
    cx.remark(nest.inner, f"{_LANES} iterations run together, under a mask of those in this loop")
    return True


def _nest(loop: Op) -> _Nest | None:
    """The nest around the one `while` of a task; None if there is none, or something else."""
    axes = [(loop, axis) for axis in loop.attr.axes or range(len(loop.args) // 2)]
    ops = loop.regions[0].ops
    while True:
        found = [op for op in ops if op.regions and op.code != C.IF]
        if len(found) != 1 or loop.attr.reversed:
            return None
        if found[0].code == C.WHILE:
            at = ops.index(found[0])
            return _Nest(loop, axes[-1][1], axes, ops[:at], found[0], ops[at + 1 :])
        around = [op for op in ops if op is not found[0]]
        if found[0].code != C.RANGE_FOR or not all(C.PURE[op.code] for op in around):
            return None
        loop, ops = found[0], found[0].regions[0].ops
        axes += [(loop, axis) for axis in loop.attr.axes or range(len(loop.args) // 2)]


def _why_not(func: Func, nest: _Nest) -> str:
    """The reason that the iterations must stay as they are; empty if there is none."""
    outside = flat(nest.before) + flat(nest.after)
    inside = walk(nest.inner.regions[0])
    if len(outside) + len(inside) > _MOST_OPS:
        return "the body is too long"
    if any(op.code == C.CONTINUE or C.ATOMIC[op.code] or not is_plain(op) for op in outside):
        return "they do more than compute, load and store"
    variables = {op for op in (*nest.before, *nest.after, *inside) if op.code == C.ALLOCA}
    for op in (*outside, *inside):
        if op.code == C.ALLOCA and held(op) is None:
            return "a variable is no number"
        if op.code in (C.LOCAL_LOAD, C.LOCAL_STORE) and op.args[0] not in variables:
            return "a variable is used in several iterations"
    for op in inside:
        if not (C.PURE[op.code] or op.code in _INSIDE):
            return "its body does more than compute"
        if C.MATH[op.code] and op.code not in _VECTOR_MATH:
            return f"its body has '{C.NAME[op.code]}', which is not vectorised"
        if op.code in _DIVISIONS and not op.type.is_real:
            divisor = op.args[1]
            if divisor.code != C.CONST or int(divisor.attr) <= 0:
                return "a division could fail for iterations that have left the loop"
    return why_shared(func, accesses_of(outside), nest.axes)


class _Masking:
    """Makes the new code of one loop.

    arrays: of the variables and other values that an iteration's parts have in common. mask: that
    of the iterations that are in the inner loop. common: values that are the same for a group.
    varying: what `varies` has found.
    """

    def __init__(self, func: Func, nest: _Nest) -> None:
        assert nest.loop.block is not None
        self.func: Final = func
        self.nest: Final = nest
        self.body: Final = nest.loop.block
        self.b: Final = Builder(func, self.body, nest.loop.loc, [])
        self.early: Final = set(nest.before)
        self.varying: Final[dict[Op, bool]] = {}
        self.inside: Final = walk(nest.inner.regions[0])
        self.indices: Final = [
            op for op in walk(nest.loop.regions[0])
            if op.code == C.LOOP_INDEX and op.args[0] is nest.loop
        ]  # fmt: skip

    def run(self) -> None:
        b, nest = self.b, self.nest
        loop, axis = nest.loop, nest.axis
        begin, end = loop.args[2 * axis : 2 * axis + 2]
        length = b.binary(C.SUB, b.cast(end, i64), b.cast(begin, i64))
        choice = b.if_(b.binary(C.CMP_GE, length, b.const(_LEAST, i64)))
        clone_into(self.func, [loop], {}, choice.regions[1])
        with b.inside(choice.regions[0]):
            self.arrays = {op: self.array(number_type(op)) for op in self.kept()}
            self.mask = self.array(u1)
            zero = b.const(0, i32)
            rounded = b.binary(C.ADD, length, b.const(_LANES - 1, i64))
            groups = b.cast(b.binary(C.BIT_SAR, rounded, b.const(_BITS, i64)), i32)
            bounds = [*loop.args]
            bounds[2 * axis : 2 * axis + 2] = zero, groups
            new = b.range_for(
                tuple(bounds), ForAttr(axes=loop.attr.axes, loop_name=loop.attr.loop_name)
            )
            with b.inside(new.regions[0]):
                at = {number: b.loop_index(new, number) for number in range(len(bounds) // 2)}
                self.common = {op: at[op.attr] for op in self.indices if op.attr != axis}
                past = b.binary(C.BIT_SHL, b.cast(at[axis], i64), b.const(_BITS, i64))
                left = b.binary(C.SUB, length, past)
                self.first = b.cast(b.binary(C.ADD, b.cast(begin, i64), past), i32)
                self.left = b.cast(b.binary(C.MIN, left, b.const(_LANES, i64)), i32)
                self.group()
        at = self.body.ops.index(loop)
        self.body.ops[at : at + 1] = b.ops

    def array(self, t: DataType) -> Op:
        """One element for each iteration of a group; truth is as wide as other numbers."""
        return self.b.array(i32 if t is u1 else t, _LANES, LANES)

    def kept(self) -> list[Op]:
        """Variables and values from before the inner loop that are used in it or after it."""
        found: dict[Op, None] = {}
        for op in (*self.inside, *flat(self.nest.after)):
            for arg in op.args:
                self.keep(arg, found)
        return list(found)

    def keep(self, op: Op, found: dict[Op, None]) -> None:
        if op not in self.early or op in self.indices:
            return
        if op.code == C.ALLOCA or (isinstance(op.type, DataType) and self.varies(op)):
            found[op] = None
        else:  # an address, or the same for all: to be computed again
            for arg in op.args:
                self.keep(arg, found)

    def varies(self, op: Op) -> bool:
        """True if a value differs between the iterations of a group, or must not be made again."""
        known = self.varying.get(op)
        if known is None:
            known = op in self.early and (
                not C.PURE[op.code]
                or (op in self.indices and op.attr == self.nest.axis)
                or any(map(self.varies, op.args))
            )
            self.varying[op] = known
        return known

    def get(self, array: Op, lane: Op, t: DataType) -> Op:
        value = self.b.load(self.b.element(array, lane))
        return self.b.binary(C.CMP_NE, value, self.b.const(0, i32)) if t is u1 else value

    def put(self, array: Op, lane: Op, value: Op) -> None:
        if value.type is u1:
            value = self.b.select(value, self.b.const(1, i32), self.b.const(0, i32))
        self.b.store(self.b.element(array, lane), value)

    def value(self, op: Op, made: dict[Op, Op]) -> Op:
        """A constant or an address of the code before the inner loop, made again."""
        if op in made:
            return made[op]
        if op not in self.early:
            return op
        args = tuple([self.value(arg, made) for arg in op.args])
        new = made[op] = self.b.emit(op.code, args, op.attr, op.type)
        self.func.origins[new.id] = op.id
        return new

    def index(self, lane: Op) -> dict[Op, Op]:
        """The loop's indices in an iteration of the group."""
        at = self.b.binary(C.ADD, self.first, lane)
        return self.common | {op: at for op in self.indices if op.attr == self.nest.axis}

    def group(self) -> None:
        b, nest = self.b, self.nest
        zero, lanes = b.const(0, i32), b.const(_LANES, i32)
        self.each(nest.before, after=False)
        loop = b.range_for((zero, lanes), ForAttr())
        with b.inside(loop.regions[0]):
            lane = b.loop_index(loop, 0)
            self.put(self.mask, lane, b.binary(C.CMP_LT, lane, self.left))
        some = b.alloca(i32)
        forever = b.while_()
        with b.inside(forever.regions[0]):
            b.store(some, zero)
            loop = b.range_for((zero, lanes), ForAttr())
            with b.inside(loop.regions[0]):
                stays = _Lane(self, b.loop_index(loop, 0)).run()
                stays = b.select(stays, b.const(1, i32), zero)
                b.store(some, b.binary(C.BIT_OR, b.load(some), stays))
            b.emit(C.WHILE_CONTROL, (b.binary(C.CMP_NE, b.load(some), zero),))
        self.each(nest.after, after=True)

    def each(self, ops: list[Op], after: bool) -> None:
        """The ops before or after the inner loop, for the iterations of a group."""
        b = self.b
        loop = b.range_for((b.const(0, i32), self.left), ForAttr())
        with b.inside(loop.regions[0]):
            lane = b.loop_index(loop, 0)
            made = self.index(lane)
            if after:
                for op, array in self.arrays.items():
                    value = self.get(array, lane, number_type(op))
                    if op.code == C.ALLOCA:
                        made[op] = b.alloca(number_type(op))
                        b.store(made[op], value)
                    else:
                        made[op] = value
                for op in flat(ops):
                    for arg in op.args:
                        self.value(arg, made)
            for op in ops:
                if op not in made:
                    new = clone(self.func, op, made, b.block)
                    self.func.origins[new.id] = op.id
                    b.ops.append(new)
            if not after:
                for op, array in self.arrays.items():
                    value = b.load(made[op]) if op.code == C.ALLOCA else made[op]
                    self.put(array, lane, value)


class _Lane:
    """A few rounds of the inner loop's body, for one iteration of a group.

    now: the values of variables. made: of ops. inside: the iteration is in the loop. active: it
    is also still in this round.
    """

    def __init__(self, masking: _Masking, lane: Op) -> None:
        self.m = masking
        self.b = masking.b
        self.lane = lane
        self.no = self.b.const(False, u1)
        self.known = masking.index(lane)
        self.now: dict[Op, Op] = {}
        for op, array in masking.arrays.items():
            value = masking.get(array, lane, number_type(op))
            (self.now if op.code == C.ALLOCA else self.known)[op] = value
        self.variables = list(self.now)
        self.inside = masking.get(masking.mask, lane, u1)

    def run(self) -> Op:
        """True if the iteration is in the loop afterwards."""
        for _ in range(_ROUNDS):
            self.made = dict(self.known)
            self.active = self.inside
            self.ops(self.m.nest.inner.regions[0].ops, None)
        for op in self.variables:
            self.m.put(self.m.arrays[op], self.lane, self.now[op])
        self.m.put(self.m.mask, self.lane, self.inside)
        return self.inside

    def both(self, a: Op, c: Op | None) -> Op:
        """``a and c``. ``c`` may be poison where ``a`` is false, so this is no ``a & c``."""
        return a if c is None else self.b.select(a, c, self.no)

    def ops(self, ops: list[Op], condition: Op | None) -> None:
        """condition: of the branch that they are in."""
        b = self.b
        for op in ops:
            if op.code == C.IF:
                chosen = self.of(op.args[0])
                self.ops(op.regions[0].ops, self.both(chosen, condition))
                if op.regions[1].ops:
                    self.ops(op.regions[1].ops, self.both(b.unary(C.LOGIC_NOT, chosen), condition))
            elif op.code == C.ALLOCA:
                self.now[op] = b.const(0, number_type(op))
            elif op.code == C.LOCAL_LOAD:
                self.made[op] = self.now[op.args[0]]
            elif op.code == C.LOCAL_STORE:
                runs = self.both(self.active, condition)
                variable = op.args[0]
                self.now[variable] = b.select(runs, self.of(op.args[1]), self.now[variable])
            elif op.code == C.WHILE_CONTROL:
                runs = self.both(self.active, condition)
                stays = self.of(op.args[0])
                self.inside = b.select(runs, stays, self.inside)
                self.active = b.select(runs, stays, self.active)
            elif op.code == C.CONTINUE:
                runs = self.both(self.active, condition)
                self.active = b.select(runs, self.no, self.active)
            elif op not in self.made:
                args = tuple([self.of(arg) for arg in op.args])
                new = self.made[op] = b.emit(op.code, args, op.attr, op.type)
                self.m.func.origins[new.id] = op.id

    def of(self, op: Op) -> Op:
        return self.m.value(op, self.made)
