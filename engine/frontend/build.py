"""From a declared kernel and the features of its arguments to a function in IR.

    features: one for each declared parameter, in order
        scalar    DataType it is passed as
        ndarray   NdarrayFeature(dtype, ndim, needs_grad)
        template  the Python value

The function's own parameters (`Func.params`, and the numbers in its ops) are the scalars and
arrays, in order, without the templates. Nothing is kept between builds but syntax trees.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from .. import logs as log
from ..config import CompileConfig
from ..ir import Func, Param, get_loc
from ..ir import codes as C
from ..types import DataType
from . import calls, exprs, intrinsics, loops, mathlib, printing, stmts
from .features import NdarrayFeature
from .signature import KernelDecl, ParamDecl
from .values import NdarrayRef
from .walk import Frame, Notice, Walk

__all__ = ["BuildResult", "InlinedFunc", "build"]

# Imported for the handlers they register.
_TABLES = (calls, exprs, intrinsics, loops, mathlib, printing, stmts)

InlinedFunc = tuple[str, str, int, int]
"""Qualified name, file, first and last line of a function that was inlined."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The function in stage ``ast``, the functions inlined into it, and what to warn of.

    seconds: what it took.
    """

    func: Func
    funcs: list[InlinedFunc]
    warnings: list[Notice]
    seconds: float = 0.0

    def tell(self) -> None:
        """Issue the warnings: Python warnings at the user's line, others through the log."""
        for notice in self.warnings:
            loc = notice.loc
            if notice.category is None:
                log.warn(f"{loc.file}:{loc.line}: {notice.text}")
            else:
                warnings.warn_explicit(notice.text, notice.category, loc.file, loc.line)


def _param(decl: ParamDecl, feature: Any) -> Param:
    if decl.kind == "ndarray":
        array = cast(NdarrayFeature, feature)
        return Param(decl.name, "ndarray", array.dtype, array.ndim, array.needs_grad, decl.boundary)
    return Param(decl.name, "scalar", cast(DataType, feature))


def build(decl: KernelDecl, features: Sequence[Any], config: CompileConfig) -> BuildResult:
    """Compile a kernel to IR.

    Raises a subclass of QuadrantsCompilationError, with the user's span, for a kernel that is
    wrong.
    """
    started = time.perf_counter()
    tree = decl.src.tree
    if len(features) != len(decl.params):
        raise ValueError(f"{decl.name} has {len(decl.params)} parameters, got {len(features)}")
    loc = get_loc(
        decl.file, tree.lineno, tree.col_offset, tree.lineno, tree.col_offset + 4 + len(decl.name),
        decl.name,
    )  # fmt: skip
    pairs = list(zip(decl.params, features, strict=True))
    params = tuple([_param(p, f) for p, f in pairs if p.kind != "template"])
    func = Func(decl.name, params, decl.result_types(config), loc)
    frame = Frame(decl, None, None, 0)
    w = Walk(func, config, frame)
    number = 0
    for param, feature in pairs:
        value: Any = feature
        if param.kind == "ndarray":
            p = params[number]
            value = NdarrayRef(p.name, number, p.dtype, p.ndim, p.boundary)
        elif param.kind == "scalar":
            value = w.param(C.ARG_LOAD, number)
        number += param.kind != "template"
        frame.scopes[0][param.name] = value
    frame.scopes.append({})
    w.body(tree.body)
    if func.results and not frame.returned:
        raise w.syntax_error(
            "Kernel has a return type but does not have a return statement",
            tree.returns or tree, "return a value at the end, or remove the return annotation",
        )  # fmt: skip
    func.body.ops[:0] = w.prologue.values()
    funcs = [(d.qualname, d.file, d.line, d.end_line) for d in w.funcs]
    return BuildResult(func, funcs, w.notices, time.perf_counter() - started)
