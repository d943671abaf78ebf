"""Attributes and subscripts: parts of values, and elements of arrays and fields.

`bound` is like `FuncBuilder.expr`, but values in memory come as pointers: an element of an array is
a pointer, a vector in an array a `MatrixValue` that knows its `ElementLocation`, a struct in a
field a `StructValue` of these. `lvalue` is the target of an assignment.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..errors import (
    QuadrantsCompilationError,
    QuadrantsIndexError,
    QuadrantsSyntaxError,
    QuadrantsUnsupportedError,
)
from ..imports import Later
from ..ir import Op
from ..ir import codes as C
from ..signals import of_signal_handler
from ..types import ArrayHandle, DataType, FieldHandle, StructFieldHandle, i32
from ..types.later import NotYetError
from .captured import known
from .func_builder import FuncBuilder
from .plain import is_settled
from .registry import expression
from .values import (
    CONTAINERS,
    ArrayValue,
    BufferViewValue,
    DynamicElement,
    ElementLocation,
    InstanceValue,
    MatrixValue,
    Method,
    NdarrayRef,
    RecordValue,
    ShapeRef,
    StructValue,
    describe,
    is_static,
)  # fmt: skip

__all__ = [
    "AskedFor", "array_of", "bound", "element_at", "elements", "field_element", "index_ops",
    "lvalue", "owner_of", "spread", "writable",
]  # fmt: skip


if TYPE_CHECKING:
    from . import matrices, records
else:
    matrices, records = Later(__package__, "matrices"), Later(__package__, "records")


def spread(fb: FuncBuilder, value: Any, node: ast.expr) -> list[Any]:
    """The elements of a value that is a sequence at compile time."""
    if isinstance(value, ShapeRef):
        return [_extent(fb, value, axis, node) for axis in range(value.array.ndim)]
    if isinstance(value, MatrixValue):
        return matrices.rows(fb, value, node)
    if isinstance(value, Op | NdarrayRef | StructValue | int | float) or value is None:
        text = f"Cannot unpack type: {describe(value)}"
        raise fb.syntax_error(text, node, "a tuple or another compile-time sequence is needed")
    return list(fb.python(node, list, value))


def elements(fb: FuncBuilder, nodes: Iterable[ast.expr]) -> list[Any]:
    """The values of a list of expressions, with ``*values`` spread."""
    out: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            value = fb.expr(node.value)
            out.extend(spread(fb, value, node.value))
        else:
            out.append(fb.expr(node))
    return out


def bound(fb: FuncBuilder, node: ast.expr) -> Any:
    """Like `FuncBuilder.expr`, but local variables in names and constant elements are not read."""
    if isinstance(node, ast.Name):
        return known(fb, fb.lookup(node), node)
    if isinstance(node, ast.Attribute):
        return _attribute_of(fb, node, owner_of(fb, node.value))
    if isinstance(node, ast.Subscript):
        base = bound(fb, node.value)
        if isinstance(base, CONTAINERS):
            return known(fb, _item(fb, node, base), node)
        return _subscript_of(fb, node, base)
    return fb.expr(node)


def owner_of(fb: FuncBuilder, node: ast.expr) -> Any:
    """Like `bound`, where only an attribute is taken: the object itself is no capture then."""
    if isinstance(node, ast.Name):
        return known(fb, fb.lookup(node, False), node)
    if isinstance(node, ast.Attribute):
        return _attribute_of(fb, node, owner_of(fb, node.value), False)
    return bound(fb, node)


def _item(fb: FuncBuilder, node: ast.Subscript, base: Any) -> Any:
    """An element of a container known at compile time."""
    index = fb.expr(node.slice)
    if isinstance(base, dict):
        entries = cast("dict[Any, Any]", base)
        if isinstance(index, Op) or not is_static(list(entries)):
            from .picked import picked

            return picked(fb, node, entries, index)
    if not is_static(index):
        kind = cast(Any, type)(base).__name__
        raise fb.type_error(
            f"A {kind} of compile-time elements cannot be indexed with a run-time "
            "value", node.slice, "use a constant index, a qd.static loop, or an ndarray",
        )  # fmt: skip
    return fb.python(node, operator.getitem, base, index)


@expression(ast.Slice)
def _slice(fb: FuncBuilder, node: ast.Slice) -> slice:
    parts = [None if n is None else fb.expr(n) for n in (node.lower, node.upper, node.step)]
    for part in parts:
        if not is_static(part):
            raise fb.type_error("Slices need constant bounds", node)
    return slice(*parts)


@expression(ast.Subscript)
def _subscript(fb: FuncBuilder, node: ast.Subscript) -> Any:
    base = bound(fb, node.value)
    if isinstance(base, CONTAINERS):
        return fb.loaded(known(fb, _item(fb, node, base), node), node)
    return fb.loaded(_subscript_of(fb, node, base), node)


def _subscript_of(fb: FuncBuilder, node: ast.Subscript, base: Any) -> Any:
    """An element of anything but a compile-time container; a pointer if it is in memory."""
    kind: Any = base.__class__
    if kind is NdarrayRef:
        return element_at(fb, node, base)
    if kind is BufferViewValue:
        return _view_element(fb, node, base)
    if kind is ArrayValue:
        from .local_arrays import array_element

        indices = index_ops(fb, node, len(base.shape), "Array", base.name)
        return array_element(fb, node, base, indices)
    if kind is MatrixValue:
        return matrices.element(fb, node, base)
    if kind is ShapeRef:
        return _shape_item(fb, node, base)
    if kind is StructValue:
        return _member(fb, node, base)
    if isinstance(base, _FIELDS):
        return element_at(fb, node, base)
    if isinstance(base, Op):
        elem = base.type.name.lstrip("*")
        raise fb.type_error(f"A value of type {elem} has no elements", node.value)
    if isinstance(base, ArrayHandle):
        raise _captured(fb, node)
    index = fb.expr(node.slice)
    if not is_static(index):
        raise fb.type_error(
            f"{describe(base)} cannot be indexed with a run-time value", node.value,
            "pass arrays to the kernel as arguments annotated with qd.types.ndarray(...)",
        )  # fmt: skip
    return known(fb, fb.python(node, operator.getitem, base, index), node)


def _captured(fb: FuncBuilder, node: ast.Subscript) -> QuadrantsCompilationError:
    """The error for an element of an array that is no argument of the kernel."""
    return fb.error(
        QuadrantsCompilationError,
        f"Ndarray `{ast.unparse(node.value)}` is used in a kernel but is not one of its arguments",
        node.value,
        "pass it as an argument annotated with qd.types.ndarray(...), as a member of a dataclass, "
        "or as a member of a @qd.data_oriented object",
    )


def _member(fb: FuncBuilder, node: ast.Subscript, struct: StructValue) -> Any:
    """``s["a"]``."""
    name = fb.expr(node.slice)
    if not isinstance(name, str) or name not in struct.members:
        text = f"{describe(struct)} has no member {name if is_static(name) else describe(name)!r}"
        raise fb.type_error(text, node, f"its members are {', '.join(struct.members)}")
    return struct.members[name]


def _shape_item(fb: FuncBuilder, node: ast.Subscript, shape: ShapeRef) -> Any:
    index, ndim = fb.expr(node.slice), shape.array.ndim
    if isinstance(index, slice):
        axes = fb.python(node, range(ndim).__getitem__, index)
        return tuple(_extent(fb, shape, axis, node) for axis in axes)
    if type(index) is not int:
        raise fb.type_error("An axis of a shape must be a compile-time integer", node.slice)
    if not -ndim <= index < ndim:
        text = f"Axis {index} of the shape of an array with {ndim} axes"
        raise fb.error(QuadrantsIndexError, text, node.slice)
    return _extent(fb, shape, index % ndim, node)


def _extent(fb: FuncBuilder, shape: ShapeRef, axis: int, node: ast.AST) -> Op:
    code = C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS
    return fb.emit(node, code, (), (axis, shape.array.param), i32)


def array_of(fb: FuncBuilder, node: ast.expr) -> NdarrayRef | None:
    """The array parameter that ``node`` names, if it does."""
    value = bound(fb, node)
    return value if isinstance(value, NdarrayRef) else None


def _index_values(fb: FuncBuilder, node: ast.Subscript) -> list[tuple[Any, ast.expr]]:
    """The indices of ``x[...]`` with their nodes; index vectors are spread."""
    s = node.slice
    nodes = s.elts if isinstance(s, ast.Tuple) else [s]
    out: list[tuple[Any, ast.expr]] = []
    for n in nodes:
        if isinstance(n, ast.Slice):
            text = "An ndarray does not support an index of slice type"
            raise fb.syntax_error(text, n, "index one element, or loop over the range")
        at = n.value if isinstance(n, ast.Starred) else n
        value = fb.expr(at)
        if value.__class__ is Op:
            out.append((value, at))
        elif isinstance(value, _SPREAD):
            out.extend((v, at) for v in spread(fb, value, at))
        elif value is not None or len(nodes) > 1:
            out.append((value, at))
    return out


def index_ops(
    fb: FuncBuilder, node: ast.Subscript, ndim: int, what: str, name: str, negative: bool = False
) -> tuple[Op, ...]:
    """The indices of an element of an array or field with ``ndim`` axes, as values of run time.

    negative: an axis may begin below 0.
    """
    values = _index_values(fb, node)
    if len(values) != ndim:
        raise fb.error(
            QuadrantsIndexError,
            f"{what} with dim {ndim} accessed with indices of dim {len(values)}", node,
            f"{name} needs {ndim} ind{'ex' if ndim == 1 else 'ices'}",
        )  # fmt: skip
    out: list[Op] = []
    for k, (value, at) in enumerate(values):
        if value.__class__ is Op and value.type.is_int and value.code != C.CONST:  # most are
            out.append(value)
            continue
        known = value.attr if isinstance(value, Op) and value.code == C.CONST else value
        if not negative and isinstance(known, _INTEGERS) and known < 0:
            text = "Negative indices are not supported in Quadrants kernels."
            hint = f"count from the end with {name}.shape[{k}] - {-known}"
            raise fb.error(QuadrantsSyntaxError, text, at, hint)
        index = fb.op(value, at)
        if index.type.is_real:
            raise fb.type_error(
                f"indices must be integers, however '{index.type}' is provided as index {k}", at,
                "convert it: qd.cast(x, qd.i32)",
            )  # fmt: skip
        out.append(index)
    return tuple(out)


def element_at(fb: FuncBuilder, node: ast.Subscript, array: Any) -> Any:
    """An element of an array or field: a pointer, or a matrix or struct of pointers."""
    if isinstance(array, NdarrayRef):
        indices = index_ops(fb, node, array.ndim, "Array", array.name)
        base = fb.param(C.ARG_ADDR, array.param)
        return _place_at(fb, node, base, indices, array.dtype, array.element_shape, array.boundary)
    at = node.value
    name = array.name or (at.id if isinstance(at, ast.Name) else ast.unparse(at))
    first = array
    while isinstance(first, StructFieldHandle):
        first = next(iter(first.members.values()))
    origin = fb.python(node, first.memory_layout).origin
    indices = index_ops(fb, node, len(array.shape), "Field", name, any(o < 0 for o in origin))
    return field_element(fb, node, array, indices, array.name or fb.context.called(at))


def _view_element(fb: FuncBuilder, node: ast.Subscript, view: BufferViewValue) -> Any:
    """An element of a view of an array, or a view of a part of it."""
    from .view_ranges import array_index, view_slice

    if isinstance(node.slice, ast.Slice):
        return view_slice(fb, node.slice, view)
    array = view.array
    (index,) = index_ops(fb, node, 1, "Array", view.name)
    index = array_index(fb, node, view, index)
    base = fb.param(C.ARG_ADDR, array.param)
    return _place_at(fb, node, base, (index,), array.dtype, array.element_shape, array.boundary)


def field_element(
    fb: FuncBuilder, node: ast.AST, field: FieldHandle | StructFieldHandle, indices: tuple[Op, ...],
    name: str,
) -> Any:  # fmt: skip
    """The element of ``field`` at ``indices``; ``name``: the field's name in the kernel."""
    if isinstance(field, StructFieldHandle):
        members = {
            key: field_element(fb, node, m, indices, f"{name}.{key}")
            for key, m in field.members.items()
        }
        return StructValue(field.struct_type, members)
    if field.part_of is not None:
        whole, index = field.part_of
        parts = tuple([fb.typed(i, i32, node) for i in index])
        base = fb.field_base(whole, whole.name or name, node)
        return fb.address_of(base, (*indices, *parts), "unsafe", node)
    base = fb.field_base(field, name, node)
    return _place_at(fb, node, base, indices, field.dtype, field.element_shape, "unsafe")


