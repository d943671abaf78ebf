"""Powers with a constant exponent."""

from __future__ import annotations

from ...errors import QuadrantsTypeError
from ...ir import Op
from ...ir import codes as C
from ...types import DataType
from .rewriter import Rewriter

__all__ = ["power"]

_MAX_EXPONENT = 32
"""Up to this, a power becomes multiplications."""


def power(op: Op, rw: Rewriter) -> Op | None:
    """x**1, x**0, x**0.5, x**n, x**-n.

    For a float base only the powers 0, 1, 2 and -1 are exactly the result of one operation; the
    others need ``fast_math``. Raises QuadrantsTypeError for an integer to a negative integer power.
    """
    x, n = op.args
    if n.code != C.CONST:
        return None
    value = n.attr
    if x.type.is_int and value < 0:
        if not _is_cut_off(op):
            raise QuadrantsTypeError.from_loc(
                "Negative exponent in pow(int, int) is not allowed.", op.loc,
                hint="make the base a float, for example with qd.f32(x)",
            )  # fmt: skip
        return None
    if value == 0:
        return rw.become_const(op, 1)
    if value == 1:
        return x
    exact = x.type.is_int or value in (2, -1) or rw.fast_math
    if not exact or x.type is not op.type:
        return None
    if value == 0.5:
        return rw.become(op, C.SQRT, x)
    if value != value or abs(value) > _MAX_EXPONENT or value != int(value):
        return None
    return _multiply(op, x, int(value), rw)


def _multiply(op: Op, x: Op, n: int, rw: Rewriter) -> Op:
    """Turn ``op`` into x**n by squaring, or into 1 / x**-n."""
    t = op.type
    assert isinstance(t, DataType)
    square = x
    result: Op | None = None
    count = abs(n)
    while True:
        last = count == 1
        if count & 1:
            if result is None:
                result = square
            elif last and n > 0:
                return rw.become(op, C.MUL, result, square)
            else:
                result = rw.emit(C.MUL, t, (result, square))
        if last:
            break
        count >>= 1
        if count == 1 and result is None and n > 0:
            return rw.become(op, C.MUL, square, square)
        square = rw.emit(C.MUL, t, (square, square))
    assert result is not None
    return rw.become(op, C.DIV, rw.const(1, t), result)


def _is_cut_off(op: Op) -> bool:
    """True if ``op`` is in the branch of an if that its constant condition excludes.

    Such code is deleted by the next round, and the kernel's author may have guarded it so.
    """
    block = op.block
    while block is not None and block.owner is not None:
        owner = block.owner
        if owner.code == C.IF and owner.args[0].code == C.CONST:
            taken = owner.regions[0 if owner.args[0].attr else 1]
            if block is not taken:
                return True
        block = owner.block
    return False
