"""Inlining of ``@qd.func`` calls.

Arguments without annotation go by value: the function gets its own copy (made only if it may
assign to it). Annotated numbers, vectors and structs are converted. Template parameters go by
reference: a local variable of the caller, or a part of it, may be assigned through them, and so
does the struct whose method is called. Arrays, fields, dataclasses and objects pass through.

A function may call itself as long as its template arguments change from call to call; the same
function with the same template arguments inside itself can never end and is an error.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Any, Final

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..signals import of_signal_handler
from ..types import DataType, FieldHandle, StructFieldHandle, is_data_oriented
from .conversion import converted
from .declared import element_text
from .frame import Frame
from .matrices import as_matrix
from .places import bound, lvalue, spread
from .signature import NO_DEFAULT, FuncDecl, ParamDecl
from .stmts import local_copy
from .values import (
    SEQUENCES,
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    StructValue,
    describe,
)
from .walk import Walk

__all__ = ["NO_OWNER", "arguments_of", "array_argument", "inline", "number_argument"]

_MAX_DEPTH: Final = 64
_Arg = tuple[Any, ast.AST]


NO_OWNER: Final = object()


def inline(w: Walk, node: ast.Call, decl: FuncDecl, owner: Any = NO_OWNER) -> Any:
    """The value of a call, with the function's body written into the current block.

    owner: the object whose method is called; the first parameter refers to it.
    """
    if decl.requires_top_level and w.depth:
        raise w.syntax_error(
            f'Function "{decl.name}" requires the top level of a kernel', node,
            "call it outside of every run-time `if`, `for` and `while`",
        )  # fmt: skip
    args = arguments_of(w, node, decl, owner)
    loc = w.loc(node)
    caller = w.frame
    frame = Frame(decl, loc, caller, w.depth)
    if decl not in w.funcs:
        w.funcs[decl] = None
        w.captures.function(w, decl, node)
    scope = frame.scopes[0]
    for param in decl.params:
        value, at = args[param.name]
        passed = value if value is owner else _passed(w, decl, param, value, at)
        scope[param.name] = passed
        name = at.value if value is owner and isinstance(at, ast.Attribute) else at
        if isinstance(name, ast.Name | ast.Attribute | ast.Subscript):
            frame.arguments[param.name] = caller.called(name)
        if param.kind == "template" or value is owner:
            frame.templates[param.name] = value
    _check_recursion(w, node, frame)
    frame.scopes.append({})
    w.frame = frame
    w.body(decl.src.tree.body)
    if decl.returns and not frame.returned:
        raise w.syntax_error(
            "Function has a return type but does not have a return statement", decl.src.tree
        )
    w.frame = caller
    return frame.result


def arguments_of(w: Walk, node: ast.Call, decl: FuncDecl, owner: Any = NO_OWNER) -> dict[str, _Arg]:
    """Each parameter's argument and the node that passes it."""
    params = decl.params
    out: dict[str, _Arg] = {}
    code = decl.fn.__code__
    positional = params[: code.co_argcount]
    given: list[tuple[Any, ast.AST, bool]] = []
    if owner is not NO_OWNER:
        given.append((owner, node.func, True))
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            given.extend((v, arg, True) for v in spread(w, w.expr(arg.value), arg.value))
        else:
            given.append((arg, arg, False))
    if len(given) > len(positional):
        names = ", ".join(_signature(p) for p in params)
        text = f"Too many arguments. Expected ({names}), got {len(given)} arguments."
        raise w.syntax_error(text, node)
    for param, (arg, at, ready) in zip(positional, given, strict=False):
        out[param.name] = (arg if ready else _value(w, param, arg)), at
    by_name = {p.name: p for p in params}
    for keyword in node.keywords:
        key = keyword.arg
        if key is None:
            text = "Passing **keywords to a function is not supported in a kernel"
            raise w.syntax_error(text, keyword.value)
        if key not in by_name:
            raise w.syntax_error(f"Unexpected argument '{key}'.", keyword.value)
        if key in out:
            raise w.syntax_error(f"Multiple values for argument '{key}'.", keyword.value)
        out[key] = _value(w, by_name[key], keyword.value), keyword.value
    for param in params:
        if param.name not in out:
            if param.default is NO_DEFAULT:
                text = f"Missing argument '{param.name}'."
                raise w.syntax_error(text, node, f"{decl.name} needs {_signature(param)}")
            w.captures.default(w, decl, param, node)
            out[param.name] = param.default, node
    return out


def _signature(param: ParamDecl) -> str:
    return f"{param.name} : {param.annotation_text}" if param.annotation_text else param.name


def _value(w: Walk, param: ParamDecl, node: ast.expr) -> Any:
    if param.kind == "ref":
        return lvalue(w, node)
    if param.kind != "template":
        return w.expr(node)
    if isinstance(node, ast.Name | ast.Subscript):
        reference = lvalue(w, node)
        if reference is not None:
            return reference
    return bound(w, node)


