"""Generated kernels as small immutable trees, before they are source text or IR.

An expression is ``E(op, t, args, data)``; ``op`` is the name of an IR operation or one of

    const (data: value)  var (name)  load (array; args: indices)  shape ((array, axis))
    cast  chain (comparison names; three args)  and  or  not  ifexp  call (function name)
    vec (how it is written: see `V`; the one arg is what it means part by part)

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
    group   data: Bundle                       exprs: values   new variables, parts of one value
    whole   data: (operation or "", Bundle or Group, V, indices)
            exprs: a value for each part, indices     assigns to all parts of a value at once
    pick    data: Bundle                       exprs: value, index   assigns to one part

The programs know only numbers and arrays of numbers. That several of them are written as one
vector, matrix, struct, field or dataclass is said aside, by `Group` (arrays) and `Bundle`
(numbers), and shows in the source text alone. So what the frontend makes of an aggregate is
compared with what its parts mean on their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from qd_studio.engine.types import DataType

__all__ = [
    "Array", "Bundle", "E", "For", "Function", "Group", "Program", "S", "Scalar", "V", "count",
    "map_exprs", "walk",
]  # fmt: skip


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


class V(NamedTuple):
    """How a vector or matrix expression is written; `vectors.components` says what it means.

    op: ``var`` (data: Bundle), ``load`` (data: Group; args: indices), ``build`` (args: parts), the
    name of an elementwise operation (args: V, or E that broadcasts), ``cast``, ``matvec``,
    ``transpose``, ``swizzle`` (data: positions).
    """

    op: str
    t: DataType
    shape: tuple[int, ...]
    args: tuple[Any, ...] = ()
    data: Any = None


class Bundle(NamedTuple):
    """Numbers that are one value in source text: local variables or scalar arguments.

    form: ``vector``, ``matrix`` or ``struct``. parts: their names in the program. texts: how the
    source calls each of them. kind: the name of a struct type.
    """

    name: str
    form: str
    parts: tuple[str, ...]
    texts: tuple[str, ...]
    t: DataType | None = None
    shape: tuple[int, ...] = ()
    kind: str = ""
    keys: tuple[str, ...] = ()


class Group(NamedTuple):
    """Arrays that are one container in source text.

    where: ``ndarray`` or ``field``. form: ``scalar``, ``vector``, ``matrix`` or ``struct``.
    parts: the arrays. keys: of a struct, the member of each part; parts with the same key are a
    vector. layout: how a field lies in memory: ``aos``, ``soa``, ``nested``, ``order``. offset: of
    a field's indices. record: what it is a member of: ``rec`` (a dataclass argument), ``self`` (of
    a method), or "". A field without is a global, or, if ``template``, an argument.
    """

    name: str
    where: str
    form: str
    parts: tuple[str, ...]
    shape: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    layout: str = "aos"
    offset: int = 0
    record: str = ""
    template: bool = False


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
    """A ``@qd.func`` with typed parameters: some lets, then the value it returns.

    bundled: in source text the parameters (all of one type) are one vector.
    """

    name: str
    params: tuple[tuple[str, DataType], ...]
    body: tuple[S, ...]
    result: E
    bundled: bool = False


class Program(NamedTuple):
    """A kernel and its arguments.

    mode: ``int`` (no floats), ``exact`` (floats with exactly rounded operations only, which may
    decide branches), ``tame`` (well-conditioned floats that decide nothing).
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
    groups: tuple[Group, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    records: tuple[str, ...] = ()
    """Scalars that are members of the dataclass argument."""
    structs: tuple[tuple[str, tuple[tuple[str, DataType], ...]], ...] = ()
    """Struct types of local values and of scalar arguments: name, members."""
    method: tuple[str, ...] | None = None
    """Not None for a method: the scalars that are members of ``self``."""
    vector_result: bool = False
    """The results, which have one type, are returned as a vector."""


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
