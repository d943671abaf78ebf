"""Result types of operations, from the types of their operands.

The frontend asks for them when it builds an op, `type_check` to know which casts to insert, the
verifier to check typed IR. ``default_fp`` matters only where integers become floats.
"""

from __future__ import annotations

from ..types import DataType, PointerType, Type, f32, f64, i32, i64, promote, u1
from . import codes as C

__all__ = ["operand_type", "result_type"]

_RULE = [info.result for info in C.CODES]


def result_type(code: int, args: tuple[Type, ...], default_fp: DataType = f32) -> Type | None:
    """The type of ``code`` applied to operands of these types; None if the op's type is free.

    Raises KeyError when the operands have no common type (a pointer, void).
    """
    rule = _RULE[code]
    if rule == "promote":
        return promote(args[0], args[1])
    if rule == "bool":
        return u1
    if rule in ("same", "left"):
        return args[0]
    if rule == "int":
        return i32
    if rule == "long":
        return i64
    if rule == "real":
        return args[0] if args[0].is_real else default_fp
    if rule == "truediv":
        a, b = (t if t.is_real else default_fp for t in args)
        return promote(a, b)
    if rule == "pow":
        return args[0] if args[1].is_int else promote(args[0], args[1])
    if rule == "atan2":
        return f64 if f64 in args else f32
    if rule == "select":
        return promote(args[1], args[2])
    if rule == "pointee":
        pointer = args[0]
        if not isinstance(pointer, PointerType):
            raise KeyError(pointer)
        return pointer.elem
    return None


def operand_type(
    code: int, index: int, args: tuple[Type, ...], result: Type, default_fp: DataType = f32
) -> Type | None:
    """The type that operand ``index`` must have in typed IR; None if any will do.

    In typed IR both sides of arithmetic have the result's type, both sides of a comparison their
    common type, the amount of a shift the left type, the exponent of an integer power its own
    type, the value of a store or atomic the pointee's type, a condition ``u1``.
    """
    if C.COMPARE[code]:
        return promote(args[0], args[1])
    if C.BINARY[code]:
        if code == C.POW and index == 1 and args[1].is_int:
            return None
        return result
    if C.ATOMIC[code] or C.WRITE[code] or C.STACK[code]:
        pointer = args[0]
        return pointer.elem if index > 0 and isinstance(pointer, PointerType) else None
    if _RULE[code] == "real":
        return result
    if code == C.LOGIC_NOT:
        return u1
    if code == C.SUBGROUP_SHUFFLE:
        return i32 if index > 0 else result
    if code == C.SUBGROUP_BALLOT:
        return i32 if index > 0 else u1
    if code in (C.FRAGMENT_LOAD, C.FRAGMENT_STORE, C.ASYNC_COPY) and index == 2:
        return i64 if code == C.ASYNC_COPY else i32
    if code == C.WARPGROUP_MMA and index == 3:
        return i32
    if code == C.SELECT:
        return u1 if index == 0 else result
    if code in (C.IF, C.WHILE_CONTROL) or (code == C.ASSERT and index == 0):
        return u1
    if code in (C.RANGE_FOR, C.BOUNDS):
        return i32
    if code == C.EXTERNAL_PTR and index > 0:
        return i32
    return None
