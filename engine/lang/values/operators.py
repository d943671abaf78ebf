"""The operators of vectors and matrices in Python scope: element by element, as in kernels."""

from __future__ import annotations

import operator
from typing import Any, cast

import numpy as np

from ...errors import QuadrantsTypeError

__all__ = ["Operators", "operand"]

Array = np.ndarray[Any, Any]


def operand(value: Any) -> Any:
    """The operand as NumPy computes with it; None if it is no number, vector or matrix."""
    if isinstance(value, Operators):
        return value.plain()
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return cast(Any, value)
    if isinstance(value, list | tuple | np.ndarray):
        array: Array = np.asarray(cast(Any, value))
        return array if array.dtype.kind in "biuf" and array.ndim in (0, 1, 2) else None
    return None


def _described(array: Array) -> str:
    extents = ", ".join(map(str, array.shape))
    return f"[Tensor ({extents}) {array.dtype.kind}{8 * array.dtype.itemsize}]"


def _compared(reduction: str | None, left: Array, right: Array) -> bool:
    """True for a vector and rows of that length that are compared with == or !=."""
    return reduction is not None and left.shape[-1] == right.shape[-1]


def _elementwise(name: str, function: str, swapped: bool = False) -> Any:
    """The method for an operator, whose function in `operator` has this name."""
    op = getattr(operator, function)

    def apply(self: Operators, other: Any) -> Any:
        left, right = self.plain(), operand(other)
        if right is None:
            return NotImplemented
        if np.ndim(right) and right.shape != left.shape and not _compared(reduction, left, right):
            sides = [_described(array) for array in (left, right)]
            if swapped:
                sides.reverse()
            raise QuadrantsTypeError(
                f"unsupported operand type(s) for '{name}': '{sides[0]}' and '{sides[1]}'"
            )
        if swapped:
            left, right = right, left
        with np.errstate(all="ignore"):
            found = self._result(op(left, right))  # pyright: ignore[reportPrivateUsage]
        if reduction:
            found._truth = reduction
        return found

    reduction = {"eq": "all", "ne": "any"}.get(function)
    return apply


def _unary(function: str) -> Any:
    op = getattr(operator, function)

    def apply(self: Operators) -> Any:
        return self._result(op(self.plain()))  # pyright: ignore[reportPrivateUsage]

    return apply


class Operators:
    """The base of `Matrix` that has its operators."""

    __slots__ = ()
    __array_priority__ = 1000  # operators of NumPy's numbers and arrays leave the work to ours
    __hash__ = object.__hash__

    def plain(self) -> Array:
        """The elements to compute with."""
        raise NotImplementedError

    def _result(self, found: Any) -> Any:
        """The value for the array that an operator computes."""
        raise NotImplementedError

    __add__ = _elementwise("+", "add")
    __radd__ = _elementwise("+", "add", True)
    __sub__ = _elementwise("-", "sub")
    __rsub__ = _elementwise("-", "sub", True)
    __mul__ = _elementwise("*", "mul")
    __rmul__ = _elementwise("*", "mul", True)
    __truediv__ = _elementwise("/", "truediv")
    __rtruediv__ = _elementwise("/", "truediv", True)
    __floordiv__ = _elementwise("//", "floordiv")
    __rfloordiv__ = _elementwise("//", "floordiv", True)
    __mod__ = _elementwise("%", "mod")
    __rmod__ = _elementwise("%", "mod", True)
    __pow__ = _elementwise("**", "pow")
    __rpow__ = _elementwise("**", "pow", True)
    __and__ = _elementwise("&", "and_")
    __rand__ = _elementwise("&", "and_", True)
    __or__ = _elementwise("|", "or_")
    __ror__ = _elementwise("|", "or_", True)
    __xor__ = _elementwise("^", "xor")
    __rxor__ = _elementwise("^", "xor", True)
    __lshift__ = _elementwise("<<", "lshift")
    __rlshift__ = _elementwise("<<", "lshift", True)
    __rshift__ = _elementwise(">>", "rshift")
    __rrshift__ = _elementwise(">>", "rshift", True)
    __eq__ = _elementwise("==", "eq")
    __ne__ = _elementwise("!=", "ne")
    __lt__ = _elementwise("<", "lt")
    __le__ = _elementwise("<=", "le")
    __gt__ = _elementwise(">", "gt")
    __ge__ = _elementwise(">=", "ge")
    __neg__ = _unary("neg")
    __pos__ = _unary("pos")
    __invert__ = _unary("invert")
    __abs__ = _unary("abs")
