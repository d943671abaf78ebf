"""What a kernel says about graphs: do_while loops, checkpoints, parallel sections, streams.

Each of them becomes a `graph_region` around the ops of its body. Such a region is a part of the
kernel's top level: loops in it are parallel tasks, as outside of it.

    while qd.graph.do_while(flag):              $4 : graph_region {kind='do_while' param=1} body {
        for i in x: ...                   ->      $5 : range_for ... body { ... }
                                                }

In a kernel with checkpoints every other loop of the top level is a checkpoint without a name, so
that a launch that begins further on passes over it.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from enum import IntEnum
from typing import Any, Final, cast

from ..errors import QuadrantsNameError, QuadrantsSyntaxError
from ..ir import GraphAttr, Op, set_block
from ..ir import codes as C
from ..types import i32, void
from .frame import LoopInfo
from .places import bound
from .registry import handler, statement
from .signature import KernelDecl
from .values import NdarrayRef
from .walk import Saved, Walk

__all__ = ["finish", "implicit_checkpoint", "is_do_while", "leave_region", "whole_body"]

_DO_WHILE: Final = "qd.graph.do_while()"
_CHECKPOINT: Final = "qd.checkpoint()"
_CONTEXT: Final = "qd.graph.parallel_context()"
_SECTION: Final = "qd.graph.parallel()"
_STREAM: Final = "qd.stream_parallel()"
_MEANINGS: Final = ("graph.do_while", "graph.do_while_old")
_WITH: Final = {
    "checkpoint": _CHECKPOINT, "graph.parallel_context": _CONTEXT,
    "graph.parallel_context_old": _CONTEXT, "graph.parallel": _SECTION,
    "graph.parallel_old": _SECTION, "stream_parallel": _STREAM,
}  # fmt: skip
_SHOWN: Final = dict.fromkeys(_MEANINGS, _DO_WHILE) | _WITH
_NOTHING_ELSE: Final = (
    "'with' in Quadrants kernels only supports qd.stream_parallel(), qd.checkpoint(), "
    "qd.graph.parallel_context(), or qd.graph.parallel()"
)


# Regions


def _enter(w: Walk, node: ast.AST, head: ast.AST, attr: GraphAttr) -> Saved:
    """Write into a new region, in a new scope; it is as much the top level as what is around."""
    region = w.emit(node, C.GRAPH_REGION, (), attr, void, 1)
    region.loc = w.head(node, head)
    saved = w.enter(region.regions[0])
    w.depth -= 1
    return saved


def leave_region(w: Walk, saved: Saved, what: str, node: ast.AST) -> None:
    """Go on behind the region that was entered."""
    w.depth += 1
    w.leave(saved, what, node)


def _body(w: Walk, node: ast.While | ast.With, attr: GraphAttr, head: ast.AST, what: str) -> None:
    """A region around the body of a statement."""
    saved = _enter(w, node, head, attr)
    w.frame.loops.append(LoopInfo(what, w.depth))
    flow = w.body(node.body)
    w.frame.loops.pop()
    if flow is not None:
        raise w.syntax_error(f"`return` cannot leave {what}", node)
    leave_region(w, saved, f"`{what}`", node)


def _around(w: Walk) -> list[str]:
    """The kinds of the regions around the place that the walk is at, innermost first."""
    found: list[str] = []
    block: Any = w.block
    while block is not None and block.owner is not None:
        if block.owner.code == C.GRAPH_REGION:
            found.append(block.owner.attr.kind)
        block = block.owner.block
    return found


def _kernel(w: Walk, node: ast.AST, what: str) -> KernelDecl:
    """The kernel's declaration; QuadrantsSyntaxError inside of a function."""
    decl = w.frame.decl
    if not isinstance(decl, KernelDecl):
        raise w.syntax_error(
            f"{what} can only be used in a @qd.kernel, not in a @qd.func", node,
            "put it into the kernel, around the call of the function",
        )  # fmt: skip
    return decl


def _of_graph(w: Walk, node: ast.AST, what: str) -> KernelDecl:
    decl = _kernel(w, node, what)
    if not decl.options.graph:
        raise w.syntax_error(
            f"{what} requires @qd.kernel(graph=True)", node,
            "add graph=True to the kernel's decorator",
        )  # fmt: skip
    return decl


