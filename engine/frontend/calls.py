"""Calls: what is called decides. Python's builtins that a kernel may use are defined here.

A callable that has a registered meaning is handled by it; a data type casts; a ``@qd.func`` is
inlined; any other Python callable is called at compile time, with compile-time arguments only.
A plain Python function that gets values of run time is inlined like a ``@qd.func``, with a warning.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, cast

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import DataType, MatrixType, StructType, u1
from ..types.buffer_view import BufferView
from .arguments import arguments, cast_to, dtype_argument, elements, keywords_of, only_positional
from .captured import known
from .func_builder import FuncBuilder
from .lvalues import bound, owner_of, spread
from .operators import BINARY, Binary, binary
from .registry import CALLS, INTRINSICS, expression, fill_from, handler, handler_of
from .signature import FuncDecl, KernelDecl
from .values import (
    BufferViewValue,
    InstanceValue,
    MatrixValue,
    Method,
    NdarrayRef,
    ShapeRef,
    StructValue,
    Text,
    describe,
    is_sequence,
    is_static,
)  # fmt: skip

__all__: list[str] = []

INTRINSICS[BufferView] = "BufferView"

_LATER: Final = {MatrixType: "matrix_makers", Method: "structs", StructType: "structs"}
"""Classes that are called -> the module that is imported for the first call of one."""


@expression(ast.Call)
def _call(fb: FuncBuilder, node: ast.Call) -> Any:
    fn = fb.callee(node.func)
    if fn is None:
        fn = fb.expr(node.func)
    try:
        name = INTRINSICS.get(fn)
    except TypeError:
        name = None
    if name is not None:
        return handler_of(name)(fb, node, name, fn)
    kind: Any = fn.__class__
    if kind in _LATER and kind not in CALLS:
        fill_from(_LATER[kind])
    visit = CALLS.get(kind)
    if visit is not None:
        return visit(fb, node, fn)
    if isinstance(fn, DataType):
        return _convert(fb, node, fn)
    decl = getattr(fn, "decl", None)
    if isinstance(decl, FuncDecl):
        return _of_func(fb, node, fn, decl)
    if isinstance(decl, KernelDecl):
        raise fb.syntax_error(
            "Kernels cannot call other kernels. I.e., nested kernels are not allowed. "
            f"Make {decl.name!r} a @qd.func, or call it from Python.", node,
        )  # fmt: skip
    fn = known(fb, fn, node.func)
    if isinstance(fn, MatrixValue) and node.args and not node.keywords:
        index = node.args[0] if len(node.args) == 1 else ast.Tuple(node.args, ast.Load())
        element = ast.Subscript(node.func, ast.copy_location(index, node.args[0]), ast.Load())
        return fb.expr(ast.copy_location(element, node))
    if isinstance(fn, Op | NdarrayRef | ShapeRef | MatrixValue | StructValue):
        what = "a run-time value" if isinstance(fn, Op) else describe(fn)
        raise fb.type_error(f"{what} is not callable", node.func)
    return _python_call(fb, node, fn)


def _of_func(fb: FuncBuilder, node: ast.Call, fn: Any, decl: FuncDecl) -> Any:
    """Call a ``@qd.func``."""
    from .records import BoundFunc

    owner = (fn.owner,) if isinstance(fn, BoundFunc) else _owner_of(fb, node, fn)
    if decl.real:
        from .real_functions import real_call

        return real_call(fb, node, decl, *owner)
    from .inline import inline

    return inline(fb, node, decl, *owner)


def _owner_of(fb: FuncBuilder, node: ast.Call, fn: Any) -> tuple[Any, ...]:
    """The object that a method of Python scope is bound to, if it is one."""
    if not isinstance(fn, MethodType):
        return ()
    if isinstance(node.func, ast.Attribute):
        owner = owner_of(fb, node.func.value)
        if isinstance(owner, InstanceValue) and owner.instance is fn.__self__:
            return (owner,)
    return (fn.__self__,)


def _python_call(fb: FuncBuilder, node: ast.Call, fn: Any) -> Any:
    """Call any other Python object, at compile time."""
    from .objects import real

    owner = getattr(fn, "__self__", None)
    if isinstance(owner, list | dict | tuple):
        from .containers import container_method, is_local

        container = cast(Any, owner)
        if not is_static(container) or is_local(fb, node):
            return container_method(fb, node, fn, container)
    if isinstance(fn, partial):
        from . import traced

        return traced.called_partial(fb, node, cast("partial[Any]", fn))
    if getattr(fn, "__name__", "") in _OF_PYTHON_SCOPE and _is_ours(fn):
        text = f"AssertionError: {ast.unparse(node.func)} cannot be called in Quadrants-scope"
        raise fb.error(QuadrantsCompilationError, text, node, "call it from Python")
    args = elements(fb, node.args)
    kwargs = keywords_of(fb, node)
    if all(is_static(a) for a in args) and all(is_static(a) for a in kwargs.values()):
        for value in (*_owner_of(fb, node, fn), *args, *kwargs.values()):
            if isinstance(value, InstanceValue):
                fb.captures.instance(value.arg, value.path, value.instance)
        kwargs = {key: real(value) for key, value in kwargs.items()}
        return known(fb, fb.call(node, fn, [real(a) for a in args], kwargs), node)
    if fn in _OF_TEXT or isinstance(owner, str):
        text = _text(fb, node, fn, args, kwargs)
        if text is not None:
            return text
    name = getattr(fn, "__name__", type(fn).__name__)
    plain = fn.__func__ if isinstance(fn, MethodType) else fn
    if isinstance(plain, FunctionType):
        from .inline import inline
        from .plain_functions import plain_decl

        decl = plain_decl(fb, plain, node)
        fb.warn(
            f'Calling non-quadrants function "{name}" with run-time values: it is compiled as if '
            "it were a @qd.func. Decorate it with @qd.func.", node, SyntaxWarning,
        )  # fmt: skip
        return inline(fb, node, decl, *_owner_of(fb, node, fn))
    from . import traced

    return traced.called_by_python(fb, node, fn, args, kwargs)


_OF_TEXT: Final = (ascii, format, repr, str)


def _text(fb: FuncBuilder, node: ast.Call, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A text made of values of run time: ``str(x)``, ``format(x, spec)``, and methods of str."""
    from .printing import joined, pieces_of

    owner = getattr(fn, "__self__", None)
    if isinstance(owner, str):
        from . import texts

        if fn.__name__ == "format":
            return texts.formatted(fb, owner, args, kwargs, node)
        if fn.__name__ == "join" and len(args) == 1 and not kwargs:
            parts = spread(fb, args[0], node.args[0])
            return joined(fb, [x for part in parts for x in (owner, part)][1:], node)
    elif len(args) == 1 + (fn is format and len(args) > 1) and not kwargs:
        spec = args[1] if len(args) > 1 else ""
        return Text(pieces_of(fb, args[0], node, spec))
    return None


