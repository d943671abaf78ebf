"""Maxima over ranges that are found by themselves, in parallel, before a size is evaluated.

A size such as ``1 + max over i < a.shape[0] of a[i]`` hides all its work in the `MaxOver`. Where
the ranges are known before, its cells are independent of each other: `recognise` captures such
nodes, each launch *dispatches* them (a compiled kernel or NumPy, see `reducer_kernels`) and puts
the results in place of the nodes; what is left of the size is cheap (`host_eval`).

A chain of nested `MaxOver` is captured as one spec with an axis for each, up to 8, if each begin
and end is *closed*: it uses no variable. The body is any arithmetic of reads, variables and closed
parts, indices of any kind included; it holds no further `MaxOver` that uses a variable. Closed
`MaxOver` nodes, in bounds or in the body, are captured first: the spec *depends* on them. So specs
come in the order in which they can be dispatched, in rounds: round 1 depends on nothing, round n on
some spec of round n - 1. Whatever is not captured is walked by `host_eval`, with its guard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..named_tuple import NamedTuple
from .size_expr import Const, MaxOver, SizeExpr, children, free_vars, substitute, walk

__all__ = ["MAX_AXES", "Axis", "MaxReducerSpec", "in_rounds", "recognise", "substituted"]

MAX_AXES: Final = 8


class Axis(NamedTuple):
    """One range of a chain."""

    var: int
    begin: SizeExpr
    end: SizeExpr


class MaxReducerSpec(NamedTuple):
    """A captured chain.

    node: its outermost `MaxOver`. axes: outermost first. body: what is maximised. depends: captured
    nodes in the bounds and the body.
    """

    node: MaxOver
    axes: tuple[Axis, ...]
    body: SizeExpr
    depends: tuple[MaxOver, ...]


def recognise(sizes: Iterable[SizeExpr]) -> tuple[MaxReducerSpec, ...]:
    """The specs of these sizes, each once, those it depends on before it."""
    found: dict[SizeExpr, MaxReducerSpec] = {}
    for e in sizes:
        _visit(e, found)
    return tuple(found.values())


def _visit(e: SizeExpr, found: dict[SizeExpr, MaxReducerSpec]) -> None:
    if e in found:
        return
    if isinstance(e, MaxOver) and (chain := _chain(e)) is not None:
        axes, body = chain
        parts = [part for axis in axes for part in (axis.begin, axis.end)] + [body]
        for part in parts:
            _visit(part, found)
        inside = [node for part in parts for node in walk(part) if isinstance(node, MaxOver)]
        if all(not free_vars(node) and node in found for node in inside):
            outermost = [node for part in parts for node in _tops(part)]
            depends = tuple(dict.fromkeys(outermost))
            found[e] = MaxReducerSpec(e, axes, body, depends)
        return
    for child in children(e):
        _visit(child, found)


def _tops(e: SizeExpr) -> list[MaxOver]:
    """The `MaxOver` nodes in ``e`` that are in no other."""
    if isinstance(e, MaxOver):
        return [e]
    return [node for child in children(e) for node in _tops(child)]


def _chain(e: MaxOver) -> tuple[tuple[Axis, ...], SizeExpr] | None:
    """The axes of a chain with closed ranges, and its body; None if the first is not closed."""
    axes: list[Axis] = []
    node: SizeExpr = e
    while isinstance(node, MaxOver) and len(axes) < MAX_AXES:
        if free_vars(node.begin) or free_vars(node.end):
            break
        axes.append(Axis(node.var, node.begin, node.end))
        node = node.body
    return (tuple(axes), node) if axes and not free_vars(e) else None


def substituted(e: SizeExpr, results: Mapping[SizeExpr, int]) -> SizeExpr:
    """``e`` with the results in place of captured nodes."""
    values: dict[SizeExpr, SizeExpr] = {node: Const(value) for node, value in results.items()}
    return substitute(e, values) if values else e


def in_rounds(specs: Iterable[MaxReducerSpec]) -> tuple[tuple[MaxReducerSpec, ...], ...]:
    """Specs by round, in the order of dispatch."""
    level: dict[SizeExpr, int] = {}
    rounds: list[list[MaxReducerSpec]] = []
    for spec in specs:
        own = level[spec.node] = 1 + max([level[node] for node in spec.depends], default=-1)
        while len(rounds) <= own:
            rounds.append([])
        rounds[own].append(spec)
    return tuple([tuple(one) for one in rounds])
