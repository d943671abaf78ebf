"""Control of loops and compilation: static, ndrange, grouped, loop_config, static_print, ..."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from ..errors import QuadrantsSyntaxError, QuadrantsTypeError
from ..frontend.registry import intrinsic
from ..frontend.values import Grouped, NDRange, is_sequence
from .functions import only_in_kernels

__all__ = ["grouped", "loop_config", "ndrange", "static", "static_assert", "static_print"]


@intrinsic("static")
def static(x: Any, *more: Any) -> Any:
    """Mark values that must be known when the kernel is compiled.

    ``for i in qd.static(range(3))`` unrolls the loop; ``if qd.static(flag)`` compiles one branch.
    """
    return (x, *more) if more else x


@intrinsic("ndrange")
def ndrange(*ranges: Any, axes: tuple[int, ...] | None = None) -> NDRange:
    """The product of ranges: each an extent or a pair (begin, end).

    The last range runs fastest. axes: the order of nesting, outermost first, instead.
    """
    pairs: list[tuple[Any, Any]] = []
    for one in ranges:
        pair = tuple(one) if is_sequence(one) else (0, one)
        if len(pair) != 2 or not all(hasattr(v, "__index__") for v in pair):
            raise QuadrantsTypeError(
                "Every argument of ndrange should be an integer scalar or a tuple/list of "
                "(int, int)"
            )
        pairs.append((pair[0], pair[1]))
    if axes is not None and sorted(axes) != list(range(len(pairs))):
        raise QuadrantsSyntaxError(
            f"qd.ndrange(axes={axes!r}) is not a permutation of range({len(pairs)})",
            hint="axes names each axis once, outermost first",
        )
    return NDRange(tuple(pairs), axes)


class _GroupedHere(Grouped):
    """`grouped` in Python scope: its indices are vectors of Python scope."""

    def __iter__(self) -> Iterator[Any]:
        vectors: Any = importlib.import_module(".values.matrix", __package__).Vector
        return (vectors(list(index)) for index in self.over)


@intrinsic("grouped")
def grouped(x: Any) -> Grouped:
    """Loop with one variable that holds the whole index: ``for I in qd.grouped(x)``."""
    return _GroupedHere(x)


@intrinsic("loop_config")
def loop_config(
    *,
    block_dim: int | None = None,
    serialize: bool = False,
    parallelize: int | None = None,
    block_dim_adaptive: bool = True,
    bit_vectorize: bool = False,
    name: str | None = None,
) -> None:
    """Settings of the next loop of the kernel.

    serialize: run it in order on one thread. parallelize: number of CPU threads. block_dim:
    threads in a block on GPUs, a power of two up to 1024. name: part of the task's name.
    """
    only_in_kernels("loop_config")


@intrinsic("static_print")
def static_print(*values: Any, sep: str = " ", end: str = "\n") -> None:
    """Print while the kernel is compiled."""
    print(*values, sep=sep, end=end)


@intrinsic("static_assert")
def static_assert(cond: Any, msg: str | None = None) -> None:
    """Stop the compilation if ``cond``, which is known at compile time, does not hold."""
    if not cond:
        raise AssertionError(msg or "")
