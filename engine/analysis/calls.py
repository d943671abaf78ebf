"""Recursion: real functions of a kernel that call themselves, directly or through others."""

from __future__ import annotations

from ..ir import Func, walk
from ..ir import codes as C

__all__ = ["recursive"]


def recursive(func: Func) -> bool:
    """True if some real function of ``func`` may be called while it runs already."""
    calls = {
        name: {op.attr for op in walk(callee.body) if op.code == C.CALL}
        for name, callee in func.callees.items()
    }
    for name, reached in calls.items():
        new = list(reached)
        found: set[str] = set()
        while new:
            one = new.pop()
            if one not in found:
                found.add(one)
                new += calls[one]
        if name in found:
            return True
    return False
