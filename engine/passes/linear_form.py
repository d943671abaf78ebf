"""Integers as sums of multiples of other values, for passes that divide them by constants.

A `Form` is ``constant + sum(factor * op)``. `digit` divides one and computes the remainder where
that is exact: ``(8 * a + b) // 8 % 4`` is ``a % 4`` if ``b`` is a loop index from 0 to 7. Sums are
assumed not to overflow, which holds for every valid index; where `stays_inside` is true they
certainly do not, since the ranges of their parts are known.
"""

from __future__ import annotations

from typing import Final

from ..ir import Op
from ..ir import codes as C
from ..named_tuple import NamedTuple

__all__ = ["Form", "digit", "form_of", "stays_inside"]

_DEPTH: Final = 8
_SUMS: Final = frozenset({C.ADD, C.SUB, C.MUL, C.BIT_SHL})


class Form(NamedTuple):
    """See the module docstring. terms: factor by op, none of them 0."""

    constant: int
    terms: dict[Op, int]


def form_of(op: Op) -> Form:
    """``op`` as a sum, as far as it is one; else as itself."""
    return _form(op, _DEPTH, {})


def _form(op: Op, depth: int, known: dict[tuple[int, Op], Form]) -> Form:
    """The same, with sums up to so many deep.

    known: what was found for sums at a depth, since sums may share parts and these again.
    """
    code = op.code
    if code == C.CONST:
        return Form(int(op.attr), {})
    if not depth or code not in _SUMS:
        return Form(0, {op: 1})
    found = known.get((depth, op))
    if found is None:
        a, b = op.args
        if code == C.ADD or code == C.SUB:
            left, right = _form(a, depth - 1, known), _form(b, depth - 1, known)
            found = _sum(left, right, 1 if code == C.ADD else -1)
        elif b.code == C.CONST:
            amount = int(b.attr)
            factor = amount if code == C.MUL else 1 << (amount % op.type.bits)
            found = _sum(Form(0, {}), _form(a, depth - 1, known), factor)
        else:
            found = Form(0, {op: 1})
        known[depth, op] = found
    return found


def _sum(a: Form, b: Form, factor: int) -> Form:
    terms = dict(a.terms)
    for op, k in b.terms.items():
        total = terms.get(op, 0) + factor * k
        if total:
            terms[op] = total
        else:
            terms.pop(op, None)
    return Form(a.constant + factor * b.constant, terms)


def digit(form: Form, divisor: int, modulus: int) -> Form | None:
    """``form // divisor % modulus`` (no modulus if that is 0) where it is a form again."""
    high, low = _split(form, divisor)
    if not _inside(low, divisor):
        return None
    form = Form(high.constant // divisor, {op: k // divisor for op, k in high.terms.items()})
    if not modulus:
        return form
    _, low = _split(form, modulus)
    return low if _inside(low, modulus) else None


def stays_inside(op: Op, first: int, extent: int) -> bool:
    """True if ``op`` is certainly one of the ``extent`` numbers from ``first`` on."""
    form = form_of(op)
    return _inside(form._replace(constant=form.constant - first), extent)


def _split(form: Form, by: int) -> tuple[Form, Form]:
    """The part that is a multiple of ``by``, and the rest."""
    whole = form.constant // by * by
    high = {op: k for op, k in form.terms.items() if k % by == 0}
    low = {op: k for op, k in form.terms.items() if k % by}
    return Form(whole, high), Form(form.constant - whole, low)


def _inside(form: Form, end: int) -> bool:
    """True if the value is certainly in ``range(end)``."""
    first = last = form.constant
    for op, factor in form.terms.items():
        known = _range(op)
        if known is None:
            return False
        low, high = factor * known[0], factor * known[1]
        first += min(low, high)
        last += max(low, high)
    return first >= 0 and last < end


def _range(op: Op) -> tuple[int, int] | None:
    """Least and greatest value of a loop index, if the loop's bounds are constants."""
    if op.code != C.LOOP_INDEX:
        return None
    loop, axis = op.args[0], op.attr
    bounds = loop.regions[0].ops[-1] if loop.code == C.OFFLOADED else loop
    begin, end = bounds.args[2 * axis : 2 * axis + 2]
    if begin.code != C.CONST or end.code != C.CONST or begin.attr >= end.attr:
        return None
    return int(begin.attr), int(end.attr) - 1
