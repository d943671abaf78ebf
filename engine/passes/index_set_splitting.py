"""index_set_splitting: iterations away from the edges run without clamped or wrapped indices.

For the innermost axis of the loop over the iterations of a chunk, with an index j of that axis::

    $9 : range_for $b, $e, <0>, $n body {     ... $lo, $hi from <0>, $n and the clamps
      <i32> $4 = loop_index $9 [1]            $20 : range_for $b, $e body {
      <i32> $5 = add $4, <-1>                   $21 : range_for $lo, $hi body {
      <i32> $6 = max $5, <0>                      <i32> $22 = loop_index $21 [0]
      <*f32> $7 = external_ptr $a, $6             <i32> $23 = add $22, <-1>
      ...                                         <*f32> $24 = external_ptr $a, $23
    }                                             ...
                                                }
                                                $30 : range_for <0>, <2> body {
                                                  ... begin and end of one edge
                                                  $31 : range_for $first, $last body {
                                                    ... as it was
                                                  }
                                                }
                                              }

In the middle, neighbouring iterations read neighbouring elements: vector loads instead of gathers.

In the middle, these ops are replaced by the sum ``j + offset``, if they equal it for all j there:
max and min with a value that the loop does not change, a remainder (``%`` with a constant or such a
value), and a select by a comparison with such a value. offset is a sum of constants and values that
the loop does not change. Bounds are computed in 64 bits, and ensure that the sum itself fits into
32 bits.

Iterations of these loops may run in any order, so the two edges share one copy of the body. If only
few iterations are known to be at the edges, that copy gets no vector instructions
(`ForAttr.cold`). If this depends on extents of other arrays or on arguments, all iterations may be
at the edges.

It leaves alone loops whose bodies hold loops, calls, adstacks or more than 300 ops, loops whose
innermost axis is known to be short, loops in which no address depends on such a value, and loops
inside of iterations. It also leaves alone bounds that may assign many iterations to the edges: a
constant, or the bound of a select, that is more than `_NEAR` iterations inside of the loop or is
not known to be near its end; and ``j % n`` where the loop does not end at n.
"""

from __future__ import annotations

from typing import Final

from ..analysis import chunk_loop, is_index, is_invariant
from ..ir import Builder, ForAttr, Func, Op, replace_uses
from ..ir import codes as C
from ..ir.edit import clone_into, drop
from ..named_tuple import NamedTuple
from ..types import i32, i64
from .hoist import before_loop
from .linear_form import Form, form_of
from .make_cpu_multithreaded_range_for import whole_axis
from .manager import PassCx
from .needs import clamps_of
from .registry import register

_SHORT: Final = 32
_NEAR: Final = 256
_LEAST, _GREATEST = -(2**31), 2**31 - 1

_MIRRORED: Final = {C.CMP_LT: C.CMP_GT, C.CMP_LE: C.CMP_GE, C.CMP_GT: C.CMP_LT, C.CMP_GE: C.CMP_LE}
_NEGATED: Final = {C.CMP_LT: C.CMP_GE, C.CMP_LE: C.CMP_GT, C.CMP_GT: C.CMP_LE, C.CMP_GE: C.CMP_LT}


class _Limit(NamedTuple):
    """A bound of j: at least (at most, for ``upper``) the sum of the values less the others."""

    upper: bool
    plus: Form
    minus: Form


