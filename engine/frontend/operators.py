"""Arithmetic, comparison and bit operators, on values of compile time and of run time.

Two Python values are computed by Python, with its own numbers; they become constants only when
they meet a value of run time. Index vectors are computed with element by element.
"""

from __future__ import annotations

import ast
import operator as _operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..errors import QuadrantsCompilationError
from ..imports import Later
from ..ir import Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import u1
from .func_builder import FuncBuilder
from .values import (
    MatrixValue,
    ShapeRef,
    StructValue,
    Text,
    describe,
    dtype_in,
    is_static,
    tensor_name,
)

__all__ = [
    "ATOMICS", "BINARY", "COMPARE", "UNARY", "Binary", "binary", "compare", "unary", "unused",
]  # fmt: skip

if TYPE_CHECKING:
    from . import matrices
else:
    matrices = Later(__package__, "matrices")

operator: Any = _operator  # several of its functions have no types


class Binary(NamedTuple):
    """A binary operator: how it is written, its opcode, Python's function."""

    symbol: str
    code: int
    fn: Callable[[Any, Any], Any]


def unused(a: Any, b: Any) -> Any:
    """Python's function of an operator that is never applied to two compile-time values."""
    raise NotImplementedError


BINARY: Final[dict[type[ast.operator], Binary]] = {
    ast.Add: Binary("+", C.ADD, operator.add),
    ast.Sub: Binary("-", C.SUB, operator.sub),
    ast.Mult: Binary("*", C.MUL, operator.mul),
    ast.Div: Binary("/", C.TRUEDIV, operator.truediv),
    ast.FloorDiv: Binary("//", C.FLOORDIV, operator.floordiv),
    ast.Mod: Binary("%", C.FLOORMOD, operator.mod),
    ast.Pow: Binary("**", C.POW, operator.pow),
    ast.LShift: Binary("<<", C.BIT_SHL, operator.lshift),
    ast.RShift: Binary(">>", C.BIT_SAR, operator.rshift),
    ast.BitAnd: Binary("&", C.BIT_AND, operator.and_),
    ast.BitOr: Binary("|", C.BIT_OR, operator.or_),
    ast.BitXor: Binary("^", C.BIT_XOR, operator.xor),
}
COMPARE: Final[dict[type[ast.cmpop], Binary]] = {
    ast.Lt: Binary("<", C.CMP_LT, operator.lt),
    ast.LtE: Binary("<=", C.CMP_LE, operator.le),
    ast.Gt: Binary(">", C.CMP_GT, operator.gt),
    ast.GtE: Binary(">=", C.CMP_GE, operator.ge),
    ast.Eq: Binary("==", C.CMP_EQ, operator.eq),
    ast.NotEq: Binary("!=", C.CMP_NE, operator.ne),
}
UNARY: Final[dict[type[ast.unaryop], tuple[int, Callable[[Any], Any]]]] = {
    ast.USub: (C.NEG, operator.neg),
    ast.UAdd: (-1, operator.pos),
    ast.Invert: (C.BIT_NOT, operator.invert),
    ast.Not: (C.LOGIC_NOT, operator.not_),
}
# Augmented assignments that are atomic; the others load, compute and store.
ATOMICS: Final[dict[int, int]] = {
    C.ADD: C.ATOMIC_ADD,
    C.SUB: C.ATOMIC_ADD,
    C.BIT_AND: C.ATOMIC_BIT_AND,
    C.BIT_OR: C.ATOMIC_BIT_OR,
    C.BIT_XOR: C.ATOMIC_BIT_XOR,
}
# The result of arithmetic on two booleans is a boolean: True if the number is not 0.
BOOLEAN: Final[dict[int, int]] = {C.ADD: C.BIT_OR, C.SUB: C.BIT_XOR, C.MUL: C.BIT_AND}
_DIVIDES: Final = frozenset((C.FLOORDIV, C.FLOORMOD, C.DIV, C.MOD))


