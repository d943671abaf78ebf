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
from .frame import LoopInfo
from .regions import (
    CHECKPOINT,
    DO_WHILE,
    around,
    enter_region,
    flag,
    kernel_of,
    leave_region,
    not_differentiated,
    of_graph,
    region_of,
)
from .registry import handler, statement
from .walk import Walk

__all__ = ["do_while", "is_do_while", "whole_body"]

_CONTEXT: Final = "qd.graph.parallel_context()"
_SECTION: Final = "qd.graph.parallel()"
_STREAM: Final = "qd.stream_parallel()"
_MEANINGS: Final = ("graph.do_while", "graph.do_while_old")
_WITH: Final = {
    "checkpoint": CHECKPOINT, "graph.parallel_context": _CONTEXT,
    "graph.parallel_context_old": _CONTEXT, "graph.parallel": _SECTION,
    "graph.parallel_old": _SECTION, "stream_parallel": _STREAM,
}  # fmt: skip
_SHOWN: Final = dict.fromkeys(_MEANINGS, DO_WHILE) | _WITH
_NOTHING_ELSE: Final = (
    "'with' in Quadrants kernels only supports qd.stream_parallel(), qd.checkpoint(), "
    "qd.graph.parallel_context(), or qd.graph.parallel()"
)


# do_while


def is_do_while(w: Walk, node: ast.While) -> bool:
    """True if a ``while`` repeats a part of a graph."""
    return w.meaning(node.test) in _MEANINGS


def do_while(w: Walk, node: ast.While) -> None:
    """``while qd.graph.do_while(flag):``"""
    call = cast(ast.Call, node.test)
    if w.meaning(call) == "graph.do_while_old":
        _deprecated(w, call, "graph_do_while", "graph.do_while")
    decl = of_graph(w, call, DO_WHILE)
    outer = around(w)
    if "section" in outer:
        raise w.syntax_error(
            f"{DO_WHILE} cannot appear inside a {_SECTION} section; a section body must be "
            f"straight-line task work (put the {_CONTEXT} region inside the {DO_WHILE} loop, not "
            "the other way around)", call,
        )  # fmt: skip
    if w.depth or "checkpoint" in outer:
        where = "a for-loop" if w.depth else "a qd.checkpoint() block"
        raise w.syntax_error(
            f"{DO_WHILE} must be at the kernel top level or directly nested inside another "
            f"{DO_WHILE}; it cannot appear inside {where}.", call,
        )  # fmt: skip
    not_differentiated(w, call, DO_WHILE)
    if len(call.args) + len(call.keywords) != 1 or any(k.arg != "condition" for k in call.keywords):
        raise w.syntax_error(f"{DO_WHILE} takes one argument, the array to look at", call)
    given = call.args[0] if call.args else call.keywords[0].value
    param = flag(
        w, given,
        f"qd.graph.do_while(...) got {ast.unparse(given)!r} which does not resolve to an ndarray "
        f"kernel parameter of {decl.name!r}. The argument must reference an ndarray kernel "
        "parameter (e.g. `flag`) or a @qd.data_oriented member ndarray (e.g. `self.flag`); other "
        "expressions are not supported.",
    )  # fmt: skip
    for number, inner in enumerate(node.body):
        _check_statement(w, inner, number)
    region_of(w, node, GraphAttr("do_while", param), node.test, "qd.graph.do_while()")


def _check_statement(w: Walk, node: ast.stmt, number: int) -> None:
    """Reject statements that the body of a do_while may not hold."""
    plain = isinstance(node, ast.While) and not is_do_while(w, node)
    if plain or isinstance(node, ast.Break | ast.Continue | ast.Return):
        raise w.syntax_error(
            f"When a kernel uses {DO_WHILE}, a {DO_WHILE} body may not contain a "
            f"{type(node).__name__} statement. Allowed: for-loops, {DO_WHILE} while-loops, bare "
            f"assignments, and @qd.func calls (freely mixed and nested). "
            f"[offending stmt {number}: {type(node).__name__}]", node,
            "put the `while` into a `for _ in range(1):`" if plain else
            "the loop ends when the element of its array is 0",
        )  # fmt: skip


