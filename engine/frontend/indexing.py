"""The way in which a function indexes its names, read once from its syntax tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from ..named_tuple import NamedTuple
from .source import nodes_of

if TYPE_CHECKING:
    from .func_builder import FuncBuilder

__all__ = ["Indexing", "indexing_of", "picked_at_run_time"]


class Indexing(NamedTuple):
    """loops: the iterable of each ``for``, and the names that it sets. stored: all names that are
    set anywhere. slices: by the text of what is indexed, True if any of its indices contains a call
    or an index, and the names in them."""

    loops: tuple[tuple[ast.expr, frozenset[str]], ...]
    stored: frozenset[str]
    slices: dict[str, tuple[bool, frozenset[str]]]


_KINDS: Final = frozenset((ast.For, ast.Name, ast.Subscript))
_COMPUTED: Final = frozenset((ast.Call, ast.Subscript))


def indexing_of(tree: ast.AST) -> Indexing:
    """The `Indexing` of a function's syntax tree."""
    loops: list[tuple[ast.expr, frozenset[str]]] = []
    stored: set[str] = set()
    slices: dict[str, tuple[bool, frozenset[str]]] = {}
    wanted = _KINDS
    for node in [n for n in nodes_of(tree) if n.__class__ in wanted]:
        if isinstance(node, ast.For):
            loops.append((node.iter, _names(nodes_of(node.target))))
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                stored.add(node.id)
        elif isinstance(node, ast.Subscript):
            indexed = node.value
            text = indexed.id if isinstance(indexed, ast.Name) else ast.unparse(indexed)
            computed, names = slices.get(text, (False, frozenset[str]()))
            inner = nodes_of(node.slice)
            computed = computed or any(n.__class__ in _COMPUTED for n in inner)
            slices[text] = computed, names | _names(inner)
    return Indexing(tuple(loops), frozenset(stored), slices)


def _names(nodes: list[ast.AST]) -> frozenset[str]:
    return frozenset([n.id for n in nodes if isinstance(n, ast.Name)])


def picked_at_run_time(fb: FuncBuilder, name: str) -> bool:
    """True if the function may index ``name`` with a value of run time."""
    decl = fb.context.decl
    found = decl.indexing
    if found is None:
        found = decl.indexing = indexing_of(decl.src.tree)
    if name not in found.slices:
        return False
    computed, names = found.slices[name]
    if computed or not names:
        return computed
    varying = names & found.stored.union([p.name for p in decl.params])
    for iterable, targets in found.loops:
        if varying & targets and fb.is_static_call(iterable):
            varying -= targets
    return bool(varying)
