"""Statements other than loops."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..errors import QuadrantsCompilationError
from ..imports import Later
from ..ir import Op
from ..ir import codes as C
from ..types import (
    ArrayHandle,
    CompoundType,
    DataType,
    FieldHandle,
    NodeHandle,
    StructFieldHandle,
    compatible,
    matrix_type,
    resolved,
    void,
)
from .func_builder import FuncBuilder
from .func_context import MISSING
from .lvalues import lvalue, spread, writable
from .registry import statement
from .signature import KernelDecl
from .values import (
    NUMBERS,
    SEQUENCES,
    ArrayValue,
    BufferViewValue,
    DynamicElement,
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    ShapeRef,
    StructValue,
    Text,
    describe,
    is_sequence,
    is_static,
    tensor_name,
)

__all__ = [
    "assign", "assign_name", "bind_static", "immutable", "local_copy", "not_writable", "store",
]  # fmt: skip

if TYPE_CHECKING:
    from . import matrices
else:
    matrices = Later(__package__, "matrices")

_PLAIN: Final = (DataType, type(None))
_ALIASED: Final = (
    FieldHandle, InstanceValue, ModuleType, NodeHandle, RecordValue, StructFieldHandle, Text, set,
    frozenset,
)  # fmt: skip
"""Objects that a local name is another name for: they have no copy at run time."""
_VALUES: Final = (ArrayHandle, NdarrayRef, Op, int, float, complex, str, bytes,
                  np.generic, np.ndarray)  # fmt: skip


_POINTERS: Final = (Op, DynamicElement)
_MEMORY: Final = (*_POINTERS, MatrixValue, StructValue)
_SCALARS: Final = (Op, *NUMBERS)
_WITH_VALUE: Final = (ast.Assign, ast.NamedExpr)
_TUPLES: Final = (ast.Tuple, ast.List)
_PARTS: Final = (ast.Subscript, ast.Attribute)


def _is_alias(value: Any) -> bool:
    return isinstance(value, _ALIASED) or _is_object(value)


def _is_object(value: Any) -> bool:
    """True for an object of Python with attributes, such as one with the settings of a program."""
    return hasattr(value, "__dict__") and not isinstance(value, _VALUES)


def local_copy(
    fb: FuncBuilder, value: Any, name: str, node: ast.AST, source: ast.AST | None = None
) -> Any:
    """``value`` as a local of its own: variables for numbers, the same container of variables.

    source: the node of the value, if not ``node``.
    """
    at = source or node
    if value.__class__ is Op:  # most are
        return fb.variable(value, name, node)
    if isinstance(value, ShapeRef):
        value = tuple(spread(fb, value, cast(ast.expr, at)))
    kind: Any = value.__class__
    if kind is MatrixValue:
        if value.size > _SELECTS:
            from .indexing import picked_at_run_time

            if picked_at_run_time(fb, name):
                return fb.local_array(value, name, node)
        parts = fb.parts(value, node)
        names = _part_names(name, value.shape)
        return MatrixValue(
            value.shape,
            [local_copy(fb, v, n, node, at) for v, n in zip(parts, names, strict=True)],
        )
    if kind is StructValue:
        members = {k: local_copy(fb, v, f"{name}.{k}", node, at) for k, v in value.members.items()}
        return StructValue(value.type, members)
    if kind in SEQUENCES:
        return kind([local_copy(fb, v, f"{name}[{k}]", node, at) for k, v in enumerate(value)])
    if kind is dict:
        return {k: local_copy(fb, v, f"{name}[{k!r}]", node, at) for k, v in value.items()}
    if kind is ArrayValue:
        return _named(value, name)
    if kind is BufferViewValue:
        from .view_ranges import local_view

        return local_view(fb, at, value, name)
    if isinstance(getattr(value, "decl", None), KernelDecl):
        raise fb.not_scalar(value, at)
    if isinstance(value, _PLAIN) or callable(value):
        return value
    if _is_alias(value):
        return value
    return fb.variable(fb.op(value, at), name, node)


def _named(array: ArrayValue, name: str) -> ArrayValue:
    """The array itself, which keeps the first name that the kernel assigns to it."""
    attr = array.base.attr
    if attr.name:
        return array
    array.base.attr = attr._replace(name=name)
    return array.replaced(name=name)


_SELECTS: Final = 4
"""A local of more parts that is indexed at run time is in memory: selects would be slow, and LLVM
makes registers of it again where it unrolls the loops around."""


def _part_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """The user's names for the parts of the vector or matrix ``name``."""
    if len(shape) == 1:
        return [f"{name}[{i}]" for i in range(shape[0])]
    return [f"{name}[{i}, {j}]" for i in range(shape[0]) for j in range(shape[1])]


