"""Calls: what is called decides. Python's builtins that a kernel may use are defined here.

A callable that has a registered meaning is handled by it; a data type casts; a ``@qd.func`` is
inlined; any other Python callable is called at compile time, with compile-time arguments only.
A plain Python function that gets values of run time is inlined like a ``@qd.func``, with a warning.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import DataType, u1
from .arguments import arguments, cast_to, dtype_argument, elements, only_positional
from .captured import known
from .inline import inline
from .objects import real
from .operators import BINARY, Binary, binary
from .places import bound, owner_of, spread
from .real_functions import real_call
from .records import BoundFunc
from .registry import CALLS, HANDLERS, INTRINSICS, expression, handler
from .signature import FuncDecl, KernelDecl, parse_func
from .values import (
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    ShapeRef,
    StructValue,
    describe,
    is_sequence,
    is_static,
)  # fmt: skip
from .walk import Walk

__all__ = ["plain_decl"]

INTRINSICS.update({
    abs: "abs", all: "all", any: "any", bool: "to_bool", enumerate: "sequence", float: "to_float",
    int: "to_int", len: "len", list: "sequence", max: "max", min: "min", pow: "pow",
    print: "print", range: "range", reversed: "sequence", round: "round", sum: "sum",
    tuple: "sequence", zip: "sequence",
})  # fmt: skip

_plain: WeakKeyDictionary[FunctionType, FuncDecl] = WeakKeyDictionary()


@expression(ast.Call)
def _call(w: Walk, node: ast.Call) -> Any:
    fn = w.callee(node.func)
    if fn is None:
        fn = w.expr(node.func)
    try:
        name = INTRINSICS.get(fn)
    except TypeError:
        name = None
    if name is not None:
        return HANDLERS[name](w, node, name, fn)
    visit = CALLS.get(fn.__class__)
    if visit is not None:
        return visit(w, node, fn)
    if isinstance(fn, DataType):
        return _convert(w, node, fn)
    decl = getattr(fn, "decl", None)
    if isinstance(decl, FuncDecl):
        owner = (fn.owner,) if isinstance(fn, BoundFunc) else _owner_of(w, node, fn)
        return (real_call if decl.real else inline)(w, node, decl, *owner)
    if isinstance(decl, KernelDecl):
        raise w.syntax_error(
            "Kernels cannot call other kernels. I.e., nested kernels are not allowed. "
            f"Make {decl.name} a @qd.func, or call it from Python.", node,
        )  # fmt: skip
    if isinstance(fn, Op | NdarrayRef | ShapeRef | MatrixValue | StructValue):
        what = "a run-time value" if isinstance(fn, Op) else describe(fn)
        raise w.type_error(f"{what} is not callable", node.func)
    return _python_call(w, node, fn)


def _owner_of(w: Walk, node: ast.Call, fn: Any) -> tuple[Any, ...]:
    """The object that a method of Python scope is bound to, if it is one."""
    if not isinstance(fn, MethodType):
        return ()
    if isinstance(node.func, ast.Attribute):
        owner = owner_of(w, node.func.value)
        if isinstance(owner, InstanceValue) and owner.instance is fn.__self__:
            return (owner,)
    return (fn.__self__,)


def _python_call(w: Walk, node: ast.Call, fn: Any) -> Any:
    """Call any other Python object, at compile time."""
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, list | dict | tuple):
        container = cast(Any, owner)
        if not is_static(container) or _is_local(w, container):
            return _container_method(w, node, fn, container)
    if getattr(fn, "__name__", "") in _OF_PYTHON_SCOPE and _is_ours(fn):
        text = f"AssertionError: {ast.unparse(node.func)} cannot be called in Quadrants-scope"
        raise w.error(QuadrantsCompilationError, text, node, "call it from Python")
    args = elements(w, node.args)
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        value = w.expr(keyword.value)
        if keyword.arg is None:
            kwargs.update(w.python(keyword.value, dict, value))
        else:
            kwargs[keyword.arg] = value
    if all(is_static(a) for a in args) and all(is_static(a) for a in kwargs.values()):
        kwargs = {key: real(value) for key, value in kwargs.items()}
        return known(w, w.call(node, fn, [real(a) for a in args], kwargs), node)
    name = getattr(fn, "__name__", type(fn).__name__)
    plain = fn.__func__ if isinstance(fn, MethodType) else fn
    if isinstance(plain, FunctionType):
        decl = plain_decl(w, plain, node)
        w.warn(
            f'Calling non-quadrants function "{name}" with run-time values: it is compiled as if '
            "it were a @qd.func. Decorate it with @qd.func.", node, SyntaxWarning,
        )  # fmt: skip
        return inline(w, node, decl, *_owner_of(w, node, fn))
    raise w.type_error(
        f'The Python function "{name}" cannot be called with run-time values', node,
        f"use qd.{name}" if _has_counterpart(name) else
        "write a @qd.func, or call it with compile-time values only",
    )  # fmt: skip


_OF_PYTHON_SCOPE: Final = frozenset((
    "field", "init", "matrix_field", "matrix_ndarray", "matrix_tensor", "ndarray", "reset",
    "tensor", "vector_field", "vector_ndarray", "vector_tensor",
))  # fmt: skip


def _is_ours(fn: Any) -> bool:
    return str(getattr(fn, "__module__", "")).startswith(__name__.removesuffix("frontend.calls"))


def plain_decl(w: Walk, fn: FunctionType, node: ast.AST) -> FuncDecl:
    """A plain Python function as one that is inlined."""
    decl = _plain.get(fn)
    if decl is None:
        decl = _plain[fn] = w.python(node, parse_func, fn, plain=True)
    return decl


def _has_counterpart(name: str) -> bool:
    """True if the language has a function of this name, such as ``sin`` for ``math.sin``."""
    return any(
        fn.__name__ == name and ".lang.functions" in fn.__module__
        for fn in INTRINSICS
        if isinstance(fn, FunctionType)
    )


def _is_local(w: Walk, container: Any) -> bool:
    return any(container is value for scope in w.frame.scopes for value in scope.values())


_READS: Final = ("items", "keys", "values", "get")
_STATIC_READS: Final = (*_READS, "copy", "count", "index")


def _container_method(w: Walk, node: ast.Call, fn: Any, owner: Any) -> Any:
    name = fn.__name__
    if name not in (_STATIC_READS if is_static(owner) else _READS):
        raise w.syntax_error(
            f"{type(owner).__name__}.{name}() cannot be used on a container of variables", node,
            "build the container with a comprehension",
        )  # fmt: skip
    args = [w.expr(a) for a in node.args]
    found = w.python(node, fn, *args)
    return w.loaded(list(found) if name in ("items", "keys", "values") else found, node)


def _convert(w: Walk, node: ast.Call, t: DataType) -> Any:
    """``qd.u8(x)``: a cast of a value of run time, a typed constant from a literal."""
    (value,) = arguments(w, node, t.name, ("value",))
    if isinstance(value, Op | MatrixValue):
        return cast_to(w, value, t, node)
    if w.static:
        return w.python(node, t, value)
    if isinstance(value, bool) or t is u1:
        return w.cast(w.op(value, node), t, node)
    if isinstance(value, float) and t.is_int:
        raise w.type_error(
            "Floating-point literals must be annotated with a floating-point type. For type "
            "casting, use `qd.cast`.", node, f"write qd.cast({value}, qd.{t})",
        )  # fmt: skip
    if isinstance(value, int) and t.is_real:
        raise w.type_error(
            "Integer literals must be annotated with a integer type. For type casting, use "
            "`qd.cast`.", node, f"write qd.{t}({value}.0)",
        )  # fmt: skip
    if isinstance(value, int):
        if not t.min <= value <= t.max:
            raise w.type_error(
                f"Integer literal {value} exceeded the range of specified dtype: {t}", node,
                f"qd.cast({value}, qd.{t}) wraps it",
            )  # fmt: skip
        return w.typed(value, t, node)
    if isinstance(value, float):
        return w.typed(value, t, node)
    return w.cast(w.op(value, node), t, node)


# Python's builtins


@handler("to_int", "to_float", "to_bool")
def _to_number(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    values = only_positional(w, node, fn.__name__)
    if all(is_static(value) for value in values):
        return w.python(node, fn, *values)
    if len(values) != 1:
        raise w.type_error(f"{fn.__name__}() takes one argument, got {len(values)}", node)
    return cast_to(w, values[0], dtype_argument(w, fn, node), node)


@handler("len")
def _len(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
        value = bound(w, node.args[0])
    else:
        (value,) = arguments(w, node, "len", ("value",))
    if isinstance(value, ShapeRef):
        return value.array.ndim
    if isinstance(value, MatrixValue):
        return value.shape[0]
    if isinstance(value, NdarrayRef | Op | StructValue):
        hint = f"use {value.name}.shape[0]" if isinstance(value, NdarrayRef) else None
        raise w.type_error(f"{describe(value)} has no len() in a kernel", node, hint)
    return w.python(node, len, value)


@handler("sequence")
def _sequence(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    """enumerate, zip, reversed, list, tuple: on sequences whose elements may be of run time."""
    values = elements(w, node.args)
    kwargs = {k.arg: w.expr(k.value) for k in node.keywords if k.arg}
    args: list[Any] = []
    for k, value in enumerate(values):
        at = node.args[min(k, len(node.args) - 1)]
        if isinstance(value, NdarrayRef | Op) and not (fn is enumerate and k > 0):
            text = f"'{describe(value)}' is not iterable at compile time"
            raise w.type_error(text, at, "loop over its indices")
        args.append(spread(w, value, at) if isinstance(value, ShapeRef | MatrixValue) else value)
    result = w.python(node, fn, *args, **kwargs)
    return result if is_sequence(result) else w.python(node, list, result)


@handler("range")
def _range(w: Walk, node: ast.Call, name: str, fn: Any) -> range:
    """``range`` where it is no loop's own: at compile time."""
    values = only_positional(w, node, "range")
    for value, at in zip(values, node.args, strict=False):
        if not is_static(value) or isinstance(value, MatrixValue | StructValue):
            what = f"a run-time value of type {value.type}" if isinstance(value, Op) else ""
            raise w.type_error(
                f"range: {what or describe(value)} cannot be interpreted as an integer",
                at, "use a plain `for`: only it accepts a bound that is known at run time",
            )  # fmt: skip
    return w.python(node, range, *values)