def _place_at(
    fb: FuncBuilder, node: ast.AST, base: Op, indices: tuple[Op, ...], dtype: DataType,
    element_shape: tuple[int, ...], boundary: str,
) -> Any:  # fmt: skip
    if element_shape:
        return MatrixValue(element_shape, (), ElementLocation(base, indices, dtype, boundary))
    return fb.address_of(base, indices, boundary, node)


_INDEXED = (
    ArrayValue,
    BufferViewValue,
    NdarrayRef,
    MatrixValue,
    StructValue,
    FieldHandle,
    StructFieldHandle,
)


def lvalue(fb: FuncBuilder, node: ast.expr) -> Any:
    """The target of an assignment to ``node``: a pointer, or a matrix or struct of pointers.

    None if it is not writable.
    """
    if isinstance(node, ast.Name):
        value = fb.local(node.id)
    elif isinstance(node, ast.Subscript):
        base = bound(fb, node.value)
        if isinstance(base, CONTAINERS):
            value = _item(fb, node, base)
        elif isinstance(base, _INDEXED):
            value = _subscript_of(fb, node, base)
        else:
            return None
    elif isinstance(node, ast.Attribute):
        value = bound(fb, node)
    else:
        return None
    return value if writable(value) else None


def writable(value: Any) -> bool:
    """True if ``value`` is a pointer or consists of pointers."""
    if isinstance(value, Op):
        return value.type.is_ptr
    if isinstance(value, MatrixValue):
        return value.location is not None or all(writable(v) for v in value.elems)
    if isinstance(value, StructValue):
        return all(writable(v) for v in value.members.values())
    return isinstance(value, DynamicElement) and all(writable(v) for v in value.parts)