def _not_differentiated(w: Walk, node: ast.AST, what: str) -> None:
    if w.func.autodiff != "none":
        raise w.syntax_error(
            f"{what} does not support autograd: a kernel with it has no gradient", node,
            "differentiate a kernel with its body, and call that as often as needed",
        )  # fmt: skip


def _flag(w: Walk, node: ast.expr, message: str) -> int:
    """The number of the parameter that a condition stands in.

    message: what to say of anything that is no array of the kernel's parameters.
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


# do_while


def is_do_while(w: Walk, node: ast.While) -> bool:
    """Whether a ``while`` repeats a part of a graph."""
    return w.meaning(node.test) in _MEANINGS


def do_while(w: Walk, node: ast.While) -> None:
    """``while qd.graph.do_while(flag):``"""
    call = cast(ast.Call, node.test)
    if w.meaning(call) == "graph.do_while_old":
        _deprecated(w, call, "graph_do_while", "graph.do_while")
    decl = _of_graph(w, call, _DO_WHILE)
    around = _around(w)
    if "section" in around:
        raise w.syntax_error(
            f"{_DO_WHILE} cannot appear inside a {_SECTION} section; a section body must be "
            f"straight-line task work (put the {_CONTEXT} region inside the {_DO_WHILE} loop, not "
            "the other way around)", call,
        )  # fmt: skip
    if w.depth or "checkpoint" in around:
        where = "a for-loop" if w.depth else "a qd.checkpoint() block"
        raise w.syntax_error(
            f"{_DO_WHILE} must be at the kernel top level or directly nested inside another "
            f"{_DO_WHILE}; it cannot appear inside {where}.", call,
        )  # fmt: skip
    _not_differentiated(w, call, _DO_WHILE)
    if len(call.args) + len(call.keywords) != 1 or any(k.arg != "condition" for k in call.keywords):
        raise w.syntax_error(f"{_DO_WHILE} takes one argument, the array to look at", call)
    given = call.args[0] if call.args else call.keywords[0].value
    param = _flag(
        w, given,
        f"qd.graph.do_while(...) got {ast.unparse(given)!r} which does not resolve to an ndarray "
        f"kernel parameter of {decl.name!r}. The argument must reference an ndarray kernel "
        "parameter (e.g. `flag`) or a @qd.data_oriented member ndarray (e.g. `self.flag`); other "
        "expressions are not supported.",
    )  # fmt: skip
    for number, inner in enumerate(node.body):
        _check_statement(w, inner, number)
    _body(w, node, GraphAttr("do_while", param), node.test, "qd.graph.do_while()")


def _check_statement(w: Walk, node: ast.stmt, number: int) -> None:
    """Reject what the body of a do_while may not hold."""
    plain = isinstance(node, ast.While) and not is_do_while(w, node)
    if plain or isinstance(node, ast.Break | ast.Continue | ast.Return):
        raise w.syntax_error(
            f"When a kernel uses {_DO_WHILE}, a {_DO_WHILE} body may not contain a "
            f"{type(node).__name__} statement. Allowed: for-loops, {_DO_WHILE} while-loops, bare "
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
    param = _flag(
        w, node,
        f"graph_while={name!r} does not resolve to an ndarray kernel parameter of "
        f"{w.frame.decl.name!r}",
    )  # fmt: skip
    _not_differentiated(w, tree, f"graph_while={name!r}")
    for number, inner in enumerate(tree.body):
        _check_statement(w, inner, number)
    saved = _enter(w, tree, node, GraphAttr("do_while", param))
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
    if what is not _CHECKPOINT and (given.args or given.keywords):
        raise w.syntax_error(f"{what} takes no arguments", call)
    if what is _CHECKPOINT:
        _checkpoint(w, node, given)
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
            f"{_DO_WHILE} must be the whole condition of a `while`", node,
            "write `while qd.graph.do_while(flag):`",
        )  # fmt: skip
    what = _SHOWN[name]
    raise w.syntax_error(f"{what} stands in a `with`", node, f"write `with {what}:`")


def _deprecated(w: Walk, node: ast.AST, old: str, new: str) -> None:
    w.warn(f"qd.{old}() is deprecated; use qd.{new}() instead.", node, DeprecationWarning)


# Checkpoints


def _checkpoint(w: Walk, node: ast.With, call: ast.Call) -> None:
    decl = _kernel(w, call, _CHECKPOINT)
    if not decl.options.checkpoints:
        raise w.syntax_error(
            f"{_CHECKPOINT} found in kernel {decl.name!r}, but this kernel was not decorated with "
            "`checkpoints=True`. Add `checkpoints=True` to the decorator -- e.g. "
            "`@qd.kernel(graph=True, checkpoints=True)` -- to opt into the pause / resume model.",
            call,
        )  # fmt: skip
    if "checkpoint" in _around(w):
        raise w.syntax_error(
            f"{_CHECKPOINT} cannot be nested inside another {_CHECKPOINT}; checkpoints in the same "
            "kernel must be flat siblings (a checkpoint inside qd.graph.do_while is fine)", call,
        )  # fmt: skip
    if w.depth:
        raise w.syntax_error(
            f"{_CHECKPOINT} must be at the kernel top level or in the body of a {_DO_WHILE}; it "
            "cannot appear inside a for-loop or an if", call,
        )  # fmt: skip
    _not_differentiated(w, call, _CHECKPOINT)
    given = _checkpoint_arguments(w, call)
    name = _checkpoint_id(w, given["cp_id"])
    if name in w.checkpoints:
        raise w.syntax_error(
            f"qd.checkpoint(cp_id={name}, ...) declares a cp_id that is already used by another "
            f"checkpoint in kernel {decl.name!r}. Each `cp_id` label must be unique so the host "
            "loop can map `status.checkpoint` and `kernel.resume(from_checkpoint=...)` "
            "unambiguously.", given["cp_id"],
        )  # fmt: skip
    param = _flag(
        w, given["yield_on"],
        "qd.checkpoint(yield_on=...) must reference a kernel ndarray argument -- e.g. "
        "`yield_on=flag` for a bare parameter, `yield_on=self.flag` for a @qd.data_oriented "
        "member, or `yield_on=params.flag` for a @dataclasses.dataclass parameter member; "
        "arbitrary expressions are not supported",
    )  # fmt: skip
    for inner in node.body:
        _check_bare(w, inner)
    attr = GraphAttr("checkpoint", param, len(w.checkpoints), name)
    w.checkpoints.append(name)
    _body(w, node, attr, call, _CHECKPOINT)


def _checkpoint_arguments(w: Walk, call: ast.Call) -> dict[str, ast.expr]:
    names = ("cp_id", "yield_on")
    if not call.args and not call.keywords:
        raise w.syntax_error(
            f"{_CHECKPOINT} takes two arguments: `qd.checkpoint(cp_id, yield_on=flag)`.", call
        )
    if len(call.args) > len(names):
        raise w.syntax_error(
            f"{_CHECKPOINT} takes at most 2 positional arguments (cp_id, yield_on); got "
            f"{len(call.args)}", call,
        )  # fmt: skip
    found: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names:
            raise w.syntax_error(
                f"{_CHECKPOINT} got unexpected keyword argument '{keyword.arg or '**'}'; only "
                "'cp_id' and 'yield_on' are supported", keyword.value,
            )  # fmt: skip
        if keyword.arg in found:
            text = f"{_CHECKPOINT} got multiple values for argument '{keyword.arg}'"
            raise w.syntax_error(text, keyword.value)
        found[keyword.arg] = keyword.value
    for name in names:
        if name not in found:
            raise w.syntax_error(
                f"{_CHECKPOINT} is missing required argument `{name}` (e.g. "
                "`qd.checkpoint(0, yield_on=overflow_flag)`)", call,
            )  # fmt: skip
    return found


def _checkpoint_id(w: Walk, node: ast.expr) -> int:
    value: Any = None
    if isinstance(node, ast.Constant):
        value = node.value
        good = type(value) is int
    else:
        if isinstance(node, ast.Name | ast.Attribute):
            try:
                value = bound(w, node)
            except QuadrantsSyntaxError:
                value = None
        good = isinstance(value, IntEnum)
    if not good:
        raise w.syntax_error(
            f"{_CHECKPOINT} first argument must be an int literal or an IntEnum value (e.g. "
            "`Stage.SIM`): checkpoints are known by it before anything runs", node,
        )  # fmt: skip
    return int(value)


_COMPILE_TIME: Final = frozenset(("loop_config", "static_assert", "static_print"))
_BARE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert)


def _check_bare(w: Walk, node: ast.stmt) -> None:
    """Reject a plain statement in a checkpoint, but what only steers the compilation."""
    if not isinstance(node, _BARE):
        return
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(value, ast.Constant):
        return
    if isinstance(value, ast.Call):
        meaning = w.meaning(value)
        if meaning in _COMPILE_TIME or (meaning == "static" and isinstance(node, ast.Assign)):
            return
    raise w.syntax_error(
        f"{_CHECKPOINT} body cannot contain a bare top-level {type(node).__name__} statement: "
        "every top-level statement in a checkpoint must be inside a for-loop (or other "
        "control-flow construct), so that it belongs to the checkpoint when a launch resumes",
        node, "write `for _ in range(1):` around it",
    )  # fmt: skip


def implicit_checkpoint(w: Walk, node: ast.AST, head: ast.AST) -> Saved | None:
    """The region around a loop of the top level of a kernel with checkpoints, if it needs one."""
    kernel = w.captures.kernel
    if w.depth or not kernel.options.checkpoints or w.func.autodiff != "none":
        return None
    if not w.func.is_root(w.block) or "checkpoint" in _around(w):
        return None
    return _enter(w, node, head, GraphAttr("checkpoint"))


def finish(w: Walk) -> None:
    """In a kernel without named checkpoints the others mean nothing: they go."""
    if w.checkpoints:
        return
    for block in reversed(w.func.roots()):
        ops: list[Op] = []
        for op in block.ops:
            if op.code == C.GRAPH_REGION and op.attr.kind == "checkpoint":
                set_block(op.regions[0].ops, block)
                ops += op.regions[0].ops
            else:
                ops.append(op)
        block.ops = ops


# Parallel sections, streams


def _parallel_context(w: Walk, node: ast.With, call: ast.Call) -> None:
    decl = _of_graph(w, call, _CONTEXT)
    around = _around(w)
    if "section" in around:
        raise w.syntax_error(f"{_CONTEXT} cannot appear inside a {_SECTION} section", call)
    if "parallel" in around:
        raise w.syntax_error(f"{_CONTEXT} regions cannot be nested inside one another", call)
    if decl.options.checkpoints:
        raise w.syntax_error(
            f"{_CONTEXT} is not supported in a @qd.kernel(graph=True, checkpoints=True) kernel: "
            "its sections would not know where a launch resumes", call,
            "write the sections as qd.checkpoint() blocks, or take checkpoints=True away",
        )  # fmt: skip
    if w.depth:
        raise w.syntax_error(
            f"{_CONTEXT} must be at the kernel top level or in the body of a {_DO_WHILE}; it "
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
    _body(w, node, GraphAttr("parallel"), call, _CONTEXT)


def _check_sections(w: Walk, body: list[ast.stmt]) -> None:
    """QuadrantsSyntaxError if a context holds anything but sections, maybe under static ones."""
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
    _of_graph(w, call, _SECTION)
    around = _around(w)
    if "section" in around:
        raise w.syntax_error(f"{_SECTION} sections cannot be nested inside one another", call)
    differentiated = w.func.autodiff != "none"
    inside = any(loop.kind == _CONTEXT for loop in w.frame.loops) and not w.depth
    if not inside or (not differentiated and around[:1] != ["parallel"]):
        raise w.syntax_error(
            f"{_SECTION} can only be used directly inside a {_CONTEXT} region", call,
            f"write `with {_CONTEXT}:` around the sections",
        )  # fmt: skip
    _one_part(w, node, call, _SECTION)


def _one_part(w: Walk, node: ast.With, call: ast.Call, what: str) -> None:
    """A section; in a differentiated kernel just its statements."""
    if w.func.autodiff == "none":
        _body(w, node, GraphAttr("section"), call, what)
        return
    w.frame.scopes.append({})
    w.body(node.body)
    w.end_scope(f"`{what}`", node)


def _stream_parallel(w: Walk, node: ast.With, call: ast.Call) -> None:
    decl = _kernel(w, call, _STREAM)
    if decl.options.graph:
        raise w.syntax_error(
            f"{_STREAM} is not compatible with graph=True kernels. Streams and graphs cannot be "
            f"combined; remove graph=True or the {_STREAM} block.", call,
            f"in a graph, `with {_SECTION}:` says what may run at the same time",
        )  # fmt: skip
    if "section" in _around(w) or any(loop.kind == _STREAM for loop in w.frame.loops):
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
