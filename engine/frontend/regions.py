"""Regions of a kernel's top level: the common part of do_while loops, checkpoints and sections."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any, Final

from ..errors import QuadrantsNameError
from ..ir import GraphAttr
from ..ir import codes as C
from ..types import i32, void
from .func_builder import FuncBuilder, Saved
from .func_context import LoopInfo
from .lvalues import bound
from .signature import KernelDecl
from .values import NdarrayRef

__all__ = [
    "CHECKPOINT", "DO_WHILE", "DO_WHILES", "around", "enter_region", "flag", "implicit_checkpoint",
    "is_do_while", "kernel_of", "leave_region", "not_differentiated", "of_graph", "region_of",
]  # fmt: skip

DO_WHILE: Final = "qd.graph.do_while()"
DO_WHILES: Final = ("graph.do_while", "graph.do_while_old")
"""The meanings of the function."""
CHECKPOINT: Final = "qd.checkpoint()"


def enter_region(fb: FuncBuilder, node: ast.AST, head: ast.AST, attr: GraphAttr) -> Saved:
    """Write into a new region, in a new scope; it is top level if the code around it is."""
    region = fb.emit(node, C.GRAPH_REGION, (), attr, void, 1)
    region.loc = fb.head(node, head)
    saved = fb.enter(region.regions[0])
    fb.depth -= 1
    return saved


def leave_region(fb: FuncBuilder, saved: Saved, what: str, node: ast.AST) -> None:
    """Go on after the region that was entered."""
    fb.depth += 1
    fb.leave(saved, what, node)


def region_of(
    fb: FuncBuilder, node: ast.While | ast.With, attr: GraphAttr, head: ast.AST, what: str
) -> None:
    """A region around the body of a statement."""
    saved = enter_region(fb, node, head, attr)
    fb.context.loops.append(LoopInfo(what, fb.depth))
    flow = fb.body(node.body)
    fb.context.loops.pop()
    if flow is not None:
        raise fb.syntax_error(f"`return` cannot leave {what}", node)
    leave_region(fb, saved, f"`{what}`", node)


def around(fb: FuncBuilder) -> list[str]:
    """The kinds of the regions around the current position of the walk, innermost first."""
    found: list[str] = []
    block: Any = fb.block
    while block is not None and block.owner is not None:
        if block.owner.code == C.GRAPH_REGION:
            found.append(block.owner.attr.kind)
        block = block.owner.block
    return found


def kernel_of(fb: FuncBuilder, node: ast.AST, what: str) -> KernelDecl:
    """The kernel's declaration; QuadrantsSyntaxError inside a function."""
    decl = fb.context.decl
    if not isinstance(decl, KernelDecl):
        raise fb.syntax_error(
            f"{what} can only be used in a @qd.kernel, not in a @qd.func", node,
            "put it into the kernel, around the call of the function",
        )  # fmt: skip
    return decl


def of_graph(fb: FuncBuilder, node: ast.AST, what: str) -> KernelDecl:
    decl = kernel_of(fb, node, what)
    if not decl.options.graph:
        raise fb.syntax_error(
            f"{what} requires @qd.kernel(graph=True)", node,
            "add graph=True to the kernel's decorator",
        )  # fmt: skip
    return decl


def not_differentiated(fb: FuncBuilder, node: ast.AST, what: str) -> None:
    if fb.func.autodiff != "none":
        raise fb.syntax_error(
            f"{what} does not support autograd: a kernel with it has no gradient", node,
            "move its body to a kernel, call that as often as needed, and differentiate it",
        )  # fmt: skip


def flag(fb: FuncBuilder, node: ast.expr, message: str) -> int:
    """The index of the parameter that holds a condition.

    message: the error for a value that is not an array among the kernel's parameters.
    """
    value: Any = None
    if isinstance(node, ast.Name | ast.Attribute):
        with suppress(QuadrantsNameError):
            value = bound(fb, node)
    if not isinstance(value, NdarrayRef):
        raise fb.syntax_error(message, node, "pass an array: qd.ndarray(qd.i32, ())")
    if value.dtype is not i32 or value.ndim or value.element_shape:
        held = f"vectors or matrices of {value.dtype}" if value.element_shape else value.dtype
        raise fb.syntax_error(
            f"{ast.unparse(node)!r} must be a scalar i32 ndarray without axes; it is one of "
            f"{value.ndim} axes that holds {held}", node,
            "annotate it with qd.types.NDArray[qd.i32, 0], and pass qd.ndarray(qd.i32, ())",
        )  # fmt: skip
    return value.param


def implicit_checkpoint(fb: FuncBuilder, node: ast.AST, head: ast.AST) -> Saved | None:
    """The region around a loop of the top level of a kernel with checkpoints, if it needs one."""
    kernel = fb.captures.kernel
    if fb.depth or not kernel.options.checkpoints or fb.func.autodiff != "none":
        return None
    if not fb.func.is_root(fb.block) or "checkpoint" in around(fb):
        return None
    return enter_region(fb, node, head, GraphAttr("checkpoint"))


def is_do_while(fb: FuncBuilder, node: ast.While) -> bool:
    """True if a ``while`` repeats a part of a graph."""
    return fb.meaning(node.test) in DO_WHILES
