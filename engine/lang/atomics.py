"""Atomic updates: ``x`` must be a local variable or an element of an array.

Each reads ``x``, writes the result back as one indivisible step, and returns the old value. Values
are converted to the type of ``x``.
"""

from __future__ import annotations

from typing import Any

from ..frontend.registry import intrinsic
from .functions import only_in_kernels

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_exchange", "atomic_max", "atomic_min",
    "atomic_mul", "atomic_or", "atomic_sub", "atomic_xor", "volatile_load",
]  # fmt: skip


@intrinsic("atomic_add")
def atomic_add(x: Any, y: Any) -> Any:
    """x += y."""
    only_in_kernels("atomic_add")


@intrinsic("atomic_sub")
def atomic_sub(x: Any, y: Any) -> Any:
    """x -= y."""
    only_in_kernels("atomic_sub")


@intrinsic("atomic_mul")
def atomic_mul(x: Any, y: Any) -> Any:
    """x *= y."""
    only_in_kernels("atomic_mul")


@intrinsic("atomic_min")
def atomic_min(x: Any, y: Any) -> Any:
    """x = min(x, y)."""
    only_in_kernels("atomic_min")


@intrinsic("atomic_max")
def atomic_max(x: Any, y: Any) -> Any:
    """x = max(x, y)."""
    only_in_kernels("atomic_max")


@intrinsic("atomic_and")
def atomic_and(x: Any, y: Any) -> Any:
    """x &= y, for integers."""
    only_in_kernels("atomic_and")


@intrinsic("atomic_or")
def atomic_or(x: Any, y: Any) -> Any:
    """x |= y, for integers."""
    only_in_kernels("atomic_or")


@intrinsic("atomic_xor")
def atomic_xor(x: Any, y: Any) -> Any:
    """x ^= y, for integers."""
    only_in_kernels("atomic_xor")


@intrinsic("atomic_exchange")
def atomic_exchange(x: Any, y: Any) -> Any:
    """x = y."""
    only_in_kernels("atomic_exchange")


@intrinsic("atomic_cas")
def atomic_cas(x: Any, expected: Any, desired: Any) -> Any:
    """x = desired if x == expected, for integers."""
    only_in_kernels("atomic_cas")


@intrinsic("volatile_load")
def volatile_load(x: Any) -> Any:
    """The value of x, read from memory each time."""
    only_in_kernels("volatile_load")
