"""insert_overflow_reports: under debug, reports integer results that wrapped.

::

    <i32> $3 = add $1, $2          <i32> $3 = add $1, $2
                                   <i64> $4 = cast_value $1
                                   <i64> $5 = cast_value $2
                                   <i64> $6 = add $4, $5
                                   <i64> $7 = cast_value $3
                                   <u1> $8 = cmp_eq $7, $6
                                   $9 : assert $8, $1, $2 {kind='overflow' text='... %d + %d'}

An assert of this kind does not end the launch, because wrapping is often intended. The launch
counts the failures of each assert and reports them at its end, with the operands of the first
failure. The pass checks + - * and <<, and the atomics of += -= and *=. For types of up to 32 bits
it repeats the operation in 64 bits. For 64-bit types it compares signs or the order of operands
and result, or divides back. Floats and ``u1`` never wrap and do not change.
"""

from __future__ import annotations

from typing import Final

from ..ir import AssertAttr, Block, Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import DataType, i64, u64
from .manager import PassCx
from .registry import register

_ATOMICS: Final = {C.ATOMIC_ADD: C.ADD, C.ATOMIC_MUL: C.MUL}
_NAMES: Final = {
    C.ADD: "Addition", C.SUB: "Subtraction", C.MUL: "Multiplication", C.BIT_SHL: "Shift left",
}  # fmt: skip
_SIGNS: Final = {C.ADD: "+", C.SUB: "-", C.MUL: "*", C.BIT_SHL: "<<"}


@register("insert_overflow_reports")
def insert_overflow_reports(func: Func, cx: PassCx) -> bool:
    """Record where integer + - * << wrap, for a report after the launch."""
    changed = False
    for block in all_blocks(func.body):
        if any(_operation(op) for op in block.ops):
            _watch_block(func, block)
            changed = True
    return changed


def _operation(op: Op) -> int | None:
    """The operation of ``op`` that may wrap; None if there is none."""
    code = _ATOMICS.get(op.code, op.code)
    integer = isinstance(op.type, DataType) and op.type.is_int and op.type.bits > 1
    return code if integer and code in _SIGNS else None


def _watch_block(func: Func, block: Block) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        b.ops.append(op)
        code = _operation(op)
        if code is None:
            continue
        b.loc = op.loc
        x, y, result = op.args[0], op.args[1], op
        if op.code in _ATOMICS:
            # The op itself returns the old value. A subtraction is written as adding the negative.
            if code == C.ADD and y.code == C.NEG:
                code, y = C.SUB, y.args[0]
            x, result = op, b.binary(code, op, y)
        fine = _fits(b, code, x, y, result)
        text = f"{_NAMES[code]} overflow detected: {op.type}: %d {_SIGNS[code]} %d"
        b.emit(C.ASSERT, (fine, x, y), AssertAttr("overflow", text))
    block.ops = b.ops


def _fits(b: Builder, code: int, x: Op, y: Op, result: Op) -> Op:
    """The condition that ``result`` is the value from ``x`` and ``y`` without wrapping."""
    t = result.type
    assert isinstance(t, DataType)
    if code == C.BIT_SHL:
        # Shifting back restores x, unless bits or the sign were lost; amounts count modulo the
        # width, so that one beyond it is checked separately.
        back = b.binary(C.CMP_EQ, b.binary(C.BIT_SAR if t.is_signed else C.BIT_SHR, result, y), x)
        amount = b.cast(y, u64)
        return b.binary(C.BIT_AND, back, b.binary(C.CMP_LT, amount, b.const(t.bits, u64)))
    if t.bits <= 32:
        wide = i64 if t.is_signed else u64
        exact = b.binary(code, b.cast(x, wide), b.cast(y, wide))
        return b.binary(C.CMP_EQ, b.cast(result, wide), exact)
    if code == C.MUL:
        return _product_fits(b, t, x, y, result)
    if not t.is_signed:
        return b.binary(C.CMP_GE, *((result, x) if code == C.ADD else (x, y)))
    # The sign of the result must be one that the signs of the operands allow.
    other = b.binary(C.BIT_XOR, y, result) if code == C.ADD else b.binary(C.BIT_XOR, x, y)
    lost = b.binary(C.BIT_AND, b.binary(C.BIT_XOR, x, result), other)
    return b.binary(C.CMP_GE, lost, b.const(0, t))


def _product_fits(b: Builder, t: DataType, x: Op, y: Op, result: Op) -> Op:
    """A product in 64 bits is right if its quotient by one factor is the other, or that is 0."""
    zero = b.binary(C.CMP_EQ, x, b.const(0, t))
    divisor = b.select(zero, b.const(1, t), x)
    fine = b.binary(C.BIT_OR, zero, b.binary(C.CMP_EQ, b.binary(C.DIV, result, divisor), y))
    if t.is_signed:
        # The one quotient that wraps itself.
        least = b.binary(C.CMP_EQ, y, b.const(t.min, t))
        both = b.binary(C.BIT_AND, b.binary(C.CMP_EQ, x, b.const(-1, t)), least)
        fine = b.binary(C.BIT_AND, fine, b.unary(C.LOGIC_NOT, both))
    return fine
