"""The opcodes without which a pass has nothing to do: known before the pass is imported.

A kernel that never needs a pass never loads it, which is a tenth of what the first kernel of a
process loads.
"""

from __future__ import annotations

from typing import Final

from ..analysis import SUBGROUP_OPS
from ..ir import codes as C

__all__ = ["NEEDS"]

_ATOMICS: Final = bytes([code for code in range(C.COUNT) if C.ATOMIC[code]])
_LOOPS: Final = bytes([C.RANGE_FOR, C.WHILE])
_SUBGROUPS: Final = bytes(SUBGROUP_OPS)

NEEDS: Final[dict[str, tuple[bytes, int]]] = {
    "cache_loop_invariant_global_vars": (_LOOPS, 1),
    "demote_atomics": (_ATOMICS, 1),
    "demote_block_sync": (bytes([C.BLOCK_SYNC, C.ARRAY_ALLOCA]) + _SUBGROUPS, 1),
    "demote_random": (bytes([C.RAND]), 1),
    "demote_subgroups": (_SUBGROUPS, 1),
    "loop_invariant_code_motion": (
        bytes([c for c in range(C.COUNT) if C.LOOP[c] and c != C.OFFLOADED]), 1
    ),
    "make_thread_local": (_ATOMICS, 1),
    "mask_loops": (bytes([C.WHILE]), 1),
    "pack_products": (bytes([C.RANGE_FOR]), 2),
    "privatize_scatter": (_ATOMICS, 1),
    "remove_user_asserts": (bytes([C.ASSERT]), 1),
    "serialize_scatter": (_ATOMICS, 1),
    "unroll_inner_loops": (bytes([C.RANGE_FOR]), 1),
}  # fmt: skip
"""By pass: opcodes, and the least number of ops with one of them. In a kernel with fewer the pass
changes nothing, and says nothing."""
