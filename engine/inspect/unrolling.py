"""A kernel with one of its loops unrolled, as if the user had written `qd.static(range(...))`."""

from __future__ import annotations

import ast
import copy
from types import ModuleType
from typing import Any, Final

from ..frontend.signature import KernelDecl
from ..frontend.source import FunctionSource
from ..lang.kernel import Kernel
from .discover import Subject

__all__ = ["NotUnrolledError", "unrolled"]


class NotUnrolledError(ValueError):
    """The loop cannot be unrolled; the message says why."""


class _EditedSource(FunctionSource):
    """The source of a function with another tree."""

    def __init__(self, src: FunctionSource, tree: ast.FunctionDef) -> None:
        super().__init__(src.fn)
        self._tree = tree

    @property
    def identity(self) -> str:
        return ast.dump(self.tree)


class _Unroll(ast.NodeTransformer):
    def __init__(self, line: int, static: ast.expr) -> None:
        self.line: Final = line
        self.static: Final = static
        self.found: ast.For | None = None
        self.outer = False
        self._depth = 0

    def visit_For(self, node: ast.For) -> Any:
        if node.lineno == self.line:
            self.found = node
            self.outer = not self._depth
            call = ast.Call(func=self.static, args=[node.iter], keywords=[])
            node.iter = ast.copy_location(call, node.iter)
            ast.fix_missing_locations(node)
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node


def unrolled(subject: Subject, line: int) -> Subject:
    """``subject`` with the loop at this line unrolled. NotUnrolledError if that is impossible."""
    decl = subject.kernel.decl
    if decl.autodiff != "none":
        raise NotUnrolledError("a gradient is made from the loops of its kernel: unroll it there")
    tree = copy.deepcopy(decl.src.tree)
    edit = _Unroll(line, _static(decl))
    edit.visit(tree)
    if edit.found is None:
        raise NotUnrolledError(
            f"{decl.name} has no for loop at line {line} (loops of functions that it calls are "
            "not changed)"
        )
    if edit.outer:
        raise NotUnrolledError(
            f"the loop at line {line} is the parallel one: unrolled, nothing would run in parallel"
        )
    found = edit.found.iter
    assert isinstance(found, ast.Call)
    loop = found.args[0]
    if isinstance(loop, ast.Call) and _is_static(loop.func):
        raise NotUnrolledError(f"the loop at line {line} is unrolled already")
    made = KernelDecl(
        _EditedSource(decl.src, tree), decl.params, decl.returns, decl.returns_tuple, False,
        options=decl.options,
    )  # fmt: skip
    kernel = Kernel(subject.kernel.fn, decl=made)
    kernel.workloads = subject.kernel.workloads
    kernel.checks = subject.kernel.checks
    return subject._replace(kernel=kernel)


def _is_static(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "static"


def _static(decl: KernelDecl) -> ast.expr:
    """The expression by which the function reaches `static`."""
    names: dict[str, Any] = dict(decl.fn.__globals__)
    fn: Any = decl.fn
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue
    package = __name__.partition(".engine")[0]
    for name, value in names.items():
        if isinstance(value, ModuleType) and hasattr(value, "static"):
            home = getattr(value.static, "__module__", "") or ""
            if home.startswith(package):
                return ast.Attribute(ast.Name(name, ast.Load()), "static", ast.Load())
        elif (
            getattr(value, "__name__", "") == "static"
            and str(getattr(value, "__module__", "")).startswith(package)
        ):  # fmt: skip
            return ast.Name(name, ast.Load())
    raise NotUnrolledError("the function has no name for the package, so no qd.static to write")
