"""One function being walked: the kernel, or a ``@qd.func`` that it inlines.

A context has a stack of scopes for the names of the function, and knows where others are looked up.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Any, Final

from ..ir import Loc
from ..named_tuple import NamedTuple
from .signature import FuncDecl, KernelDecl
from .values import LoopConfig

if TYPE_CHECKING:
    from .captures import Origin

__all__ = ["MISSING", "Calls", "FuncContext", "LoopInfo", "Made", "RegionScope"]

MISSING: Final = object()
"""The value of a name that is not defined."""


class Made(NamedTuple):
    """An inlined call. scope: the values of its parameters."""

    loc: Loc
    scope: dict[str, Any]
    decl: FuncDecl


class Calls:
    """The inlined calls of one build. made: all of them, in order. walks: see `copies`."""

    __slots__ = ("made", "walks")

    def __init__(self) -> None:
        self.made: Final[list[Made]] = []
        self.walks: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Something has an effect each time that it is walked; so have the walks it is part of."""
        self.walks = {}


class LoopInfo:
    """A loop being walked. kind: parallel, serial, while, static, or the ``qd.`` construct whose
    body it is; depth: of its body."""

    __slots__ = ("depth", "kind")

    def __init__(self, kind: str, depth: int) -> None:
        self.kind = kind
        self.depth = depth


class RegionScope(dict[str, Any]):
    """The scope of a region of run time: the body of a loop, or a branch of an ``if``."""

    __slots__ = ()


class FuncContext:
    """One function being walked; see the module docstring."""

    __slots__ = (
        "arguments", "call", "closure", "decl", "depth", "ended", "file", "globals", "inlined",
        "locs", "loops", "name", "next_loop", "parent", "real", "result", "returned", "scopes",
        "templates",
    )  # fmt: skip

    def __init__(
        self, decl: KernelDecl | FuncDecl, call: Loc | None, parent: FuncContext | None, depth: int
    ) -> None:
        fn: Any = decl.fn
        self.decl = decl
        self.name = decl.src.name
        self.file = decl.file
        self.globals: dict[str, Any] = fn.__globals__
        cells: Any = fn.__closure__ or ()
        self.closure: dict[str, Any] = dict(zip(fn.__code__.co_freevars, cells, strict=True))
        self.call = call
        self.inlined = None if call is None else call.inlined()
        self.parent = parent
        self.depth = depth
        self.scopes: list[dict[str, Any]] = [{}]
        self.ended: dict[str, tuple[str, int]] = {}
        self.loops: list[LoopInfo] = []
        self.locs: dict[ast.AST, Loc] = dict(decl.src.locs) if call is None else {}
        self.next_loop: LoopConfig | None = None
        self.returned = False
        self.result: Any = None
        self.templates: dict[str, Any] = {}
        self.arguments: dict[str, ast.AST] = {}
        """Parameter -> the node of the caller that passes its argument, if that is a place."""
        self.real: Any = None
        """The record of `real_functions` about the function, if it is a real one."""

    def called(self, node: ast.AST) -> str:
        """The kernel's text for ``node``: parameters are replaced by their arguments."""
        text, root = ast.unparse(node), node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        caller = self.parent
        if caller is None or not isinstance(root, ast.Name) or root.id not in self.arguments:
            return text
        return caller.called(self.arguments[root.id]) + text.removeprefix(root.id)

    def origin(self, name: str) -> Origin:
        """The origin of a name that is found outside of the function."""
        if name in self.closure:
            return "closure"
        return "global" if name in self.globals else "builtin"

    def outer(self, name: str) -> Any:
        """A closure cell, global or builtin; `MISSING` if there is none."""
        cell = self.closure.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        found = self.globals.get(name, MISSING)
        return getattr(builtins, name, MISSING) if found is MISSING else found
