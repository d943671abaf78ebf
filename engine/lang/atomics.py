"""Atomic updates: ``x`` must be a local variable or an element of an array.

Each reads ``x``, writes the result back as one indivisible step, and returns the old value. Values
are converted to the type of ``x``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..frontend.registry import intrinsic
from .functions import only_in_kernels

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_exchange", "atomic_max", "atomic_min",
    "atomic_mul", "atomic_or", "atomic_sub", "atomic_xor", "volatile_load",
]  # fmt: skip


def _update(how: str, text: str) -> Callable[[Any, Any], Any]:
    """The function ``atomic_<how>`` of two operands. text: its docstring."""
    name = f"atomic_{how}"

    def update(x: Any, y: Any) -> Any:
        only_in_kernels(name)

    update.__name__, update.__qualname__, update.__doc__ = name, name, text
    return intrinsic(name)(update)


atomic_add = _update("add", "x += y.")
atomic_sub = _update("sub", "x -= y.")
atomic_mul = _update("mul", "x *= y.")
atomic_min = _update("min", "x = min(x, y).")
atomic_max = _update("max", "x = max(x, y).")
atomic_and = _update("and", "x &= y, for integers.")
atomic_or = _update("or", "x |= y, for integers.")
atomic_xor = _update("xor", "x ^= y, for integers.")
atomic_exchange = _update("exchange", "x = y.")


@intrinsic("atomic_cas")
def atomic_cas(x: Any, expected: Any, desired: Any) -> Any:
    """x = desired if x == expected, for integers."""
    only_in_kernels("atomic_cas")


@intrinsic("volatile_load")
def volatile_load(x: Any) -> Any:
    """The value of x, read from memory each time."""
    only_in_kernels("volatile_load")
