"""Regions of a kernel's top level: the common part of do_while loops, checkpoints and sections."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any, Final

from ..errors import QuadrantsNameError
from ..ir import GraphAttr
from ..ir import codes as C
from ..types import i32, void
from .frame import LoopInfo
from .places import bound
from .signature import KernelDecl
from .values import NdarrayRef
from .walk import Saved, Walk

__all__ = [
    "CHECKPOINT", "DO_WHILE", "around", "enter_region", "flag", "kernel_of", "leave_region",
    "not_differentiated", "of_graph", "region_of",
]  # fmt: skip

DO_WHILE: Final = "qd.graph.do_while()"
CHECKPOINT: Final = "qd.checkpoint()"


def enter_region(w: Walk, node: ast.AST, head: ast.AST, attr: GraphAttr) -> Saved:
    """Write into a new region, in a new scope; it is top level if the code around it is."""
    region = w.emit(node, C.GRAPH_REGION, (), attr, void, 1)
    region.loc = w.head(node, head)
    saved = w.enter(region.regions[0])
    w.depth -= 1
    return saved


def leave_region(w: Walk, saved: Saved, what: str, node: ast.AST) -> None:
    """Go on after the region that was entered."""
    w.depth += 1
    w.leave(saved, what, node)


def region_of(
    w: Walk, node: ast.While | ast.With, attr: GraphAttr, head: ast.AST, what: str
) -> None:
    """A region around the body of a statement."""
    saved = enter_region(w, node, head, attr)
    w.frame.loops.append(LoopInfo(what, w.depth))
    flow = w.body(node.body)
    w.frame.loops.pop()
    if flow is not None:
        raise w.syntax_error(f"`return` cannot leave {what}", node)
    leave_region(w, saved, f"`{what}`", node)


def around(w: Walk) -> list[str]:
    """The kinds of the regions around the current position of the walk, innermost first."""
    found: list[str] = []
    block: Any = w.block
    while block is not None and block.owner is not None:
        if block.owner.code == C.GRAPH_REGION:
            found.append(block.owner.attr.kind)
        block = block.owner.block
    return found


def kernel_of(w: Walk, node: ast.AST, what: str) -> KernelDecl:
    """The kernel's declaration; QuadrantsSyntaxError inside a function."""
    decl = w.frame.decl
    if not isinstance(decl, KernelDecl):
        raise w.syntax_error(
            f"{what} can only be used in a @qd.kernel, not in a @qd.func", node,
            "put it into the kernel, around the call of the function",
        )  # fmt: skip
    return decl


def of_graph(w: Walk, node: ast.AST, what: str) -> KernelDecl:
    decl = kernel_of(w, node, what)
    if not decl.options.graph:
        raise w.syntax_error(
            f"{what} requires @qd.kernel(graph=True)", node,
            "add graph=True to the kernel's decorator",
        )  # fmt: skip
    return decl


def not_differentiated(w: Walk, node: ast.AST, what: str) -> None:
    if w.func.autodiff != "none":
        raise w.syntax_error(
            f"{what} does not support autograd: a kernel with it has no gradient", node,
            "move its body to a kernel, call that as often as needed, and differentiate it",
        )  # fmt: skip


def flag(w: Walk, node: ast.expr, message: str) -> int:
    """The index of the parameter that holds a condition.

    message: the error for a value that is not an array among the kernel's parameters.
    """
    value: Any = None
    if isinstance(node, ast.Name | ast.Attribute):
        with suppress(QuadrantsNameError):
            value = bound(w, node)
    if not isinstance(value, NdarrayRef):
        raise w.syntax_error(message, node, "pass an array: qd.ndarray(qd.i32, ())")
    if value.dtype is not i32 or value.ndim or value.element_shape:
        held = f"vectors or matrices of {value.dtype}" if value.element_shape else value.dtype
        raise w.syntax_error(
            f"{ast.unparse(node)!r} must be a scalar i32 ndarray without axes; it is one of "
            f"{value.ndim} axes that holds {held}", node,
            "annotate it with qd.types.NDArray[qd.i32, 0], and pass qd.ndarray(qd.i32, ())",
        )  # fmt: skip
    return value.param
