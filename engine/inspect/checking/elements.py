"""Terms for the addresses of the IR: arguments, extents, indices and their limits."""

from __future__ import annotations

from typing import Any, Final

from ...ir import Func, Op
from ...ir import codes as C
from ...types import i32
from .accesses import Limits, Traced
from .terms import Terms

__all__ = ["Elements"]


class Elements:
    """Arguments, extents and indices. values: the terms of ops that were followed."""

    def __init__(self, func: Func) -> None:
        self.func: Final = func
        self.terms: Final = Terms()
        self.out: Final = Traced(self.terms)
        self.values: dict[Op, Any] = {}
        self.zero: Final = self.terms.z3.IntVal(0)

    def size(self, name: str, t: Any) -> Any:
        """An argument or an extent."""
        found = self.out.sizes.get(name)
        if found is None:
            found = self.terms.z3.Const(name, self.terms.sort(t))
            self.out.sizes[name] = found
            if self.terms.is_whole(found):
                self.out.facts += [found >= t.min, found <= t.max]
        return found

    def extent(self, number: int, axis: int) -> Any:
        param = self.func.params[number]
        if param.layout is not None:
            return self.terms.z3.IntVal(param.layout.shape[axis])
        name = f"{param.name}.shape[{axis}]"
        new = name not in self.out.sizes
        found = self.size(name, i32)
        if new:
            self.out.facts.append(found >= 0)
        return found

    def number(self, op: Op) -> Any:
        """A value as an index or a limit of a loop, which are `i32`."""
        return self.terms.cast(self.values[op], i32, op.type)

    def linear(self, op: Op) -> Any:
        terms = [self.terms.as_int(self.values[a]) for a in op.args]
        total = terms[0]
        for index, extent in zip(terms[1 : op.attr], terms[op.attr :], strict=True):
            total = total * extent + index
        return total

    def place(self, pointer: Any) -> tuple[tuple[Any, ...], tuple[Limits, ...]]:
        """The indices that a pointer was made with, and the limits of each."""
        z3 = self.terms.z3
        if pointer.code == C.EXTERNAL_PTR and len(pointer.args) > 1:
            base, *args = pointer.args
            limits = tuple([self.limits(base.attr[0], axis) for axis in range(len(args))])
            if pointer.attr == "clamp":
                # An index that is clamped keeps its type. Where the array is empty, 0 is outside.
                wide = [self.terms.as_int(self.values[a]) for a in args]
                low = [
                    z3.If(i >= end, end - 1, i) for i, (_, end) in zip(wide, limits, strict=True)
                ]
                return tuple([z3.If(i < 0, self.zero, i) for i in low]), limits
            return tuple([self.number(a) for a in args]), limits
        if pointer.code == C.SHIFT_PTR:
            return self._shifted(pointer.args[0], pointer.args[1])
        return (), ()

    def _shifted(self, base: Op, offset: Op) -> tuple[tuple[Any, ...], tuple[Limits, ...]]:
        """Of an address in an array that the kernel makes."""
        z3 = self.terms.z3
        if offset.code == C.LINEARIZE:
            args = [self.terms.as_int(self.values[a]) for a in offset.args]
            n: int = offset.attr
            inner = args[n:]
            count = base.attr.count
            for extent in inner:
                count //= extent.as_long()
            ends = [z3.IntVal(count), *inner]
            return tuple(args[:n]), tuple([(self.zero, end) for end in ends])
        few: tuple[Limits, ...] = ()
        if base.code == C.ARRAY_ALLOCA:
            few = ((self.zero, z3.IntVal(base.attr.count)),)
        return (self.terms.as_int(self.values[offset]),), few

    def limits(self, number: int, axis: int) -> Limits:
        param, z3 = self.func.params[number], self.terms.z3
        if param.layout is not None:
            first = param.layout.origin[axis]
            return z3.IntVal(first), z3.IntVal(first + param.layout.shape[axis])
        if axis >= param.ndim:
            return self.zero, z3.IntVal(param.element_shape[axis - param.ndim])
        return self.zero, self.extent(number, axis)
