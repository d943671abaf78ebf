"""The effects of opcodes on memory, and those that several iterations execute together."""

from __future__ import annotations

from typing import Final

from ..ir import codes as C

__all__ = ["ATOMIC", "FENCE", "INIT", "KIND", "LOAD", "STORE", "SUBGROUP_OPS"]

LOAD: Final = 1
STORE: Final = 2
ATOMIC: Final = 3
INIT: Final = 4
FENCE: Final = 5


def _kind(code: int) -> int:
    if C.READ[code]:
        return LOAD
    if C.WRITE[code]:
        return STORE
    if C.ATOMIC[code]:
        return ATOMIC
    if C.FENCE[code]:
        return FENCE
    return INIT if code == C.ALLOCA else 0


KIND: Final = [_kind(code) for code in range(C.COUNT)]
"""The effect of an opcode on memory: 0 (none), LOAD, STORE, ATOMIC, INIT (an alloca) or FENCE."""

SUBGROUP_OPS: Final = frozenset({
    C.SUBGROUP_SHUFFLE, C.SUBGROUP_BALLOT, C.SUBGROUP_SYNC, C.FRAGMENT_LOAD, C.FRAGMENT_MMA,
    C.FRAGMENT_STORE, C.WARPGROUP_MMA, C.WARPGROUP_WAIT,
})  # fmt: skip
"""Operations that the iterations of a subgroup do together."""