_OF_PYTHON_SCOPE: Final = frozenset((
    "field", "init", "matrix_field", "matrix_ndarray", "matrix_tensor", "ndarray", "reset",
    "tensor", "vector_field", "vector_ndarray", "vector_tensor",
))  # fmt: skip


def _is_ours(fn: Any) -> bool:
    return str(getattr(fn, "__module__", "")).startswith(__name__.removesuffix("frontend.calls"))


def _convert(fb: FuncBuilder, node: ast.Call, t: DataType) -> Any:
    """``qd.u8(x)``: a cast of a value of run time, a typed constant from a literal."""
    (value,) = arguments(fb, node, t.name, ("value",))
    if isinstance(value, Op | MatrixValue):
        return cast_to(fb, value, t, node)
    if fb.static:
        return fb.python(node, t, value)
    if isinstance(value, bool) or t is u1:
        return fb.cast(fb.op(value, node), t, node)
    if isinstance(value, float) and t.is_int:
        raise fb.type_error(
            "Floating-point literals must be annotated with a floating-point type. For type "
            "casting, use `qd.cast`.", node, f"write qd.cast({value}, qd.{t})",
        )  # fmt: skip
    if isinstance(value, int) and t.is_real:
        raise fb.type_error(
            "Integer literals must be annotated with a integer type. For type casting, use "
            "`qd.cast`.", node, f"write qd.{t}({value}.0)",
        )  # fmt: skip
    if isinstance(value, int):
        if not t.min <= value <= t.max:
            raise fb.type_error(
                f"Integer literal {value} exceeded the range of specified dtype: {t}", node,
                f"qd.cast({value}, qd.{t}) wraps it",
            )  # fmt: skip
        return fb.typed(value, t, node)
    if isinstance(value, float):
        return fb.typed(value, t, node)
    return fb.cast(fb.op(value, node), t, node)


# Python's builtins


