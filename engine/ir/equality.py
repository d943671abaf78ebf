"""Structural comparison of two functions."""

from __future__ import annotations

from operator import eq

from . import codes as C
from .op import Block, Func, Op
from .semantics import same_const

__all__ = ["difference", "equal"]


_FIELDS = (
    "name", "params", "results", "stage", "noalias", "graph", "autodiff", "global_tmp_size",
)  # fmt: skip


def equal(a: Func, b: Func, *, ids: bool = True, locs: bool = False) -> bool:
    """True if two functions print the same: signature, settings, ops, operands, attributes.

    ids: the ids must agree too; without it only the structure must. locs: the locations must, too.
    `Func.origins` and `Func.version` are history and not compared.
    """
    return difference(a, b, ids=ids, locs=locs) is None


def difference(a: Func, b: Func, *, ids: bool = True, locs: bool = False) -> str | None:
    """The first difference in words, None if there is none. See `equal`."""
    for field in _FIELDS:
        if getattr(a, field) != getattr(b, field):
            return f"{field}: {getattr(a, field)!r} and {getattr(b, field)!r}"
    if locs and a.loc is not b.loc:
        return f"loc: {a.loc!r} and {b.loc!r}"
    if list(a.callees) != list(b.callees):
        return f"functions: {list(a.callees)} and {list(b.callees)}"
    for x, y in zip(a.callees.values(), b.callees.values(), strict=True):
        if (x.args, x.results, x.stage) != (y.args, y.results, y.stage):
            return f"the function {x.name}: {x.args}, {x.results} and {y.args}, {y.results}"
        if locs and x.loc is not y.loc:
            return f"loc of {x.name}: {x.loc!r} and {y.loc!r}"
    for x, y in zip(a.bodies(), b.bodies(), strict=True):
        problem = _blocks(x, y, {}, ids, locs)
        if problem:
            return problem
    return None


def _blocks(a: Block, b: Block, mapping: dict[Op, Op], ids: bool, locs: bool) -> str | None:
    if len(a.ops) != len(b.ops):
        return f"a block of {len(a.ops)} ops and one of {len(b.ops)}"
    for x, y in zip(a.ops, b.ops, strict=True):
        mapping[x] = y
        problem = _ops(x, y, mapping, ids, locs)
        if problem:
            return problem
        for r, s in zip(x.regions, y.regions, strict=True):
            problem = _blocks(r, s, mapping, ids, locs)
            if problem:
                return problem
    return None


def _ops(x: Op, y: Op, mapping: dict[Op, Op], ids: bool, locs: bool) -> str | None:
    if x.code != y.code or x.type is not y.type:
        return f"{x!r} and {y!r}"
    if len(x.args) != len(y.args) or len(x.regions) != len(y.regions):
        return f"operands or regions of {x!r} and {y!r}"
    if ids and x.id != y.id:
        return f"ids of {x!r} and {y!r}"
    for p, q in zip(x.args, y.args, strict=True):
        # An operand defined further on (broken IR) is compared by id.
        if mapping.get(p, q) is not q or (p not in mapping and p.id != q.id):
            return f"operands of {x!r} and {y!r}"
    same = same_const if x.code == C.CONST else eq
    if type(x.attr) is not type(y.attr) or not same(x.attr, y.attr):
        return f"attributes {x.attr!r} and {y.attr!r} of {x!r}"
    return f"locations of {x!r}: {x.loc!r} and {y.loc!r}" if locs and x.loc is not y.loc else None