# Assignment


def store(fb: FuncBuilder, target: Any, value: Any, node: ast.AST, source: ast.AST) -> None:
    """Write ``value`` to a pointer, or part by part to a matrix or struct of pointers."""
    if isinstance(target, _POINTERS):
        if isinstance(value, MatrixValue):
            raise _misfit(fb, target, value, node)
        fb.store(target, fb.op(value, source), node)
        return
    if isinstance(target, MatrixValue):
        matrix = matrices.as_matrix(fb, value, source)
        if matrix is not None and matrix.shape == target.shape:
            values = list(fb.parts(matrix, node))
        elif isinstance(value, _SCALARS):
            values = [fb.op(value, source)] * target.size
        else:
            raise _misfit(fb, target, value if matrix is None else matrix, node)
        for ptr, part in zip(fb.parts(target, node), values, strict=True):
            fb.store(ptr, fb.op(part, source), node)
        return
    assert isinstance(target, StructValue), target
    if not isinstance(value, StructValue) or not compatible(value.type, target.type):
        from .conversion import converted

        value = converted(fb, target.type, value, source)
    for key, member in target.members.items():
        store(fb, member, value.members[key], node, source)


def _misfit(fb: FuncBuilder, target: Any, value: Any, node: ast.AST) -> QuadrantsCompilationError:
    names = [tensor_name(fb, v) for v in (value, target)]
    text = f"cannot assign '{names[0]}' to '{names[1]}'"
    place = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
    fixed = isinstance(place, ast.Name)
    return fb.type_error(
        text, node,
        "the first assignment fixes the type of a variable" if fixed else
        "both sides need the same shape",
    )  # fmt: skip


def _source(node: ast.AST) -> ast.AST:
    """The node of the value of an assignment."""
    return node.value if isinstance(node, _WITH_VALUE) else node


def assign(fb: FuncBuilder, target: ast.expr, value: Any, node: ast.AST) -> None:
    """Assign a value to ``target``; a new name becomes a local variable."""
    if isinstance(target, ast.Name):
        assign_name(fb, target, value, node)
    elif isinstance(target, _TUPLES):
        for one, part in zip(target.elts, _unpacked(fb, target, value, node), strict=True):
            assign(fb, one, part, node)
    elif isinstance(target, _PARTS):
        if isinstance(target, ast.Subscript) and _new_entry(fb, target, value, node):
            return
        ptr = lvalue(fb, target)
        if ptr is None:
            raise not_writable(fb, target)
        store(fb, ptr, value, node, _source(node))
    else:
        raise fb.syntax_error(f"Cannot assign to `{ast.unparse(target)}` in a kernel", target)


def _new_entry(fb: FuncBuilder, target: ast.Subscript, value: Any, node: ast.AST) -> bool:
    """``d[key] = value`` for a new key of a dict of the function's own; False for others."""
    if not isinstance(target.value, ast.Name):
        return False
    owner = fb.local(target.value.id)
    if type(owner) is not dict:
        return False
    key = fb.expr(target.slice)
    entries = cast("dict[Any, Any]", owner)
    if not is_static(key):
        raise fb.type_error("The key of an assigned entry must be static", target.slice)
    if fb.python(target, entries.__contains__, key):
        return False
    from .changes import check_change

    check_change(fb, target.value, target, "A new entry of a dict")
    name = ast.unparse(target)
    entries[key] = local_copy(fb, value, name, node, _source(node))
    return True


def not_writable(fb: FuncBuilder, target: ast.expr) -> QuadrantsCompilationError:
    root = target
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if isinstance(root, ast.Name) and isinstance(
        fb.local(root.id), RecordValue | MatrixValue | StructValue
    ):
        return immutable(fb, root, fb.local(root.id), ast.unparse(target))
    if isinstance(target, ast.Attribute):
        return fb.syntax_error(f"Cannot assign to `{ast.unparse(target)}` in a kernel", target)
    return fb.syntax_error(
        f"`{ast.unparse(target)}` cannot be assigned: it belongs to a compile-time value", target,
        "pass arrays that the kernel writes to as arguments",
    )  # fmt: skip


