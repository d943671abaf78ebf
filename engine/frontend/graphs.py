"""Graphs in a kernel: do_while loops, parallel sections, streams.

Each of them becomes a `graph_region` around the ops of its body, as checkpoints do. Such a region
is a part of the kernel's top level: loops in it are parallel tasks, as outside it.

    while qd.graph.do_while(flag):              $4 : graph_region {kind='do_while' param=1} body {
        for i in x: ...                   ->      $5 : range_for ... body { ... }
                                                }
"""

from __future__ import annotations

import ast
from typing import Any, Final, cast

from ..ir import GraphAttr
from ..ir import codes as C
from ..types import void
from .checkpoints import checkpoint
from .func_builder import FuncBuilder
from .func_context import LoopInfo
from .regions import (
    CHECKPOINT,
    DO_WHILE,
    DO_WHILES,
    around,
    enter_region,
    flag,
    is_do_while,
    kernel_of,
    leave_region,
    not_differentiated,
    of_graph,
    region_of,
)
from .registry import handler, statement

__all__ = ["do_while", "whole_body"]

_CONTEXT: Final = "qd.graph.parallel_context()"
_SECTION: Final = "qd.graph.parallel()"
_STREAM: Final = "qd.stream_parallel()"
_WITH: Final = {
    "checkpoint": CHECKPOINT, "graph.parallel_context": _CONTEXT,
    "graph.parallel_context_old": _CONTEXT, "graph.parallel": _SECTION,
    "graph.parallel_old": _SECTION, "stream_parallel": _STREAM,
}  # fmt: skip
_SHOWN: Final = dict.fromkeys(DO_WHILES, DO_WHILE) | _WITH
_NOTHING_ELSE: Final = (
    "'with' in Quadrants kernels only supports qd.stream_parallel(), qd.checkpoint(), "
    "qd.graph.parallel_context(), or qd.graph.parallel()"
)


# do_while


def do_while(fb: FuncBuilder, node: ast.While) -> None:
    """``while qd.graph.do_while(flag):``"""
    call = cast(ast.Call, node.test)
    if fb.meaning(call) == "graph.do_while_old":
        _deprecated(fb, call, "graph_do_while", "graph.do_while")
    decl = of_graph(fb, call, DO_WHILE)
    outer = around(fb)
    if "section" in outer:
        raise fb.syntax_error(
            f"{DO_WHILE} cannot appear inside a {_SECTION} section; a section body must be "
            f"straight-line task work (put the {_CONTEXT} region inside the {DO_WHILE} loop, not "
            "the other way around)", call,
        )  # fmt: skip
    if fb.depth or "checkpoint" in outer:
        where = "a for-loop" if fb.depth else "a qd.checkpoint() block"
        raise fb.syntax_error(
            f"{DO_WHILE} must be at the kernel top level or directly nested inside another "
            f"{DO_WHILE}; it cannot appear inside {where}.", call,
        )  # fmt: skip
    not_differentiated(fb, call, DO_WHILE)
    if len(call.args) + len(call.keywords) != 1 or any(k.arg != "condition" for k in call.keywords):
        raise fb.syntax_error(f"{DO_WHILE} takes one argument, the array to look at", call)
    given = call.args[0] if call.args else call.keywords[0].value
    param = flag(
        fb, given,
        f"qd.graph.do_while(...) got {ast.unparse(given)!r} which does not resolve to an ndarray "
        f"kernel parameter of {decl.name!r}. The argument must reference an ndarray kernel "
        "parameter (e.g. `flag`) or a @qd.data_oriented member ndarray (e.g. `self.flag`); other "
        "expressions are not supported.",
    )  # fmt: skip
    for number, inner in enumerate(node.body):
        _check_statement(fb, inner, number)
    region_of(fb, node, GraphAttr("do_while", param), node.test, "qd.graph.do_while()")


def _check_statement(fb: FuncBuilder, node: ast.stmt, number: int) -> None:
    """Reject statements that the body of a do_while may not hold."""
    plain = isinstance(node, ast.While) and not is_do_while(fb, node)
    if plain or isinstance(node, ast.Break | ast.Continue | ast.Return):
        raise fb.syntax_error(
            f"When a kernel uses {DO_WHILE}, a {DO_WHILE} body may not contain a "
            f"{type(node).__name__} statement. Allowed: for-loops, {DO_WHILE} while-loops, bare "
            f"assignments, and @qd.func calls (freely mixed and nested). "
            f"[offending stmt {number}: {type(node).__name__}]", node,
            "put the `while` into a `for _ in range(1):`" if plain else
            "the loop ends when the element of its array is 0",
        )  # fmt: skip


