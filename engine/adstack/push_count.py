"""The largest number of entries of a stack, from the positions of its pushes and pops.

One walk over the block that makes the stack goes from the inner ops outwards. For each part it
computes the *peak*, the largest number of entries above the count before it, and the *net* change
after it; both for one execution of the part, as size expressions that are never too small::

    push                peak 1, net 1                    pop     peak 0, net -1
    a, then b           max(peak a, net a + peak b), net a + net b
    if                  the larger of its branches, in both
    loop, body net 0    peak of the body, its largest over the iterations
    loop, body net n    trip count * n, n its largest over the iterations

A loop around the stack's block changes nothing but variables in the result: they stay free in it.
"""

from __future__ import annotations

from ..ir import Block, Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from .intervals import Facts
from .linear import from_linear, linear
from .resolve import DOWN, UP, Resolver, Unresolved
from .size_expr import ONE, ZERO, Binary, Const, SizeExpr

__all__ = ["Growing", "LoopGrowth", "Pushes", "Unbounded", "count_pushes", "growth_of"]


class Unbounded(Exception):
    """Raised for a loop that pushes, whose trip count no size expression describes.

    loop: a range_for or while. cause: the value that cannot be determined, None for a while.
    """

    def __init__(self, loop: Op, cause: Unresolved | None) -> None:
        super().__init__()
        self.loop = loop
        self.cause = cause


class Growing(NamedTuple):
    """Entries of a part, above what there was before."""

    peak: SizeExpr
    net: SizeExpr


class Pushes(NamedTuple):
    """The peak of one stack. loops: those that make it grow, outermost first."""

    peak: SizeExpr
    loops: tuple[Op, ...]


def count_pushes(stack: Op, resolver: Resolver) -> Pushes:
    """The peak of ``stack`` in one execution of its block. Raises Unbounded."""
    counter = _Counter(stack, resolver)
    assert stack.block is not None
    peak = counter.block(stack.block).peak
    order = resolver.reaching.order
    return Pushes(peak, tuple(sorted(counter.growing, key=lambda loop: order[loop])))


class LoopGrowth(NamedTuple):
    """Entries that a loop leaves on a stack: in all, and in an iteration of its outermost axis."""

    total: SizeExpr
    each: SizeExpr


def growth_of(stack: Op, loop: Op, resolver: Resolver) -> LoopGrowth:
    """The peaks of one execution of a range_for. Raises Unbounded."""
    counter = _Counter(stack, resolver)
    total = counter.op(loop).peak
    try:
        each = resolver.close(counter.block(loop.regions[0]).peak, [loop], UP)
        axes = loop.attr.axes or range(len(loop.args) // 2)
        for axis in axes[1:]:
            each = _times(resolver.axis_trips(loop, axis, UP), each)
    except Unresolved as cause:
        raise Unbounded(loop, cause) from None
    return LoopGrowth(total, each)


class _Counter:
    def __init__(self, stack: Op, resolver: Resolver) -> None:
        self.stack = stack
        self.resolver = resolver
        self.facts = Facts(resolver.func.params)
        self.growing: list[Op] = []
        self.inside: dict[Block, list[Op]] = {}  # ops that change the stack, or hold such ops
        reaching = resolver.reaching
        found: set[Op] = set()
        for op in reaching.writes.get(stack, []):
            found.update([op, *reaching.owners(op)])
        for op in sorted(found, key=lambda o: reaching.order[o]):
            assert op.block is not None
            self.inside.setdefault(op.block, []).append(op)

    def block(self, block: Block) -> Growing:
        peak: SizeExpr = ZERO
        net: SizeExpr = ZERO
        for op in self.inside.get(block, []):
            grown = self.op(op)
            peak = _largest(peak, _plus(net, grown.peak))
            net = _plus(net, grown.net)
        return Growing(peak, net)

    def op(self, op: Op) -> Growing:
        code = op.code
        if code == C.AD_STACK_PUSH:
            return Growing(ONE, ONE)
        if code == C.AD_STACK_POP:
            return Growing(ZERO, Const(-1))
        if code == C.RANGE_FOR:
            return self.loop(op)
        parts = [self.block(region) for region in op.regions]
        peak, net = parts[0]
        for part in parts[1:]:
            peak, net = _largest(peak, part.peak), _largest(net, part.net)
        if code == C.WHILE and self.grows(net):
            raise Unbounded(op, None)
        return Growing(peak, net)

    def loop(self, op: Op) -> Growing:
        peak, net = self.block(op.regions[0])
        if op in self.resolver.reaching.jumping:
            net = _largest(net, peak)  # what is popped after it may be left
        resolver = self.resolver
        try:
            if self.grows(net):
                trips = resolver.trips(op, UP)
                if trips == ZERO:
                    return Growing(ZERO, ZERO)
                self.growing.append(op)
                rest = resolver.close(from_linear(linear(Binary("sub", peak, net))), [op], UP)
                total = _times(trips, resolver.close(_positive(net), [op], UP))
                return Growing(_plus(total, rest), total)
            peak = resolver.close(peak, [op], UP)
        except Unresolved as cause:
            raise Unbounded(op, cause) from None
        if net == ZERO or not isinstance(net, Const):
            return Growing(peak, ZERO)
        try:
            return Growing(peak, _times(resolver.trips(op, DOWN), net))  # pops at least that many
        except Unresolved:
            return Growing(peak, ZERO)

    def grows(self, net: SizeExpr) -> bool:
        """True if an iteration may leave more entries than it found."""
        return self.facts.bounds(net)[1] > 0


def _plus(a: SizeExpr, b: SizeExpr) -> SizeExpr:
    return from_linear(linear(Binary("add", a, b)))


def _times(a: SizeExpr, b: SizeExpr) -> SizeExpr:
    if ONE in (a, b):
        return b if a == ONE else a
    return from_linear(linear(Binary("mul", a, b)))


def _positive(e: SizeExpr) -> SizeExpr:
    return e if isinstance(e, Const) else Binary("max", ZERO, e)


def _largest(a: SizeExpr, b: SizeExpr) -> SizeExpr:
    """The larger one, chosen here if the difference is a number."""
    gap = linear(Binary("sub", a, b))
    if not gap.terms:
        return a if gap.const >= 0 else b
    return Binary("max", a, b)