def whole_body(w: Walk, tree: ast.FunctionDef, name: str) -> None:
    """The kernel's body in one do_while over the argument ``name``, which may be ``a.b``."""
    node = ast.parse(name, mode="eval").body
    for inner in ast.walk(node):
        ast.copy_location(inner, tree)
        place = cast(Any, inner)
        place.end_lineno, place.end_col_offset = tree.lineno, tree.col_offset + len("def ")
    param = flag(
        w, node,
        f"graph_while={name!r} does not resolve to an ndarray kernel parameter of "
        f"{w.frame.decl.name!r}",
    )  # fmt: skip
    not_differentiated(w, tree, f"graph_while={name!r}")
    for number, inner in enumerate(tree.body):
        _check_statement(w, inner, number)
    saved = enter_region(w, tree, node, GraphAttr("do_while", param))
    w.body(tree.body)
    leave_region(w, saved, "graph_while", tree)


# with


@statement(ast.With)
def _with(w: Walk, node: ast.With) -> None:
    item = node.items[0]
    call = item.context_expr
    meaning = w.meaning(call)
    if meaning not in _WITH:
        raise w.syntax_error(_NOTHING_ELSE, call)
    if len(node.items) > 1:
        text = "'with' in Quadrants kernels only supports a single context manager"
        raise w.syntax_error(text, node.items[1].context_expr, "nest two `with` statements")
    if item.optional_vars is not None:
        text = "'with ... as ...' is not supported in Quadrants kernels"
        raise w.syntax_error(text, item.optional_vars)
    if meaning.endswith("_old"):
        new = meaning.removesuffix("_old")
        _deprecated(w, call, new.replace(".", "_"), new)
    what = _WITH[meaning]
    given = cast(ast.Call, call)
    if what is not CHECKPOINT and (given.args or given.keywords):
        raise w.syntax_error(f"{what} takes no arguments", call)
    if what is CHECKPOINT:
        checkpoint(w, node, given)
    elif what is _CONTEXT:
        _parallel_context(w, node, given)
    elif what is _SECTION:
        _section(w, node, given)
    else:
        _stream_parallel(w, node, given)


@handler(*_MEANINGS, *_WITH)
def _misplaced(w: Walk, node: ast.Call, name: str, fn: Any) -> None:
    if name in _MEANINGS:
        raise w.syntax_error(
            f"{DO_WHILE} must be the whole condition of a `while`", node,
            "write `while qd.graph.do_while(flag):`",
        )  # fmt: skip
    what = _SHOWN[name]
    raise w.syntax_error(
        f"{what} must be used in a `with` statement", node, f"write `with {what}:`"
    )


def _deprecated(w: Walk, node: ast.AST, old: str, new: str) -> None:
    w.warn(f"qd.{old}() is deprecated; use qd.{new}() instead.", node, DeprecationWarning)


# Parallel sections, streams


def _parallel_context(w: Walk, node: ast.With, call: ast.Call) -> None:
    decl = of_graph(w, call, _CONTEXT)
    outer = around(w)
    if "section" in outer:
        raise w.syntax_error(f"{_CONTEXT} cannot appear inside a {_SECTION} section", call)
    if "parallel" in outer:
        raise w.syntax_error(f"{_CONTEXT} regions cannot be nested inside one another", call)
    if decl.options.checkpoints:
        raise w.syntax_error(
            f"{_CONTEXT} is not supported in a @qd.kernel(graph=True, checkpoints=True) kernel: "
            "its sections would not know where a launch resumes", call,
            "write the sections as qd.checkpoint() blocks, or remove checkpoints=True",
        )  # fmt: skip
    if w.depth:
        raise w.syntax_error(
            f"{_CONTEXT} must be at the kernel top level or in the body of a {DO_WHILE}; it "
            "cannot appear inside a for-loop or an if", call,
        )  # fmt: skip
    _check_sections(w, node.body)
    if w.func.autodiff != "none":
        w.frame.scopes.append({})
        w.frame.loops.append(LoopInfo(_CONTEXT, w.depth))
        w.body(node.body)
        w.frame.loops.pop()
        w.end_scope(f"`{_CONTEXT}`", node)
        return
    region_of(w, node, GraphAttr("parallel"), call, _CONTEXT)


