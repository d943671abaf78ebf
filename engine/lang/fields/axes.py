"""Axes of fields, ``qd.i``, ``qd.ij``, ..., and the `Layout` of compound elements."""

from __future__ import annotations

import enum
import operator
from typing import Final

from ...errors import QuadrantsTypeError
from ..host import MAX_AXES

__all__ = [
    "Axis", "Layout", "axes", "i", "ij", "ijk", "ijkl", "ijl", "ik", "ikl", "il", "j",
    "jk", "jkl", "jl", "k", "kl", "l",
]  # fmt: skip


class Layout(enum.Enum):
    """The memory order of the parts of vectors, matrices and structs in a field with a shape.

    AOS: the parts of one element are adjacent. SOA: each part is an array of its own.
    """

    AOS = 0
    SOA = 1
    NULL = 2

    def __repr__(self) -> str:
        return f"Layout.{self.name}"


class Axis:
    """One axis; ``number`` 0 is `i`. There is one object for each number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number: Final = number

    def __repr__(self) -> str:
        return "ijkl"[self.number] if self.number < 4 else f"axis {self.number}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_axis, (self.number,))


_AXES: Final = tuple([Axis(n) for n in range(MAX_AXES)])


def _axis(number: int) -> Axis:
    try:
        n = operator.index(number)
    except TypeError:
        raise QuadrantsTypeError(f"{number!r} is no number of an axis") from None
    if not 0 <= n < MAX_AXES:
        raise RuntimeError(
            f"Too many dimensions. The maximum dimensionality is {MAX_AXES}, so axis {n} does not"
            " exist"
        )
    return _AXES[n]


def axes(*x: int) -> tuple[Axis, ...]:
    """The axes with these numbers, for ``dense``: ``qd.axes(0, 1)`` is ``qd.ij``.

    RuntimeError for a number above 11.
    """
    return tuple([_axis(n) for n in x])


i, j, k, l = axes(0), axes(1), axes(2), axes(3)  # noqa: E741
ij, ik, il, jk, jl, kl = axes(0, 1), axes(0, 2), axes(0, 3), axes(1, 2), axes(1, 3), axes(2, 3)
ijk, ijl, ikl, jkl = axes(0, 1, 2), axes(0, 1, 3), axes(0, 2, 3), axes(1, 2, 3)
ijkl = axes(0, 1, 2, 3)
