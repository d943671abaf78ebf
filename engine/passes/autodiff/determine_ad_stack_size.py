"""determine_ad_stack_size: determines the number of entries of each adstack.

::

    <*f32> $5 = ad_stack_alloca {name='v'}            ... {name='v' size='(add (read 0 (var 0)) 1)'
    $6 : ad_stack_push $5, $4                              forced_by='the loop over j at line 7'}
    $9 : range_for $1, $8 body {
      ...
      $12 : ad_stack_push $5, $11
    }

In the full expression the maximum over the outer loop's variable is taken:
``(maxover 0 0 (shape 0 0) (add (read 0 (var 0)) 1))``. The size is the largest number of entries
that one execution of the stack's block needs (`adstack.push_count`), over all iterations of the
loops around that block. A size that is known now is stored in ``max_size`` (at least 1). For any
other, ``size`` holds the expression as text, which is evaluated before a launch.
`ad_stack_size` sets all sizes instead; ``size`` then only serves overflow reports. A root loop
with stacks stores its trip count in ``trip``.

Trip counts may contain whatever `adstack.resolve` understands. Any other bound is an error at
the loop, which names the part that is not known before a launch.

The pass runs after the last pass that moves stacks, and before `offload`, while bounds are values
of one function and not of tasks. It changes nothing else.
"""

from __future__ import annotations

import linecache
import re
from typing import Final

from ...adstack.push_count import Pushes, Unbounded, count_pushes
from ...adstack.reaching_writes import ReachingWrites
from ...adstack.resolve import UP, Resolver, Unresolved
from ...adstack.simplifier import simplify
from ...adstack.size_expr import Const, MaxOver, SizeExpr, free_vars, text
from ...errors import QuadrantsCompilationError
from ...ir import Func, Loc, Op
from ...ir import codes as C
from ...ir.edit import walk
from ..manager import PassCx
from ..registry import register

_REMEDY: Final = (
    "bound it by integers that are known before the launch: numbers, scalar arguments, shapes,"
    " elements of integer arrays or fields, indices of loops around it, and + - * // % min max of"
    " them; or set a fixed size for all adstacks with qd.init(ad_stack_size=N)"
)


@register("determine_ad_stack_size")
def determine_ad_stack_size(func: Func, cx: PassCx) -> bool:
    """Give each adstack its size: a number, or an expression that each launch evaluates."""
    stacks = [op for op in walk(func.body) if op.code == C.AD_STACK_ALLOCA]
    if not stacks:
        return False
    resolver = Resolver(func, ReachingWrites(func))
    simple: dict[SizeExpr, SizeExpr] = {}  # the values of one loop need stacks of one size
    changed = False
    for stack in stacks:
        attr = stack.attr
        if not attr.max_size and not attr.size:
            stack.attr = _sized(stack, resolver, cx, simple)
            changed |= stack.attr != attr
    for loop in _root_loops(stacks, resolver):
        changed |= _count_trips(loop, resolver)
    return changed


def _sized(stack: Op, resolver: Resolver, cx: PassCx, simple: dict[SizeExpr, SizeExpr]) -> object:
    """The attribute of a stack, with its size."""
    attr = stack.attr
    try:
        pushes = count_pushes(stack, resolver)
    except Unbounded as problem:
        if not cx.config.ad_stack_size:
            raise _error(stack, problem, resolver) from None
        return attr._replace(max_size=cx.config.ad_stack_size, forced_by=_loops([problem.loop]))
    attr = attr._replace(forced_by=_loops(list(pushes.loops)))
    fixed = cx.config.ad_stack_size
    try:
        closed = _closed(stack, pushes, resolver)
    except QuadrantsCompilationError:
        if not fixed:
            raise
        return attr._replace(max_size=fixed)
    size = simple.get(closed)
    if size is None:
        size = simple[closed] = simplify(closed, resolver.func.params, floor=1)
    if fixed:
        return attr._replace(max_size=fixed, size=text(size))
    if isinstance(size, Const):
        return attr._replace(max_size=max(size.value, 1))
    return attr._replace(size=text(size))


