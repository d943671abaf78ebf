"""The way in which a function indexes its names, read from its syntax tree."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from .source import nodes_of

if TYPE_CHECKING:
    from .func_builder import FuncBuilder

__all__ = ["Indexing", "picked_at_run_time"]

_KINDS: Final = frozenset((ast.For, ast.Name, ast.Subscript))
_COMPUTED: Final = frozenset((ast.Call, ast.Subscript))


class Indexing:
    """loops: the iterable of each ``for``, and the names that it sets. stored: all names that are
    set anywhere."""

    __slots__ = ("_named", "_others", "_slices", "loops", "stored")

    def __init__(self, tree: ast.AST) -> None:
        loops: list[tuple[ast.expr, frozenset[str]]] = []
        stored: set[str] = set()
        self._named: Final[dict[str, list[ast.expr]]] = {}
        """By name: the indices of it."""
        self._others: Final[list[ast.Subscript]] = []
        self._slices: Final[dict[str, tuple[bool, frozenset[str]] | None]] = {}
        kinds = _KINDS
        for node in [n for n in nodes_of(tree) if n.__class__ in kinds]:
            if isinstance(node, ast.For):
                loops.append((node.iter, _names(nodes_of(node.target))))
            elif isinstance(node, ast.Name):
                if node.ctx.__class__ is not ast.Load:
                    stored.add(node.id)
            elif isinstance(node, ast.Subscript):
                if isinstance(node.value, ast.Name):
                    self._named.setdefault(node.value.id, []).append(node.slice)
                else:
                    self._others.append(node)
        self.loops: Final = tuple(loops)
        self.stored: Final = frozenset(stored)

    def slices(self, text: str) -> tuple[bool, frozenset[str]] | None:
        """True if any index of ``text`` contains a call or an index, and the names in its indices;
        None if it is not indexed."""
        if text not in self._slices:
            indices = self._named.get(text) or []
            if not text.isidentifier():
                indices = [n.slice for n in self._others if ast.unparse(n.value) == text]
            inner = [n for index in indices for n in nodes_of(index)]
            computed = any(n.__class__ in _COMPUTED for n in inner)
            self._slices[text] = (computed, _names(inner)) if indices else None
        return self._slices[text]


def _names(nodes: list[ast.AST]) -> frozenset[str]:
    return frozenset([n.id for n in nodes if isinstance(n, ast.Name)])


def picked_at_run_time(fb: FuncBuilder, name: str) -> bool:
    """True if the function may index ``name`` with a value of run time."""
    decl = fb.context.decl
    found = decl.indexing
    if found is None:
        found = decl.indexing = Indexing(decl.src.tree)
    slices = found.slices(name)
    if slices is None:
        return False
    computed, names = slices
    if computed or not names:
        return computed
    varying = names & found.stored.union([p.name for p in decl.params])
    for iterable, targets in found.loops:
        if varying & targets and fb.is_static_call(iterable):
            varying -= targets
    return bool(varying)
