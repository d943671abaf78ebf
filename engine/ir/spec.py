"""The rules for the IR of each stage: one row per stage, read by the verifier.

``ast``        the output of the frontend: `break`, `truediv`, operands of mixed types
``lowered``    after lower_ast: no `break`; only a `while` may be left early
``typed``      after type_check: operands have the types of `typerules.operand_type`; no `truediv`
``offloaded``  after offload: the root holds tasks, and graph regions that hold the same
``accesses``   after lower_access: array elements are `shift_ptr` of a base and an offset
"""

from __future__ import annotations

from typing import Final

from ..named_tuple import NamedTuple
from . import codes as C

__all__ = ["STAGES", "StageSpec"]


class StageSpec(NamedTuple):
    """One stage.

    typed: operand and result types are exact. offloaded: the root holds `offloaded` ops
    and graph regions of such only.
    forbidden: opcodes that may not occur.
    indexed: `external_ptr` takes indices; before that ends, only arrays that the kernel makes
        (`array_alloca`) are addressed by `shift_ptr`. The extents of `linearize` are constants
        until then: bounds checks read the shape of such an array from them.
    early_exit: `while_control` and `break` may leave a `range_for`.
    """

    typed: bool
    offloaded: bool
    forbidden: frozenset[int]
    indexed: bool = True
    early_exit: bool = False


_TASKS: Final = {C.OFFLOADED, C.BOUNDS, C.GLOBAL_TMP, C.LAUNCH_SEED}
_LOWERED: Final = _TASKS | {C.BREAK}
_TYPED: Final = _LOWERED | {C.TRUEDIV}
_OFFLOADED: Final = {C.BREAK, C.TRUEDIV}

STAGES: Final[dict[str, StageSpec]] = {
    "ast": StageSpec(False, False, frozenset(_TASKS), early_exit=True),
    "lowered": StageSpec(False, False, frozenset(_LOWERED)),
    "typed": StageSpec(True, False, frozenset(_TYPED)),
    "offloaded": StageSpec(True, True, frozenset(_OFFLOADED)),
    "accesses": StageSpec(
        True, True, frozenset({C.BREAK, C.TRUEDIV, C.RAND}), indexed=False
    ),
}  # fmt: skip