@handler("to_int", "to_float", "to_bool")
def _to_number(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    values = only_positional(fb, node, fn.__name__)
    if all(is_static(value) for value in values):
        return fb.python(node, fn, *values)
    if len(values) != 1:
        raise fb.type_error(f"{fn.__name__}() takes one argument, got {len(values)}", node)
    return cast_to(fb, values[0], dtype_argument(fb, fn, node), node)


@handler("len")
def _len(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        value = bound(fb, node.args[0])
    else:
        (value,) = arguments(fb, node, "len", ("value",))
    if isinstance(value, ShapeRef):
        return value.array.ndim
    if isinstance(value, MatrixValue):
        return value.shape[0]
    if isinstance(value, BufferViewValue | NdarrayRef | Op | StructValue):
        named = isinstance(value, BufferViewValue | NdarrayRef)
        hint = f"use {value.name}.shape[0]" if named else None
        raise fb.type_error(f"{describe(value)} has no len() in a kernel", node, hint)
    return fb.python(node, len, value)


@handler("sequence")
def _sequence(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """enumerate, zip, reversed, list, tuple: on sequences whose elements may be of run time."""
    values = elements(fb, node.args)
    kwargs = {k.arg: fb.expr(k.value) for k in node.keywords if k.arg}
    args: list[Any] = []
    for k, value in enumerate(values):
        at = node.args[min(k, len(node.args) - 1)]
        if isinstance(value, NdarrayRef | Op) and not (fn is enumerate and k > 0):
            text = f"'{describe(value)}' is not iterable at compile time"
            raise fb.type_error(text, at, "loop over its indices")
        args.append(spread(fb, value, at) if isinstance(value, ShapeRef | MatrixValue) else value)
    result = fb.python(node, fn, *args, **kwargs)
    return result if is_sequence(result) else fb.python(node, list, result)


@handler("range")
def _range(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> range:
    """``range`` where it is no loop's own: at compile time."""
    values = only_positional(fb, node, "range")
    for value, at in zip(values, node.args, strict=False):
        if not is_static(value) or isinstance(value, MatrixValue | StructValue):
            what = f"a run-time value of type {value.type}" if isinstance(value, Op) else ""
            raise fb.type_error(
                f"range: {what or describe(value)} cannot be interpreted as an integer",
                at, "use a plain `for`: only it accepts a bound that is known at run time",
            )  # fmt: skip
    return fb.python(node, range, *values)


@handler("sum")
def _sum(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    values, start = arguments(fb, node, "sum", ("iterable", "start"), start=0)
    parts = spread(fb, values, node.args[0])
    total: Any = start
    for part in parts:
        total = (
            part
            if total == 0 and total is start
            else binary(fb, node, BINARY[ast.Add], total, part, node, node)
        )
    return total


@handler("all", "any")
def _all_or_any(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """The builtins, of the parts of a vector or matrix or of a sequence of conditions."""
    (given,) = arguments(fb, node, name, ("iterable",))
    is_matrix = isinstance(given, MatrixValue)
    parts = fb.parts(fb.loaded(given, node), node) if is_matrix else spread(fb, given, node.args[0])
    if all(is_static(part) for part in parts):
        return fb.python(node, fn, parts)
    found: Op | None = None
    code = C.BIT_AND if name == "all" else C.BIT_OR
    for part in parts:
        value = fb.truth(fb.op(fb.loaded(part, node), node), node)
        found = value if found is None else fb.emit(node, code, (found, value), None, u1)
    return found


_EXTREMES: Final[dict[str, Binary]] = {
    "min": Binary("min", C.MIN, min),
    "max": Binary("max", C.MAX, max),
}


@handler("min", "max")
def _extreme(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    values = only_positional(fb, node, name)
    if len(values) == 1 and isinstance(values[0], list | tuple | ShapeRef | MatrixValue):
        values = spread(fb, values[0], node.args[0])
    if not values:
        raise fb.type_error(f"{name}() needs at least one argument", node)
    row = _EXTREMES[name]
    result = values[0]
    for k, value in enumerate(values[1:], 1):
        at = node.args[min(k, len(node.args) - 1)]
        result = binary(fb, node, row, result, value, node.args[0], at)
    return result


# qd.static and its relatives


@handler("static")
def _static(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """``qd.static(x, ...)``: the values, which must be known at compile time."""
    if node.keywords or not node.args:
        raise fb.syntax_error("qd.static takes one or more arguments, without keywords", node)
    values = fb.static_values(node.args)
    for value, at in zip(values, node.args, strict=True):
        if isinstance(value, Op):
            raise fb.error(
                QuadrantsCompilationError,
                "ValueError: Input to qd.static must be compile-time constants or global pointers, "
                f"instead of a run-time value of type {value.type}.", at,
                "only literals, globals, template arguments and loop variables of static loops "
                "are known at compile time",
            )  # fmt: skip
    return values[0] if len(values) == 1 else tuple(values)


@handler("static_print")
def _static_print(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    """Print while the kernel is compiled, once."""
    values = fb.static_values(node.args)
    kwargs = {k.arg: fb.expr(k.value) for k in node.keywords if k.arg}
    shown = [_shown(v) for v in values]
    fb.calls.forget()
    if not fb.quiet:
        fb.python(node, cast("Callable[..., None]", print), *shown, **kwargs)


def _shown(value: Any) -> Any:
    if isinstance(value, Op):
        return f"<{value.type}>"
    if isinstance(value, NdarrayRef):
        return f"<ndarray {value.name}: {value.dtype}, {value.ndim}d>"
    if isinstance(value, ShapeRef):
        return f"<shape of {value.array.name}>"
    if isinstance(value, list | tuple):
        return type(cast("list[Any]", value))(_shown(v) for v in cast("list[Any]", value))
    return value


@handler("static_assert")
def _static_assert(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> None:
    if not 1 <= len(node.args) <= 2 or node.keywords:
        raise fb.syntax_error("qd.static_assert takes a condition and a message", node)
    values = fb.static_values(node.args)
    condition = values[0]
    if isinstance(condition, Op):
        raise fb.error(
            QuadrantsCompilationError,
            "ValueError: The condition of qd.static_assert must be known at compile time, "
            f"instead of a run-time value of type {condition.type}", node.args[0],
            "use `assert` for run-time values",
        )  # fmt: skip
    if not fb.python(node, operator.truth, condition):
        text = f": {values[1]}" if len(values) > 1 else ""
        raise fb.error(QuadrantsCompilationError, "AssertionError" + text, node)
