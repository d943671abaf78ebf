"""The number of blocks of threads that a task needs on a GPU, and the rest of its device buffer."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final, Protocol, cast

__all__ = [
    "COVER", "EXACT", "HEADER", "MOST", "ONE", "PRINTS", "SATURATE", "Blocks", "GridTask",
    "arithmetic", "blocks_of", "evaluate",
]  # fmt: skip

ONE: Final = "one"
"""A single thread: the task is serial."""
COVER: Final = "cover"
"""Any number of blocks is right; as many as there is work for is best."""
SATURATE: Final = "saturate"
"""Any number of blocks is right; at most as many as the device can hold at once is best."""
EXACT: Final = "exact"
"""Right only with one number of blocks: blocks of the grid are blocks of the loop."""

HEADER: Final = 8
"""Offset in the device buffer of the i64 number of blocks that a header kernel stores."""
PRINTS: Final = 16
"""Offset in the device buffer of the address of the print buffer: an i64 count of bytes asked for,
an i64 size in bytes, then records: i32 site, i32 count of values, values of 8 bytes each."""

MOST: Final = 0x7FFFFFFF
"""Blocks that a launch may have."""
_KNOWN: Final = 4096
"""Sizes whose blocks are remembered."""


class GridTask(Protocol):
    """The attributes of `CudaTask` and `OpenclTask` that describe the grid of a task; see there."""

    @property
    def block_dim(self) -> int: ...

    @property
    def grid(self) -> str: ...

    @property
    def blocks(self) -> str: ...

    @property
    def reads(self) -> tuple[int, ...]: ...

    @property
    def limit(self) -> int: ...

    @property
    def header(self) -> str: ...


_ARITHMETIC: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Load,
    ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.RShift, ast.BitAnd, ast.USub, ast.And,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in ("max", "min") or (node.id[0] == "v" and node.id[1:].isdecimal())
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, bool)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
    return isinstance(node, _ARITHMETIC)


@functools.lru_cache(maxsize=4096)
def arithmetic(text: str) -> CodeType:
    """The code of a Python expression over ``v0``, ``v1``, ...

    Such texts come from files of a cache, so they are held to arithmetic on whole numbers with
    ``max`` and ``min``. ValueError for all else.
    """
    try:
        tree = ast.parse(text, mode="eval")
        fine = all(map(_is_arithmetic, ast.walk(tree)))
        if fine:
            return compile(tree, "<blocks>", "eval")
    except (SyntaxError, MemoryError, RecursionError):
        pass
    raise ValueError(f"{text[:60]!r} is no arithmetic on whole numbers")


def evaluate(text: str, values: Sequence[int]) -> int:
    """The value of an `arithmetic` expression where ``v0``, ``v1``, ... are ``values``."""
    names = {f"v{i}": value for i, value in enumerate(values)}
    return int(eval(arithmetic(text), {"__builtins__": {}, "max": max, "min": min}, names))


def blocks_of(task: GridTask, *values: int) -> int:
    """Evaluate `GridTask.blocks`; values: those of ``reads``."""
    return evaluate(task.blocks, values)


class Blocks(dict[Any, int]):
    """The blocks of a task by what they depend on, computed when first asked for.

    Keys are the values of `GridTask.reads`: one by itself, else a tuple.
    """

    def __init__(self, task: GridTask, most: int) -> None:
        """most: what fits the device, for a grid that may have fewer blocks than there is work."""
        super().__init__()
        self.task: Final = task
        self.most: Final = MOST if task.grid == EXACT else most

    def __missing__(self, key: Any) -> int:
        if len(self) > _KNOWN:
            self.clear()
        values: tuple[int, ...] = cast("tuple[int, ...]", key) if isinstance(key, tuple) else (key,)
        found = self[key] = max(1, min(blocks_of(self.task, *values), self.most))
        return found