class _Axis:
    """The facts known about the values in the body of ``loop``, for its innermost axis."""

    def __init__(self, loop: Op, axis: int) -> None:
        self.loop = loop
        self.axis = axis
        self.begin, self.end = whole_axis(loop, axis)
        self.limits: list[_Limit] = []
        self.sums: dict[Op, Form] = {}
        """Offsets of the ops that are undone."""
        self.few = True
        """True if few iterations are left to the edges for all extents and arguments."""
        self._known: dict[Op, bool] = {}

    def invariant(self, op: Op) -> bool:
        return op.type is i32 and is_invariant(op, self.loop, self._known)

    def offset(self, op: Op) -> Form | None:
        """The offset of ``op`` from j in the middle; None if it is no such sum."""
        found = self.sums.get(op)
        if found is not None:
            return found
        if op.type is not i32:
            return None
        total, form = _Sum(), form_of(op)
        for term, factor in form.terms.items():
            inner = self.sums.get(term)
            if inner is not None and factor == 1:
                total.add(inner)
                total.indices += 1
            elif is_index(term, self.loop, self.axis):
                total.indices += factor
            elif abs(factor) == 1 and self.invariant(term):
                total.add(Form(0, {term: factor}))
            else:
                return None
        total.add(Form(form.constant, {}))
        return total.form() if total.indices == 1 else None

    def undo(self, op: Op) -> None:
        """Take note of ``op`` if it is a sum in the middle, and of the bounds that make it so."""
        if op.code == C.SELECT:
            self._undo_select(op)
        elif op.code in (C.MOD, C.FLOORMOD):
            self._undo_remainder(op)
        else:
            for value, bound in (op.args, op.args[::-1]):
                offset = self.offset(value) if self.invariant(bound) else None
                if offset is not None:
                    limit = _Limit(op.code == C.MIN, form_of(bound), offset)
                    if self._leaves_few(limit):
                        self._exact(value, offset)
                        self.limits.append(_exactly(limit, bound))
                        self.sums[op] = offset
                    return

    def _undo_remainder(self, op: Op) -> None:
        value, divisor = op.args
        offset = self.offset(value) if self.invariant(divisor) else None
        if offset is None:
            return
        original = offset
        if divisor.code == C.CONST:
            n = int(divisor.attr)
            if n <= 0 or offset.terms:
                return
            near = offset.constant % n
            near -= n if near > n // 2 else 0
            if op.code == C.MOD and near > offset.constant:
                return  # of a negative number, it would be another
            offset, end = Form(near, {}), Form(n, {})
        else:
            end = Form(0, {divisor: 1})
            times = offset.terms.get(divisor, 0)
            if times not in (0, 1):
                return
            terms = {term: factor for term, factor in offset.terms.items() if term is not divisor}
            offset = Form(offset.constant, terms)
        last = end._replace(constant=end.constant - 1)
        limits = _Limit(False, Form(0, {}), offset), _Limit(True, last, offset)
        if not all(self._leaves_few(limit) for limit in limits):
            return
        if offset == Form(0, {}) and _merged(Form(0, {divisor: 1, self.end: -1})).terms:
            return  # it runs around, maybe often
        self._exact(value, original)
        self.limits += limits
        self.sums[op] = offset

    def _undo_select(self, op: Op) -> None:
        test, yes, no = op.args
        if test.code not in _MIRRORED:
            return
        arms = self.offset(yes), self.offset(no)
        if (arms[0] is None) == (arms[1] is None):
            return
        code = test.code if arms[0] is not None else _NEGATED[test.code]
        value, bound = test.args
        if self.invariant(value):
            value, bound, code = bound, value, _MIRRORED[code]
        offset = self.offset(value) if self.invariant(bound) else None
        if offset is None:
            return
        strict = {C.CMP_LT: -1, C.CMP_GT: 1}.get(code, 0)
        limit = _Limit(code in (C.CMP_LT, C.CMP_LE), _plus(form_of(bound), strict), offset)
        if not self._leaves_few(limit, known=True):
            return
        self._exact(value, offset)
        self.limits.append(_exactly(limit, bound, strict))
        found = arms[0] or arms[1]
        assert found is not None
        self._exact(yes if arms[0] is not None else no, found)
        self.sums[op] = found

    def _leaves_few(self, limit: _Limit, known: bool = False) -> bool:
        """True if few iterations are outside of ``limit``, as far as can be seen.

        known: True only if that is certain; otherwise also where it depends on extents of arrays or
        arguments (which `few` then records).
        """
        upper, plus, minus = limit
        total = _Sum()
        total.add(plus)
        total.add(minus, -1)
        total.add(form_of(self.end if upper else self.begin), -1)
        distance, terms = _merged(total.form())
        if terms:
            if known or (upper and not plus.terms):
                return False
            self.few = False
            return True
        return abs(distance) <= _NEAR

    def _exact(self, value: Op, offset: Form) -> None:
        """Keep j + offset, which ``value`` computes, inside of 32 bits."""
        if value in self.sums:
            return  # it has been
        if offset.terms or offset.constant > 0:
            self.limits.append(_Limit(True, Form(_GREATEST, {}), offset))
        if offset.terms or offset.constant < 0:
            self.limits.append(_Limit(False, Form(_LEAST, {}), offset))

    def bounds(self) -> list[_Limit]:
        """The limits without those that others imply: equal ones, and weaker constants."""
        kept: list[_Limit] = []
        for limit in self.limits:
            if not any(_implies(other, limit) for other in kept):
                kept = [other for other in kept if not _implies(limit, other)]
                kept.append(limit)
        return kept


