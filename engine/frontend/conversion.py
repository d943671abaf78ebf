"""Conversion of values to a required type: numbers, vectors, matrices and structs."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import QuadrantsCompilationError
from ..types import DataType, MatrixType, StructType, matrix_type, resolved
from .func_builder import FuncBuilder
from .matrices import as_matrix, uniform
from .values import MatrixValue, StructValue, describe, dtype_in, tensor_name

__all__ = ["converted", "free_struct", "made_of_type", "made_struct", "type_of"]


def converted(fb: FuncBuilder, t: Any, value: Any, node: ast.AST, name: str = "") -> Any:
    """``value`` as a value of type ``t``; ``name``: its receiver, for messages.

    QuadrantsTypeError if it cannot be one.
    """
    t = resolved(t, fb.default_ip, fb.default_fp)
    if isinstance(t, StructType):
        if isinstance(value, StructValue):
            value = value.members
        if not isinstance(value, Mapping):
            text = f"Only dict or Struct can be assigned to a Struct, not {describe(value)}"
            raise fb.type_error(text, node)
        return made_struct(fb, t, (), dict(cast("Mapping[str, Any]", value)), node)
    if isinstance(t, MatrixType):
        matrix = as_matrix(fb, value, node)
        if matrix is None:
            return made_of_type(fb, t, [value], node)
        shape, dtype = t.shape, cast(DataType, t.dtype)
        if matrix.shape != shape:
            want = f"[Tensor ({', '.join(map(str, shape))}) {dtype}]"
            text = f"cannot assign '{tensor_name(fb, matrix)}' to '{want}'"
            raise fb.type_error(text, node, f"{name} is {t}" if name else None)
        return MatrixValue(shape, uniform(fb, fb.parts(matrix, node), node, dtype))
    if isinstance(value, int | float):
        return fb.number(value, t, node)
    return fb.cast(fb.op(value, node), t, node)


def zero_of(fb: FuncBuilder, t: Any, node: ast.AST) -> Any:
    """The value of type ``t`` that is 0 throughout."""
    if isinstance(t, StructType):
        return StructValue(t, {name: zero_of(fb, m, node) for name, m in t.members.items()})
    return converted(fb, t, 0, node)


def made_struct(
    fb: FuncBuilder, t: StructType, args: Sequence[Any], named: Mapping[str, Any], node: ast.AST
) -> StructValue:
    """A struct of type ``t`` from values in order, or by name; the others are 0."""
    names = list(t.members)
    if len(args) == 1 and not named and isinstance(args[0], StructValue | dict):
        first = args[0].members if isinstance(args[0], StructValue) else cast(Any, args[0])
        if set(first) <= set(names):
            named, args = first, ()
    if len(args) > len(names):
        text = f"{t.name} has {len(names)} members, got {len(args)} values"
        raise fb.type_error(text, node, f"its members are {', '.join(names)}")
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in t.members:
            text = f"{t.name} has no member '{name}'"
            raise fb.type_error(text, node, f"its members are {', '.join(names)}")
        if name in given:
            raise fb.type_error(f"{t.name}: the member '{name}' is given twice", node)
        given[name] = value
    members = {
        name: converted(fb, m, given[name], node, f"{t.name}.{name}")
        if name in given
        else zero_of(fb, m, node)
        for name, m in t.members.items()
    }
    return StructValue(t, members)


def free_struct(
    fb: FuncBuilder, given: Mapping[str, Any], methods: Mapping[str, Any] | None, node: ast.AST
) -> StructValue:
    """A struct of these members; their types are those of the values."""
    members = {name: _member(fb, value, node) for name, value in given.items()}
    types = {name: type_of(fb, value) for name, value in members.items()}
    return StructValue(StructType(types, methods), members)


def _member(fb: FuncBuilder, value: Any, node: ast.AST) -> Any:
    if isinstance(value, dict):
        return free_struct(fb, cast("dict[str, Any]", value), None, node)
    if isinstance(value, StructValue):
        return value
    matrix = as_matrix(fb, value, node)
    if matrix is not None:
        return MatrixValue(matrix.shape, uniform(fb, fb.parts(matrix, node), node))
    return fb.op(value, node)


def made_of_type(fb: FuncBuilder, t: Any, values: Sequence[Any], node: ast.AST) -> MatrixValue:
    """A value of type ``t`` from numbers, vectors and lists; one number is for every part."""
    t = resolved(t, fb.default_ip, fb.default_fp)
    shape, dtype = t.shape, t.dtype
    parts: list[Any] = []
    for value in values:
        _flatten(fb, value, parts, node)
    if len(values) == 1 and len(parts) == 1 and not isinstance(values[0], list | tuple):
        return MatrixValue(shape, uniform(fb, parts, node, dtype) * t.size)
    if len(parts) != t.size:
        raise fb.error(
            QuadrantsCompilationError, f"{t} needs {t.size} elements, got {len(parts)}", node,
            "one number fills every element",
        )  # fmt: skip
    return MatrixValue(shape, uniform(fb, parts, node, dtype))


def _flatten(fb: FuncBuilder, value: Any, out: list[Any], node: ast.AST) -> None:
    if isinstance(value, MatrixValue):
        out.extend(fb.parts(value, node))
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            _flatten(fb, item, out, node)
    else:
        if not isinstance(value, int | float):
            value = fb.op(value, node)
        out.append(value)


def type_of(fb: FuncBuilder, value: Any) -> Any:
    """The type of a number, vector, matrix or struct."""
    if isinstance(value, StructValue):
        return value.type
    if isinstance(value, MatrixValue):
        return matrix_type(value.shape, dtype_in(fb, value))
    return dtype_in(fb, value)
