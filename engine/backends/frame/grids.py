"""How many blocks of threads a task takes on a GPU, and what kernels there find in their frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["COVER", "EXACT", "HEADER", "ONE", "PRINTS", "SATURATE", "evaluate"]

ONE: Final = "one"
"""A single thread: the task is serial."""
COVER: Final = "cover"
"""Any number of blocks is right; as many as there is work for is best."""
SATURATE: Final = "saturate"
"""Any number of blocks is right; at most as many as the device can hold at once is best."""
EXACT: Final = "exact"
"""Right only with one number of blocks: blocks of the grid are blocks of the loop."""

HEADER: Final = 8
"""Offset in the device frame of the i64 number of blocks that a header kernel stores."""
PRINTS: Final = 16
"""Offset in the device frame of the address of the print buffer: an i64 count of bytes asked for,
an i64 size in bytes, then records: i32 site, i32 count of values, values of 8 bytes each."""


def evaluate(text: str, values: Sequence[int]) -> int:
    """A Python expression over ``v0``, ``v1``, ..., which stand for ``values``."""
    names = {f"v{i}": value for i, value in enumerate(values)}
    return int(eval(text, {"__builtins__": {}, "max": max, "min": min}, names))
