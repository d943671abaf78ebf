"""Size expressions as people read them.

`formula` writes one on a line, in the user's names for what is read, `tree` as nested rows::

    max over i < a.shape[0] of a[i] + 1         max over i
                                                  below: a.shape[0]
                                                  of: +
                                                    a[i]
                                                    1

Variables are called i, j, k, ... as they are nested; a name that a parameter has is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..ir import Param
from ..named_tuple import NamedTuple
from .size_expr import ZERO, Arg, Binary, Const, MaxOver, Read, Shape, SizeExpr, Var, walk

__all__ = ["TreeRow", "formula", "names_of", "tree"]

_SIGNS: Final = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_RANK: Final = {"add": 1, "sub": 1, "mul": 2, "floordiv": 2, "mod": 2, "max": 4, "min": 4}
_NAMES: Final = "ijklmnpqrstuvw"


class TreeRow(NamedTuple):
    """A node as the studio shows it.

    role: its role in the node above it: ``from``, ``below``, ``of``, or empty. label: the node
    without its operands. formula: the whole node as text. node: the node itself, for its value.
    rows: its operands; those of a sum or product of many are siblings.
    """

    role: str
    label: str
    formula: str
    node: SizeExpr
    rows: tuple[TreeRow, ...] = ()


def names_of(e: SizeExpr, params: Sequence[Param]) -> dict[int, str]:
    """A name for each variable of ``e``, in the order of the nesting."""
    taken = {p.name for p in params}
    free = _fresh(taken)
    names: dict[int, str] = {}
    for number in _variables(e):
        if number not in names:
            names[number] = next(free)
    return names


def _fresh(taken: set[str]) -> Iterator[str]:
    turn = 0
    while True:
        for letter in _NAMES:
            name = f"{letter}{turn or ''}"
            if name not in taken:
                yield name
        turn += 1


def _variables(e: SizeExpr) -> Iterator[int]:
    """Bound ones as they are met from outside, then those that stay free."""
    stack = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, MaxOver):
            yield node.var
            stack += (node.body, node.end, node.begin)
        elif isinstance(node, Binary):
            stack += (node.b, node.a)
        elif isinstance(node, Read):
            stack += reversed(node.indices)
    for node in walk(e):
        if isinstance(node, Var):
            yield node.number


def formula(e: SizeExpr, params: Sequence[Param], names: Mapping[int, str] | None = None) -> str:
    """``e`` on one line, in the user's names. names: of its variables; made if there are none."""
    return _shown(e, params, names_of(e, params) if names is None else names)[0]


def _shown(e: SizeExpr, params: Sequence[Param], names: Mapping[int, str]) -> tuple[str, int]:
    """The text, and how tightly it binds: 0 max over, 1 sum, 2 product, 3 negative, 4 anything."""

    def at(node: SizeExpr, rank: int) -> str:
        text, own = _shown(node, params, names)
        return text if own >= rank else f"({text})"

    match e:
        case Const():
            return str(e.value), 4 if e.value >= 0 else 3
        case Arg():
            return params[e.param].name, 4
        case Shape():
            return f"{params[e.param].name}.shape[{e.axis}]", 4
        case Var():
            return names.get(e.number, f"v{e.number}"), 4
        case Read():
            return _read(e, params, [at(i, 0) for i in e.indices]), 4
        case Binary():
            rank = _RANK[e.op]
            if rank == 4:
                operands = [at(node, 0) for node in _flat(e)]
                return f"{e.op}({', '.join(operands)})", 4
            right = at(e.b, rank if e.op in ("add", "mul") else rank + 1)
            return f"{at(e.a, rank)} {_SIGNS[e.op]} {right}", rank
        case MaxOver():
            return f"max over {_ranges(e, at, names)}", 0


def _ranges(e: MaxOver, at: object, names: Mapping[int, str]) -> str:
    """The ranges of directly nested maxima in a row, then the body."""
    assert callable(at)
    ranges: list[str] = []
    node: SizeExpr = e
    while isinstance(node, MaxOver):
        name = names.get(node.var, f"v{node.var}")
        low = "" if node.begin == ZERO else f"{at(node.begin, 1)} <= "
        ranges.append(f"{low}{name} < {at(node.end, 1)}")
        node = node.body
    return f"{', '.join(ranges)} of {at(node, 0)}"


def _flat(e: SizeExpr) -> list[SizeExpr]:
    """Operands of a chain of one operation that may be grouped in any way."""
    if not isinstance(e, Binary):
        return [e]
    out: list[SizeExpr] = []
    for node in (e.a, e.b):
        same = isinstance(node, Binary) and node.op == e.op
        out += _flat(node) if same and e.op not in ("sub", "floordiv", "mod") else [node]
    return out


def _read(e: Read, params: Sequence[Param], indices: Sequence[str]) -> str:
    p = params[e.param]
    own, element = indices[: p.ndim], indices[p.ndim :]
    text = f"{p.name}[{', '.join(own) or 'None'}]"
    return f"{text}[{', '.join(element)}]" if element else text


# --- nested rows ------------------------------------------------------------------------------


def tree(e: SizeExpr, params: Sequence[Param]) -> TreeRow:
    """``e`` as nested rows."""
    return _row("", e, params, names_of(e, params))


def _row(role: str, e: SizeExpr, params: Sequence[Param], names: Mapping[int, str]) -> TreeRow:
    shown = formula(e, params, names)
    if isinstance(e, MaxOver):
        parts = [("below", e.end), ("of", e.body)]
        if e.begin != ZERO:
            parts.insert(0, ("from", e.begin))
        label = f"max over {names.get(e.var, f'v{e.var}')}"
    elif isinstance(e, Binary):
        parts = [("", node) for node in _flat(e)]
        label = _SIGNS.get(e.op, e.op)
    elif isinstance(e, Read) and any(not isinstance(i, Const | Var) for i in e.indices):
        parts = [("index", i) for i in e.indices]
        label = f"element of {params[e.param].name}"
    else:
        return TreeRow(role, shown, shown, e)
    rows = tuple([_row(r, node, params, names) for r, node in parts])
    return TreeRow(role, label, shown, e, rows)
