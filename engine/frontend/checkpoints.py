"""Checkpoints: blocks of a graph at which a launch may stop, and another one begin.

In a kernel with checkpoints every other loop of the top level is a checkpoint without a name, so
that a launch that begins further on passes over it.
"""

from __future__ import annotations

import ast
from enum import IntEnum
from typing import Any, Final

from ..errors import QuadrantsSyntaxError
from ..ir import GraphAttr, Op, set_block
from ..ir import codes as C
from .func_builder import FuncBuilder
from .lvalues import bound
from .regions import (
    CHECKPOINT,
    DO_WHILE,
    around,
    flag,
    kernel_of,
    not_differentiated,
    region_of,
)

__all__ = ["checkpoint", "finish"]


def checkpoint(fb: FuncBuilder, node: ast.With, call: ast.Call) -> None:
    decl = kernel_of(fb, call, CHECKPOINT)
    if not decl.options.checkpoints:
        raise fb.syntax_error(
            f"{CHECKPOINT} found in kernel {decl.name!r}, but this kernel was not decorated with "
            "`checkpoints=True`. Add `checkpoints=True` to the decorator -- e.g. "
            "`@qd.kernel(graph=True, checkpoints=True)` -- to opt into the pause / resume model.",
            call,
        )  # fmt: skip
    if "checkpoint" in around(fb):
        raise fb.syntax_error(
            f"{CHECKPOINT} cannot be nested inside another {CHECKPOINT}; checkpoints in the same "
            "kernel must be flat siblings (a checkpoint inside qd.graph.do_while is fine)", call,
        )  # fmt: skip
    if fb.depth:
        raise fb.syntax_error(
            f"{CHECKPOINT} must be at the kernel top level or in the body of a {DO_WHILE}; it "
            "cannot appear inside a for-loop or an if", call,
        )  # fmt: skip
    not_differentiated(fb, call, CHECKPOINT)
    given = _checkpoint_arguments(fb, call)
    name = _checkpoint_id(fb, given["cp_id"])
    if name in fb.checkpoints:
        raise fb.syntax_error(
            f"qd.checkpoint(cp_id={name}, ...) declares a cp_id that is already used by another "
            f"checkpoint in kernel {decl.name!r}. Each `cp_id` label must be unique so the host "
            "loop can map `status.checkpoint` and `kernel.resume(from_checkpoint=...)` "
            "unambiguously.", given["cp_id"],
        )  # fmt: skip
    param = flag(
        fb, given["yield_on"],
        "qd.checkpoint(yield_on=...) must reference a kernel ndarray argument -- e.g. "
        "`yield_on=flag` for a bare parameter, `yield_on=self.flag` for a @qd.data_oriented "
        "member, or `yield_on=params.flag` for a @dataclasses.dataclass parameter member; "
        "arbitrary expressions are not supported",
    )  # fmt: skip
    for inner in node.body:
        _check_bare(fb, inner)
    attr = GraphAttr("checkpoint", param, len(fb.checkpoints), name)
    fb.checkpoints.append(name)
    region_of(fb, node, attr, call, CHECKPOINT)


def _checkpoint_arguments(fb: FuncBuilder, call: ast.Call) -> dict[str, ast.expr]:
    names = ("cp_id", "yield_on")
    if not call.args and not call.keywords:
        raise fb.syntax_error(
            f"{CHECKPOINT} takes two arguments: `qd.checkpoint(cp_id, yield_on=flag)`.", call
        )
    if len(call.args) > len(names):
        raise fb.syntax_error(
            f"{CHECKPOINT} takes at most 2 positional arguments (cp_id, yield_on); got "
            f"{len(call.args)}", call,
        )  # fmt: skip
    found: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names:
            raise fb.syntax_error(
                f"{CHECKPOINT} got unexpected keyword argument '{keyword.arg or '**'}'; only "
                "'cp_id' and 'yield_on' are supported", keyword.value,
            )  # fmt: skip
        if keyword.arg in found:
            text = f"{CHECKPOINT} got multiple values for argument '{keyword.arg}'"
            raise fb.syntax_error(text, keyword.value)
        found[keyword.arg] = keyword.value
    for name in names:
        if name not in found:
            raise fb.syntax_error(
                f"{CHECKPOINT} is missing required argument `{name}` (e.g. "
                "`qd.checkpoint(0, yield_on=overflow_flag)`)", call,
            )  # fmt: skip
    return found


def _checkpoint_id(fb: FuncBuilder, node: ast.expr) -> int:
    value: Any = None
    if isinstance(node, ast.Constant):
        value = node.value
        good = type(value) is int
    else:
        if isinstance(node, ast.Name | ast.Attribute):
            try:
                value = bound(fb, node)
            except QuadrantsSyntaxError:
                value = None
        good = isinstance(value, IntEnum)
    if not good:
        raise fb.syntax_error(
            f"{CHECKPOINT} first argument must be an int literal or an IntEnum value (e.g. "
            "`Stage.SIM`): checkpoints are known by it before anything runs", node,
        )  # fmt: skip
    return int(value)


_COMPILE_TIME: Final = frozenset(("loop_config", "static_assert", "static_print"))
_BARE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert)


def _check_bare(fb: FuncBuilder, node: ast.stmt) -> None:
    """Reject a plain statement in a checkpoint, unless it only steers the compilation."""
    if not isinstance(node, _BARE):
        return
    value = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(value, ast.Constant):
        return
    if isinstance(value, ast.Call):
        meaning = fb.meaning(value)
        if meaning in _COMPILE_TIME or (meaning == "static" and isinstance(node, ast.Assign)):
            return
    raise fb.syntax_error(
        f"{CHECKPOINT} body cannot contain a bare top-level {type(node).__name__} statement: "
        "every top-level statement in a checkpoint must be inside a for-loop (or other "
        "control-flow construct), so that it belongs to the checkpoint when a launch resumes",
        node, "write `for _ in range(1):` around it",
    )  # fmt: skip


def finish(fb: FuncBuilder) -> None:
    """Remove unnamed checkpoints from a kernel without named ones, where they have no effect."""
    if fb.checkpoints:
        return
    for block in reversed(fb.func.roots()):
        ops: list[Op] = []
        for op in block.ops:
            if op.code == C.GRAPH_REGION and op.attr.kind == "checkpoint":
                set_block(op.regions[0].ops, block)
                ops += op.regions[0].ops
            else:
                ops.append(op)
        block.ops = ops
