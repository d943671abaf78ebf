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
from ..frozen import Frozen
from ..ir import Op
from ..signals import of_signal_handler
from ..types import (
    BufferViewHandle,
    DataType,
    FieldHandle,
    StructFieldHandle,
    is_data_oriented,
)
from . import copies
from .conversion import converted
from .declared import element_text
from .func_builder import FuncBuilder
from .func_context import FuncContext, Made
from .lvalues import bound, lvalue, spread
from .matrices import as_matrix
from .signature import NO_DEFAULT, FuncDecl, ParamDecl
from .stmts import local_copy
from .values import (
    SEQUENCES,
    BufferViewValue,
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    StructValue,
    Text,
    describe,
)

__all__ = ["NO_OWNER", "arguments_of", "array_argument", "inline", "number_argument"]

_MAX_DEPTH: Final = 64
_REFERENCES: Final = (ast.Name, ast.Subscript)
_PLACES: Final = (*_REFERENCES, ast.Attribute)
_SHARED: Final = (str, NdarrayRef, Text)
_MUTABLE: Final = (list, dict)
_COPIED: Final = (Op, int, float, tuple, MatrixValue, StructValue)
"""Classes of values that a function gets a copy of if it assigns to the parameter."""
_Arg = tuple[Any, ast.AST]


NO_OWNER: Final = object()


def inline(fb: FuncBuilder, node: ast.Call, decl: FuncDecl, owner: Any = NO_OWNER) -> Any:
    """The value of a call, with the function's body written into the current block.

    owner: the object whose method is called; the first parameter refers to it.
    """
    if decl.requires_top_level and fb.depth:
        raise fb.syntax_error(
            f'Function "{decl.name}" requires the top level of a kernel', node,
            "call it outside of every run-time `if`, `for` and `while`",
        )  # fmt: skip
    args = arguments_of(fb, node, decl, owner)
    loc = fb.loc(node)
    caller = fb.context
    context = FuncContext(decl, loc, caller, fb.depth)
    if decl not in fb.funcs:
        fb.funcs[decl] = None
        fb.captures.function(fb, decl, node)
    scope = context.scopes[0]
    for param in decl.params:
        value, at = args[param.name]
        passed = value if value is owner else _passed(fb, decl, param, value, at)
        scope[param.name] = passed
        name = at.value if value is owner and isinstance(at, ast.Attribute) else at
        if isinstance(name, _PLACES):
            context.arguments[param.name] = name
        if param.kind == "template" or value is owner:
            context.templates[param.name] = value
    _check_recursion(fb, node, context)
    fb.calls.made.append(Made(loc, dict(scope), decl))
    kind = copies.kind_of(fb, context)
    walk = None if kind is None else copies.like(fb.calls, kind, context)
    if kind is not None and walk is not None:
        return copies.copy(fb, context, walk, kind)
    begun = None if kind is None else copies.begin(fb, kind)
    context.scopes.append({})
    fb.context = context
    fb.body(decl.src.tree.body)
    if decl.returns and not context.returned:
        raise fb.syntax_error(
            "Function has a return type but does not have a return statement", decl.src.tree
        )
    fb.context = caller
    if begun is not None:
        copies.keep(fb, begun, context.result)
    return context.result


def arguments_of(
    fb: FuncBuilder, node: ast.Call, decl: FuncDecl, owner: Any = NO_OWNER
) -> dict[str, _Arg]:
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
            given.extend((v, arg, True) for v in spread(fb, fb.expr(arg.value), arg.value))
        else:
            given.append((arg, arg, False))
    if len(given) > len(positional):
        names = ", ".join(_signature(p) for p in params)
        text = f"Too many arguments. Expected ({names}), got {len(given)} arguments."
        raise fb.syntax_error(text, node)
    for param, (arg, at, ready) in zip(positional, given, strict=False):
        out[param.name] = (arg if ready else _value(fb, param, arg)), at
    by_name = {p.name: p for p in params}
    for keyword in node.keywords:
        key = keyword.arg
        if key is None:
            text = "Passing **keywords to a function is not supported in a kernel"
            raise fb.syntax_error(text, keyword.value)
        if key not in by_name:
            raise fb.syntax_error(f"Unexpected argument '{key}'.", keyword.value)
        if key in out:
            raise fb.syntax_error(f"Multiple values for argument '{key}'.", keyword.value)
        out[key] = _value(fb, by_name[key], keyword.value), keyword.value
    for param in params:
        if param.name not in out:
            if param.default is NO_DEFAULT:
                text = f"Missing argument '{param.name}'."
                raise fb.syntax_error(text, node, f"{decl.name} needs {_signature(param)}")
            fb.captures.default(fb, decl, param, node)
            out[param.name] = param.default, node
    return out


def _signature(param: ParamDecl) -> str:
    return f"{param.name} : {param.annotation_text}" if param.annotation_text else param.name