def binary(
    fb: FuncBuilder, node: ast.AST, row: Binary, a: Any, b: Any, na: ast.AST, nb: ast.AST
) -> Any:
    """``a <op> b``; ``na`` and ``nb`` are the nodes of the operands."""
    ta, tb = a.__class__, b.__class__
    if ta is Op and tb is Op:  # most
        x, y = a, b
    else:
        if ta is str or ta is Text or tb is Text:
            found = _text(fb, node, row, a, b)
            if found is not None:
                return found
        if ta is MatrixValue or tb is MatrixValue:
            return _elementwise(fb, node, row, a, b, na, nb)
        if ta is StructValue or tb is StructValue:
            names = " and ".join(f"'{tensor_name(fb, v)}'" for v in (a, b))
            text = f"unsupported operand type(s) for '{row.symbol}': {names}"
            raise fb.type_error(text, node, "compute with the members of structs")
        if ta is not Op and tb is not Op:
            sequences = ta is tb and ta in (list, tuple) and row.code == C.ADD
            if sequences or (is_static(a) and is_static(b)):
                return fb.python(node, row.fn, a, b)
            if ta is list and b.__class__ is int and row.code == C.MUL:
                return fb.python(node, row.fn, a, b)
        x, y = fb.op(a, na), fb.op(b, nb)
    code = row.code
    if C.BITWISE[code] and (x.type.is_real or y.type.is_real):
        raise fb.type_error(
            f"unsupported operand type(s) for '{row.symbol}': '{x.type}' and '{y.type}'", node,
            "bit operations and shifts need integers; convert with qd.cast or qd.bit_cast",
        )  # fmt: skip
    if y.code == C.CONST and code in _DIVIDES and y.attr == 0 and not x.type.is_real:
        if y.type.is_int:
            raise fb.error(QuadrantsCompilationError, "Integer division by zero", nb)
    elif code == C.POW and y.code == C.CONST and x.type.is_int and y.type.is_int and y.attr < 0:
        raise fb.error(
            QuadrantsCompilationError, "Negative exponent in pow(int, int) is not allowed", nb,
            "make the base real: qd.cast(x, qd.f32)",
        )  # fmt: skip
    if x.type is u1 and y.type is u1:
        code = BOOLEAN.get(code, code)
    return fb.emit(node, code, (x, y))


def _text(fb: FuncBuilder, node: Any, row: Binary, a: Any, b: Any) -> Any:
    """``"..." % x``, or a sum of texts, with values of run time; None for anything else."""
    if is_static(a) and is_static(b):
        return None
    if row.code == C.FLOORMOD and isinstance(a, str):
        from .texts import percent

        return percent(fb, a, b, node)
    if row.code == C.ADD and isinstance(a, str | Text) and isinstance(b, str | Text):
        return Text([*_pieces(a), *_pieces(b)])
    return None


def _pieces(value: str | Text) -> Sequence[Any]:
    return value.pieces if isinstance(value, Text) else (value,)


def _elementwise(
    fb: FuncBuilder, node: ast.AST, row: Binary, a: Any, b: Any, na: ast.AST, nb: ast.AST
) -> MatrixValue:
    if isinstance(a, ShapeRef) or isinstance(b, ShapeRef):
        raise fb.type_error("an index cannot be combined with a whole shape; use shape[k]", node)
    pair = [matrices.as_matrix(fb, v, node) if isinstance(v, tuple | list) else v for v in (a, b)]
    for value, given in zip(pair, (a, b), strict=True):
        if not isinstance(value, MatrixValue | Op | int | float):
            text = f"unsupported operand type(s) for '{row.symbol}': {describe(given)}"
            raise fb.type_error(text, node)
    if C.BITWISE[row.code] and any(dtype_in(fb, v).is_real for v in pair):
        shape = next(v.shape for v in pair if isinstance(v, MatrixValue))
        names = " and ".join(f"'{tensor_name(fb, v, shape)}'" for v in pair)
        raise fb.type_error(
            f"unsupported operand type(s) for '{row.symbol}': {names}", node,
            "bit operations and shifts need integers; convert with qd.cast or qd.bit_cast",
        )  # fmt: skip
    return matrices.elementwise(
        fb, node, row.symbol, lambda x, y: binary(fb, node, row, x, y, node, node),
        *_with_one_constant(fb, pair, (na, nb)),
    )  # fmt: skip