class AskedFor(ast.Attribute):
    """An attribute that is read by ``getattr``: no name in the text leads to it."""


@expression(ast.Attribute, AskedFor)
def _attribute(fb: FuncBuilder, node: ast.Attribute) -> Any:
    return fb.loaded(_attribute_of(fb, node, owner_of(fb, node.value)), node)


_OF_PYTHON_SCOPE: Final = frozenset((
    "copy_from", "from_numpy", "from_torch", "to_dlpack", "to_numpy", "to_torch",
))  # fmt: skip
"""Methods of fields that work on the host."""


_FIELDS: Final = (FieldHandle, StructFieldHandle)
_SPREAD: Final = (tuple, list, ShapeRef, MatrixValue)
"""Indices that stand for several."""
_INTEGERS: Final = (int, np.integer)


_WITH_PARTS: Final = (BufferViewValue, MatrixValue, StructValue, RecordValue, InstanceValue)


def _part(fb: FuncBuilder, node: ast.Attribute, base: Any, keep: bool) -> Any:
    """An attribute of a value of `_WITH_PARTS`, by functions that not every kernel needs."""
    if isinstance(base, BufferViewValue):
        if node.attr == "subview":
            return Method(base, "subview")
        from .view_ranges import view_attribute

        return view_attribute(fb, node, base)
    if isinstance(base, MatrixValue):
        return matrices.matrix_attribute(fb, node, base)
    if isinstance(base, StructValue):
        return records.struct_attribute(fb, node, base)
    if isinstance(base, RecordValue):
        return records.record_attribute(fb, node, base, keep)
    return records.instance_attribute(fb, node, base, keep)


