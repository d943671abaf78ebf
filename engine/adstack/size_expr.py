"""Size expressions: the number of entries that an adstack needs, before its arrays are known.

A reverse-mode kernel is compiled once and launched with many arrays, so the size of a stack is an
expression over the kernel's parameters. `passes.autodiff.determine_ad_stack_size` makes them, each
launch evaluates them (`host_eval`, `max_reducer`), people read them as formulas (`formula`).
Nodes are immutable, compared by value, and hashable; the text is canonical: equal expressions have
equal texts, and ``parse(text(e)) == e``. The text is stored in attributes of ops and in caches::

    12                          Const(12)
    (arg P)                     Arg(P): the scalar parameter number P of the compiled kernel
    (shape P AXIS)              Shape(P, AXIS): extent of an array parameter
    (read P I...)               Read(P, (I, ...)): an integer element; one index for each axis,
                                those of the elements (of vectors) last; each any expression
    (var V)                     Var(V): a variable that an enclosing maxover has bound
    (add A B) (sub A B) (mul A B) (max A B) (min A B) (floordiv A B) (mod A B)      Binary(op, A, B)
    (maxover V BEGIN END BODY)  MaxOver(V, BEGIN, END, BODY): the largest BODY for V from BEGIN up
                                to, not with, END; 0 if there is no such V

Numbers are exact integers. Nothing is clamped: a trip count is ``(max 0 (sub END BEGIN))``.
``floordiv`` and ``mod`` are Python's; both are 0 for a divisor of 0, as in kernels. BEGIN and END
are outside of V's scope. A size below 1 means 1.

An index outside of an array is an error when it is evaluated. An array without elements is an
exception: a read of it is 0, since a kernel that launches with one does not reach the read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

__all__ = [
    "ONE", "OPS", "ZERO", "Arg", "Binary", "Const", "MaxOver", "Read", "Shape", "SizeExpr",
    "SizeExprError", "Var", "apply", "bound_vars", "children", "free_vars", "leaves", "parse",
    "rebuild", "substitute", "text", "walk",
]  # fmt: skip


class SizeExprError(ValueError):
    """Text that is no size expression."""


class _Node:
    """A node: compared by value, and by its hash first. Never changed once it is made."""

    __slots__ = ("_hash", "_key")

    def _keep(self, *key: object) -> None:
        self._key = key
        self._hash = hash((type(self).__name__, key))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, _Node) or type(self) is not type(other):
            return NotImplemented
        return self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._key!r}"


class Const(_Node):
    """A number."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value: Final = value
        self._keep(value)


class Arg(_Node):
    """A scalar parameter of the kernel, by number."""

    __slots__ = ("param",)

    def __init__(self, param: int) -> None:
        self.param: Final = param
        self._keep(param)


class Shape(_Node):
    """The extent of an array parameter along an axis."""

    __slots__ = ("axis", "param")

    def __init__(self, param: int, axis: int) -> None:
        self.param: Final = param
        self.axis: Final = axis
        self._keep(param, axis)


class Read(_Node):
    """An integer element of an array or field parameter."""

    __slots__ = ("indices", "param")

    def __init__(self, param: int, indices: tuple[SizeExpr, ...]) -> None:
        self.param: Final = param
        self.indices: Final = indices
        self._keep(param, indices)