def _with_one_constant(fb: FuncBuilder, pair: list[Any], at: tuple[ast.AST, ast.AST]) -> list[Any]:
    """The operands; a number that meets parts of run time is one constant for all of them."""
    if all(isinstance(v, int | float) or is_static(v) for v in pair):
        return pair
    return [
        fb.op(v, node) if isinstance(v, int | float) else v
        for v, node in zip(pair, at, strict=True)
    ]


def unary(fb: FuncBuilder, node: ast.AST, kind: type[ast.unaryop], x: Any, nx: ast.AST) -> Any:
    """``<op> x``; ``nx`` is the node of the operand."""
    code, fn = UNARY[kind]
    if isinstance(x, MatrixValue):
        return matrices.elementwise(
            fb, node, C.NAME[code], lambda v: unary(fb, node, kind, v, nx), x
        )
    if type(x) is not Op:
        if not is_static(x):
            raise fb.not_scalar(x, nx)
        return fb.python(node, fn, x)
    if code < 0:
        return x
    if x.type.is_real and code != C.NEG:
        name = C.NAME[code]
        text = f"'{name}' takes integral inputs only, however '{x.type}' is provided"
        raise fb.type_error(text, node, "compare with 0, or convert with qd.cast")
    return fb.emit(node, code, (x,))


def compare(fb: FuncBuilder, node: ast.Compare) -> Any:
    """A chain of comparisons: pairs joined by ``and``; each operand is evaluated once."""
    left_node, left = node.left, fb.expr(node.left)
    result: Any = True
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = fb.expr(right_node)
        pair = _pair(fb, node, op, left, right, left_node, right_node)
        if result is True:
            result = pair
        elif isinstance(result, MatrixValue) or isinstance(pair, MatrixValue):

            def both(x: Any, y: Any) -> Op:
                return fb.emit(node, C.BIT_AND, (fb.op(x, node), fb.op(y, node)), None, u1)

            result = matrices.elementwise(fb, node, "&", both, result, pair)
        elif type(pair) is Op or type(result) is Op:
            args = fb.op(result, node), fb.op(pair, node)
            result = fb.emit(node, C.BIT_AND, args, None, u1)
        else:
            result = result and pair
        left_node, left = right_node, right
    return result


_IDENTITY: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def _pair(
    fb: FuncBuilder, node: ast.AST, op: ast.cmpop, a: Any, b: Any, na: ast.AST, nb: ast.AST
) -> Any:
    row = COMPARE.get(type(op))
    if row is None:
        identity = isinstance(op, ast.Is | ast.IsNot)
        if fb.static and all(type(v) is not Op and (identity or is_static(v)) for v in (a, b)):
            return fb.python(node, _IDENTITY[type(op)], a, b)
        if isinstance(op, ast.Is | ast.IsNot):
            word = "is" if isinstance(op, ast.Is) else "is not"
            text = f'Operator "{word}" in Quadrants scope is not supported.'
            raise fb.syntax_error(text, node, "inside qd.static it compares compile-time values")
        word = "In" if isinstance(op, ast.In) else "NotIn"
        raise fb.syntax_error(f'"{word}" is only supported inside `qd.static`.', node)
    if isinstance(a, MatrixValue) or isinstance(b, MatrixValue):
        pair = [matrices.as_matrix(fb, a, na) or a, matrices.as_matrix(fb, b, nb) or b]
        return matrices.elementwise(
            fb, node, row.symbol, lambda x, y: _pair(fb, node, op, x, y, na, nb),
            *_with_one_constant(fb, pair, (na, nb)),
        )  # fmt: skip
    if type(a) is not Op and type(b) is not Op:
        if is_static(a) and is_static(b):
            return fb.python(node, row.fn, a, b)
        for value, where in ((a, na), (b, nb)):
            if not isinstance(value, Op) and not is_static(value):
                text = f"unsupported operand type(s) for '{row.symbol}': {describe(value)}"
                raise fb.type_error(text, where, "compare the elements one by one")
    return fb.emit(node, row.code, (fb.op(a, na), fb.op(b, nb)), None, u1)