def _unpacked(
    fb: FuncBuilder, target: ast.Tuple | ast.List, value: Any, node: ast.AST
) -> list[Any]:
    for one in target.elts:
        if isinstance(one, ast.Starred):
            fb.unsupported(one, "name every part of the value")
    at = node.value if isinstance(node, ast.Assign) else cast(ast.expr, node)
    values = spread(fb, value, at)
    if len(values) != len(target.elts):
        raise fb.syntax_error(
            "The number of targets is not equal to value length: "
            f"{len(target.elts)} targets, {len(values)} values", target,
        )  # fmt: skip
    return values


def assign_name(fb: FuncBuilder, target: ast.Name, value: Any, node: ast.AST) -> None:
    name = target.id
    old = fb.local(name)
    if old is MISSING:
        at = _source(node)
        if isinstance(value, NdarrayRef):
            raise fb.not_scalar(value, at)
        fb.context.scopes[-1][name] = local_copy(fb, value, name, node, at)
        return
    if fb.context.parent is None and isinstance(old, StructValue) and _is_param(fb, target):
        raise immutable(fb, target, old)
    if isinstance(old, _MEMORY) and writable(old):
        store(fb, old, value, node, _source(node))
        return
    if isinstance(old, BufferViewValue) and old.offset.type.is_ptr:
        from .view_ranges import assign_view

        assign_view(fb, node, old, value)
        return
    if _same_shape(old, value):
        for var, part in zip(cast("list[Any]", old), value, strict=True):
            store(fb, var, part, node, node)
        return
    from .changes import scope_of

    scope = scope_of(fb.context, name)
    if scope is not None and not _is_param(fb, target) and _is_alias(old) and _is_alias(value):
        scope[name] = value
        return
    raise immutable(fb, target, old)


def _same_shape(old: Any, value: Any) -> bool:
    """True if a container of variables can hold ``value`` element by element."""
    return (
        is_sequence(old)
        and is_sequence(value)
        and len(value) == len(old)
        and all(writable(var) for var in old)
    )


def immutable(
    fb: FuncBuilder, target: ast.Name, old: Any, part: str = ""
) -> QuadrantsCompilationError:
    """The error for assigning to ``target``, or to a ``part`` of it such as ``v[0]``."""
    name = target.id
    context = fb.context
    if any(p.name == name for p in context.decl.params) and name in context.scopes[0]:
        what = "Kernel argument" if context.parent is None else "Argument"
        return fb.syntax_error(
            f'{what} "{part or name}" is immutable in the kernel. If you want to change its value, '
            "please create a new variable.", target, f"write `{name}_ = {name}` and use that",
        )  # fmt: skip
    if isinstance(old, Op) and old.code == C.LOOP_INDEX:
        text = f'Loop variable "{name}" cannot be assigned'
        return fb.syntax_error(text, target, "copy it into a new variable first")
    return fb.syntax_error(
        f"Variable '{name}' cannot be assigned: it is a compile-time value ({describe(old)})",
        target, "use a new name, or make it a variable where it is first assigned",
    )  # fmt: skip


@statement(ast.Assign)
def _assign(fb: FuncBuilder, node: ast.Assign) -> None:
    source = node.value
    if isinstance(source, ast.Call) and fb.is_static_call(source):
        value = fb.expr(source)
        for target in node.targets:
            _assign_static(fb, target, value, node)
        return
    value = fb.expr(source)
    for target in node.targets:
        assign(fb, target, value, node)


def _assign_static(fb: FuncBuilder, target: ast.expr, value: Any, node: ast.Assign) -> None:
    """``a = qd.static(...)``: names become other names for compile-time values."""
    if isinstance(target, ast.Name):
        scope = fb.context.scopes[-1]
        old = fb.local(target.id)
        mine = target.id in scope and is_static(old) and not _is_param(fb, target)
        if old is MISSING or mine:
            scope[target.id] = value
            return
        if isinstance(old, Op) and old.type.is_ptr:
            assign(fb, target, value, node)
            return
        raise immutable(fb, target, old)
    if isinstance(target, ast.Tuple | ast.List):
        for one, part in zip(target.elts, _unpacked(fb, target, value, node), strict=True):
            _assign_static(fb, one, part, node)
        return
    assign(fb, target, value, node)


def _is_param(fb: FuncBuilder, target: ast.Name) -> bool:
    return any(p.name == target.id for p in fb.context.decl.params)


