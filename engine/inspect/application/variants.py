"""Variants of a kernel that mean the same: with other rounding, or another order of iterations.

They show how far results may differ between machines without a fault; see `residue`.

Rounding
    `Rounding` makes the result of each float operation one unit in the last place larger or smaller
    (mathematical functions: 8 units, since machines have different ones). A hash of its bits
    chooses which, so the errors of a loop do not all have the same sign, and a run can be repeated.
    Results with few significant bits are exact, such as sums of small integers: they stay.
Order
    `turn` makes the parallel loops run from the last iteration to the first. Run on one thread,
    lists that atomics fill then have the opposite order.
"""

from __future__ import annotations

from typing import Any, Final

from ...ir import Block, Builder, Func, Op
from ...ir import codes as C
from ...ir.edit import walk
from ...named_tuple import NamedTuple
from ...passes.manager import Instrument
from ...types import DataType, f16, f32, f64, i16, i32, i64

__all__ = ["Rounding", "turn"]


class _Format(NamedTuple):
    """A float type. fraction: bits of it. exact: so many low bits are 0 in exact results."""

    bits: DataType
    fraction: int
    exact: int


_FORMATS: Final = {f16: _Format(i16, 10, 3), f32: _Format(i32, 23, 7), f64: _Format(i64, 52, 20)}
_ROUNDED: Final = frozenset({
    C.ADD, C.SUB, C.MUL, C.DIV, C.INV, C.SQRT, C.RSQRT, C.CAST_VALUE, C.EXP, C.LOG, C.SIN, C.COS,
    C.TAN, C.ASIN, C.ACOS, C.TANH, C.POW, C.ATAN2,
})  # fmt: skip
_CORRECT: Final = frozenset({C.SQRT, C.INV})
"""Mathematical functions that are rounded like an addition, but for fast_math."""
_UNITS: Final = 8
_HASH: Final = {16: 0x4E35, 32: 0x5851F42D, 64: 0x5851F42D4C957F2D}
_ALONE: Final = frozenset({
    C.BLOCK_SYNC, C.SUBGROUP_SHUFFLE, C.SUBGROUP_BALLOT, C.SUBGROUP_SYNC,
})  # fmt: skip
"""Ops by which an iteration knows its neighbours."""


class Rounding(Instrument):
    """Changes the rounding of finished IR. salt: changes of different salts differ."""

    def __init__(self, salt: int) -> None:
        self.salt: Final = salt
        self.changed = False

    def end(self, func: Func) -> None:
        """See `Instrument`."""
        repl: dict[Op, Op] = {}
        callees = [callee.body for callee in func.callees.values()]
        for block in [*callees, *(task.regions[1] for task in func.tasks())]:
            self._block(func, block, repl)
        self.changed = bool(repl)

    def _block(self, func: Func, block: Block, repl: dict[Op, Op]) -> None:
        b = Builder(func, block, ops=[])
        for op in block.ops:
            b.loc = op.loc
            op.args = tuple([repl.get(arg, arg) for arg in op.args])
            if op.code == C.ATOMIC_ADD and op.args[1].type in _FORMATS:
                op.args = (op.args[0], self._off(b, op.args[1], 1))
            b.ops.append(op)
            for region in op.regions:
                self._block(func, region, repl)
            if op.code in _ROUNDED and op.type in _FORMATS:
                units = _UNITS if C.MATH[op.code] and op.code not in _CORRECT else 1
                repl[op] = self._off(b, op, units)
        block.ops = b.ops

    def _off(self, b: Builder, x: Op, units: int) -> Op:
        """Ops for ``x``, or a value so many units away from it."""
        assert isinstance(x.type, DataType)
        known = _FORMATS[x.type]
        t, width = known.bits, known.bits.bits
        bits = b.emit(C.CAST_BITS, (x,), None, t)
        salted = b.binary(C.BIT_XOR, bits, b.const((self.salt * 0x2545) % (1 << 15), t))
        mixed = b.binary(C.MUL, salted, b.const(_HASH[width], t))
        up = b.binary(C.CMP_LT, mixed, b.const(0, t))
        step = units * 2.0**-known.fraction
        factor = b.select(up, b.const(1 + step, x.type), b.const(1 - step, x.type))
        low = b.binary(C.BIT_AND, bits, b.const((1 << known.exact) - 1, t))
        exact = b.binary(C.CMP_EQ, low, b.const(0, t))
        return b.binary(C.MUL, x, b.select(exact, b.const(1, x.type), factor))


def turn(func: Func) -> bool:
    """Let parallel loops run from the last iteration to the first; func: of stage ``ast``.

    False if the order of its iterations cannot be turned.
    """
    ops = walk(func.body)
    if any(op.code in _ALONE for op in ops):
        return False
    loops = [op for op in ops if op.code == C.RANGE_FOR and func.is_root(op.block)
             and not op.attr.strictly_serialized]  # fmt: skip
    for loop in loops:
        _mirror(func, loop, loop.regions[0], {})
    return bool(loops)


def _mirror(func: Func, loop: Op, block: Block, repl: dict[Op, Op]) -> None:
    """Replace each index i of ``loop`` by begin + end - 1 - i."""
    b = Builder(func, block, ops=[])
    for op in block.ops:
        b.loc = op.loc
        op.args = tuple([repl.get(arg, arg) for arg in op.args])
        b.ops.append(op)
        for region in op.regions:
            _mirror(func, loop, region, repl)
        if op.code == C.LOOP_INDEX and op.args[0] is loop:
            axis: Any = op.attr
            begin, end = loop.args[2 * axis : 2 * axis + 2]
            last = b.binary(C.SUB, b.binary(C.ADD, begin, end), b.const(1, i32))
            repl[op] = b.binary(C.SUB, last, op)
    block.ops = b.ops
