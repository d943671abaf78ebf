"""Statements other than loops."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any, Final, cast

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import CompoundType, DataType, compatible, matrix_type, resolved, void
from .conversion import converted, type_of
from .matrices import as_matrix
from .places import lvalue, spread, writable
from .registry import statement
from .signature import KernelDecl
from .values import (
    SEQUENCES,
    ArrayValue,
    DynamicElement,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    ShapeRef,
    StructValue,
    describe,
    is_sequence,
    is_static,
    tensor_name,
)
from .walk import Walk

__all__ = [
    "assign", "assign_name", "bind_static", "immutable", "local_copy", "not_writable", "store",
]  # fmt: skip

_NOT_BOUND: Final = object()
_PLAIN: Final = (DataType, type(None))


def local_copy(w: Walk, value: Any, name: str, node: ast.AST, source: ast.AST | None = None) -> Any:
    """``value`` as a local of its own: variables for numbers, the same container of variables.

    source: the node of the value, if not ``node``.
    """
    at = source or node
    if isinstance(value, ShapeRef):
        value = tuple(spread(w, value, cast(ast.expr, at)))
    kind: Any = value.__class__
    if kind is MatrixValue:
        if value.size > _SELECTS and _picked_at_run_time(w, name):
            return w.local_array(value, name, node)
        parts = w.parts(value, node)
        names = _part_names(name, value.shape)
        return MatrixValue(
            value.shape,
            [local_copy(w, v, n, node, at) for v, n in zip(parts, names, strict=True)],
        )
    if kind is StructValue:
        members = {k: local_copy(w, v, f"{name}.{k}", node, at) for k, v in value.members.items()}
        return StructValue(value.type, members)
    if kind in SEQUENCES:
        return kind([local_copy(w, v, f"{name}[{k}]", node, at) for k, v in enumerate(value)])
    if kind is dict:
        return {k: local_copy(w, v, f"{name}[{k!r}]", node, at) for k, v in value.items()}
    if kind is ArrayValue:
        return _named(value, name)
    if isinstance(getattr(value, "decl", None), KernelDecl):
        raise w.not_scalar(value, at)
    if isinstance(value, _PLAIN) or callable(value):
        return value
    return w.variable(w.op(value, at), name, node)


def _named(array: ArrayValue, name: str) -> ArrayValue:
    """The array itself, which keeps the first name that the kernel assigns to it."""
    attr = array.base.attr
    if attr.name:
        return array
    array.base.attr = attr._replace(name=name)
    return replace(array, name=name)


_SELECTS: Final = 4
"""A local of more parts that is indexed at run time is in memory: selects would be slow, and LLVM
makes registers of it again where it unrolls the loops around."""


def _picked_at_run_time(w: Walk, name: str) -> bool:
    """True if the function may index ``name`` with a value of run time."""
    tree = w.frame.decl.src.tree
    static: set[str] = set()
    varying = {p.name for p in w.frame.decl.params}
    slices: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and w.is_static_call(node.iter):
            static.update(n.id for n in ast.walk(node.target) if isinstance(n, ast.Name))
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            varying.add(node.id)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == name:
            slices.append(node.slice)
    varying -= static
    return any(
        isinstance(n, ast.Call | ast.Subscript) or (isinstance(n, ast.Name) and n.id in varying)
        for s in slices
        for n in ast.walk(s)
    )


def _part_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """The user's names for the parts of the vector or matrix ``name``."""
    if len(shape) == 1:
        return [f"{name}[{i}]" for i in range(shape[0])]
    return [f"{name}[{i}, {j}]" for i in range(shape[0]) for j in range(shape[1])]


# Assignment


def store(w: Walk, target: Any, value: Any, node: ast.AST, source: ast.AST) -> None:
    """Write ``value`` to a pointer, or part by part to a matrix or struct of pointers."""
    if isinstance(target, Op | DynamicElement):
        if isinstance(value, MatrixValue):
            raise _misfit(w, target, value, node)
        w.store(target, w.op(value, source), node)
        return
    if isinstance(target, MatrixValue):
        matrix = as_matrix(w, value, source)
        if matrix is not None and matrix.shape == target.shape:
            values = list(w.parts(matrix, node))
        elif isinstance(value, Op | int | float):
            values = [w.op(value, source)] * target.size
        else:
            raise _misfit(w, target, value if matrix is None else matrix, node)
        for ptr, part in zip(w.parts(target, node), values, strict=True):
            w.store(ptr, w.op(part, source), node)
        return
    assert isinstance(target, StructValue), target
    if not isinstance(value, StructValue) or not compatible(value.type, target.type):
        value = converted(w, target.type, value, source)
    for key, member in target.members.items():
        store(w, member, value.members[key], node, source)


def _misfit(w: Walk, target: Any, value: Any, node: ast.AST) -> QuadrantsCompilationError:
    names = [tensor_name(w, v) for v in (value, target)]
    text = f"cannot assign '{names[0]}' to '{names[1]}'"
    place = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
    fixed = isinstance(place, ast.Name)
    return w.type_error(
        text, node,
        "the first assignment fixes the type of a variable" if fixed else
        "both sides need the same shape",
    )  # fmt: skip


