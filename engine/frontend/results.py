"""Return statements: values converted to the annotated result types."""

from __future__ import annotations

import ast
from typing import Any, cast

import numpy as np

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import DataType, MatrixType, StructType, void
from .arguments import cast_to
from .conversion import converted
from .func_builder import END, RETURN, FuncBuilder
from .lvalues import spread
from .matrices import as_matrix
from .registry import statement
from .values import (
    DynamicElement,
    MatrixValue,
    ShapeRef,
    StructValue,
    describe,
    is_sequence,
    tensor_name,
)  # fmt: skip

__all__: list[str] = []


@statement(ast.Return)
def _return(fb: FuncBuilder, node: ast.Return) -> str:
    context = fb.context
    if context.real is not None:
        return _real_return(fb, node)
    if fb.depth > context.depth:
        raise fb.syntax_error(
            "Return inside non-static if/for is not supported", node,
            "store the result in a variable and return it at the end",
        )  # fmt: skip
    value = None if node.value is None else fb.expr(node.value)
    if isinstance(value, ShapeRef):
        value = tuple(spread(fb, value, cast(ast.expr, node.value)))
    context.returned = True
    if context.parent is not None:
        context.result = _func_result(fb, node, value)
    else:
        _kernel_return(fb, node, value)
    return RETURN


def _real_return(fb: FuncBuilder, node: ast.Return) -> str:
    """Leave a real function, from anywhere in it."""
    context = fb.context
    value = None if node.value is None else fb.expr(node.value)
    if isinstance(value, ShapeRef):
        value = tuple(spread(fb, value, cast(ast.expr, node.value)))
    context.returned = True
    numbers: list[Op] = []
    if context.decl.returns:
        for one in _converted(fb, node, value):
            _scalars(fb, one, numbers, node)
    elif value is not None:
        raise fb.syntax_error(
            "A function with a return value must be annotated with a return type, e.g. "
            "def func() -> qd.f32", node, "add `-> qd.f32` or another type to the `def` line",
        )  # fmt: skip
    outputs = context.real.outputs
    for ptr, number in zip(outputs, numbers, strict=False):
        fb.store(ptr, number, node)
    fb.emit(node, C.RETURN, () if outputs else tuple(numbers), None, void)
    return END


def _func_result(fb: FuncBuilder, node: ast.Return, value: Any) -> Any:
    """The value of an inlined call: containers and arrays too; annotated results are converted."""
    decl = fb.context.decl
    if not decl.returns:
        return value
    types = decl.result_types(fb.config)
    at = node.value or node
    if len(types) == 1 and not _fits(fb, value, types[0], at):
        return _unlike_annotated(fb, node, value, types[0])
    values = _converted(fb, node, value)
    return tuple(values) if decl.returns_tuple and len(values) > 1 else values[0]


def _unlike_annotated(fb: FuncBuilder, node: ast.Return, value: Any, t: Any) -> Any:
    """The result of an inlined function whose annotation is of another shape: it is ignored.

    A type of numbers is that of the parts of a vector, or of the numbers in a tuple.
    """
    at = node.value or node
    if value is None or not isinstance(value, Op | int | float | MatrixValue | tuple):
        raise _wrong_result(fb, node, [value], (t,))
    got, want = _shown(fb, value), t.name if isinstance(t, DataType) else repr(t)
    fb.warn(
        f"{fb.context.decl.name} is annotated with {want} and returns {got}: the annotation is "
        "ignored. Correct it, or remove it.", node, SyntaxWarning,
    )  # fmt: skip
    if isinstance(t, DataType):
        if isinstance(value, MatrixValue):
            return cast_to(fb, value, t, node)
        if isinstance(value, tuple):
            parts = cast("tuple[Any, ...]", value)
            return tuple([converted(fb, t, v, at) if _fits(fb, v, t, at) else v for v in parts])
    return cast(Any, value)


def _kernel_return(fb: FuncBuilder, node: ast.Return, value: Any) -> None:
    if fb.func.autodiff == "reverse":  # its gradient returns nothing
        return
    if not fb.context.decl.returns:
        if value is not None:
            raise fb.syntax_error(
                "A kernel with a return value must be annotated with a return type, e.g. "
                "def func() -> qd.f32", node, "add `-> qd.f32` or another type to the `def` line",
            )  # fmt: skip
        fb.emit(node, C.RETURN, (), None, void)
        return
    numbers: list[Op] = []
    for one in _converted(fb, node, value):
        _scalars(fb, one, numbers, node)
    fb.emit(node, C.RETURN, tuple(numbers), None, void)


def _scalars(fb: FuncBuilder, value: Any, out: list[Op], node: ast.AST) -> None:
    """The numbers of a value, in the order of `types.flat_names`."""
    if isinstance(value, StructValue):
        for member in value.members.values():
            _scalars(fb, member, out, node)
    elif isinstance(value, MatrixValue):
        out += [fb.op(part, node) for part in fb.parts(value, node)]
    else:
        out.append(value)


def _converted(fb: FuncBuilder, node: ast.Return, value: Any) -> list[Any]:
    """The returned values, converted to the annotated types."""
    decl = fb.context.decl
    types = decl.result_types(fb.config)
    at = node.value or node
    values: list[Any] = [value]
    if is_sequence(value) and (decl.returns_tuple or not isinstance(types[0], MatrixType)):
        # `return 1` and `return (1,)` both fit tuple[...] of one type.
        values = list(value)
    if len(values) != len(types) or not all(
        _fits(fb, v, t, at) for v, t in zip(values, types, strict=True)
    ):
        raise _wrong_result(fb, node, values, types)
    # A number is first one of the default types, whatever the result is.
    values = [fb.op(v, at) if isinstance(v, int | float) else v for v in values]
    return [converted(fb, t, v, at) for v, t in zip(values, types, strict=True)]


def _fits(fb: FuncBuilder, value: Any, t: Any, at: ast.AST) -> bool:
    """True if ``value`` can be returned where ``t`` is annotated."""
    if isinstance(t, DataType):
        return isinstance(value, Op | DynamicElement | int | float | np.number | np.bool_)
    if isinstance(t, MatrixType):
        matrix = as_matrix(fb, value, at)
        return matrix is not None and matrix.shape == t.shape
    assert isinstance(t, StructType)
    members = value.members if isinstance(value, StructValue) else value
    if not isinstance(members, dict):
        return False
    found = cast("dict[str, Any]", members)
    return set(found) == set(t.members) and all(
        _fits(fb, found[key], member, at) for key, member in t.members.items()
    )


def _wrong_result(
    fb: FuncBuilder, node: ast.Return, values: list[Any], types: tuple[Any, ...]
) -> QuadrantsCompilationError:
    got = ", ".join(_shown(fb, v) for v in values)
    want = ", ".join(t.name if isinstance(t, DataType) else repr(t) for t in types)
    want = f"({want})" if len(types) > 1 else want
    many = f"({got})" if len(values) != 1 else got
    text = f"Return (type={many}) cannot be converted into required type {want}"
    if len(values) != len(types):
        count = f"{len(types)} value{'s' if len(types) > 1 else ''}"
        hint = f"return {count}, as the annotation says"
    else:
        hint = "change the value, or the annotation of the result"
    return fb.error(QuadrantsCompilationError, text, node, hint)


def _shown(fb: FuncBuilder, value: Any) -> str:
    if isinstance(value, MatrixValue):
        return tensor_name(fb, value)
    return describe(value) if isinstance(value, Op | StructValue) else repr(value)