def _check_sections(w: Walk, body: list[ast.stmt]) -> None:
    """Raise QuadrantsSyntaxError unless a context holds sections only, also in static `if`s."""
    for number, node in enumerate(body):
        if isinstance(node, ast.With):
            if _WITH.get(w.meaning(node.items[0].context_expr) or "") in (_SECTION, _CONTEXT):
                continue
        elif isinstance(node, ast.If) and w.is_static_call(node.test):
            _check_sections(w, node.body)
            _check_sections(w, node.orelse)
            continue
        elif isinstance(node, ast.For) and w.is_static_call(node.iter):
            _check_sections(w, node.body)
            continue
        elif isinstance(node, ast.Pass) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            continue
        raise w.syntax_error(
            f"A {_CONTEXT} region may contain only 'with {_SECTION}:' blocks (optionally inside "
            "'if qd.static(...)' or 'for ... in qd.static(...)'). Move other work outside the "
            f"region. [offending stmt {number}: {type(node).__name__}]", node,
        )  # fmt: skip


def _section(w: Walk, node: ast.With, call: ast.Call) -> None:
    of_graph(w, call, _SECTION)
    outer = around(w)
    if "section" in outer:
        raise w.syntax_error(f"{_SECTION} sections cannot be nested inside one another", call)
    differentiated = w.func.autodiff != "none"
    inside = any(loop.kind == _CONTEXT for loop in w.frame.loops) and not w.depth
    if not inside or (not differentiated and outer[:1] != ["parallel"]):
        raise w.syntax_error(
            f"{_SECTION} can only be used directly inside a {_CONTEXT} region", call,
            f"write `with {_CONTEXT}:` around the sections",
        )  # fmt: skip
    _one_part(w, node, call, _SECTION)


def _one_part(w: Walk, node: ast.With, call: ast.Call, what: str) -> None:
    """A section; in a differentiated kernel just its statements."""
    if w.func.autodiff == "none":
        region_of(w, node, GraphAttr("section"), call, what)
        return
    w.frame.scopes.append({})
    w.body(node.body)
    w.end_scope(f"`{what}`", node)


def _stream_parallel(w: Walk, node: ast.With, call: ast.Call) -> None:
    decl = kernel_of(w, call, _STREAM)
    if decl.options.graph:
        raise w.syntax_error(
            f"{_STREAM} is not compatible with graph=True kernels. Streams and graphs cannot be "
            f"combined; remove graph=True or the {_STREAM} block.", call,
            f"in a graph, use `with {_SECTION}:` for parts that may run at the same time",
        )  # fmt: skip
    if "section" in around(w) or any(loop.kind == _STREAM for loop in w.frame.loops):
        raise w.syntax_error("Nested stream_parallel blocks are not supported", call)
    if node not in decl.src.tree.body:
        raise w.syntax_error(f"{_STREAM} must be at the kernel top level", call)
    body = decl.src.tree.body
    for number, other in enumerate(body):
        if isinstance(other, ast.Expr) and isinstance(other.value, ast.Constant):
            continue
        if (
            isinstance(other, ast.With)
            and w.meaning(other.items[0].context_expr) == "stream_parallel"
        ):
            continue
        raise w.syntax_error(
            f"When using {_STREAM}, all top-level statements in the kernel must be 'with "
            f"{_STREAM}:' blocks. Move non-parallel code to a separate kernel. "
            f"[stmt {number}: {type(other).__name__}, body_len={len(body)}]", other,
        )  # fmt: skip
    if w.func.autodiff != "none":
        _one_part(w, node, call, _STREAM)
        return
    last = w.ops[-1] if w.ops else None
    if last is None or last.code != C.GRAPH_REGION:
        last = w.emit(node, C.GRAPH_REGION, (), GraphAttr("parallel"), void, 1)
        last.loc = w.head(node, call)
    saved = w.enter(last.regions[0])
    w.depth -= 1
    _one_part(w, node, call, _STREAM)
    leave_region(w, saved, f"`{_STREAM}`", node)
