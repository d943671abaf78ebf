"""Rules of the verifier that need only an opcode, its types and the number of operands."""

from __future__ import annotations

from typing import Final

from ..types import DataType, PointerType, Type, i64, u64, void
from . import codes as C
from .codes import CODES
from .spec import StageSpec
from .typerules import operand_type, result_type

__all__ = ["COUNTS", "signature_problem"]

COUNTS: Final[list[tuple[int, int]]] = [
    (len(info.operands) - 1, 1 << 30)
    if info.operands and info.operands[-1].startswith("*")
    else (len(info.operands), len(info.operands))
    for info in CODES
]
"""Least and most operands of each opcode."""
_RESULT: Final = [info.result for info in CODES]
_POINTER_FIRST: Final = [
    C.ATOMIC[code] or C.WRITE[code] or C.READ[code] or C.STACK[code] for code in range(C.COUNT)
]

_ADDRESSES: Final = {
    C.FRAGMENT_LOAD: 2, C.FRAGMENT_MMA: 3, C.FRAGMENT_STORE: 2, C.ASYNC_COPY: 2,
    C.ATOMIC_ADD_VECTOR: 1, C.WARPGROUP_MMA: 3, C.WARPGROUP_WAIT: 1,
}  # fmt: skip
"""So many operands, the first ones, are addresses."""


def signature_problem(code: int, type: Type, args: tuple[Type, ...], spec: StageSpec) -> str | None:
    """The fault of an op of these types; None if there is none."""
    name = C.NAME[code]
    low, high = COUNTS[code]
    if not low <= len(args) <= high:
        return f"{name} takes {low}{' or more' if high > low else ''} operands, not {len(args)}"
    if code in spec.forbidden:
        return f"{name} has no place in this stage"
    for i, t in enumerate(args):
        if t is void and code != C.LOOP_INDEX:
            return f"operand {i} of {name} has no value"
    return _result_problem(code, type, args, spec) or _operand_problem(code, type, args, spec)


def _result_problem(code: int, type: Type, args: tuple[Type, ...], spec: StageSpec) -> str | None:
    name, rule = C.NAME[code], _RESULT[code]
    if rule == "void":
        return None if type is void else f"{name} has no value, so its type is void, not {type}"
    if rule == "pointer":
        good = isinstance(type, PointerType) and isinstance(type.elem, DataType)
        return None if good else f"{name} returns an address, not {type}"
    if rule == "argument" and isinstance(type, PointerType) and isinstance(type.elem, DataType):
        return None
    if rule == "call" and type is void:
        return None
    if not isinstance(type, DataType):
        return f"{name} returns a value, not {type}"
    if rule in ("any", "argument", "call"):
        if code == C.LAUNCH_SEED and type is not u64:
            return f"launch_seed is u64, not {type}"
        if code == C.ADDRESS and type is not u64:
            return f"address is u64, not {type}"
        if code == C.CLOCK and type is not i64:
            return f"clock is i64, not {type}"
        if code == C.CAST_BITS and args[0].size != type.size:
            return f"cast_bits from {args[0]} to {type} changes the width"
        return None
    try:
        expected = result_type(code, args)
    except KeyError:
        return f"{name} cannot be applied to {', '.join(map(str, args))}"
    if expected is type:
        return None
    # From integers these give the configured default real type, which the IR does not record.
    free = rule == "truediv" or (rule == "real" and not spec.typed)
    if free and type.is_real and not all(t.is_real for t in args):
        return None
    return f"{name} of {', '.join(map(str, args))} returns {expected}, not {type}"


def _operand_problem(code: int, type: Type, args: tuple[Type, ...], spec: StageSpec) -> str | None:
    name = C.NAME[code]
    if _POINTER_FIRST[code]:
        if not args[0].is_ptr:
            return f"operand 0 of {name} must be an address, not {args[0]}"
    elif code in (C.SHIFT_PTR, C.EXTERNAL_PTR):
        if args[0] is not type:
            return f"{name} of {args[0]} cannot give {type}"
    elif code == C.ADDRESS:
        return None if args[0].is_ptr else f"operand 0 of {name} must be an address, not {args[0]}"
    elif code in _ADDRESSES:
        count = _ADDRESSES[code]
        if not all(t.is_ptr for t in args[:count]) or any(t.is_ptr for t in args[count:]):
            return f"operands 0 to {count - 1} of {name}, and no others, are addresses"
    elif code == C.CALL:
        return None
    elif any(t.is_ptr for t in args):
        return f"an operand of {name} is an address"
    if _POINTER_FIRST[code] and any(t.is_ptr for t in args[1:]):
        return f"the value of {name} is an address"
    if C.BITWISE[code] and any(t.is_real for t in args):
        return f"{name} takes integers"
    if C.REAL_ONLY[code] and not args[0].is_real:
        return f"{name} takes floats"
    if not spec.typed:
        return None
    for i, t in enumerate(args):
        want = operand_type(code, i, args, type)
        if want is not None and t is not want:
            return f"operand {i} of {name} must be {want} here, not {t}"
    return None