def _attribute_of(fb: FuncBuilder, node: ast.Attribute, base: Any, keep: bool = True) -> Any:
    """An attribute of ``base``; a pointer if it is in memory.

    keep: False where only an attribute of it is taken.
    """
    kind: Any = base.__class__
    if kind is NdarrayRef:
        return _array_attribute(fb, node, base)
    if kind in _WITH_PARTS:
        return _part(fb, node, base, keep)
    if kind is Op or kind is ShapeRef:
        what = base.type.name.lstrip("*") if isinstance(base, Op) else "tuple"
        raise fb.type_error(f'A value of type {what} has no attribute "{node.attr}"', node)
    if isinstance(base, StructFieldHandle) and node.attr in base.members:
        return known(fb, base.members[node.attr], node)
    if isinstance(base, _FIELDS):
        if node.attr == "fill":
            return Method(base, "fill")
        if node.attr in _OF_PYTHON_SCOPE:
            text = f"AssertionError: {node.attr} cannot be called in Quadrants-scope"
            raise fb.error(QuadrantsCompilationError, text, node, "call it from Python")
    if not is_settled(base, node.attr):
        fb.calls.forget()
    try:
        found = getattr(base, node.attr)
    except NotYetError as error:
        raise QuadrantsUnsupportedError(feature=error.feature).locate(fb.loc(node)) from None
    except Exception as error:
        if of_signal_handler(error):
            raise
        raise QuadrantsCompilationError.from_foreign(error, fb.loc(node)) from error
    fb.captures.attribute(fb, base, node.attr, found, node, keep)
    return known(fb, found, node)


def _array_attribute(fb: FuncBuilder, node: ast.Attribute, array: NdarrayRef) -> Any:
    name = node.attr
    if name == "shape":
        return ShapeRef(array)
    if name == "dtype":
        return array.dtype
    if name == "ndim":
        return array.ndim
    if name == "element_shape":
        return partial(list[int], array.element_shape)
    if array.spec_key.has(name):
        path = (*array.path, name)
        spec_key = array.spec_key.of_grad()
        return fb.bind(array.arg, path, spec_key, f"{array.name}.{name}", array.boundary)
    raise fb.type_error(
        f'An ndarray has no attribute "{name}" in a kernel', node,
        f"it was made without needs_{name}" if name in ("grad", "dual") else
        "a kernel can use its elements, .shape, .dtype and .element_shape()",
    )  # fmt: skip
