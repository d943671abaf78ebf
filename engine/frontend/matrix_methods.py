"""Methods of vectors and matrices in a kernel, and the matrix product."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..errors import QuadrantsCompilationError
from ..ir import Op
from ..ir import codes as C
from ..types import u1
from .arguments import arguments, cast_to, dtype_argument
from .func_builder import FuncBuilder
from .linear import determinant, inverse
from .lvalues import writable
from .matrices import METHODS, as_matrix, elementwise
from .operators import BINARY, Binary, binary, unary
from .stmts import store
from .values import MatrixValue, describe, tensor_name

__all__ = ["METHODS", "Arithmetic", "matmul"]


class Arithmetic:
    """Arithmetic on parts, at one node."""

    __slots__ = ("fb", "node")

    def __init__(self, fb: FuncBuilder, node: ast.AST) -> None:
        self.fb = fb
        self.node = node

    def _two(self, kind: type[ast.operator], a: Any, b: Any) -> Any:
        return binary(self.fb, self.node, BINARY[kind], a, b, self.node, self.node)

    def add(self, a: Any, b: Any) -> Any:
        return self._two(ast.Add, a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self._two(ast.Sub, a, b)

    def mul(self, a: Any, b: Any) -> Any:
        return self._two(ast.Mult, a, b)

    def div(self, a: Any, b: Any) -> Any:
        return self._two(ast.Div, a, b)

    def neg(self, a: Any) -> Any:
        return unary(self.fb, self.node, ast.USub, a, self.node)

    def real(self, a: Any) -> Op:
        op = self.fb.op(a, self.node)
        return op if op.type.is_real else self.fb.cast(op, self.fb.default_fp, self.node)

    def magnitude_above(self, a: Op, b: Op) -> Op:
        """An op that is 1 if ``abs(a) > abs(b)``."""
        fb, node = self.fb, self.node
        pair = fb.emit(node, C.ABS, (a,)), fb.emit(node, C.ABS, (b,))
        return fb.emit(node, C.CMP_GT, pair, None, u1)

    def select(self, cond: Op, a: Op, b: Op) -> Op:
        return self.fb.emit(self.node, C.SELECT, (cond, a, b))

    def total(self, values: list[Any]) -> Any:
        """The sum of values, in order."""
        found = values[0]
        for value in values[1:]:
            found = self.add(found, value)
        return found

    def dot(self, a: list[Any], b: list[Any]) -> Any:
        """The sum of the products of parts."""
        return self.total([self.mul(x, y) for x, y in zip(a, b, strict=True)])


def method(name: str) -> Callable[[Any], Any]:
    """The decorated function is the method ``name``."""

    def tie(fn: Any) -> Any:
        METHODS[name] = fn
        return fn

    return tie


def read(fb: FuncBuilder, matrix: MatrixValue, node: ast.AST) -> list[Any]:
    """The values of the parts."""
    return list(fb.loaded(matrix, node).elems)


def _wrong(fb: FuncBuilder, node: ast.AST, text: str) -> QuadrantsCompilationError:
    return fb.error(QuadrantsCompilationError, text, node)


def _other(fb: FuncBuilder, node: ast.Call, name: str) -> Any:
    (value,) = arguments(fb, node, name, ("other",))
    matrix = as_matrix(fb, value, node)
    if matrix is None:
        raise fb.type_error(f"{name}() takes a vector or matrix, not {describe(value)}", node)
    return matrix


# Reductions


@method("sum")
def _sum(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    arguments(fb, node, "sum", ())
    return Arithmetic(fb, node).total(read(fb, m, node))


def _extreme(name: str, row: Binary) -> None:
    @method(name)
    def reduce(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:  # pyright: ignore[reportUnusedFunction]
        arguments(fb, node, name, ())
        found, *rest = read(fb, m, node)
        for value in rest:
            found = binary(fb, node, row, found, value, node, node)
        return found


_extreme("min", Binary("min", C.MIN, min))
_extreme("max", Binary("max", C.MAX, max))


@method("any")
def _any(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    return _truth(fb, node, m, C.BIT_OR, "any")


@method("all")
def _all(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    return _truth(fb, node, m, C.BIT_AND, "all")


def _truth(fb: FuncBuilder, node: ast.Call, m: MatrixValue, code: int, name: str) -> Any:
    arguments(fb, node, name, ())
    found: Op | None = None
    for part in read(fb, m, node):
        value = fb.truth(fb.op(part, node), node)
        found = value if found is None else fb.emit(node, code, (found, value), None, u1)
    return found


@method("norm_sqr")
def _norm_sqr(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    arguments(fb, node, "norm_sqr", ())
    return _squares(fb, node, m)


def _squares(fb: FuncBuilder, node: ast.AST, m: MatrixValue) -> Any:
    parts = read(fb, m, node)
    return Arithmetic(fb, node).dot(parts, parts)


def _norm_of(fb: FuncBuilder, node: ast.AST, m: MatrixValue, eps: Any) -> Op:
    squares = _squares(fb, node, m)
    if not (isinstance(eps, int) and eps == 0):
        squares = Arithmetic(fb, node).add(squares, eps)
    return fb.emit(node, C.SQRT, (fb.op(squares, node),))


@method("norm")
def norm(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Op:
    (eps,) = arguments(fb, node, "norm", ("eps",), eps=0)
    return _norm_of(fb, node, m, eps)


@method("norm_inv")
def _norm_inv(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    (eps,) = arguments(fb, node, "norm_inv", ("eps",), eps=0)
    return Arithmetic(fb, node).div(1.0, _norm_of(fb, node, m, eps))


@method("normalized")
def _normalized(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> MatrixValue:
    (eps,) = arguments(fb, node, "normalized", ("eps",), eps=0)
    m = fb.loaded(m, node)
    do = Arithmetic(fb, node)
    length: Any = _norm_of(fb, node, m, 0)
    if not (isinstance(eps, int) and eps == 0):
        length = do.add(length, eps)
    scale = do.div(1.0, length)
    return MatrixValue(m.shape, [do.mul(part, scale) for part in m.elems])


# Products


def matmul(fb: FuncBuilder, node: ast.AST, a: Any, b: Any) -> Any:
    """``a @ b``: a matrix product; of two vectors, their dot product."""
    x, y = as_matrix(fb, a, node), as_matrix(fb, b, node)
    if x is None or y is None:
        names = " and ".join(f"'{tensor_name(fb, v)}'" for v in (a, b))
        text = f"unsupported operand type(s) for '@': {names}"
        raise fb.type_error(text, node, "it multiplies vectors and matrices; write * to scale")
    if x.shape[-1] != y.shape[0]:
        text = f"dimension mismatch between {x.shape} and {y.shape} for matrix multiplication"
        raise _wrong(fb, node, text)
    do = Arithmetic(fb, node)
    left, right = read(fb, x, node), read(fb, y, node)
    inner = y.shape[0]
    n = x.shape[0] if len(x.shape) == 2 else 1
    m = y.shape[1] if len(y.shape) == 2 else 1
    parts = [
        do.dot(left[i * inner : (i + 1) * inner], right[j::m]) for i in range(n) for j in range(m)
    ]
    shape = (*x.shape[:-1], *y.shape[1:])
    return MatrixValue(shape, parts) if shape else parts[0]


def _vectors(
    fb: FuncBuilder, node: ast.Call, name: str, m: MatrixValue
) -> tuple[list[Any], list[Any]]:
    other = _other(fb, node, name)
    for side, value in (("lhs", m), ("rhs", other)):
        if len(value.shape) != 1:
            raise _wrong(fb, node, f"{side} for {name} is not a vector")
    return read(fb, m, node), read(fb, other, node)


@method("dot")
def _dot(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    a, b = _vectors(fb, node, "dot", m)
    _same_length(fb, node, a, b)
    return Arithmetic(fb, node).dot(a, b)


def _same_length(fb: FuncBuilder, node: ast.Call, a: list[Any], b: list[Any]) -> None:
    if len(a) != len(b):  # the error that the product would give
        pair = MatrixValue((len(a),), a), MatrixValue((len(b),), b)
        elementwise(fb, node, "*", Arithmetic(fb, node).mul, *pair)


@method("frobenius_inner")
def _frobenius(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    other = _other(fb, node, "frobenius_inner")
    do = Arithmetic(fb, node)
    products = elementwise(fb, node, "*", do.mul, fb.loaded(m, node), other)
    return do.total(list(products.elems))


@method("cross")
def _cross(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    a, b = _vectors(fb, node, "cross", m)
    if len(a) != len(b) or len(a) not in (2, 3):
        text = "Cross product is only supported between pairs of 2D/3D vectors"
        raise fb.error(QuadrantsCompilationError, text, node)
    do = Arithmetic(fb, node)

    def minor(i: int, j: int) -> Any:
        return do.sub(do.mul(a[i], b[j]), do.mul(a[j], b[i]))

    return (
        minor(0, 1) if len(a) == 2 else MatrixValue((3,), [minor(1, 2), minor(2, 0), minor(0, 1)])
    )


@method("outer_product")
def _outer(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> MatrixValue:
    a, b = _vectors(fb, node, "outer_product", m)
    do = Arithmetic(fb, node)
    return MatrixValue((len(a), len(b)), [do.mul(x, y) for x in a for y in b])


# Linear algebra


@method("transpose")
def _transpose(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> MatrixValue:
    arguments(fb, node, "transpose", ())
    if len(m.shape) == 1:
        raise _wrong(
            fb, node, "`transpose()` cannot apply to a vector. If you want something like "
            "`a @ b.transpose()`, write `a.outer_product(b)` instead.",
        )  # fmt: skip
    rows, columns = m.shape
    parts = read(fb, m, node)
    return MatrixValue(
        (columns, rows), [parts[i * columns + j] for j in range(columns) for i in range(rows)]
    )


def _square(fb: FuncBuilder, node: ast.Call, m: MatrixValue, name: str) -> list[list[Any]]:
    arguments(fb, node, name, ())
    if len(m.shape) != 2 or m.shape[0] != m.shape[1]:
        raise _wrong(fb, node, f"expected a square matrix, got shape {m.shape}")
    parts, n = read(fb, m, node), m.shape[0]
    return [parts[i * n : (i + 1) * n] for i in range(n)]


@method("trace")
def _trace(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    lines = _square(fb, node, m, "trace")
    return Arithmetic(fb, node).total([line[i] for i, line in enumerate(lines)])


@method("determinant")
def _determinant(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    lines = _square(fb, node, m, "determinant")
    if len(lines) > 4:
        raise _wrong(fb, node, f"only dimension < 5 is supported, got shape {m.shape}")
    return determinant(Arithmetic(fb, node), lines)


@method("inverse")
def _inverse(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> MatrixValue:
    lines = _square(fb, node, m, "inverse")
    return MatrixValue(m.shape, inverse(Arithmetic(fb, node), lines))


# Others


@method("fill")
def _fill(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> None:
    (value,) = arguments(fb, node, "fill", ("val",))
    if not writable(m):
        raise fb.syntax_error("fill() needs a variable or an element of an array", node)
    store(fb, m, fb.op(value, node), node, node)


@method("cast")
def _cast(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> Any:
    (dtype,) = arguments(fb, node, "cast", ("dtype",))
    return cast_to(fb, fb.loaded(m, node), dtype_argument(fb, dtype, node), node)


@method("get_shape")
def _get_shape(fb: FuncBuilder, node: ast.Call, m: MatrixValue) -> tuple[int, ...]:
    return m.shape
