"""Facts about the variables that a loop changes, which hold in each of its iterations.

The body is followed once, from unknown values. A variable that it changes by a constant is a
multiple of the count of iterations: its *step*. Of any other integer, the bounds in `_BOUNDS` are
tried: those that one iteration keeps if all of them hold before it hold in every iteration, because
they hold at the start. So the two limits of a binary search stay between those it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ...ir import Block, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from .accesses import changed_by

__all__ = ["Carried", "bounds_of", "leaves", "names_of", "steps_of", "whole_only"]

_EFFORT: Final = 60_000
"""Of z3 for one bound of one variable, some milliseconds."""
_VARIABLES: Final = 4
"""Of one loop, whose bounds are tried."""

Bound = Callable[[Any, Any, Any], Any]
_BOUNDS: Final[tuple[Bound, ...]] = (
    lambda z3, first, v: v >= first,
    lambda z3, first, v: v <= first,
    lambda z3, first, v: z3.Implies(first >= 0, v >= 0),
    lambda z3, first, v: z3.Implies(first >= 0, v <= first),
)
"""Of a variable ``v`` that is ``first`` at the start of the loop."""


class Carried(NamedTuple):
    """steps: by how much an iteration changes a variable. bounds: what holds of others."""

    steps: dict[Op, Any]
    bounds: dict[Op, list[Bound]]


def leaves(body: Block, code: int) -> bool:
    """True if iterations of the loop with this body end with an op ``code``, which are not those of
    a loop in it."""
    for op in body.ops:
        if op.code == code or (op.code == C.IF and any(leaves(r, code) for r in op.regions)):
            return True
    return False


def whole_only(carried: Carried | None, body: Block) -> Carried | None:
    """The facts after a ``while``, whose last iteration may have ended in the middle."""
    last = max([k for k, op in enumerate(body.ops) if op.code == C.WHILE_CONTROL], default=-1)
    regions = [region for op in body.ops if op.code == C.IF for region in op.regions]
    inside = any(leaves(region, C.WHILE_CONTROL) for region in regions)
    if carried is None or inside or leaves(body, C.BREAK):
        return None
    begun = {v for op in body.ops[: last + 1] for v in changed_by(op)}
    steps = {v: by for v, by in carried.steps.items() if v not in begun}
    return Carried(steps, {v: b for v, b in carried.bounds.items() if v not in begun})


def steps_of(z3: Any, before: dict[Op, Any], after: dict[Op, Any]) -> dict[Op, Any]:
    """The variables that one iteration changes by a constant."""
    out: dict[Op, Any] = {}
    for variable, start in before.items():
        by = z3.simplify(after[variable] - start)
        if z3.is_int_value(by):
            out[variable] = by
    return out


def bounds_of(
    z3: Any, known: list[Any], reached: Any, before: dict[Op, Any], after: dict[Op, Any]
) -> dict[Op, list[Bound]]:
    """The bounds that one iteration keeps. known: what holds in it. reached: its end is."""
    chosen = [v for v in before if before[v].decl().name() in names_of(after[v])][:_VARIABLES]
    if not chosen:
        return {}
    first = {v: z3.Int(f"first {v.id}") for v in chosen}
    tried = [(v, bound) for v in chosen for bound in _BOUNDS]
    body = z3.And(*known, reached)
    while tried:
        solver = z3.Solver()
        solver.set("rlimit", _EFFORT)
        solver.add(body, *[b(z3, first[v], before[v]) for v, b in tried])
        kept = [(v, b) for v, b in tried if _follows(z3, solver, b(z3, first[v], after[v]))]
        if len(kept) == len(tried):
            break
        tried = kept
    return {v: mine for v in chosen if (mine := [b for w, b in tried if w is v])}


def _follows(z3: Any, solver: Any, goal: Any) -> bool:
    solver.push()
    solver.add(z3.Not(goal))
    state = solver.check()
    solver.pop()
    return bool(state == z3.unsat)


def names_of(term: Any) -> set[str]:
    """The names of the constants in a term."""
    return {t.decl().name() for t in _parts(term) if not t.num_args()}


def _parts(term: Any) -> Iterator[Any]:
    """The parts of a term, each once: terms share parts."""
    seen: set[int] = set()
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            yield part
            waiting += part.children()
