"""Compilation of a declared kernel and its specialization keys to a function in IR.

    spec_keys: one key for each declared parameter, in order; see `specialization`

The function's own parameters (`Func.params`, and the numbers in its ops) are the declared scalars
and arrays, in order, then the used parts of its other arguments and the fields it uses, in
the order of their first use. `BuildResult.bindings` says where each comes from. Nothing is kept
between builds but the syntax trees of the last functions (see `trees`), with the locations of the
nodes of kernels.
"""

from __future__ import annotations

import ast
import time
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from .. import logs as log
from ..config import CompileConfig
from ..ir import Func, Loc, get_loc
from ..named_tuple import NamedTuple
from . import exprs, loops, stmts
from .captures import Capture, Captures
from .func_builder import FuncBuilder, Notice
from .func_context import FuncContext
from .signature import FuncDecl, KernelDecl
from .specialization import InstanceKey, ParamBinding, Plan, Used, ValueKey
from .trees import trees
from .values import StructValue

__all__ = ["BuildResult", "build"]

_TABLES = (exprs, loops, stmts)
"""Imported for the functions they register; `registry` imports the others."""


class BuildResult(NamedTuple):
    """The function in stage ``ast``, the functions inlined into it, and the warnings.

    bindings: where the value of each of the function's parameters comes from. used: what the code
    depends on inside of arguments. seconds: the time of the build. decls: the kernel, then each
    function that was inlined or called, in the order of first use.
    recorded: the source of `captures`. passed: by the location of each inlined call, the values of
    its parameters in the IR.
    """

    func: Func
    warnings: list[Notice]
    bindings: tuple[ParamBinding, ...] = ()
    used: tuple[Used, ...] = ()
    seconds: float = 0.0
    decls: tuple[KernelDecl | FuncDecl, ...] = ()
    recorded: Captures | None = None
    passed: Mapping[Loc, dict[str, Any]] = MappingProxyType({})

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


def _without_gradients(fb: FuncBuilder, tree: ast.FunctionDef) -> None:
    """Raise QuadrantsSyntaxError if a graph kernel is passed an array with gradients."""
    for param, binding in zip(fb.params, fb.bindings, strict=True):
        if param.kind == "ndarray" and param.needs_grad:
            raise fb.syntax_error(
                f"graph does not support autograd; ndarray arg {param.name!r} has a gradient",
                tree.args.args[binding.arg],
                "pass an array made without needs_grad, or remove graph=True from the kernel",
            )  # fmt: skip


def _keep_locations(decl: KernelDecl, context: FuncContext) -> None:
    """Keep the locations of a kernel's nodes for the next build, if its tree is kept."""
    if trees.keeps(decl):
        # One that inlined calls would keep the locations of all that it inlined.
        decl.src.locs = {node: loc for node, loc in context.locs.items() if not loc.has_inlined}


def build(
    decl: KernelDecl, spec_keys: Sequence[Any], config: CompileConfig, quiet: bool = False
) -> BuildResult:
    """Compile a kernel to IR. quiet: `static_print` prints nothing.

    Raises a subclass of QuadrantsCompilationError, with the user's span, for a kernel that is
    wrong.
    """
    with trees:
        result = _build(decl, spec_keys, config, quiet)
        trees.used(result.decls)
    return result


def _build(
    decl: KernelDecl, spec_keys: Sequence[Any], config: CompileConfig, quiet: bool
) -> BuildResult:
    started = time.perf_counter()
    tree = decl.src.tree
    if len(spec_keys) != len(decl.params):
        raise ValueError(f"{decl.name} has {len(decl.params)} parameters, got {len(spec_keys)}")
    loc = get_loc(
        decl.file, tree.lineno, tree.col_offset, tree.lineno,
        tree.col_offset + 4 + len(decl.src.name), decl.src.name,
    )  # fmt: skip
    func = Func(decl.name, (), decl.flat_results(config), loc)
    func.autodiff = decl.autodiff
    func.graph = decl.options.graph and config.graph and decl.autodiff == "none"
    context = FuncContext(decl, None, None, 0)
    fb = FuncBuilder(func, config, context, quiet)
    for number, (param, spec_key) in enumerate(zip(decl.params, spec_keys, strict=True)):
        value = spec_key
        if isinstance(spec_key, ValueKey):
            value = spec_key.value
        elif param.kind != "template" or isinstance(spec_key, InstanceKey):
            value = fb.bind(number, (), spec_key, param.name, param.boundary)
        if isinstance(value, StructValue) and decl.assigns(param.name):
            # Its members may be assigned to.
            value = stmts.local_copy(fb, value, param.name, tree.args.args[number])
        elif value is spec_key:
            fb.captures.argument(param.name, value)
        context.scopes[0][param.name] = value
    context.scopes.append({})
    if decl.options.do_while:
        from . import graphs

        graphs.whole_body(fb, tree, decl.options.do_while)
    else:
        fb.body(tree.body)
    if decl.options.checkpoints:
        from .checkpoints import finish as finish_checkpoints

        finish_checkpoints(fb)
    if func.results and not context.returned:
        raise fb.syntax_error(
            "Kernel has a return type but does not have a return statement",
            tree.returns or tree, "return a value at the end, or remove the return annotation",
        )  # fmt: skip
    if func.autodiff != "none":
        from . import gradients

        gradients.add_companions(fb, tree)
    if decl.options.graph and func.autodiff == "none":
        _without_gradients(fb, tree)
    func.params = tuple(fb.params)
    func.body.ops[:0] = fb.prologue.values()
    if func.callees:
        from .real_functions import finish

        finish(func, config)
    _keep_locations(decl, context)
    seconds = time.perf_counter() - started
    return BuildResult(
        func, fb.notices, tuple(fb.bindings), tuple(fb.used), seconds, (decl, *fb.funcs),
        fb.captures, {made.loc: made.scope for made in fb.calls.made},
    )  # fmt: skip
