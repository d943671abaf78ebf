"""Generated kernels as small immutable trees, before they are source text or IR.

An expression is ``E(op, t, args, data)``; ``op`` is the name of an IR operation or one of

    const (data: value)  var (name)  load (array; args: indices)  shape ((array, axis))
    cast  chain (comparison names; three args)  and  or  not  ifexp  call (function name)

A statement is ``S(kind, data, exprs, bodies)``:

    let     data: name                         exprs: value      the variable's type is the value's
    set     data: name                         exprs: value
    aug     data: (operation, target)          exprs: value, indices of an array target
    store   data: array                        exprs: value, indices
    atomic  data: (result or "", operation, target)   exprs: value(s), indices
    if      exprs: condition                   bodies: then, else
    for     data: For                          exprs: begin, end of each axis   bodies: body
    while   data: (counter, limit)             exprs: condition                 bodies: body
    break, continue
    assert  exprs: condition (true by construction)
    return  exprs: results
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from qd_studio.engine.types import DataType

__all__ = ["Array", "E", "For", "Function", "Program", "S", "Scalar", "count", "map_exprs", "walk"]


class E(NamedTuple):
    op: str
    t: DataType
    args: tuple[E, ...] = ()
    data: Any = None


class S(NamedTuple):
    kind: str
    data: Any = None
    exprs: tuple[E, ...] = ()
    bodies: tuple[tuple[S, ...], ...] = ()


class For(NamedTuple):
    """form: range, ndrange, array (over an array's elements), grouped, static. names: the loop
    variables. array: what ``array`` loops over. serialize: under loop_config(serialize=True)."""

    form: str
    names: tuple[str, ...]
    array: str = ""
    serialize: bool = False


class Array(NamedTuple):
    """dims: numbers of the program's dimensions, one for each axis."""

    name: str
    dtype: DataType
    dims: tuple[int, ...]


class Scalar(NamedTuple):
    name: str
    dtype: DataType
    value: float | int


class Function(NamedTuple):
    """A ``@qd.func`` with typed parameters: some lets, then the value it returns."""

    name: str
    params: tuple[tuple[str, DataType], ...]
    body: tuple[S, ...]
    result: E


class Program(NamedTuple):
    """A kernel and its arguments.

    mode: ``int`` (no reals), ``exact`` (reals with exactly rounded operations only, which may
    decide branches), ``tame`` (well-conditioned reals that decide nothing).
    dims: extents. fill: seed of the array contents.
    """

    name: str
    mode: str
    seed: int
    dims: tuple[int, ...]
    arrays: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    functions: tuple[Function, ...]
    body: tuple[S, ...]
    results: tuple[DataType, ...]


def walk(body: tuple[S, ...]) -> Iterator[S]:
    """Every statement, outer before inner."""
    for s in body:
        yield s
        for inner in s.bodies:
            yield from walk(inner)


def count(body: tuple[S, ...]) -> int:
    return sum(1 for _ in walk(body))


def expressions(e: E) -> Iterator[E]:
    """``e`` and everything in it."""
    yield e
    for a in e.args:
        yield from expressions(a)


def map_exprs(s: S, fn: Callable[[E], E]) -> S:
    """``s`` with its own expressions (not those of its bodies) mapped."""
    return s._replace(exprs=tuple(fn(e) for e in s.exprs))
