"""What values are called for people."""

from __future__ import annotations

from ...ir import Op
from ...ir import codes as C

__all__ = ["name_of"]


def name_of(op: Op) -> str:
    """What a value is called for people: the variable it comes from, else how it is made."""
    while op.code == C.CAST_VALUE:  # the variable is of another type than its use
        op = op.args[0]
    if op.code == C.LOCAL_LOAD:
        return str(op.args[0].attr)
    return f"{op.name}(...)"
