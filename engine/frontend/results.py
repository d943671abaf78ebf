"""Return statements: values converted to the annotated result types."""

from __future__ import annotations

import ast
from typing import Any, cast

import numpy as np

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import DataType, MatrixType, StructType, void
from .conversion import converted
from .matrices import as_matrix
from .places import spread
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
from .walk import END, RETURN, Walk

__all__: list[str] = []


@statement(ast.Return)
def _return(w: Walk, node: ast.Return) -> str:
    frame = w.frame
    if frame.real is not None:
        return _real_return(w, node)
    if w.depth > frame.depth:
        raise w.syntax_error(
            "Return inside non-static if/for is not supported", node,
            "store the result in a variable and return it at the end",
        )  # fmt: skip
    value = None if node.value is None else w.expr(node.value)
    if isinstance(value, ShapeRef):
        value = tuple(spread(w, value, cast(ast.expr, node.value)))
    frame.returned = True
    if frame.parent is not None:
        frame.result = _func_result(w, node, value)
    else:
        _kernel_return(w, node, value)
    return RETURN


def _real_return(w: Walk, node: ast.Return) -> str:
    """Leave a real function, from anywhere in it."""
    frame = w.frame
    value = None if node.value is None else w.expr(node.value)
    if isinstance(value, ShapeRef):
        value = tuple(spread(w, value, cast(ast.expr, node.value)))
    frame.returned = True
    numbers: list[Op] = []
    if frame.decl.returns:
        for one in _converted(w, node, value):
            _scalars(w, one, numbers, node)
    elif value is not None:
        raise w.syntax_error(
            "A function with a return value must be annotated with a return type, e.g. "
            "def func() -> qd.f32", node, "add `-> qd.f32` or another type to the `def` line",
        )  # fmt: skip
    outputs = frame.real.outputs
    for ptr, number in zip(outputs, numbers, strict=False):
        w.store(ptr, number, node)
    w.emit(node, C.RETURN, () if outputs else tuple(numbers), None, void)
    return END


def _func_result(w: Walk, node: ast.Return, value: Any) -> Any:
    """The value of an inlined call: containers and arrays too; annotated results are converted."""
    decl = w.frame.decl
    if not decl.returns:
        return value
    values = _converted(w, node, value)
    return tuple(values) if decl.returns_tuple and len(values) > 1 else values[0]


def _kernel_return(w: Walk, node: ast.Return, value: Any) -> None:
    if w.func.autodiff == "reverse":  # its gradient returns nothing
        return
    if not w.frame.decl.returns:
        if value is not None:
            raise w.syntax_error(
                "A kernel with a return value must be annotated with a return type, e.g. "
                "def func() -> qd.f32", node, "add `-> qd.f32` or another type to the `def` line",
            )  # fmt: skip
        w.emit(node, C.RETURN, (), None, void)
        return
    numbers: list[Op] = []
    for one in _converted(w, node, value):
        _scalars(w, one, numbers, node)
    w.emit(node, C.RETURN, tuple(numbers), None, void)


def _scalars(w: Walk, value: Any, out: list[Op], node: ast.AST) -> None:
    """The numbers of a value, in the order of `types.flat_names`."""
    if isinstance(value, StructValue):
        for member in value.members.values():
            _scalars(w, member, out, node)
    elif isinstance(value, MatrixValue):
        out += [w.op(part, node) for part in w.parts(value, node)]
    else:
        out.append(value)


def _converted(w: Walk, node: ast.Return, value: Any) -> list[Any]:
    """The returned values, converted to the annotated types."""
    decl = w.frame.decl
    types = decl.result_types(w.config)
    at = node.value or node
    values: list[Any] = [value]
    if is_sequence(value) and (decl.returns_tuple or not isinstance(types[0], MatrixType)):
        # `return 1` and `return (1,)` both fit tuple[...] of one type.
        values = list(value)
    if len(values) != len(types) or not all(
        _fits(w, v, t, at) for v, t in zip(values, types, strict=True)
    ):
        raise _wrong_result(w, node, values, types)
    # A number is first one of the default types, whatever the result is.
    values = [w.op(v, at) if isinstance(v, int | float) else v for v in values]
    return [converted(w, t, v, at) for v, t in zip(values, types, strict=True)]


def _fits(w: Walk, value: Any, t: Any, at: ast.AST) -> bool:
    """True if ``value`` can be returned where ``t`` is annotated."""
    if isinstance(t, DataType):
        return isinstance(value, Op | DynamicElement | int | float | np.number | np.bool_)
    if isinstance(t, MatrixType):
        matrix = as_matrix(w, value, at)
        return matrix is not None and matrix.shape == t.shape
    assert isinstance(t, StructType)
    members = value.members if isinstance(value, StructValue) else value
    if not isinstance(members, dict):
        return False
    found = cast("dict[str, Any]", members)
    return set(found) == set(t.members) and all(
        _fits(w, found[key], member, at) for key, member in t.members.items()
    )


def _wrong_result(
    w: Walk, node: ast.Return, values: list[Any], types: tuple[Any, ...]
) -> QuadrantsCompilationError:
    got = ", ".join(_shown(w, v) for v in values)
    want = ", ".join(t.name if isinstance(t, DataType) else repr(t) for t in types)
    want = f"({want})" if len(types) > 1 else want
    many = f"({got})" if len(values) != 1 else got
    text = f"Return (type={many}) cannot be converted into required type {want}"
    if len(values) != len(types):
        count = f"{len(types)} value{'s' if len(types) > 1 else ''}"
        hint = f"return {count}, as the annotation says"
    else:
        hint = "change the value, or the annotation of the result"
    return w.error(QuadrantsCompilationError, text, node, hint)


def _shown(w: Walk, value: Any) -> str:
    if isinstance(value, MatrixValue):
        return tensor_name(w, value)
    return describe(value) if isinstance(value, Op | StructValue) else repr(value)
