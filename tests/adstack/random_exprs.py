"""Random size expressions over two arrays and a number, with a plain evaluator to compare with."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from qd_studio.engine.adstack.size_expr import (
    Arg,
    Binary,
    Const,
    MaxOver,
    Read,
    Shape,
    SizeExpr,
    Var,
    apply,
)
from qd_studio.engine.ir import Param
from qd_studio.engine.types import i32, i64

PARAMS = (Param("n", "scalar", i32), Param("a", "ndarray", i32, 1), Param("b", "ndarray", i64, 2))
ROWS, COLUMNS = 5, 4
_OPS = ("add", "add", "sub", "mul", "max", "max", "min", "floordiv", "mod")


def random_values(rng: random.Random) -> list[Any]:
    """Arguments for `PARAMS`."""
    a = np.array([rng.randint(-2, 6) for _ in range(ROWS)], dtype=np.int32)
    b = np.array([rng.randint(-3, 5) for _ in range(ROWS * COLUMNS)], dtype=np.int64)
    return [rng.randint(-3, 6), a, b.reshape(ROWS, COLUMNS)]


def random_expr(
    rng: random.Random, depth: int = 4, vars: tuple[int, ...] = (), full: bool = False
) -> SizeExpr:
    """An expression whose reads are inside of the arrays. full: no range is empty."""

    def again(more: tuple[int, ...] = ()) -> SizeExpr:
        return random_expr(rng, depth - 1, vars + more, full)

    if depth <= 0 or rng.random() < 0.15:
        return _leaf(rng, vars)
    roll = rng.random()
    if roll < 0.55:
        return Binary(rng.choice(_OPS), again(), again())
    if roll < 0.75:
        if rng.random() < 0.5:
            return Read(1, (_wrapped(again(), Shape(1, 0)),))
        return Read(2, (_wrapped(again(), Shape(2, 0)), _wrapped(again(), Shape(2, 1))))
    number = rng.choice([v for v in range(12) if v not in vars])
    if rng.random() < 0.6:
        begin: SizeExpr = Const(0)
        end: SizeExpr = rng.choice([Shape(1, 0), Shape(2, 1), Const(3)])
    else:
        begin = _leaf(rng, vars)
        span = _wrapped(again(), Const(4))
        end = Binary("add", begin, Binary("add", Const(1), span) if full else span)
    return MaxOver(number, begin, end, again((number,)))


def _wrapped(e: SizeExpr, extent: SizeExpr) -> SizeExpr:
    return Binary("mod", e, extent)


def _leaf(rng: random.Random, vars: tuple[int, ...]) -> SizeExpr:
    choices: list[SizeExpr] = [Const(rng.randint(-3, 6)), Arg(0), Shape(1, 0), Shape(2, 1)]
    return rng.choice(choices + [Var(v) for v in vars] * 3)


def plain_value(e: SizeExpr, values: Sequence[Any], vars: Mapping[int, int] | None = None) -> int:
    """The value, one number at a time."""
    known = dict(vars or {})

    def at(node: SizeExpr) -> int:
        return plain_value(node, values, known)

    match e:
        case Const():
            return e.value
        case Arg():
            return int(values[e.param])
        case Shape():
            return int(values[e.param].shape[e.axis])
        case Read():
            return int(values[e.param][tuple([at(i) for i in e.indices])])
        case Var():
            return known[e.number]
        case Binary():
            return apply(e.op, at(e.a), at(e.b))
        case MaxOver():
            inner = [
                plain_value(e.body, values, {**known, e.var: i})
                for i in range(at(e.begin), at(e.end))
            ]
            return max(inner, default=0)
