"""Integers in addresses: sums that are plain parts of one, and values of few bits.

Plain sums are computed in 64 bits, where none overflows.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from ..ir import Op
from ..ir import codes as C
from ..types import i32, i64

__all__ = ["NARROW", "is_index_sum", "narrow_in_addresses", "only_in_addresses"]

_INDEX_LEAVES: Final = frozenset(
    {C.CONST, C.LOOP_INDEX, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD}
)
_SUMS: Final = frozenset({C.ADD, C.SUB, C.MUL, C.BIT_SHL})


def is_index_sum(op: Op, depth: int) -> bool:
    """True if ``op`` is a sum that may be plain in an address, where it cannot overflow."""
    if depth == 0 or op.code not in _SUMS or op.type is not i32:
        return False
    a, b = op.args
    if op.code == C.ADD and (_is_corner(a) or _is_corner(b)):
        return a.code == C.LOOP_INDEX or b.code == C.LOOP_INDEX
    if op.code == C.MUL:
        return (a.code == C.LOOP_INDEX and b.code in _INDEX_LEAVES) or (
            b.code == C.LOOP_INDEX and a.code in _INDEX_LEAVES
        )
    if op.code == C.BIT_SHL:
        return a.code == C.LOOP_INDEX and b.code == C.CONST and 0 <= b.attr < 31
    return (a.code in _INDEX_LEAVES or is_index_sum(a, depth - 1)) and (
        b.code in _INDEX_LEAVES or is_index_sum(b, depth - 1)
    )


def _is_corner(op: Op) -> bool:
    """True for the first index of a tile, to which loops over the tile add theirs."""
    return op.code == C.CAST_VALUE and op.args[0].type is i64


_ADDRESSES: Final = frozenset({C.LINEARIZE, C.SHIFT_PTR})
_PLAIN: Final = _SUMS | {C.LOOP_INDEX}


def _is_plain(op: Op) -> bool:
    """True if ``op`` may be plain in an address."""
    return op.code == C.LOOP_INDEX or is_index_sum(op, 4)


def only_in_addresses(ops: list[Op]) -> set[int]:
    """Ids of those of ``ops`` (in program order) whose i32 value only addresses need."""
    plain = {op for op in ops if op.code in _PLAIN and _is_plain(op)}
    if not plain:
        return set()
    addresses = [op for op in ops if op.code in _ADDRESSES]
    others = [op.args for op in ops if op not in plain and op.code not in _ADDRESSES]
    needed = set(chain.from_iterable(others))
    for op in addresses:
        indices = op.args[: op.attr] if op.code == C.LINEARIZE else op.args[1:]
        parts = [a for a in indices if _is_plain(a)]
        needed.update([a for a in op.args if a not in parts])
    unused: set[int] = set()
    for op in reversed([op for op in ops if op in plain]):  # users before what they use
        if op in needed:
            needed.update(op.args)
        else:
            unused.add(op.id)
            needed.update([a for a in op.args if a.code in (C.ARG_LOAD, C.CAST_VALUE)])
    return unused


_DIVISIONS: Final = frozenset({C.BIT_SHR, C.BIT_SAR, C.DIV, C.FLOORDIV})
_PRODUCTS: Final = frozenset({C.MUL, C.BIT_SHL})
_REMAINDERS: Final = frozenset({C.MOD, C.FLOORMOD, C.BIT_AND})

NARROW: Final = _DIVISIONS | _REMAINDERS | {C.SUB, C.CAST_VALUE}
"""Operations that may make integers of few bits of others."""


def _is_narrow(op: Op) -> bool:
    """True if LLVM may see ``op`` as an integer of fewer bits than its type has."""
    code = op.code
    if code not in NARROW or not op.type.is_int:
        return False
    if code in _REMAINDERS:
        return any(a.code == C.CONST for a in op.args)
    if code == C.CAST_VALUE:
        (source,) = op.args
        return source.type.is_int and source.type.bits < 32 and source.code != C.GLOBAL_LOAD
    if code == C.SUB:  # x - x / 16 * 16
        product = op.args[1]
        return product.code in _PRODUCTS and any(a.code in _DIVISIONS for a in product.args)
    return op.args[0].code in _PRODUCTS


def narrow_in_addresses(ops: list[Op]) -> set[int]:
    """Ids of those of ``ops`` that make integers of few bits, from which addresses are made."""
    if not any(_is_narrow(op) for op in ops if op.code in NARROW):
        return set()
    stored: dict[Op, list[Op]] = {}
    left: list[Op] = []
    for op in ops:
        if op.code in _ADDRESSES:
            left += op.args
        elif op.code == C.LOCAL_STORE:
            stored.setdefault(op.args[0], []).append(op.args[1])
    seen: set[Op] = set()
    while left:
        op = left.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.code == C.LOCAL_LOAD:
            left += stored.get(op.args[0], ())
        elif op.code not in (C.GLOBAL_LOAD, C.LOOP_INDEX):
            left += op.args
    return {op.id for op in seen if _is_narrow(op)}