def whole_body(fb: FuncBuilder, tree: ast.FunctionDef, name: str) -> None:
    """The kernel's body in one do_while over the argument ``name``, which may be ``a.b``."""
    node = ast.parse(name, mode="eval").body
    for inner in ast.walk(node):
        ast.copy_location(inner, tree)
        place = cast(Any, inner)
        place.end_lineno, place.end_col_offset = tree.lineno, tree.col_offset + len("def ")
    param = flag(
        fb, node,
        f"graph_while={name!r} does not resolve to an ndarray kernel parameter of "
        f"{fb.context.decl.name!r}",
    )  # fmt: skip
    not_differentiated(fb, tree, f"graph_while={name!r}")
    for number, inner in enumerate(tree.body):
        _check_statement(fb, inner, number)
    saved = enter_region(fb, tree, node, GraphAttr("do_while", param))
    fb.body(tree.body)
    leave_region(fb, saved, "graph_while", tree)


# with


@statement(ast.With)
def _with(fb: FuncBuilder, node: ast.With) -> None:
    item = node.items[0]
    call = item.context_expr
    meaning = fb.meaning(call)
    if meaning not in _WITH:
        raise fb.syntax_error(_NOTHING_ELSE, call)
    if len(node.items) > 1:
        text = "'with' in Quadrants kernels only supports a single context manager"
        raise fb.syntax_error(text, node.items[1].context_expr, "nest two `with` statements")
    if item.optional_vars is not None:
        text = "'with ... as ...' is not supported in Quadrants kernels"
        raise fb.syntax_error(text, item.optional_vars)
    if meaning.endswith("_old"):
        new = meaning.removesuffix("_old")
        _deprecated(fb, call, new.replace(".", "_"), new)
    what = _WITH[meaning]
    given = cast(ast.Call, call)
    if what is not CHECKPOINT and (given.args or given.keywords):
        raise fb.syntax_error(f"{what} takes no arguments", call)
    if what is CHECKPOINT:
        checkpoint(fb, node, given)
    elif what is _CONTEXT:
        _parallel_context(fb, node, given)
    elif what is _SECTION:
        _section(fb, node, given)
    else:
        _stream_parallel(fb, node, given)