def _closed(stack: Op, pushes: Pushes, resolver: Resolver) -> SizeExpr:
    """The largest peak over all iterations of the loops around the stack."""
    size = pushes.peak
    for loop in reversed(resolver.reaching.loops(stack)):
        if not any(resolver.var(loop, n).number in free_vars(size) for n in _axes(loop)):
            continue
        try:
            ranges = resolver.ranges(loop)
        except Unresolved as cause:
            raise _error(stack, Unbounded(loop, cause), resolver) from None
        for var, begin, end in reversed(ranges):
            size = MaxOver(var.number, begin, end, size)
    return size


def _axes(loop: Op) -> range:
    return range(len(loop.args) // 2)


# --- trip counts of root loops ----------------------------------------------------------------


def _root_loops(stacks: list[Op], resolver: Resolver) -> list[Op]:
    """Root loops that hold stacks, each once."""
    outermost = [owners[-1] for s in stacks if (owners := resolver.reaching.owners(s))]
    return [op for op in dict.fromkeys(outermost) if op.code == C.RANGE_FOR]


def _count_trips(loop: Op, resolver: Resolver) -> bool:
    """Note the trip count of a root loop; a loop whose count cannot be determined gets none."""
    try:
        trips = resolver.trips(loop, UP)
    except Unresolved:
        return False
    attr = loop.attr
    loop.attr = attr._replace(trip=text(simplify(trips, resolver.func.params, floor=0)))
    return loop.attr != attr


# --- words ------------------------------------------------------------------------------------


def _source(loc: Loc) -> str:
    """The user's text at a location on one line; empty if it is not there."""
    if loc.line <= 0 or loc.end_line != loc.line:
        return ""
    linecache.checkcache(loc.file)
    line = linecache.getline(loc.file, loc.line).encode()
    return line[loc.col : loc.end_col].decode(errors="replace").strip()


def loop_text(loop: Op) -> str:
    """A loop as people call it: over j at line 7."""
    loc = loop.loc
    target = re.match(r"for\s+(.+?)\s+in\b", _source(loc))
    what = f"over {target[1]} " if target else ""
    return f"{what}at line {loc.line}" if loc.line > 0 else what.strip()


def _loops(loops: list[Op]) -> str:
    """The loops that make a stack large, as text."""
    named = list(dict.fromkeys([name for loop in loops if (name := loop_text(loop))]))
    if not named:
        return ""
    return f"the loop{'s' if len(named) > 1 else ''} {' and '.join(named)}"


def _error(stack: Op, problem: Unbounded, resolver: Resolver) -> QuadrantsCompilationError:
    """The error at a loop whose trip count cannot be determined."""
    loop, cause = problem.loop, problem.cause
    name = f" of {stack.attr.name}" if stack.attr.name else ""
    where = loop_text(loop) or "of this kernel"
    if cause is None:
        message = (
            f"the reverse pass keeps the values{name} of each iteration of the while loop {where},"
            " and the number of its iterations is not known before the launch"
        )
        return QuadrantsCompilationError.from_loc(
            message, loop.loc, hint=f"use a for loop and {_REMEDY}"
        )
    message = (
        f"the reverse pass keeps the values{name} of each iteration of the loop {where}, and the"
        f" number of its iterations is not known before the launch: {_cause(cause, loop)}"
    )
    return QuadrantsCompilationError.from_loc(message, loop.loc, hint=_REMEDY)


def _cause(cause: Unresolved, loop: Op) -> str:
    """The part of a loop's bounds that cannot be determined."""
    at = cause.op.loc
    source = "" if cause.named else _source(at)
    if not source:
        return f"it depends on {cause.why}"
    line = f" at line {at.line}" if at.line != loop.loc.line else ""
    return f"`{source}`{line} is {cause.why}"
