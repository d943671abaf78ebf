"""Facts about the value of a size expression, known without the arguments of a launch.

`Facts` holds the ranges of the variables around an expression. It computes bounds on a value
(`bounds`), whether a value rises or falls with a variable (`direction`), and whether a read is
surely inside of its array (`is_safe`). A shape is not negative, an element is within the range of
its type, a variable within its own range (the body of an empty range is not computed).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from ..ir import Param
from ..named_tuple import NamedTuple
from .linear import Linear, from_linear, linear
from .size_expr import (
    ONE,
    Arg,
    Binary,
    Const,
    MaxOver,
    Read,
    Shape,
    SizeExpr,
    Var,
    apply,
    children,
    free_vars,
)

__all__ = ["Bound", "Facts"]

Bound = float | int
"""A number, or an infinity."""

_ANY: Final = (-inf, inf)


class _Range(NamedTuple):
    begin: SizeExpr
    end: SizeExpr
    low: Bound
    high: Bound


class Facts:
    """Parameters, if they are known, and the ranges of the variables that are bound here."""

    __slots__ = ("params", "ranges")

    def __init__(
        self, params: Sequence[Param] = (), ranges: dict[int, _Range] | None = None
    ) -> None:
        self.params = params
        self.ranges = ranges or {}

    def inside(self, var: int, begin: SizeExpr, end: SizeExpr) -> Facts:
        """The facts in the body of a maxover, whose range is not empty there."""
        low, high = self.bounds(begin)[0], self.bounds(end)[1] - 1
        if var in free_vars(begin) or var in free_vars(end):  # another variable of that number
            begin, end = Var(var), Binary("add", Var(var), ONE)
        ranges = {
            v: known for v, known in self.ranges.items()
            if v != var and var not in free_vars(known.begin) and var not in free_vars(known.end)
        }  # fmt: skip
        return Facts(self.params, {**ranges, var: _Range(begin, end, low, high)})

    # --- bounds -------------------------------------------------------------------------------

    def bounds(self, e: SizeExpr) -> tuple[Bound, Bound]:
        """Numbers that ``e`` is never below and never above."""
        match e:
            case Const():
                return e.value, e.value
            case Shape():
                return 0, inf
            case Var():
                known = self.ranges.get(e.number)
                return (known.low, known.high) if known else _ANY
            case Read() | Arg():
                return self.of_type(e.param)
            case Binary():
                return self.of_binary(e)
            case MaxOver():
                low, high = self.inside(e.var, e.begin, e.end).bounds(e.body)
                return (low, high) if self.is_full(e) else (min(low, 0), max(high, 0))

    def of_type(self, param: int) -> tuple[Bound, Bound]:
        if param >= len(self.params):
            return _ANY
        dtype = self.params[param].dtype
        if dtype.bits == 1:
            return 0, 1
        return _ANY if dtype.is_signed else (0, inf)

    def of_binary(self, e: Binary) -> tuple[Bound, Bound]:
        a, b = self.bounds(e.a), self.bounds(e.b)
        match e.op:
            case "add" | "sub":
                low, high = (
                    (a[0] + b[0], a[1] + b[1]) if e.op == "add" else (a[0] - b[1], a[1] - b[0])
                )
                if free_vars(e):
                    form = linear(e)
                    low = max(low, self.of_linear(form, rising=True))
                    high = min(high, self.of_linear(form, rising=False))
                return low, high
            case "mul":
                corners = [_times(x, y) for x in a for y in b]
                return min(corners), max(corners)
            case "max":
                return max(a[0], b[0]), max(a[1], b[1])
            case "min":
                return min(a[0], b[0]), min(a[1], b[1])
            case "floordiv":
                if b[0] == b[1] and 0 < b[0] < inf:
                    return _over(a[0], int(b[0])), _over(a[1], int(b[0]))
                return (0, max(a[1], 0)) if a[0] >= 0 and b[0] >= 0 else _ANY
            case _:
                return (0, max(b[1] - 1, 0)) if b[0] >= 0 else _ANY

    def of_linear(self, form: Linear, rising: bool) -> Bound:
        """A lower (rising) or upper bound, with variables at the ends of their ranges."""
        terms, total = dict(form.terms), form.const
        for var in reversed(self.ranges):
            times = terms.pop(Var(var), 0)
            if times:
                known = self.ranges[var]
                low_end = (times > 0) == rising
                at = linear(known.begin) if low_end else linear(known.end)
                for atom, n in at.terms.items():
                    terms[atom] = terms.get(atom, 0) + n * times
                total += (at.const - (0 if low_end else 1)) * times
        bound: Bound = total
        for atom, times in terms.items():
            if times:
                low, high = self.bounds(atom)
                bound += _times(low if (times > 0) == rising else high, times)
        return bound

    def is_full(self, e: MaxOver) -> bool:
        """True if the range is certainly not empty."""
        return self.is_less(e.begin, e.end)

    def is_less(self, a: SizeExpr, b: SizeExpr) -> bool:
        """True if ``a < b`` is certain."""
        return self.difference(b, a)[0] >= 1

    def difference(self, a: SizeExpr, b: SizeExpr) -> tuple[Bound, Bound]:
        """Bounds on ``a - b``."""
        return self.bounds(from_linear(linear(Binary("sub", a, b))))

    # --- rising and falling -------------------------------------------------------------------

    def direction(self, e: SizeExpr, var: int) -> int | None:
        """1 if ``e`` never falls as ``var`` rises, -1 if it never rises, 0 both; None: unknown."""
        if var not in free_vars(e):
            return 0
        match e:
            case Var():
                return 1
            case Binary():
                a, b = self.direction(e.a, var), self.direction(e.b, var)
                if a is None or b is None:
                    return None
                return self.of_operands(e, a, b)
            case MaxOver():
                return self.of_nested(e, var)
            case _:
                return None

    def of_operands(self, e: Binary, a: int, b: int) -> int | None:
        match e.op:
            case "add" | "max" | "min":
                return _both(a, b)
            case "sub":
                return _both(a, -b)
            case "mul":
                x, y = self.sign(e.a), self.sign(e.b)
                # d(a*b) = a db + b da: each part needs the sign of the other operand.
                first = 0 if not b else None if x is None else b * x
                second = 0 if not a else None if y is None else a * y
                return None if first is None or second is None else _both(first, second)
            case "floordiv":
                return a if not b and self.bounds(e.b)[0] > 0 else None
            case _:
                return None

    def sign(self, e: SizeExpr) -> int | None:
        """1 if it is never negative, -1 if never positive."""
        low, high = self.bounds(e)
        return 1 if low >= 0 else -1 if high <= 0 else None

    def of_nested(self, e: MaxOver, var: int) -> int | None:
        begin, end = self.direction(e.begin, var), self.direction(e.end, var)
        inner = self.inside(e.var, e.begin, e.end)
        body = inner.direction(e.body, var) if e.var != var else 0
        if begin is None or end is None or body is None:
            return None
        grows = _both(-begin, end)  # the range, with the variable
        if grows == 0:
            return body
        if grows is None or inner.bounds(e.body)[0] < 0:
            return None  # a range that becomes empty counts as 0, which may be more
        return _both(grows, body)

    # --- reads --------------------------------------------------------------------------------

    def is_safe(self, e: SizeExpr) -> bool:
        """True if all reads in ``e`` are certainly inside of their arrays."""
        if isinstance(e, MaxOver):
            inner = self.inside(e.var, e.begin, e.end)
            return self.is_safe(e.begin) and self.is_safe(e.end) and inner.is_safe(e.body)
        if isinstance(e, Read) and not self.is_inside(e):
            return False
        return all(self.is_safe(child) for child in children(e))

    def is_inside(self, e: Read) -> bool:
        """True if a read is certainly inside of its array."""
        if e.param >= len(self.params):
            return not e.indices
        p = self.params[e.param]
        for axis, index in enumerate(e.indices):
            low, high = self.bounds(index)
            if p.layout is not None:
                first, count = p.layout.origin[axis], p.layout.shape[axis]
                if low < first or high >= first + count:
                    return False
            elif axis >= p.ndim:
                if low < 0 or high >= p.element_shape[axis - p.ndim]:
                    return False
            elif low < 0 or not self.is_less(index, Shape(e.param, axis)):
                return False
        return True


def _times(a: Bound, b: Bound) -> Bound:
    return 0 if not a or not b else a * b


def _over(a: Bound, b: int) -> Bound:
    return a if a in (inf, -inf) else apply("floordiv", int(a), b)


def _both(a: int, b: int) -> int | None:
    if not a or not b or a == b:
        return a or b
    return None
