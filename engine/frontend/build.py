"""Compilation of a declared kernel and its specialization keys to a function in IR.

    features: one key for each declared parameter, in order; see `features`

The function's own parameters (`Func.params`, and the numbers in its ops) are the declared scalars
and arrays, in order, then the used parts of its other arguments and the fields it uses, in
the order of their first use. `BuildResult.bindings` says where each comes from. Nothing is kept
between builds but syntax trees.
"""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from .. import logs as log
from ..config import CompileConfig
from ..ir import Func, get_loc
from . import (
    blocks,
    branches,
    calls,
    exprs,
    gradients,
    graphs,
    intrinsics,
    loops,
    mathlib,
    matrix_makers,
    matrix_methods,
    printing,
    results,
    stmts,
    structs,
)  # fmt: skip
from .captures import Capture, Captures
from .checkpoints import finish as finish_checkpoints
from .features import InstanceFeature, ParamBinding, Plan, Used, ValueFeature
from .frame import Frame
from .real_functions import finish
from .signature import FuncDecl, KernelDecl
from .values import StructValue
from .walk import Notice, Walk

__all__ = ["BuildResult", "build"]

# Imported for the handlers they register.
_TABLES = (
    blocks, branches, calls, exprs, gradients, graphs, intrinsics, loops, mathlib, matrix_makers,
    matrix_methods, printing, results, stmts, structs,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The function in stage ``ast``, the functions inlined into it, and the warnings.

    bindings: where the value of each of the function's parameters comes from. used: what the code
    depends on inside of arguments. seconds: the time of the build. decls: the kernel, then each
    function that was inlined or called, in the order of first use.
    recorded: the source of `captures`.
    """

    func: Func
    warnings: list[Notice]
    bindings: tuple[ParamBinding, ...] = ()
    used: tuple[Used, ...] = ()
    seconds: float = 0.0
    decls: tuple[KernelDecl | FuncDecl, ...] = ()
    recorded: Captures | None = None

    @property
    def captures(self) -> tuple[Capture, ...]:
        """The values read from outside the functions, in order of first use."""
        return self.recorded.all() if self.recorded else ()

    @property
    def plan(self) -> Plan:
        """The parts of this that a launch needs."""
        return Plan(self.bindings, self.used)

    def issue_warnings(self) -> None:
        """Issue the warnings: Python warnings at the user's line, others through the log."""
        kernel = cast(KernelDecl, self.decls[0])
        for notice in self.warnings:
            loc = notice.loc
            if notice.once and notice in kernel.issued:
                continue
            if notice.category is None:
                log.warn(f"{loc.file}:{loc.line}: {notice.text}")
            else:
                warnings.warn_explicit(notice.text, notice.category, loc.file, loc.line)
            if notice.once:
                kernel.issued.add(notice)


def _without_gradients(w: Walk, tree: ast.FunctionDef) -> None:
    """Raise QuadrantsSyntaxError if a graph kernel is passed an array with gradients."""
    for param, leaf in zip(w.params, w.bindings, strict=True):
        if param.kind == "ndarray" and param.needs_grad:
            raise w.syntax_error(
                f"graph does not support autograd; ndarray arg {param.name!r} has a gradient",
                tree.args.args[leaf.arg],
                "pass an array made without needs_grad, or remove graph=True from the kernel",
            )  # fmt: skip


def build(
    decl: KernelDecl, features: Sequence[Any], config: CompileConfig, quiet: bool = False
) -> BuildResult:
    """Compile a kernel to IR. quiet: `static_print` prints nothing.

    Raises a subclass of QuadrantsCompilationError, with the user's span, for a kernel that is
    wrong.
    """
    started = time.perf_counter()
    tree = decl.src.tree
    if len(features) != len(decl.params):
        raise ValueError(f"{decl.name} has {len(decl.params)} parameters, got {len(features)}")
    loc = get_loc(
        decl.file, tree.lineno, tree.col_offset, tree.lineno,
        tree.col_offset + 4 + len(decl.src.name), decl.src.name,
    )  # fmt: skip
    func = Func(decl.name, (), decl.flat_results(config), loc)
    func.autodiff = decl.autodiff
    func.graph = decl.options.graph and config.graph and decl.autodiff == "none"
    frame = Frame(decl, None, None, 0)
    w = Walk(func, config, frame, quiet)
    for number, (param, feature) in enumerate(zip(decl.params, features, strict=True)):
        value = feature
        if isinstance(feature, ValueFeature):
            value = feature.value
        elif param.kind != "template" or isinstance(feature, InstanceFeature):
            value = w.leaf(number, (), feature, param.name, param.boundary)
        if isinstance(value, StructValue) and decl.assigns(param.name):
            # Its members may be assigned to.
            value = stmts.local_copy(w, value, param.name, tree.args.args[number])
        elif value is feature:
            w.captures.argument(param.name, value)
        frame.scopes[0][param.name] = value
    frame.scopes.append({})
    if decl.options.do_while:
        graphs.whole_body(w, tree, decl.options.do_while)
    else:
        w.body(tree.body)
    finish_checkpoints(w)
    if func.results and not frame.returned:
        raise w.syntax_error(
            "Kernel has a return type but does not have a return statement",
            tree.returns or tree, "return a value at the end, or remove the return annotation",
        )  # fmt: skip
    if func.autodiff != "none":
        gradients.add_companions(w, tree)
    if decl.options.graph and func.autodiff == "none":
        _without_gradients(w, tree)
    func.params = tuple(w.params)
    func.body.ops[:0] = w.prologue.values()
    if func.callees:
        finish(func, config)
    seconds = time.perf_counter() - started
    return BuildResult(
        func, w.notices, tuple(w.bindings), tuple(w.used), seconds, (decl, *w.funcs),
        w.captures,
    )  # fmt: skip
