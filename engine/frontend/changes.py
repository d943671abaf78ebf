"""The places where a container of the kernel may change: it happens once, at compile time."""

from __future__ import annotations

import ast
from typing import Any

from .func_builder import FuncBuilder
from .func_context import FuncContext, RegionScope

__all__ = ["check_change", "root_of", "scope_of"]


def root_of(node: ast.expr) -> ast.expr:
    """The node of what attributes and elements are taken of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def scope_of(context: FuncContext, name: str) -> dict[str, Any] | None:
    """The scope of a local name; None if that is outside of a region of run time around this."""
    for scope in reversed(context.scopes):
        if name in scope:
            return scope
        if isinstance(scope, RegionScope):
            return None
    return None


def check_change(fb: FuncBuilder, target: ast.expr, node: ast.AST, what: str) -> None:
    """Raise QuadrantsSyntaxError if ``target`` cannot change here, which happens once.

    target: the node of the container. what: of the change, for the message.
    """
    root = root_of(target)
    name = root.id if isinstance(root, ast.Name) else ""
    context = fb.context
    if not fb.has_local(name):
        raise fb.syntax_error(f"{what} needs a container of the function's own", node)
    if scope_of(context, name) is None:
        raise fb.syntax_error(
            f"{what} cannot be used in a loop or `if` of run time: {name} exists while the "
            "kernel is compiled, and would change once", node,
            "make the loop or condition a qd.static one, or store to a field or array",
        )  # fmt: skip
    param = next((p for p in context.decl.params if p.name == name), None)
    if param is not None and name not in context.templates and name in context.scopes[0]:
        raise fb.syntax_error(
            f"{what} cannot be used on the argument {name}: it is a copy", node,
            "annotate it with qd.template(), or return the new container",
        )  # fmt: skip
