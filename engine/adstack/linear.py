"""Sums: a size expression as multiples of terms that are not sums, plus a number.

``n - 1 + 2 * (i + 1) - n`` is ``{i: 2} + 1``. Opposite terms cancel, and a sum has one form.
"""

from __future__ import annotations

from functools import lru_cache

from ..named_tuple import NamedTuple
from .size_expr import Binary, Const, MaxOver, SizeExpr, free_vars

__all__ = ["Linear", "from_linear", "linear"]


class Linear(NamedTuple):
    """The sum of ``times * atom`` over the terms, and ``const``."""

    terms: dict[SizeExpr, int]
    const: int


@lru_cache(maxsize=4096)
def linear(e: SizeExpr) -> Linear:
    """``e`` as a sum. The terms are shared: change a copy."""
    terms: dict[SizeExpr, int] = {}
    const = _collect(e, 1, terms)
    return Linear({atom: times for atom, times in terms.items() if times}, const)


def _collect(e: SizeExpr, times: int, terms: dict[SizeExpr, int]) -> int:
    """Add ``times * e`` to the terms, and return the part of it that is a number."""
    if isinstance(e, Const):
        return e.value * times
    if isinstance(e, Binary):
        if e.op == "add":
            return _collect(e.a, times, terms) + _collect(e.b, times, terms)
        if e.op == "sub":
            return _collect(e.a, times, terms) + _collect(e.b, -times, terms)
        if e.op == "mul":
            if isinstance(e.a, Const):
                return _collect(e.b, times * e.a.value, terms)
            if isinstance(e.b, Const):
                return _collect(e.a, times * e.b.value, terms)
    terms[e] = terms.get(e, 0) + times
    return 0


def from_linear(form: Linear) -> SizeExpr:
    """The expression: first the added terms, then the number, then the subtracted terms.

    A maximum over a range, which reads as far as the formula goes, is the last of the added terms.
    """
    plus = [(atom, times) for atom, times in form.terms.items() if times > 0]
    minus = [(atom, -times) for atom, times in form.terms.items() if times < 0]
    parts = [_term(atom, times) for atom, times in plus if not isinstance(atom, MaxOver)]
    parts.sort(key=lambda part: not free_vars(part))
    if form.const > 0 or (not parts and not plus and (form.const or not minus)):
        parts.append(Const(form.const))
    parts += [_term(atom, times) for atom, times in plus if isinstance(atom, MaxOver)]
    out: SizeExpr = Const(0)
    for n, part in enumerate(parts):
        out = Binary("add", out, part) if n else part
    for atom, times in minus:
        out = Binary("sub", out, _term(atom, times))
    if form.const < 0 and (parts != [Const(form.const)]):
        out = Binary("sub", out, Const(-form.const))
    return out


def _term(atom: SizeExpr, times: int) -> SizeExpr:
    return atom if times == 1 else Binary("mul", Const(times), atom)
