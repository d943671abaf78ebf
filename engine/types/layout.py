"""The layout of a field's elements in memory.

A field is a box of elements over its own axes, then over the axes of one element (of a vector or
matrix). Dense nesting, axis order, AOS and SOA all come down to one formula over the indices::

    offset = sum(((index[axis] - origin[axis]) // divisor % modulus) * stride)

in units of one scalar of the field. A modulus of 0 says that none is needed. Elements are counted
from the field's *base*, the address of the element whose indices are the origin.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..named_tuple import NamedTuple

__all__ = ["ElementLayout", "Term", "row_major"]

Term = tuple[int, int, int, int]
"""(axis, divisor, modulus, stride): one digit of one index."""


class ElementLayout(NamedTuple):
    """See the module docstring.

    shape: extents of the field's axes, then of its element's. origin: the first valid index of
    each axis (0 for those of the element). terms: the digits, outermost first.
    """

    shape: tuple[int, ...]
    origin: tuple[int, ...]
    terms: tuple[Term, ...]

    @property
    def span(self) -> int:
        """One more than the largest offset: the number of scalars from the base to the end."""
        last = tuple([o + n - 1 for o, n in zip(self.origin, self.shape, strict=True)])
        # A nested axis may have a larger digit at a smaller index than the last one.
        if any(m or d > 1 for _, d, m, _ in self.terms):
            total = 0
            for axis, div, mod, stride in self.terms:
                top = (self.shape[axis] - 1) // div
                total += (min(top, mod - 1) if mod else top) * stride
            return total + 1
        return self.offset(last) + 1

    def offset(self, index: Sequence[int]) -> int:
        """Scalars between the base and the element at ``index``."""
        total = 0
        for axis, div, mod, stride in self.terms:
            digit = (index[axis] - self.origin[axis]) // div
            total += (digit % mod if mod else digit) * stride
        return total

    def is_row_major(self) -> bool:
        """True if the elements are dense and in the order of the indices, the last axis fastest."""
        strides = {axis: stride for axis, div, mod, stride in self.terms if div == 1 and not mod}
        if len(strides) != len(self.terms):
            return False
        expected = 1
        for axis in reversed(range(len(self.shape))):
            if self.shape[axis] != 1 and strides.get(axis) != expected:
                return False
            expected *= self.shape[axis]
        return True


def row_major(shape: Sequence[int], origin: Sequence[int] | None = None) -> ElementLayout:
    """The layout of a plain C-ordered array."""
    terms: list[Term] = []
    stride = 1
    for axis in reversed(range(len(shape))):
        terms.append((axis, 1, 0, stride))
        stride *= shape[axis]
    where = tuple(origin) if origin is not None else (0,) * len(shape)
    return ElementLayout(tuple(shape), where, tuple(reversed(terms)))