def _passed(w: Walk, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """The value that the parameter is bound to in the function."""
    kind = param.kind
    if kind == "template" or (value is None and param.optional):
        return value
    if kind == "ndarray":
        return array_argument(w, param, value, at)
    if kind == "record":
        return _record(w, decl, param, value, at)
    if kind == "tensor":
        if not isinstance(value, NdarrayRef | FieldHandle | StructFieldHandle | None):
            raise _not_fitting(w, decl, param, value, at)
        return value
    if kind in ("scalar", "matrix", "struct"):
        value = number_argument(w, decl, param, value, at)
    elif isinstance(value, str | NdarrayRef):
        return value
    copied = isinstance(value, Op | int | float | tuple | MatrixValue | StructValue)
    if isinstance(value, list | dict) or (copied and decl.assigns(param.name)):
        return local_copy(w, value, param.name, at)
    if isinstance(value, Op):
        return value
    return _constants(w, value, at)


def number_argument(w: Walk, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """An argument converted to the annotated type of numbers, vectors or structs."""
    if param.kind == "scalar":
        if isinstance(value, NdarrayRef):
            raise _not_fitting(w, decl, param, value, at)
        return w.cast(w.op(value, at), param.scalar_type(w.config), at)
    t = param.value_type(w.config)
    if param.kind == "matrix":
        matrix = as_matrix(w, value, at)
        if matrix is None or matrix.shape != t.shape:
            raise _not_fitting(w, decl, param, value, at)
    elif not isinstance(value, StructValue) or set(value.members) != set(t.members):
        raise _not_fitting(w, decl, param, value, at)
    return converted(w, t, value, at, param.name)


def _not_fitting(
    w: Walk, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST
) -> QuadrantsCompilationError:
    got = describe(value)
    text = f"Argument '{param.name}' of {decl.name} must be a {param.annotation_text}, got {got}"
    return w.type_error(text, at) if param.kind == "scalar" else w.syntax_error(text, at)


def _record(w: Walk, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """A dataclass goes on as it is; its members are parameters of the kernel."""
    cls: Any = value.feature.cls if isinstance(value, RecordValue) else value.__class__
    if isinstance(value, InstanceValue):
        cls = value.instance.__class__
    if not issubclass(cls, param.type):
        raise _not_fitting(w, decl, param, value, at)
    return value


_WHOLE: Final = frozenset((MatrixValue, StructValue, RecordValue, InstanceValue))


def _constants(w: Walk, value: Any, at: ast.AST) -> Any:
    """Numbers as values of run time, alone or in tuples; other things as they are."""
    kind: Any = value.__class__
    if kind in SEQUENCES:
        return kind([_constants(w, v, at) for v in value])
    if value is None or kind in _WHOLE or isinstance(value, FieldHandle | StructFieldHandle):
        return value
    if is_data_oriented(value) or dataclasses.is_dataclass(value):
        return value
    if callable(value) or isinstance(value, DataType | str):
        return value
    return w.op(value, at)


def array_argument(w: Walk, param: ParamDecl, value: Any, at: ast.AST) -> NdarrayRef:
    if not isinstance(value, NdarrayRef):
        text = f"Argument '{param.name}' must be an ndarray, got {describe(value)}"
        raise w.syntax_error(text, at)
    dtype, shape = param.element_type(w.config), param.element_shape
    other = shape is not None and shape != value.element_shape
    if other or (dtype is not None and dtype is not value.dtype):
        text = (
            f"Expect element type {element_text(dtype, shape)} for argument {param.name}, but get "
            f"{element_text(value.dtype, value.element_shape)}"
        )
        raise w.type_error(text, at)
    if param.ndim is not None and param.ndim != value.ndim:
        text = f"Argument '{param.name}' has required ndim={param.ndim}, but {value.ndim}d ndarray"
        raise w.type_error(text + " is provided", at)
    return value


def _check_recursion(w: Walk, node: ast.Call, frame: Frame) -> None:
    chain: list[str] = [frame.name]
    outer: Frame | None = frame.parent
    depth = 0
    while outer is not None:
        chain.append(outer.name)
        depth += 1
        same = outer.decl is frame.decl and _same(outer.templates, frame.templates)
        if same or depth > _MAX_DEPTH:
            if same:
                text = "Recursion in inlined functions: " + " -> ".join(reversed(chain))
            else:
                text = f"Functions are inlined more than {_MAX_DEPTH} calls deep"
            raise w.error(
                QuadrantsCompilationError, text, node,
                "functions are inlined, so a call of itself never ends; use a loop, or a template "
                "argument that changes and a qd.static condition that ends it",
            )  # fmt: skip
        outer = outer.parent


def _same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """True if two instances have the same template arguments; values of run time never differ."""
    for name, value in a.items():
        other = b.get(name)
        if isinstance(value, Op) and isinstance(other, Op):
            continue
        if value is other:
            continue
        try:
            if value != other:
                return False
        except Exception as error:
            if of_signal_handler(error):
                raise
            return False
    return True
