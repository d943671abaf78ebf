"""make_dual: forward mode, which pairs each float with its derivative.

::

    <f32> $3 = global_load $2             <f32> $3 = global_load $2
                                          <f32> $9 = global_load $8       (the dual's element)
    <f32> $4 = mul $3, $3                 <f32> $4 = mul $3, $3
                                          <f32> $10 = mul $9, $3
                                          <f32> $11 = mul $9, $3
                                          <f32> $12 = add $10, $11
    $5 : global_store $1, $4              $5 : global_store $1, $4
                                          $13 : global_store $7, $12

The kernel keeps all of its effects. Each op with a derivative is followed by the ops that compute
the derivative, from the table in `derivatives`. A local with such values has a second local for
their derivatives. An array or field has the parameter `Param.grad` for its duals, which are read,
stored and added to at the same indices. A value that depends on no dual has the derivative 0, which
is stored with the value and never computed. Loops, ``if`` and ``while`` do not change.

It leaves alone arrays and fields without duals: they are read as constants, and derivatives of
values stored to them are lost. It also leaves alone kernels that are not differentiated in forward
mode. `check_autodiff`, which runs before, refuses constructs without a derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...ir import Block, Builder, Callee, Func, Op, base_of
from ...ir import codes as C
from ...types import DataType
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .derivatives import RULES, tangent


@register("make_dual")
def make_dual(func: Func, cx: PassCx) -> bool:
    """Compute the derivative of every float together with its value (forward mode)."""
    if func.autodiff != "forward" or isinstance(func, Callee):
        return False
    return _Maker(func).run()


class _Maker:
    """The derivatives found so far: tangents of values, duals of addresses."""

    def __init__(self, func: Func) -> None:
        self.func: Final = func
        self.facts: Final = Activity(func)
        self.varied: Final = self.facts.varied
        self.tangents: Final[dict[Op, Op]] = {}
        self.places: Final[dict[Op, Op]] = {}
        self.made = False

    def run(self) -> bool:
        self.block(self.func.body)
        return self.made

    def block(self, block: Block) -> None:
        old, block.ops = block.ops, []
        b = Builder(self.func, block)
        for op in old:
            b.loc = op.loc
            count = len(b.ops)
            if op.code not in _READ_FIRST:
                b.ops.append(op)
                count += 1
            self.op(b, op)
            if op.code in _READ_FIRST:
                b.ops.append(op)
                count += 1
            if len(b.ops) > count:
                self.made = True
            for region in op.regions:
                self.block(region)

    def op(self, b: Builder, op: Op) -> None:
        """Emit what computes the derivative of ``op``."""
        code = op.code
        if code in RULES:
            if op in self.varied and op.type.is_real:
                found = tangent(b, op, [self.tangents.get(a) for a in op.args])
                if found is not None:
                    self.tangents[op] = found
        elif code in _PLACES:
            _PLACES[code](self, b, op)

    def dual(self, b: Builder, ptr: Op) -> Op | None:
        """The address of the dual of the number at ``ptr``, None if it has none."""
        found = self.places.get(ptr)
        if found is not None:
            return found
        root = base_of(ptr)
        if root.code == C.ARG_ADDR:
            if not self.facts.has_adjoint(ptr):
                return None
        elif root not in self.varied:
            return None
        if ptr.code == C.ARG_ADDR:
            number = self.func.params[int(ptr.attr[0])].grad
            return b.emit(C.ARG_ADDR, (), (number, False), ptr.type)
        base = self.dual(b, ptr.args[0])
        assert base is not None
        return b.emit(ptr.code, (base, *ptr.args[1:]), ptr.attr, ptr.type)

    def local(self, b: Builder, op: Op) -> None:
        """A variable, or array of the kernel, for the duals of what ``op`` is."""
        if op in self.varied:
            self.places[op] = b.emit(op.code, (), op.attr, op.type)

    def load(self, b: Builder, op: Op) -> None:
        place = self.dual(b, op.args[0])
        if place is not None:
            self.tangents[op] = b.load(place)

    def value(self, b: Builder, value: Op) -> Op:
        """The derivative of ``value``, 0 if it has none."""
        t = value.type
        assert isinstance(t, DataType)
        found = self.tangents.get(value)
        return b.const(0.0, t) if found is None else found

    def store(self, b: Builder, op: Op) -> None:
        ptr, value = op.args
        place = self.dual(b, ptr)
        if place is not None:
            b.store(place, self.value(b, value))

    def atomic_add(self, b: Builder, op: Op) -> None:
        place = self.dual(b, op.args[0])
        if place is None:
            return
        if op.args[1] in self.tangents:
            self.tangents[op] = b.emit(C.ATOMIC_ADD, (place, self.tangents[op.args[1]]))
        else:  # the value it returns still has a derivative
            self.tangents[op] = b.load(place)

    def atomic_xchg(self, b: Builder, op: Op) -> None:
        place = self.dual(b, op.args[0])
        if place is not None:
            self.tangents[op] = b.emit(C.ATOMIC_XCHG, (place, self.value(b, op.args[1])))

    def reads_first(self, b: Builder, op: Op) -> None:
        """Emitted before the op, because the old value is read before the op changes it."""
        ptr, value = op.args
        place = self.dual(b, ptr)
        if place is None:
            return
        before, change = b.load(ptr), b.load(place)
        self.tangents[op] = change
        if op.code == C.ATOMIC_MUL:
            new = b.binary(C.MUL, change, value)
            if value in self.tangents:
                new = b.binary(C.ADD, new, b.binary(C.MUL, before, self.tangents[value]))
        else:  # the new value wins if it is as good, or the old one is NaN
            code = C.MIN if op.code == C.ATOMIC_MIN else C.MAX
            wins = b.binary(C.CMP_EQ, value, b.binary(code, before, value))
            new = b.select(wins, self.value(b, value), change)
        b.store(place, new)


_READ_FIRST: Final = frozenset({C.ATOMIC_MUL, C.ATOMIC_MIN, C.ATOMIC_MAX})
"""Atomics whose derivative needs what is in memory before they change it."""

_PLACES: Final[dict[int, Callable[[_Maker, Builder, Op], None]]] = {
    C.ALLOCA: _Maker.local,
    C.ARRAY_ALLOCA: _Maker.local,
    C.LOCAL_LOAD: _Maker.load,
    C.GLOBAL_LOAD: _Maker.load,
    C.LOCAL_STORE: _Maker.store,
    C.GLOBAL_STORE: _Maker.store,
    C.ATOMIC_ADD: _Maker.atomic_add,
    C.ATOMIC_XCHG: _Maker.atomic_xchg,
    C.ATOMIC_MUL: _Maker.reads_first,
    C.ATOMIC_MIN: _Maker.reads_first,
    C.ATOMIC_MAX: _Maker.reads_first,
}