class _Sum:
    """A sum of forms while it is made. indices: how often it holds j."""

    def __init__(self) -> None:
        self.indices = 0
        self._constant = 0
        self._terms: dict[Op, int] = {}

    def add(self, form: Form, sign: int = 1) -> None:
        self._constant += sign * form.constant
        for op, factor in form.terms.items():
            self._terms[op] = self._terms.get(op, 0) + sign * factor

    def form(self) -> Form:
        return Form(self._constant, {op: k for op, k in self._terms.items() if k})


_ALIKE: Final = frozenset({C.ARG_LOAD, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS})


def _merged(form: Form) -> Form:
    """``form`` where ops that say the same, in the bounds of the loop and in its body, are one."""
    first: dict[tuple[int, object], Op] = {}
    total = _Sum()
    for op, factor in form.terms.items():
        one = first.setdefault((op.code, op.attr), op) if op.code in _ALIKE else op
        total.add(Form(0, {one: factor}))
    return _plus(total.form(), form.constant)


def _plus(form: Form, constant: int) -> Form:
    return form._replace(constant=form.constant + constant)


def _exactly(limit: _Limit, bound: Op, strict: int = 0) -> _Limit:
    """``limit`` with the value of ``bound`` itself: as a sum of its parts it might not wrap."""
    if bound.code == C.CONST:
        return limit
    return limit._replace(plus=Form(strict, {bound: 1}))


def _implies(a: _Limit, b: _Limit) -> bool:
    """True if ``b`` holds where ``a`` does, as far as constants and the range of i32 show."""
    if a.upper != b.upper or a.minus.terms != b.minus.terms:
        return False
    far = _GREATEST if a.upper else _LEAST
    if a.plus.terms and len(a.plus.terms) == 1 and not b.plus.terms and b.plus.constant == far:
        # A value of 32 bits is no farther out than the last of them.
        first = far + a.plus.constant - a.minus.constant
    elif a.plus.terms == b.plus.terms:
        first = a.plus.constant - a.minus.constant
    else:
        return False
    second = b.plus.constant - b.minus.constant
    return first <= second if a.upper else first >= second


