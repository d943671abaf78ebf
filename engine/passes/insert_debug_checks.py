"""insert_debug_checks: under debug, integer operations without a result are errors.

::

    <i32> $3 = floordiv $1, $2        <i32> $4 = const 0
                                      <u1> $5 = cmp_ne $2, $4
                                      $6 : assert $5 {kind='check' text='Integer division by zero'}
                                      <i32> $3 = floordiv $1, $2

The pass checks division and modulo by zero, and powers of integers with a negative exponent.
Division of floats, and divisors that are constants other than 0, need no check. Without debug the
results are defined (0; the truncated real power), and nothing is checked.
"""

from __future__ import annotations

from typing import Final

from ..ir import AssertAttr, Block, Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import DataType
from .manager import PassCx
from .registry import register

_BY_ZERO: Final = {
    C.DIV: "Integer division by zero",
    C.FLOORDIV: "Integer division by zero",
    C.MOD: "Integer modulo by zero",
    C.FLOORMOD: "Integer modulo by zero",
}
_NEGATIVE: Final = "Negative exponent in pow(int, int) is not allowed"


@register("insert_debug_checks")
def insert_debug_checks(func: Func, cx: PassCx) -> bool:
    """Assert that integer divisors are not zero and integer exponents not negative."""
    changed = False
    for block in all_blocks(func.body):
        if any(_text(op) for op in block.ops):
            _check_block(func, block)
            changed = True
    return changed


def _text(op: Op) -> str:
    """The message for a failed check of ``op``; empty if it needs none."""
    code = op.code
    if code == C.POW:
        exponent = op.args[1]
        if not (op.type.is_int and exponent.type.is_signed):
            return ""
        return "" if exponent.code == C.CONST and exponent.attr >= 0 else _NEGATIVE
    text = _BY_ZERO.get(code, "")
    if text and op.type.is_int and not (op.args[1].code == C.CONST and op.args[1].attr != 0):
        return text
    return ""


def _check_block(func: Func, block: Block) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        text = _text(op)
        if text:
            b.loc = op.loc
            x = op.args[1]
            assert isinstance(x.type, DataType)
            compare = C.CMP_GE if op.code == C.POW else C.CMP_NE
            fine = b.binary(compare, x, b.const(0, x.type))
            b.emit(C.ASSERT, (fine,), AssertAttr("check", text))
        b.ops.append(op)
    block.ops = b.ops