def _value(fb: FuncBuilder, param: ParamDecl, node: ast.expr) -> Any:
    if param.kind == "ref":
        return lvalue(fb, node)
    if param.kind != "template":
        return fb.expr(node)
    if isinstance(node, _REFERENCES):
        reference = lvalue(fb, node)
        if reference is not None:
            return reference
    return bound(fb, node)


def _passed(fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """The value that the parameter is bound to in the function."""
    kind = param.kind
    if kind == "template" or (value is None and param.optional):
        return value
    if kind == "ndarray":
        return array_argument(fb, param, value, at)
    if kind == "record":
        return _record(fb, decl, param, value, at)
    if kind == "tensor":
        if not isinstance(value, NdarrayRef | FieldHandle | StructFieldHandle | None):
            raise _not_fitting(fb, decl, param, value, at)
        return value
    if kind in ("scalar", "matrix", "struct"):
        value = number_argument(fb, decl, param, value, at)
    elif isinstance(value, _SHARED):
        return value
    copied = isinstance(value, _COPIED)
    if isinstance(value, _MUTABLE) or (copied and decl.assigns(param.name)):
        return local_copy(fb, value, param.name, at)
    if isinstance(value, Op):
        return value
    return _constants(fb, value, at)


def number_argument(
    fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST
) -> Any:
    """An argument converted to the annotated type of numbers, vectors or structs."""
    if param.kind == "scalar":
        if isinstance(value, NdarrayRef):
            raise _not_fitting(fb, decl, param, value, at)
        return fb.cast(fb.op(value, at), param.scalar_type(fb.config), at)
    t = param.value_type(fb.config)
    if param.kind == "matrix":
        matrix = as_matrix(fb, value, at)
        if matrix is None or matrix.shape != t.shape:
            raise _not_fitting(fb, decl, param, value, at)
    elif not isinstance(value, StructValue) or set(value.members) != set(t.members):
        raise _not_fitting(fb, decl, param, value, at)
    return converted(fb, t, value, at, param.name)


def _not_fitting(
    fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST
) -> QuadrantsCompilationError:
    got = describe(value)
    text = f"Argument '{param.name}' of {decl.name} must be a {param.annotation_text}, got {got}"
    return fb.type_error(text, at) if param.kind == "scalar" else fb.syntax_error(text, at)


def _record(fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """A dataclass goes on as it is; its members are parameters of the kernel."""
    if issubclass(param.type, BufferViewHandle):
        if not isinstance(value, BufferViewValue):
            raise _not_fitting(fb, decl, param, value, at)
        array_argument(fb, param, value.array, at)
        return value
    cls: Any = value.spec_key.cls if isinstance(value, RecordValue) else value.__class__
    if isinstance(value, InstanceValue):
        cls = value.instance.__class__
    if not issubclass(cls, param.type):
        raise _not_fitting(fb, decl, param, value, at)
    return value


_WHOLE: Final = frozenset((BufferViewValue, MatrixValue, StructValue, RecordValue, InstanceValue))


def _constants(fb: FuncBuilder, value: Any, at: ast.AST) -> Any:
    """Numbers as values of run time, alone or in tuples; other things as they are."""
    kind: Any = value.__class__
    if kind in SEQUENCES:
        return kind([_constants(fb, v, at) for v in value])
    if value is None or kind in _WHOLE or isinstance(value, FieldHandle | StructFieldHandle):
        return value
    if isinstance(value, Frozen) or is_data_oriented(value) or dataclasses.is_dataclass(value):
        return value
    if callable(value) or isinstance(value, DataType | str):
        return value
    return fb.op(value, at)


def array_argument(fb: FuncBuilder, param: ParamDecl, value: Any, at: ast.AST) -> NdarrayRef:
    if not isinstance(value, NdarrayRef):
        text = f"Argument '{param.name}' must be an ndarray, got {describe(value)}"
        raise fb.syntax_error(text, at)
    dtype, shape = param.element_type(fb.config), param.element_shape
    other = shape is not None and shape != value.element_shape
    if other or (dtype is not None and dtype is not value.dtype):
        text = (
            f"Expect element type {element_text(dtype, shape)} for argument {param.name}, but get "
            f"{element_text(value.dtype, value.element_shape)}"
        )
        raise fb.type_error(text, at)
    if param.ndim is not None and param.ndim != value.ndim:
        text = f"Argument '{param.name}' has required ndim={param.ndim}, but {value.ndim}d ndarray"
        raise fb.type_error(text + " is provided", at)
    return value


def _check_recursion(fb: FuncBuilder, node: ast.Call, context: FuncContext) -> None:
    chain: list[str] = [context.name]
    outer: FuncContext | None = context.parent
    depth = 0
    while outer is not None:
        chain.append(outer.name)
        depth += 1
        same = outer.decl is context.decl and _same(outer.templates, context.templates)
        if same or depth > _MAX_DEPTH:
            if same:
                text = "Recursion in inlined functions: " + " -> ".join(reversed(chain))
            else:
                text = f"Functions are inlined more than {_MAX_DEPTH} calls deep"
            raise fb.error(
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