def _source(node: ast.AST) -> ast.AST:
    """The node of the value of an assignment."""
    return node.value if isinstance(node, ast.Assign | ast.NamedExpr) else node


def assign(w: Walk, target: ast.expr, value: Any, node: ast.AST) -> None:
    """Assign a value to ``target``; a new name becomes a local variable."""
    if isinstance(target, ast.Name):
        assign_name(w, target, value, node)
    elif isinstance(target, ast.Tuple | ast.List):
        for one, part in zip(target.elts, _unpacked(w, target, value, node), strict=True):
            assign(w, one, part, node)
    elif isinstance(target, ast.Subscript | ast.Attribute):
        ptr = lvalue(w, target)
        if ptr is None:
            raise not_writable(w, target)
        store(w, ptr, value, node, _source(node))
    else:
        raise w.syntax_error(f"Cannot assign to `{ast.unparse(target)}` in a kernel", target)


def not_writable(w: Walk, target: ast.expr) -> QuadrantsCompilationError:
    root = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if isinstance(root, ast.Name) and isinstance(
        w.local(root.id), RecordValue | MatrixValue | StructValue
    ):
        return immutable(w, root, w.local(root.id), ast.unparse(target))
    if isinstance(target, ast.Attribute):
        return w.syntax_error(f"Cannot assign to `{ast.unparse(target)}` in a kernel", target)
    return w.syntax_error(
        f"`{ast.unparse(target)}` cannot be assigned: it belongs to a compile-time value", target,
        "pass arrays that the kernel writes to as arguments",
    )  # fmt: skip


def _unpacked(w: Walk, target: ast.Tuple | ast.List, value: Any, node: ast.AST) -> list[Any]:
    for one in target.elts:
        if isinstance(one, ast.Starred):
            w.unsupported(one, "name every part of the value")
    at = node.value if isinstance(node, ast.Assign) else cast(ast.expr, node)
    values = spread(w, value, at)
    if len(values) != len(target.elts):
        raise w.syntax_error(
            "The number of targets is not equal to value length: "
            f"{len(target.elts)} targets, {len(values)} values", target,
        )  # fmt: skip
    return values


def assign_name(w: Walk, target: ast.Name, value: Any, node: ast.AST) -> None:
    name = target.id
    old = w.local(name) if w.has_local(name) else _NOT_BOUND
    if old is _NOT_BOUND:
        at = _source(node)
        if isinstance(value, NdarrayRef):
            raise w.not_scalar(value, at)
        w.frame.scopes[-1][name] = local_copy(w, value, name, node, at)
        return
    if w.frame.parent is None and isinstance(old, StructValue) and _is_param(w, target):
        raise immutable(w, target, old)
    if isinstance(old, Op | DynamicElement | MatrixValue | StructValue) and writable(old):
        store(w, old, value, node, _source(node))
        return
    if _same_shape(old, value):
        for var, part in zip(cast("list[Any]", old), value, strict=True):
            store(w, var, part, node, node)
        return
    raise immutable(w, target, old)


def _same_shape(old: Any, value: Any) -> bool:
    """True if a container of variables can hold ``value`` element by element."""
    return (
        is_sequence(old)
        and is_sequence(value)
        and len(value) == len(old)
        and all(writable(var) for var in old)
    )


def immutable(w: Walk, target: ast.Name, old: Any, part: str = "") -> QuadrantsCompilationError:
    """The error for assigning to ``target``, or to a ``part`` of it such as ``v[0]``."""
    name = target.id
    frame = w.frame
    if any(p.name == name for p in frame.decl.params) and name in frame.scopes[0]:
        what = "Kernel argument" if frame.parent is None else "Argument"
        return w.syntax_error(
            f'{what} "{part or name}" is immutable in the kernel. If you want to change its value, '
            "please create a new variable.", target, f"write `{name}_ = {name}` and use that",
        )  # fmt: skip
    if isinstance(old, Op) and old.code == C.LOOP_INDEX:
        text = f'Loop variable "{name}" cannot be assigned'
        return w.syntax_error(text, target, "copy it into a new variable first")
    return w.syntax_error(
        f"Variable '{name}' cannot be assigned: it is a compile-time value ({describe(old)})",
        target, "use a new name, or make it a variable where it is first assigned",
    )  # fmt: skip


@statement(ast.Assign)
def _assign(w: Walk, node: ast.Assign) -> None:
    source = node.value
    if w.is_static_call(source):
        value = w.expr(source)
        for target in node.targets:
            _assign_static(w, target, value, node)
        return
    value = w.expr(source)
    for target in node.targets:
        assign(w, target, value, node)


