"""type_check: converts operands to the types that their operation requires.

The frontend sets the result type of every op but leaves the operands as the user wrote them. This
pass inserts casts in front of the op, as `typerules.operand_type` requires::

    <f32> $3 = add $1, $2                 <f32> $4 = cast_value $1
    $5 : if $6 then {                     <f32> $3 = add $4, $2
                                          <u1> $8 = cmp_ne $6, <0>
                                          $5 : if $8 then {

A constant operand becomes a constant of the required type if that is exact. Conditions become
comparisons with 0. ``truediv`` becomes ``div`` of its result type. Indices and loop bounds are
converted to i32, the amount of a shift to the type of the left operand, the value of a store,
atomic or push to the type of its destination, a returned value to the declared type. The exponent
of an integer power keeps its type.
"""

from __future__ import annotations

from typing import Any

from ..analysis.uses import OpList, code_mask
from ..errors import QuadrantsTypeError
from ..ir import Block, Func, Op, normalize, operand_type
from ..ir import codes as C
from ..ir.edit import outer_first
from ..types import DataType, Type, f16, i32, i64, u1, u32, u64
from .manager import PassCx
from .registry import register

# Codes with operands that `operand_type` has an opinion on; those that most often have operands of
# their own type are apart.
_PLAIN = code_mask(
    C.BINARY[c] and not C.COMPARE[c] and c not in (C.TRUEDIV, C.POW) for c in range(C.COUNT)
)
_RULED = code_mask(
    C.COMPARE[c] or C.ATOMIC[c] or C.WRITE[c] or C.STACK[c]
    or c in (C.TRUEDIV, C.POW, C.SQRT, C.RSQRT, C.EXP, C.LOG, C.LOGIC_NOT, C.SELECT, C.IF,
             C.WHILE_CONTROL, C.ASSERT, C.RANGE_FOR, C.BOUNDS, C.EXTERNAL_PTR, C.RETURN, C.CALL)
    for c in range(C.COUNT)
)  # fmt: skip
_right: dict[DataType, set[tuple[Any, ...]]] = {}
"""By the float type of integers: opcodes with types of result and operands that need no cast."""

_EXACT = 1 << 11  # every integer up to here is exact in every real type


@register("type_check", silent=True)
def type_check(func: Func, cx: PassCx) -> bool:
    """Insert the casts that operands need; truediv becomes div."""
    checker = _Checker(func, cx.default_fp)
    ops = cx.ops()
    wrong = checker.wrong(ops)
    for block in outer_first([op for op in ops.ops if op in wrong] if wrong else ()):
        checker.block(block, wrong)
    changed = bool(wrong)
    if func.stage == "lowered":
        func.stage = "typed"
        changed = True
    return changed


class _Checker:
    def __init__(self, func: Func, default_fp: DataType) -> None:
        self.func = func
        self.default_fp = default_fp
        self.right = _right.setdefault(default_fp, set())

    def wrong(self, ops: OpList) -> set[Op]:
        """The ops with operands that need a cast, and each truediv."""
        found = {
            op for op in ops.of(_PLAIN)
            if op.args[0].type is not op.type or op.args[1].type is not op.type
        }  # fmt: skip
        right = self.right
        for op in ops.of(_RULED):
            if (op.code, op.type, tuple([a.type for a in op.args])) in right:
                continue
            if op.code == C.TRUEDIV or self.wanted(op):
                found.add(op)
        return found

    def wanted(self, op: Op) -> list[tuple[int, Type]]:
        """The operands of ``op`` that need a cast, by number, with their types."""
        code = op.code
        types = tuple([a.type for a in op.args])
        found: list[tuple[int, Type]] = []
        for i, t in enumerate(types):
            if code == C.RETURN:
                wanted = self.func.results[i]
            elif code == C.CALL:
                wanted = self.func.callees[op.attr].args[i].type
            else:
                wanted = operand_type(code, i, types, op.type, self.default_fp)
            if wanted is not None and wanted is not t:
                found.append((i, wanted))
        if not found and code not in (C.RETURN, C.CALL):  # whose types are those of a signature
            self.right.add((code, op.type, types))
        return found

    def block(self, block: Block, wrong: set[Op]) -> None:
        """Make the operands of those ops of a block right that are in ``wrong``."""
        out: list[Op] = []
        for op in block.ops:
            if op in wrong:
                if op.code == C.TRUEDIV:
                    op.code = C.DIV
                self.operands(op, block, out)
            out.append(op)
        block.ops = out

    def operands(self, op: Op, block: Block, out: list[Op]) -> None:
        """Cast the operands of ``op`` that need it; the casts go to ``out``."""
        new = list(op.args)
        for i, wanted in self.wanted(op):
            a = new[i]
            if op.code == C.EXTERNAL_PTR and op.attr == "clamp":
                a = self.saturated(a, op, block, out)
            new[i] = self.cast(a, wanted, op, block, out)
        op.args = tuple(new)

    def saturated(self, index: Op, user: Op, block: Block, out: list[Op]) -> Op:
        """``index`` limited to what i32 holds from 0 on: it is clamped, so it must not wrap."""
        t = index.type
        limits = ((C.MIN, i32.max), (C.MAX, 0)) if t is i64 else ((C.MIN, i32.max),)
        if t not in (i64, u32, u64):
            return index
        for code, limit in limits:
            number = self.func.new_op(C.CONST, t, (), limit, user.loc, block)
            index = self.func.new_op(code, t, (index, number), None, user.loc, block)
            out += (number, index)
        return index

    def cast(self, x: Op, t: Type, user: Op, block: Block, out: list[Op]) -> Op:
        """``x`` as a value of type ``t`` for ``user``."""
        func = self.func
        source = x.type
        if not isinstance(source, DataType) or not isinstance(t, DataType):
            raise QuadrantsTypeError.from_loc(
                f"'{user.name}' cannot take a value of type {source} where it needs {t}", user.loc
            )
        if x.code == C.CONST and _exact(x.attr, source, t):
            new = func.new_op(C.CONST, t, (), normalize(x.attr, t), x.loc, block)
        elif t is u1:
            zero = func.new_op(C.CONST, source, (), normalize(0, source), user.loc, block)
            out.append(zero)
            new = func.new_op(C.CMP_NE, u1, (x, zero), None, user.loc, block)
        else:
            new = func.new_op(C.CAST_VALUE, t, (x,), None, user.loc, block)
        out.append(new)
        return new


def _exact(value: float | int, source: DataType, t: DataType) -> bool:
    """True if a constant can have type ``t`` at once, with the same result as a cast."""
    if source.is_int:
        return t.is_int or abs(value) <= _EXACT
    return t is u1 or (t.is_real and t.bits >= source.bits and t is not f16)