def bind_static(fb: FuncBuilder, target: ast.expr, value: Any) -> None:
    """Bind the variables of a compile-time loop in the innermost scope."""
    if isinstance(target, ast.Name):
        fb.context.scopes[-1][target.id] = value
    elif isinstance(target, ast.Tuple | ast.List):
        values = spread(fb, value, target)
        if len(values) != len(target.elts):
            raise fb.syntax_error(
                "The number of targets is not equal to value length: "
                f"{len(target.elts)} targets, {len(values)} values", target,
            )  # fmt: skip
        for one, part in zip(target.elts, values, strict=True):
            bind_static(fb, one, part)
    else:
        fb.unsupported(target)


@statement(ast.AnnAssign)
def _annassign(fb: FuncBuilder, node: ast.AnnAssign) -> None:
    target = node.target
    if not isinstance(target, ast.Name):
        raise fb.syntax_error("Only names can be annotated in a kernel", target)
    annotation = fb.expr(node.annotation)
    builtin = annotation is int or annotation is float or annotation is bool
    if not builtin and not isinstance(annotation, DataType | CompoundType):
        text = f"Invalid type annotation of a variable: {describe(annotation)}"
        raise fb.type_error(text, node.annotation, "use a data type such as qd.f32")
    t = resolved(annotation, fb.default_ip, fb.default_fp)
    if node.value is None:
        text = f'Variable "{target.id}" is declared without a value'
        raise fb.syntax_error(text, node, f"write `{target.id}: {t} = 0`")
    value = fb.expr(node.value)
    if fb.has_local(target.id):
        had = _type_of_local(fb, fb.local(target.id))
        if had is not None and not compatible(had, t):
            raise fb.syntax_error(
                "Static assign cannot have type overloading", node,
                f'"{target.id}" has the type {had} already',
            )  # fmt: skip
        assign_name(fb, target, value, node)
        return
    real = isinstance(value, Op) and value.type.is_real
    if real and isinstance(t, DataType) and t.is_int:
        fb.warn(f"Assigning {value.type} to {t} may lose precision", node)
    if isinstance(value, MatrixValue) and isinstance(t, DataType):
        t = matrix_type(value.shape, t)
    from .conversion import converted

    value = converted(fb, t, value, node.value, target.id)
    fb.context.scopes[-1][target.id] = local_copy(fb, value, target.id, node, node)


def _type_of_local(fb: FuncBuilder, value: Any) -> Any:
    if not writable(value):
        return None
    from .conversion import type_of

    return type_of(fb, value)


# Control


def _is_docstring(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant)


@statement(ast.Expr)
def _expr(fb: FuncBuilder, node: ast.Expr) -> None:
    if not _is_docstring(node):
        fb.expr(node.value)


@statement(ast.Pass)
def _pass(fb: FuncBuilder, node: ast.Pass) -> None:
    return None


@statement(ast.If)
def _if(fb: FuncBuilder, node: ast.If) -> str | None:
    test = fb.expr(node.test)
    if type(test) is not Op and fb.is_static_call(node.test):
        chosen = node.body if fb.python(node.test, bool, test) else node.orelse
        fb.context.scopes.append({})
        flow = fb.body(chosen)
        fb.end_scope("static `if`", node)
        return flow
    cond = fb.integral(test, "if", node.test)
    branch = fb.emit(node, C.IF, (cond,), None, void, 2)
    branch.loc = fb.head(node, node.test)
    for region, nodes in zip(branch.regions, (node.body, node.orelse), strict=True):
        if nodes:
            saved = fb.enter(region)
            fb.body(nodes)
            fb.leave(saved, "`if`", node)
    return None


_HINTS: Final = {
    "Try": "kernels have no exceptions; use `if` or `assert`",
    "Raise": "use `assert`",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
    "Global": "globals cannot be changed from a kernel",
    "Nonlocal": "outer variables cannot be changed from a kernel",
    "Delete": "names end with the block they were made in",
    "Match": "use `if` and `elif`",
    "ClassDef": "define the class outside",
}


def _unsupported(fb: FuncBuilder, node: ast.stmt) -> None:
    fb.unsupported(node, _HINTS.get(type(node).__name__))


statement(
    ast.Try, ast.Raise, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete, ast.Match,
    ast.ClassDef,
)(_unsupported)  # fmt: skip


@statement(ast.FunctionDef, ast.AsyncFunctionDef)
def _nested_def(fb: FuncBuilder, node: ast.FunctionDef) -> None:
    raise fb.syntax_error(
        "Function definition is not allowed in 'qd.kernel'.", node,
        "define a @qd.func outside and call it",
    )  # fmt: skip
