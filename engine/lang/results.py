"""Results of kernels as values of Python scope, from the numbers that a launch returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import DataType, MatrixType, StructType

__all__ = ["maker"]

Numbers = tuple[Any, ...]
Make = Callable[[Numbers], Any]


def maker(types: Sequence[Any]) -> Make | None:
    """A function that makes the result of a kernel that returns values of these (resolved) types.

    Its argument is the scalars of them all, in the order of `types.flat_names`. It returns one
    value, or a tuple of several. None where the numbers are the result: for none, one number, or a
    tuple.
    """
    if all(isinstance(t, DataType) for t in types):
        return None if len(types) < 2 else lambda numbers: numbers
    parts: list[Make] = []
    at = 0
    for t in types:
        make, at = _maker(t, at)
        parts.append(make)
    return parts[0] if len(parts) == 1 else lambda numbers: tuple([m(numbers) for m in parts])


def _maker(t: Any, at: int) -> tuple[Make, int]:
    """A function that makes a value of type ``t`` from the numbers at ``at``, and their end."""
    if isinstance(t, MatrixType):
        return _matrix_maker(t, at), at + t.size
    if isinstance(t, StructType):
        from .values.struct import made_of

        members: dict[str, Make] = {}
        for name, member in t.members.items():
            members[name], at = _maker(member, at)
        return lambda numbers: made_of({k: m(numbers) for k, m in members.items()}, t), at
    return lambda numbers: numbers[at], at + 1


def _matrix_maker(t: MatrixType, at: int) -> Make:
    from .values.matrix import wrapped

    assert isinstance(t.dtype, DataType)
    dtype, shape, end = np.dtype(t.dtype.np), t.shape, at + t.size
    if len(shape) == 1:
        return lambda numbers: wrapped(np.array(numbers[at:end], dtype))
    return lambda numbers: wrapped(np.array(numbers[at:end], dtype).reshape(shape))
