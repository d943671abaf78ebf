"""Smaller size expressions of the same value.

The rules, applied from the inside out:

* sums are put in one form (`linear`), numbers are computed, equal operands of max and min are
  dropped, and so are those that are certainly not the largest (smallest);
* a range of one number is replaced by its body; a variable that the body does not use is dropped;
* if the body rises (falls) with the variable all over the range, and what it reads does not depend
  on it, the maximum is at the last (first) number.

`simplify` is exact whenever no range in the expression is empty. An empty one counts as 0, and the
last two rules would produce its body's value at some number instead. They are used where the result
can then only be larger, never smaller: where the range is certainly not empty, or else where the
body is not negative and a larger value there makes the whole larger. They are never used where they
would read an element outside of its array that was not read before.

`simplify(e, floor=n)` is for a value that matters only where it is above ``n``: any expression
with the same ``max(value, n)`` may replace it. A size below 1 is as good as 1, so the size of a
stack loses its ``max(0, ...)`` around the loop's trip count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ..ir import Param
from .intervals import Bound, Facts
from .linear import Linear, from_linear, linear
from .size_expr import (
    ONE,
    ZERO,
    Binary,
    Const,
    MaxOver,
    Read,
    SizeExpr,
    Var,
    apply,
    free_vars,
    substitute,
    walk,
)

__all__ = ["simplify"]


def simplify(e: SizeExpr, params: Sequence[Param] = (), floor: int | None = None) -> SizeExpr:
    """``e`` made smaller; see the module docstring. params: add facts about what is read."""
    facts = Facts(params)
    e = _simple(e, facts, up=True)
    if floor is not None:
        above = _above(e, floor, facts)
        e = e if above == e else _simple(above, facts, up=True)
    return e


def _simple(e: SizeExpr, facts: Facts, up: bool) -> SizeExpr:
    """up: a larger value here only makes the whole larger."""
    if isinstance(e, Binary):
        return _binary(e, facts, up)
    if isinstance(e, Read):
        return Read(e.param, tuple([_simple(i, facts, up=False) for i in e.indices]))
    if isinstance(e, MaxOver):
        return _max_over(e, facts, up)
    return e


# --- arithmetic -------------------------------------------------------------------------------


def _binary(e: Binary, facts: Facts, up: bool) -> SizeExpr:
    op = e.op
    if op in ("add", "sub"):
        new = Binary(op, _simple(e.a, facts, up), _simple(e.b, facts, up and op == "add"))
        return from_linear(linear(new))
    if op == "mul":
        return _product(e, facts, up)
    if op in ("max", "min"):
        return _extreme(op, [_simple(node, facts, up) for node in _operands(e, op)], facts)
    a = _simple(e.a, facts, up and op == "floordiv" and facts.bounds(e.b)[0] > 0)
    b = _simple(e.b, facts, up=False)
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(apply(op, a.value, b.value))
    if b == ONE:
        return a if op == "floordiv" else ZERO
    if a == ZERO or b == ZERO:
        return ZERO
    low, high = facts.bounds(a)
    if isinstance(b, Const) and low >= 0 and high < b.value:
        return ZERO if op == "floordiv" else a
    return Binary(op, a, b)


def _operands(e: SizeExpr, op: str) -> list[SizeExpr]:
    if isinstance(e, Binary) and e.op == op:
        return _operands(e.a, op) + _operands(e.b, op)
    return [e]


def _product(e: Binary, facts: Facts, up: bool) -> SizeExpr:
    a = _simple(e.a, facts, up and facts.bounds(e.b)[0] >= 0)
    b = _simple(e.b, facts, up and facts.bounds(e.a)[0] >= 0)
    factor = 1
    rest: list[SizeExpr] = []
    for node in _operands(Binary("mul", a, b), "mul"):
        if isinstance(node, Const):
            factor *= node.value
        else:
            rest.append(node)
    if not rest or not factor:
        return Const(factor if not rest else 0)
    out = rest[0]
    for node in rest[1:]:
        out = Binary("mul", out, node)
    form = linear(out)
    return from_linear(Linear({t: n * factor for t, n in form.terms.items()}, form.const * factor))


def _extreme(op: str, nodes: list[SizeExpr], facts: Facts) -> SizeExpr:
    """The max or min of operands that are simple."""
    flat = [inner for node in nodes for inner in _operands(node, op)]
    numbers = [node.value for node in flat if isinstance(node, Const)]
    kept: list[SizeExpr] = []
    if numbers:
        kept.append(Const(max(numbers) if op == "max" else min(numbers)))
    kept += dict.fromkeys([node for node in flat if not isinstance(node, Const)])
    at = 0
    while at < len(kept):
        others = kept[:at] + kept[at + 1 :]
        if any(_covers(op, other, kept[at], facts) for other in others):
            kept.pop(at)
        else:
            at += 1
    out = kept[0]
    for node in kept[1:]:
        out = Binary(op, out, node)
    return out


def _covers(op: str, other: SizeExpr, node: SizeExpr, facts: Facts) -> bool:
    """True if ``other`` makes ``node`` superfluous in a max (min)."""
    low, high = facts.difference(other, node)
    return low >= 0 if op == "max" else high <= 0


# --- ranges -----------------------------------------------------------------------------------


def _max_over(e: MaxOver, facts: Facts, up: bool) -> SizeExpr:
    begin, end = _simple(e.begin, facts, up=False), _simple(e.end, facts, up=False)
    if facts.difference(end, begin)[1] <= 0:
        return ZERO
    inner = facts.inside(e.var, begin, end)
    body = _simple(e.body, inner, up)
    new = MaxOver(e.var, begin, end, body)
    full = facts.is_full(new)
    if linear(Binary("sub", end, begin)) == Linear({}, 1):
        point: SizeExpr | None = begin
    else:
        point = _best_point(new, inner)
    if point is None:
        return _parted(new, facts)
    at_point = _at(body, e.var, point)
    if at_point is None:
        return new
    if full:
        return _simple(at_point, facts, up)
    # If it is empty, it is 0, and nothing in the body is computed.
    if not up or inner.bounds(body)[0] < 0 or not facts.is_safe(at_point):
        return new
    value = _simple(at_point, facts, up)
    return _extreme("max", [ZERO, value], facts)


def _parted(e: MaxOver, facts: Facts) -> SizeExpr:
    """The same with less in the range, so that chains of ranges are separate; exact.

    ``max over i of n * b`` is ``n * max over i of b``. And the largest of ``b`` over all ``j``
    below some ``end(i)`` is that over all below the largest end, if ``b`` does not use ``i`` and is
    not negative: 0, the value where there is no such ``j``, must not be more than it.
    """
    body = e.body
    if isinstance(body, Binary) and body.op == "mul":
        for factor, rest in ((body.a, body.b), (body.b, body.a)):
            if not isinstance(rest, MaxOver) or e.var in free_vars(factor):
                continue
            if facts.bounds(factor)[0] >= 0 and facts.is_safe(factor):
                return Binary("mul", factor, MaxOver(e.var, e.begin, e.end, rest))
    if isinstance(body, MaxOver) and e.var in free_vars(body.end):
        alone = e.var not in free_vars(body.begin) | free_vars(body.body)
        if alone and facts.bounds(body.begin)[0] >= 0 and body.var not in free_vars(e.end):
            inner = facts.inside(e.var, e.begin, e.end).inside(body.var, body.begin, body.end)
            if inner.bounds(body.body)[0] >= 0:
                furthest = MaxOver(e.var, e.begin, e.end, body.end)
                return MaxOver(body.var, body.begin, furthest, body.body)
    return e


def _best_point(e: MaxOver, inner: Facts) -> SizeExpr | None:
    """A number of the range where the body is largest."""
    way = inner.direction(e.body, e.var)
    if way is None:
        return None
    return e.begin if way <= 0 else from_linear(linear(Binary("sub", e.end, ONE)))


def _at(body: SizeExpr, var: int, point: SizeExpr) -> SizeExpr | None:
    """The body with a value for the variable; None if a name in it would be taken."""
    bound = {node.var for node in walk(body) if isinstance(node, MaxOver)}
    if var in bound or bound & free_vars(point):
        return None
    return substitute(body, {Var(var): point})


# --- what is above a floor --------------------------------------------------------------------


def _above(e: SizeExpr, floor: int, facts: Facts) -> SizeExpr:
    """Anything that has the same ``max(value, floor)``."""
    if isinstance(e, MaxOver):
        body = _above(e.body, floor, facts.inside(e.var, e.begin, e.end))
        return MaxOver(e.var, e.begin, e.end, body) if floor >= 0 else e
    if not isinstance(e, Binary):
        return e
    if e.op == "max":
        nodes = [_above(node, floor, facts) for node in _operands(e, "max")]
        kept = [node for node in nodes if facts.bounds(node)[1] > floor]
        return _extreme("max", kept, facts) if kept else Const(floor)
    if e.op == "min":
        return Binary("min", _above(e.a, floor, facts), _above(e.b, floor, facts))
    if e.op == "floordiv" and isinstance(e.b, Const) and e.b.value > 0:
        return Binary("floordiv", _above(e.a, (floor + 1) * e.b.value - 1, facts), e.b)
    if e.op == "mul" and floor >= 0:
        if facts.bounds(e.a)[0] >= 0:
            return Binary("mul", e.a, _above(e.b, 0, facts))
        if facts.bounds(e.b)[0] >= 0:
            return Binary("mul", _above(e.a, 0, facts), e.b)
    if e.op in ("add", "sub"):
        return _above_sum(linear(e), floor, facts)
    return e


def _above_sum(form: Linear, floor: int, facts: Facts) -> SizeExpr:
    """The largest that the others can be says from where on a term matters."""
    if _highest(form, None, facts) <= floor:
        return Const(floor)
    terms: dict[SizeExpr, int] = {}
    for atom, times in form.terms.items():
        new, others = atom, _highest(form, atom, facts)
        if times > 0 and others != inf:
            new = _above(atom, int((floor - others) // times), facts)
        terms[new] = terms.get(new, 0) + times
    return from_linear(Linear(terms, form.const))


def _highest(form: Linear, without: SizeExpr | None, facts: Facts) -> Bound:
    """No value of the sum of the other terms is above it."""
    total: Bound = form.const
    for atom, times in form.terms.items():
        if atom != without:
            low, high = facts.bounds(atom)
            total += (high if times > 0 else low) * times
    return total
