"""Names of values in messages."""

from __future__ import annotations

from ...ir import Op
from ...ir import codes as C

__all__ = ["name_of"]


def name_of(op: Op) -> str:
    """The name of a value in messages: the variable it comes from, else the op that makes it."""
    while op.code == C.CAST_VALUE:  # the variable is of another type than its use
        op = op.args[0]
    if op.code == C.LOCAL_LOAD:
        return str(op.args[0].attr)
    return f"{op.name}(...)"