class Var(_Node):
    """A variable that a `MaxOver` around it binds."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self._keep(number)


class Binary(_Node):
    """Arithmetic; ``op`` is one of `OPS`."""

    __slots__ = ("a", "b", "op")

    def __init__(self, op: str, a: SizeExpr, b: SizeExpr) -> None:
        self.op: Final = op
        self.a: Final = a
        self.b: Final = b
        self._keep(op, a, b)


class MaxOver(_Node):
    """The largest ``body`` for ``var`` in ``range(begin, end)``; 0 if that is empty."""

    __slots__ = ("begin", "body", "end", "var")

    def __init__(self, var: int, begin: SizeExpr, end: SizeExpr, body: SizeExpr) -> None:
        self.var: Final = var
        self.begin: Final = begin
        self.end: Final = end
        self.body: Final = body
        self._keep(var, begin, end, body)


SizeExpr = Const | Arg | Shape | Read | Var | Binary | MaxOver
ZERO: Final = Const(0)
ONE: Final = Const(1)


def _floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _mod(a: int, b: int) -> int:
    return a % b if b else 0


OPS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "floordiv": _floordiv,
    "mod": _mod,
}
"""The arithmetic there is, on exact integers."""


def apply(op: str, a: int, b: int) -> int:
    """``op`` of two numbers."""
    return OPS[op](a, b)


# --- the nodes of an expression ---------------------------------------------------------------


def children(e: SizeExpr) -> tuple[SizeExpr, ...]:
    """Operands, in the order of the text; of a `MaxOver` begin, end and body."""
    match e:
        case Binary():
            return (e.a, e.b)
        case Read():
            return e.indices
        case MaxOver():
            return (e.begin, e.end, e.body)
        case _:
            return ()


def rebuild(e: SizeExpr, new: Iterable[SizeExpr]) -> SizeExpr:
    """``e`` with other operands, in the order of `children`."""
    match e:
        case Binary():
            return Binary(e.op, *new)
        case Read():
            return Read(e.param, tuple(new))
        case MaxOver():
            return MaxOver(e.var, *new)
        case _:
            return e


def walk(e: SizeExpr) -> Iterator[SizeExpr]:
    """Every node, each after its operands."""
    for child in children(e):
        yield from walk(child)
    yield e


def leaves(e: SizeExpr) -> tuple[Arg | Shape | Read, ...]:
    """The nodes that depend on the arguments of a launch, each once, in the order of the text."""
    found = [n for n in walk(e) if isinstance(n, Arg | Shape | Read)]
    return tuple(dict.fromkeys(found))


def bound_vars(e: SizeExpr) -> tuple[int, ...]:
    """Variables that some `MaxOver` in it binds, each once, outermost first."""
    if isinstance(e, MaxOver):
        inner = [v for child in children(e) for v in bound_vars(child)]
        return tuple(dict.fromkeys([e.var, *inner]))
    return tuple(dict.fromkeys([v for child in children(e) for v in bound_vars(child)]))


@lru_cache(maxsize=4096)
def free_vars(e: SizeExpr) -> frozenset[int]:
    """Variables that it uses and does not bind."""
    if isinstance(e, Var):
        return frozenset((e.number,))
    if isinstance(e, MaxOver):
        return free_vars(e.begin) | free_vars(e.end) | (free_vars(e.body) - {e.var})
    return frozenset[int]().union(*[free_vars(child) for child in children(e)])


def substitute(e: SizeExpr, values: Mapping[SizeExpr, SizeExpr]) -> SizeExpr:
    """``e`` with every node that is a key replaced, outermost first.

    The values must not use variables that ``e`` binds at the positions of the replaced nodes.
    """
    if (found := values.get(e)) is not None:
        return found
    old = children(e)
    new = [substitute(child, values) for child in old]
    return e if all(a is b for a, b in zip(old, new, strict=True)) else rebuild(e, new)


# --- text -------------------------------------------------------------------------------------


def text(e: SizeExpr) -> str:
    """The canonical text, on one line."""
    match e:
        case Const():
            return str(e.value)
        case Arg():
            return f"(arg {e.param})"
        case Shape():
            return f"(shape {e.param} {e.axis})"
        case Read():
            return f"(read {' '.join([str(e.param), *map(text, e.indices)])})"
        case Var():
            return f"(var {e.number})"
        case Binary():
            return f"({e.op} {text(e.a)} {text(e.b)})"
        case MaxOver():
            return f"(maxover {e.var} {text(e.begin)} {text(e.end)} {text(e.body)})"


_TOKEN: Final = re.compile(r"\s*(\(|\)|-?\d+|[a-z]+)")


def parse(source: str) -> SizeExpr:
    """The expression that `text` wrote. Raises SizeExprError."""
    return _parse(source)


@lru_cache(maxsize=1024)
def _parse(source: str) -> SizeExpr:
    tokens: list[str] = []
    at = 0
    stripped = source.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise SizeExprError(f"{source!r} is no size expression: what is {stripped[at:]!r}?")
        tokens.append(match[1])
        at = match.end()
    reader = _Reader(source, tokens)
    e = reader.expr()
    reader.done()
    return e


class _Reader:
    """Recursive descent over tokens."""

    def __init__(self, source: str, tokens: list[str]) -> None:
        self.source = source
        self.tokens = tokens
        self.at = 0

    def next(self) -> str:
        if self.at == len(self.tokens):
            raise self.error("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def error(self, why: str) -> SizeExprError:
        return SizeExprError(f"{self.source!r} is no size expression: {why}")

    def done(self) -> None:
        if self.at != len(self.tokens):
            raise self.error(f"there is more after it: {self.tokens[self.at]!r}")

    def number(self) -> int:
        token = self.next()
        if not token.isdecimal():
            raise self.error(f"{token!r} is no number of a parameter, axis or variable")
        return int(token)

    def expr(self) -> SizeExpr:
        token = self.next()
        if token != "(":
            if token[-1:].isdecimal():
                return Const(int(token))
            raise self.error(f"expected an expression, found {token!r}")
        e = self.node(self.next())
        if self.next() != ")":
            raise self.error("an operation has too many operands")
        return e

    def node(self, kind: str) -> SizeExpr:
        if kind in OPS:
            return Binary(kind, self.expr(), self.expr())
        match kind:
            case "arg":
                return Arg(self.number())
            case "var":
                return Var(self.number())
            case "shape":
                return Shape(self.number(), self.number())
            case "maxover":
                return MaxOver(self.number(), self.expr(), self.expr(), self.expr())
            case "read":
                param = self.number()
                indices: list[SizeExpr] = []
                while self.at < len(self.tokens) and self.tokens[self.at] != ")":
                    indices.append(self.expr())
                return Read(param, tuple(indices))
            case _:
                raise self.error(f"there is no operation {kind!r}")