@handler("sum")
def _sum(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    values, start = arguments(w, node, "sum", ("iterable", "start"), start=0)
    parts = spread(w, values, node.args[0])
    total: Any = start
    for part in parts:
        total = (
            part
            if total == 0 and total is start
            else binary(w, node, BINARY[ast.Add], total, part, node, node)
        )
    return total


@handler("all", "any")
def _all_or_any(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    """The builtins, of the parts of a vector or matrix or of a sequence of conditions."""
    (given,) = arguments(w, node, name, ("iterable",))
    is_matrix = isinstance(given, MatrixValue)
    parts = w.parts(w.loaded(given, node), node) if is_matrix else spread(w, given, node.args[0])
    if all(is_static(part) for part in parts):
        return w.python(node, fn, parts)
    found: Op | None = None
    code = C.BIT_AND if name == "all" else C.BIT_OR
    for part in parts:
        value = w.truth(w.op(w.loaded(part, node), node), node)
        found = value if found is None else w.emit(node, code, (found, value), None, u1)
    return found


_EXTREMES: Final[dict[str, Binary]] = {
    "min": Binary("min", C.MIN, min),
    "max": Binary("max", C.MAX, max),
}


@handler("min", "max")
def _extreme(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    values = only_positional(w, node, name)
    if len(values) == 1 and isinstance(values[0], list | tuple | ShapeRef | MatrixValue):
        values = spread(w, values[0], node.args[0])
    if not values:
        raise w.type_error(f"{name}() needs at least one argument", node)
    row = _EXTREMES[name]
    result = values[0]
    for k, value in enumerate(values[1:], 1):
        at = node.args[min(k, len(node.args) - 1)]
        result = binary(w, node, row, result, value, node.args[0], at)
    return result


# qd.static and its relatives


@handler("static")
def _static(w: Walk, node: ast.Call, name: str, fn: Any) -> Any:
    """``qd.static(x, ...)``: the values, which must be known at compile time."""
    if node.keywords or not node.args:
        raise w.syntax_error("qd.static takes one or more arguments, without keywords", node)
    values = w.static_values(node.args)
    for value, at in zip(values, node.args, strict=True):
        if isinstance(value, Op):
            raise w.error(
                QuadrantsCompilationError,
                "ValueError: Input to qd.static must be compile-time constants or global pointers, "
                f"instead of a run-time value of type {value.type}.", at,
                "only literals, globals, template arguments and loop variables of static loops "
                "are known at compile time",
            )  # fmt: skip
    return values[0] if len(values) == 1 else tuple(values)


@handler("static_print")
def _static_print(w: Walk, node: ast.Call, name: str, fn: Any) -> None:
    """Print while the kernel is compiled, once."""
    values = w.static_values(node.args)
    kwargs = {k.arg: w.expr(k.value) for k in node.keywords if k.arg}
    shown = [_shown(v) for v in values]
    if not w.quiet:
        w.python(node, cast("Callable[..., None]", print), *shown, **kwargs)


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
def _static_assert(w: Walk, node: ast.Call, name: str, fn: Any) -> None:
    if not 1 <= len(node.args) <= 2 or node.keywords:
        raise w.syntax_error("qd.static_assert takes a condition and a message", node)
    values = w.static_values(node.args)
    condition = values[0]
    if isinstance(condition, Op):
        raise w.error(
            QuadrantsCompilationError,
            "ValueError: The condition of qd.static_assert must be known at compile time, "
            f"instead of a run-time value of type {condition.type}", node.args[0],
            "use `assert` for run-time values",
        )  # fmt: skip
    if not w.python(node, operator.truth, condition):
        text = f": {values[1]}" if len(values) > 1 else ""
        raise w.error(QuadrantsCompilationError, "AssertionError" + text, node)