@register("index_set_splitting", optional=True, per_task=True)
def index_set_splitting(func: Func, cx: PassCx) -> bool:
    """Run the iterations away from the edges without clamped or wrapped indices."""
    loop = chunk_loop(cx.task)
    if loop is None:
        return False
    ops, clamps = clamps_of(loop)
    if not clamps:
        return False
    axes = loop.attr.axes or tuple(range(len(loop.args) // 2))
    begin, end = loop.args[2 * axes[-1] : 2 * axes[-1] + 2]
    if begin.code == end.code == C.CONST and int(end.attr) - int(begin.attr) < _SHORT:
        return False
    axis = _Axis(loop, axes[-1])
    for op in clamps:  # operands come before their uses
        axis.undo(op)
    if not axis.sums or not _is_index(ops, axis.sums):
        return False
    _split(func, loop, axes, axis)
    cx.remark(loop, f"{len(axis.sums)} clamped or wrapped indices are plain away from the edges of "
              f"axis {axes[-1]}")  # fmt: skip
    return True


def _is_index(ops: list[Op], sums: dict[Op, Form]) -> bool:
    """True if an address depends on one of ``sums``."""
    todo = [x for op in ops if op.code == C.EXTERNAL_PTR for x in op.args[1:]]
    seen: set[Op] = set()
    while todo:
        op = todo.pop()
        if op in sums:
            return True
        if op not in seen and C.PURE[op.code]:
            seen.add(op)
            todo += op.args
    return False


def _split(func: Func, loop: Op, axes: tuple[int, ...], axis: _Axis) -> None:
    block = loop.block
    assert block is not None
    before: list[Op] = []
    b = Builder(func, block, loop.loc, before)
    begin, end = loop.args[2 * axis.axis : 2 * axis.axis + 2]
    low, high = _middle(func, loop, b, begin, end, axis.bounds())
    # A copy of an offset's terms before the loop: the middle adds them to j.
    mapping: dict[Op, Op] = {}
    offsets = {
        op: Form(
            form.constant,
            {before_loop(func, t, loop, b, mapping): k for t, k in form.terms.items()},
        )
        for op, form in axis.sums.items()
    }
    attr = ForAttr(loop_name=loop.attr.loop_name)
    others = axes[:-1]
    index: dict[int, Op] = {}
    inner = b
    if others:
        bounds = [x for k in others for x in loop.args[2 * k : 2 * k + 2]]
        outer = b.range_for(tuple(bounds), attr)
        inner = Builder(func, outer.regions[0], loop.loc)
        index = {k: inner.loop_index(outer, place) for place, k in enumerate(others)}
    middle = inner.range_for((low, high), attr)
    _fill(func, loop, middle, axis.axis, index, offsets)
    edges = inner.range_for((inner.const(0, i32), inner.const(2, i32)), ForAttr(cold=True))
    e = Builder(func, edges.regions[0], loop.loc)
    is_first = e.binary(C.CMP_EQ, e.loop_index(edges, 0), e.const(0, i32))
    bounds = e.select(is_first, begin, high), e.select(is_first, low, end)
    edge = e.range_for(bounds, attr._replace(cold=axis.few))
    _fill(func, loop, edge, axis.axis, index, {})
    place = block.ops.index(loop)
    block.ops[place : place + 1] = before


def _middle(
    func: Func, loop: Op, b: Builder, begin: Op, end: Op, limits: list[_Limit]
) -> tuple[Op, Op]:
    """Begin and end of the middle, between ``begin`` and ``end`` (or empty, at one of these)."""
    mapping: dict[Op, Op] = {}
    low, high = b.cast(begin, i64), b.cast(end, i64)
    first, last = low, high
    for upper, plus, minus in limits:
        total = _Sum()
        total.add(plus)
        total.add(minus, -1)
        constant, terms = total.form()
        value = b.const(constant + upper, i64)  # the end is one after the last
        for term, factor in terms.items():
            part = b.cast(before_loop(func, term, loop, b, mapping), i64)
            if abs(factor) != 1:
                part = b.binary(C.MUL, part, b.const(abs(factor), i64))
            value = b.binary(C.ADD if factor > 0 else C.SUB, value, part)
        if upper:
            high = b.binary(C.MIN, high, value)
        else:
            low = b.binary(C.MAX, low, value)
    # An empty loop stays so: first may be after last.
    low = b.binary(C.MIN, low, b.binary(C.MAX, first, last))
    high = b.binary(C.MAX, high, low)
    return b.cast(low, i32), b.cast(high, i32)


def _fill(
    func: Func, loop: Op, new: Op, axis: int, index: dict[int, Op], offsets: dict[Op, Form]
) -> None:
    """Copy the body of ``loop`` to ``new``, with j + offset for the ops of ``offsets``."""
    body = new.regions[0]
    b = Builder(func, body, loop.loc)
    j = b.loop_index(new, 0)
    sums = {op: _add(b, j, form) for op, form in offsets.items()}
    mapping: dict[Op, Op] = {loop: new}
    clone_into(func, loop.regions[0].ops, mapping, body)
    repl: dict[Op, Op] = {}
    for op, copy in mapping.items():
        func.origins.setdefault(copy.id, op.id)
        if op.code == C.LOOP_INDEX and op.args[0] is loop:
            repl[copy] = j if op.attr == axis else index[op.attr]
        elif op in sums:
            repl[copy] = sums[op]
    drop(repl)
    replace_uses(body, repl)


def _add(b: Builder, j: Op, offset: Form) -> Op:
    value = j
    for op, factor in offset.terms.items():
        part = op if abs(factor) == 1 else b.binary(C.MUL, op, b.const(abs(factor), i32))
        value = b.binary(C.ADD if factor > 0 else C.SUB, value, part)
    if offset.constant:
        value = b.binary(C.ADD, value, b.const(_wrapped(offset.constant), i32))
    return value


def _wrapped(value: int) -> int:
    return (value - _LEAST) % 2**32 + _LEAST