def _assign_static(w: Walk, target: ast.expr, value: Any, node: ast.Assign) -> None:
    """``a = qd.static(...)``: names become other names for compile-time values."""
    if isinstance(target, ast.Name):
        scope = w.frame.scopes[-1]
        old = w.local(target.id) if w.has_local(target.id) else _NOT_BOUND
        mine = target.id in scope and is_static(old) and not _is_param(w, target)
        if old is _NOT_BOUND or mine:
            scope[target.id] = value
            return
        if isinstance(old, Op) and old.type.is_ptr:
            assign(w, target, value, node)
            return
        raise immutable(w, target, old)
    if isinstance(target, ast.Tuple | ast.List):
        for one, part in zip(target.elts, _unpacked(w, target, value, node), strict=True):
            _assign_static(w, one, part, node)
        return
    assign(w, target, value, node)


def _is_param(w: Walk, target: ast.Name) -> bool:
    return any(p.name == target.id for p in w.frame.decl.params)


def bind_static(w: Walk, target: ast.expr, value: Any) -> None:
    """Bind the variables of a compile-time loop in the innermost scope."""
    if isinstance(target, ast.Name):
        w.frame.scopes[-1][target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values = spread(w, value, target)
        if len(values) != len(target.elts):
            raise w.syntax_error(
                "The number of targets is not equal to value length: "
                f"{len(target.elts)} targets, {len(values)} values", target,
            )  # fmt: skip
        for one, part in zip(target.elts, values, strict=True):
            bind_static(w, one, part)
    else:
        w.unsupported(target)


@statement(ast.AnnAssign)
def _annassign(w: Walk, node: ast.AnnAssign) -> None:
    target = node.target
    if not isinstance(target, ast.Name):
        raise w.syntax_error("Only names can be annotated in a kernel", target)
    annotation = w.expr(node.annotation)
    builtin = annotation is int or annotation is float or annotation is bool
    if not builtin and not isinstance(annotation, DataType | CompoundType):
        text = f"Invalid type annotation of a variable: {describe(annotation)}"
        raise w.type_error(text, node.annotation, "use a data type such as qd.f32")
    t = resolved(annotation, w.default_ip, w.default_fp)
    if node.value is None:
        text = f'Variable "{target.id}" is declared without a value'
        raise w.syntax_error(text, node, f"write `{target.id}: {t} = 0`")
    value = w.expr(node.value)
    if w.has_local(target.id):
        had = _type_of_local(w, w.local(target.id))
        if had is not None and not compatible(had, t):
            raise w.syntax_error(
                "Static assign cannot have type overloading", node,
                f'"{target.id}" has the type {had} already',
            )  # fmt: skip
        assign_name(w, target, value, node)
        return
    real = isinstance(value, Op) and value.type.is_real
    if real and isinstance(t, DataType) and t.is_int:
        w.warn(f"Assigning {value.type} to {t} may lose precision", node)
    if isinstance(value, MatrixValue) and isinstance(t, DataType):
        t = matrix_type(value.shape, t)
    value = converted(w, t, value, node.value, target.id)
    w.frame.scopes[-1][target.id] = local_copy(w, value, target.id, node, node)


def _type_of_local(w: Walk, value: Any) -> Any:
    return type_of(w, value) if writable(value) else None


# Control


def _is_docstring(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant)


@statement(ast.Expr)
def _expr(w: Walk, node: ast.Expr) -> None:
    if not _is_docstring(node):
        w.expr(node.value)


@statement(ast.Pass)
def _pass(w: Walk, node: ast.Pass) -> None:
    return None


@statement(ast.If)
def _if(w: Walk, node: ast.If) -> str | None:
    test = w.expr(node.test)
    if type(test) is not Op and w.is_static_call(node.test):
        chosen = node.body if w.python(node.test, bool, test) else node.orelse
        w.frame.scopes.append({})
        flow = w.body(chosen)
        w.end_scope("static `if`", node)
        return flow
    cond = w.integral(test, "if", node.test)
    branch = w.emit(node, C.IF, (cond,), None, void, 2)
    branch.loc = w.head(node, node.test)
    for region, nodes in zip(branch.regions, (node.body, node.orelse), strict=True):
        if nodes:
            saved = w.enter(region)
            w.body(nodes)
            w.leave(saved, "`if`", node)
    return None


_HINTS: Final = {
    "Try": "kernels have no exceptions; use `if` or `assert`",
    "Raise": "use `assert`",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
    "Global": "globals cannot be changed from a kernel",
    "Nonlocal": "outer variables cannot be changed from a kernel",
    "Delete": "names end with the block they were made in",
}


def _unsupported(w: Walk, node: ast.stmt) -> None:
    w.unsupported(node, _HINTS.get(type(node).__name__))


statement(ast.Try, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete)(
    _unsupported
)


@statement(ast.FunctionDef, ast.AsyncFunctionDef)
def _nested_def(w: Walk, node: ast.FunctionDef) -> None:
    raise w.syntax_error(
        "Function definition is not allowed in 'qd.kernel'.", node,
        "define a @qd.func outside and call it",
    )  # fmt: skip