@handler(*DO_WHILES, *_WITH)
def _misplaced(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    if name in DO_WHILES:
        raise fb.syntax_error(
            f"{DO_WHILE} must be the whole condition of a `while`", node,
            "write `while qd.graph.do_while(flag):`",
        )  # fmt: skip
    what = _SHOWN[name]
    raise fb.syntax_error(
        f"{what} must be used in a `with` statement", node, f"write `with {what}:`"
    )


def _deprecated(fb: FuncBuilder, node: ast.AST, old: str, new: str) -> None:
    fb.warn(f"qd.{old}() is deprecated; use qd.{new}() instead.", node, DeprecationWarning)


# Parallel sections, streams


def _parallel_context(fb: FuncBuilder, node: ast.With, call: ast.Call) -> None:
    decl = of_graph(fb, call, _CONTEXT)
    outer = around(fb)
    if "section" in outer:
        raise fb.syntax_error(f"{_CONTEXT} cannot appear inside a {_SECTION} section", call)
    if "parallel" in outer:
        raise fb.syntax_error(f"{_CONTEXT} regions cannot be nested inside one another", call)
    if decl.options.checkpoints:
        raise fb.syntax_error(
            f"{_CONTEXT} is not supported in a @qd.kernel(graph=True, checkpoints=True) kernel: "
            "its sections would not know where a launch resumes", call,
            "write the sections as qd.checkpoint() blocks, or remove checkpoints=True",
        )  # fmt: skip
    if fb.depth:
        raise fb.syntax_error(
            f"{_CONTEXT} must be at the kernel top level or in the body of a {DO_WHILE}; it "
            "cannot appear inside a for-loop or an if", call,
        )  # fmt: skip
    _check_sections(fb, node.body)
    if fb.func.autodiff != "none":
        fb.context.scopes.append({})
        fb.context.loops.append(LoopInfo(_CONTEXT, fb.depth))
        fb.body(node.body)
        fb.context.loops.pop()
        fb.end_scope(f"`{_CONTEXT}`", node)
        return
    region_of(fb, node, GraphAttr("parallel"), call, _CONTEXT)


def _check_sections(fb: FuncBuilder, body: list[ast.stmt]) -> None:
    """Raise QuadrantsSyntaxError unless a context holds sections only, also in static `if`s."""
    for number, node in enumerate(body):
        if isinstance(node, ast.With):
            if _WITH.get(fb.meaning(node.items[0].context_expr) or "") in (_SECTION, _CONTEXT):
                continue
        elif isinstance(node, ast.If) and fb.is_static_call(node.test):
            _check_sections(fb, node.body)
            _check_sections(fb, node.orelse)
            continue
        elif isinstance(node, ast.For) and fb.is_static_call(node.iter):
            _check_sections(fb, node.body)
            continue
        elif isinstance(node, ast.Pass) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        raise fb.syntax_error(
            f"A {_CONTEXT} region may contain only 'with {_SECTION}:' blocks (optionally inside "
            "'if qd.static(...)' or 'for ... in qd.static(...)'). Move other work outside the "
            f"region. [offending stmt {number}: {type(node).__name__}]", node,
        )  # fmt: skip


def _section(fb: FuncBuilder, node: ast.With, call: ast.Call) -> None:
    of_graph(fb, call, _SECTION)
    outer = around(fb)
    if "section" in outer:
        raise fb.syntax_error(f"{_SECTION} sections cannot be nested inside one another", call)
    differentiated = fb.func.autodiff != "none"
    inside = any(loop.kind == _CONTEXT for loop in fb.context.loops) and not fb.depth
    if not inside or (not differentiated and outer[:1] != ["parallel"]):
        raise fb.syntax_error(
            f"{_SECTION} can only be used directly inside a {_CONTEXT} region", call,
            f"write `with {_CONTEXT}:` around the sections",
        )  # fmt: skip
    _one_part(fb, node, call, _SECTION)


def _one_part(fb: FuncBuilder, node: ast.With, call: ast.Call, what: str) -> None:
    """A section; in a differentiated kernel just its statements."""
    if fb.func.autodiff == "none":
        region_of(fb, node, GraphAttr("section"), call, what)
        return
    fb.context.scopes.append({})
    fb.body(node.body)
    fb.end_scope(f"`{what}`", node)


def _stream_parallel(fb: FuncBuilder, node: ast.With, call: ast.Call) -> None:
    decl = kernel_of(fb, call, _STREAM)
    if decl.options.graph:
        raise fb.syntax_error(
            f"{_STREAM} is not compatible with graph=True kernels. Streams and graphs cannot be "
            f"combined; remove graph=True or the {_STREAM} block.", call,
            f"in a graph, use `with {_SECTION}:` for parts that may run at the same time",
        )  # fmt: skip
    if "section" in around(fb) or any(loop.kind == _STREAM for loop in fb.context.loops):
        raise fb.syntax_error("Nested stream_parallel blocks are not supported", call)
    if node not in decl.src.tree.body:
        raise fb.syntax_error(f"{_STREAM} must be at the kernel top level", call)
    body = decl.src.tree.body
    for number, other in enumerate(body):
        if isinstance(other, ast.Expr) and isinstance(other.value, ast.Constant):
            continue
        if (
            isinstance(other, ast.With)
            and fb.meaning(other.items[0].context_expr) == "stream_parallel"
        ):
            continue
        raise fb.syntax_error(
            f"When using {_STREAM}, all top-level statements in the kernel must be 'with "
            f"{_STREAM}:' blocks. Move non-parallel code to a separate kernel. "
            f"[stmt {number}: {type(other).__name__}, body_len={len(body)}]", other,
        )  # fmt: skip
    if fb.func.autodiff != "none":
        _one_part(fb, node, call, _STREAM)
        return
    last = fb.ops[-1] if fb.ops else None
    if last is None or last.code != C.GRAPH_REGION:
        last = fb.emit(node, C.GRAPH_REGION, (), GraphAttr("parallel"), void, 1)
        last.loc = fb.head(node, call)
    saved = fb.enter(last.regions[0])
    fb.depth -= 1
    _one_part(fb, node, call, _STREAM)
    leave_region(fb, saved, f"`{_STREAM}`", node)
