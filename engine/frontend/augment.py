"""Augmented assignment, and atomic updates.

``+= -= &= |= ^=`` are atomic on every target (those of variables that one thread owns become plain
operations later); the others load, compute and store.
"""

from __future__ import annotations

import ast
from typing import Any

from ..ir import Op
from ..ir import codes as C
from ..types import BUILDER, pointer_to, u1, void
from .func_builder import FuncBuilder
from .lvalues import lvalue
from .matrices import as_matrix, elementwise
from .operators import ATOMICS, BINARY, Binary, binary
from .registry import statement
from .stmts import assign, assign_name, immutable, not_writable
from .values import DynamicElement, InstanceValue, MatrixValue, StructValue, dtype_in, tensor_name

__all__ = ["add_atomically", "atomically"]


@statement(ast.AugAssign)
def _augassign(fb: FuncBuilder, node: ast.AugAssign) -> None:
    target = node.target
    row = BINARY.get(type(node.op))
    if row is None:
        _multiply(fb, node)
        return
    if isinstance(target, ast.Name):
        old = fb.lookup(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        if isinstance(old, tuple | list) and fb.has_local(target.id):
            right = fb.expr(node.value)
            value = binary(fb, node, row, fb.loaded(old, node), right, target, node.value)
            assign_name(fb, target, value, node)
            return
    if _to_builder(fb, node):
        return
    ptr = lvalue(fb, target)
    if ptr is None:
        if isinstance(target, ast.Name) and fb.has_local(target.id):
            raise immutable(fb, target, fb.local(target.id))
        if isinstance(target, ast.Name):
            text = f'Global "{target.id}" cannot be assigned in a kernel'
            raise fb.syntax_error(text, target, "copy it into a local variable first")
        raise not_writable(fb, target)
    old = fb.loaded(ptr, node) if ATOMICS.get(row.code) is None else None
    value = fb.expr(node.value)
    if not isinstance(ptr, MatrixValue):
        _augment(fb, node, row, ptr, old, value)
        return
    value = as_matrix(fb, value, node.value) or value
    _check_augment(fb, node, row, ptr, value)
    parts: list[Any] = [MatrixValue(ptr.shape, fb.parts(ptr, node)), old or 0, value]

    def update(part: Any, old: Any, right: Any) -> None:
        _augment(fb, node, row, part, old, right)

    elementwise(fb, node, f"{row.symbol}=", update, *parts)


def _to_builder(fb: FuncBuilder, node: ast.AugAssign) -> bool:
    """Add to an element of the builder of a sparse matrix; False if the target is none."""
    target = node.target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return False
    builder = fb.local(target.value.id) if fb.has_local(target.value.id) else None
    if not isinstance(builder, InstanceValue) or not hasattr(builder.instance, BUILDER):
        return False
    if not isinstance(node.op, ast.Add | ast.Sub):
        text = "Only operations '+=' and '-=' are supported on sparse matrices."
        raise fb.type_error(text, node)
    index = target.slice
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2:
        raise fb.type_error("an element of a sparse matrix has two indices", target, "A[i, j]")
    value = node.value
    if isinstance(node.op, ast.Sub):
        value = ast.copy_location(ast.UnaryOp(ast.USub(), value), value)
    add = ast.copy_location(ast.Attribute(target.value, "add", ast.Load()), target)
    fb.expr(ast.copy_location(ast.Call(add, [*index.elts, value], []), node))
    return True


def _multiply(fb: FuncBuilder, node: ast.AugAssign) -> None:
    """``m @= n``: the product is stored to ``m``, whose shape it must have."""
    from .matrix_methods import matmul

    value = matmul(fb, node, fb.expr(node.target), fb.expr(node.value))
    assign(fb, node.target, value, node)


def _check_augment(fb: FuncBuilder, node: ast.AugAssign, row: Binary, ptr: Any, value: Any) -> None:
    """Reject types that ``ptr <op>= value`` does not accept."""
    names: tuple[str, str] | None = None
    shapes = [v.shape if isinstance(v, MatrixValue) else () for v in (ptr, value)]
    structs = isinstance(ptr, StructValue) or isinstance(value, StructValue)
    if structs or (shapes[1] and shapes[0] != shapes[1]):
        names = tensor_name(fb, ptr), tensor_name(fb, value)
    elif C.BITWISE[row.code] and (dtype_in(fb, ptr).is_real or dtype_in(fb, value).is_real):
        shape = ptr.shape if isinstance(ptr, MatrixValue) else None
        names = tensor_name(fb, ptr), tensor_name(fb, value, shape)
    if names is not None:
        raise fb.type_error(
            f"unsupported operand type(s) for '{row.symbol}=': '{names[0]}' and '{names[1]}'",
            node,
            "bit operations and shifts need integers" if C.BITWISE[row.code] else None,
        )


def _augment(
    fb: FuncBuilder, node: ast.AugAssign, row: Binary, ptr: Any, old: Any, right: Any
) -> None:
    """``ptr <op>= right``; ``old``: the value there, for operators that are not atomic."""
    atomic = ATOMICS.get(row.code)
    _check_augment(fb, node, row, ptr, right)
    right = fb.op(right, node.value)
    if atomic is None:
        fb.store(ptr, binary(fb, node, row, old, right, node.target, node.value), node)
        return
    target = dtype_in(fb, ptr)
    if right.type.is_real and target.is_int:
        fb.warn(f"Adding {right.type} to {target} may lose precision", node)
    if isinstance(ptr, DynamicElement) and all(fb.is_private(part) for part in ptr.parts):
        right = fb.cast(right, target, node)
        fb.store(ptr, binary(fb, node, row, fb.loaded(ptr, node), right, node, node), node)
        return
    add_atomically(fb, node, atomic, ptr, right, row.code == C.SUB)


def add_atomically(
    fb: FuncBuilder, node: ast.AST, code: int, ptr: Any, value: Op, negate: bool = False
) -> Op:
    """An atomic update; returns the old value. ``negate`` makes an addition a subtraction."""
    target = dtype_in(fb, ptr)
    if target is u1 and code == C.ATOMIC_ADD:
        code = C.ATOMIC_BIT_XOR if negate else C.ATOMIC_BIT_OR
    elif negate:
        value = fb.emit(node, C.NEG, (fb.cast(value, target, node),))
    return atomically(fb, node, code, ptr, (value,))


def atomically(fb: FuncBuilder, node: ast.AST, code: int, ptr: Any, values: tuple[Op, ...]) -> Op:
    """An atomic op on a pointer, or on the part that an index of run time picks; the old value."""
    target = dtype_in(fb, ptr)
    if isinstance(ptr, Op):
        return fb.emit(node, code, (ptr, *values), None, target)
    old = fb.emit(node, C.ALLOCA, (), "", pointer_to(target))

    def update(part: Op) -> None:
        found = fb.emit(node, code, (part, *values), None, target)
        fb.emit(node, C.LOCAL_STORE, (old, found), None, void)

    fb.at_picked(ptr, update, node)
    return fb.load(old, node)
