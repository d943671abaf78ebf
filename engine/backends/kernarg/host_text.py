"""The bounds of a task as Python text, from which a launch computes how many blocks it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir import Op
from ...ir import codes as C

if TYPE_CHECKING:
    from ...ir import Func
    from .abi import ArgumentLayout

__all__ = ["HostText"]


class HostText:
    """Bounds of a loop as Python text over values of the argument buffer.

    exact: the text must be right, else it may differ where i32 arithmetic wraps.
    """

    _SIGNS: Final = {C.ADD: "+", C.SUB: "-", C.MUL: "*"}
    _OTHERS: Final = (C.MIN, C.MAX, C.BIT_SAR, C.BIT_SHL, C.BIT_AND, C.DIV)
    _LONGEST: Final = 2000

    def __init__(self, func: Func, layout: ArgumentLayout, exact: bool) -> None:
        self.func: Final = func
        self.layout: Final = layout
        self.exact: Final = exact
        self.reads: Final[dict[int, str]] = {}

    def text(self, op: Op) -> str:
        found = self._text(op)
        return found if len(found) <= self._LONGEST else ""

    def _read(self, offset: int) -> str:
        return self.reads.setdefault(offset, f"v{len(self.reads)}")

    def _text(self, op: Op) -> str:
        code, layout = op.code, self.layout
        if op.type.name != "i32":
            return ""
        if code == C.CONST:
            return str(op.attr) if op.attr >= 0 else f"({op.attr})"
        if code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            axis, number = map(int, op.attr)
            p = self.func.params[number]
            return self._read(layout.params[number] + 8 * (1 + p.needs_grad + axis))
        if code == C.ARG_LOAD:
            return self._read(layout.params[int(op.attr)])
        if code not in self._SIGNS and code not in self._OTHERS:
            return ""
        a, b = op.args
        x, y = self._text(a), self._text(b)
        if not x or not y:
            return ""
        if code in (C.MIN, C.MAX):
            return f"{'min' if code == C.MIN else 'max'}({x},{y})"
        if code == C.BIT_SAR:
            return f"({x}>>{b.attr})" if b.code == C.CONST and 0 <= b.attr < 32 else ""
        if code == C.BIT_AND:
            return f"({x}&{y})"
        if code == C.DIV:
            # As in C; Python rounds down.
            positive = b.code == C.CONST and b.attr > 0
            return f"({x}//{y} if {x}>=0 else -(-{x}//{y}))" if positive else ""
        if code == C.BIT_SHL:  # a product by a power of two, after the passes
            text = f"({x}*{1 << b.attr})" if b.code == C.CONST and 0 <= b.attr < 32 else ""
            if not text:
                return ""
        else:
            text = f"({x}{self._SIGNS[code]}{y})"
        return f"(({text}+2147483648&4294967295)-2147483648)" if self.exact else text
