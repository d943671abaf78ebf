"""Which values depend on what is differentiated by, and which what is differentiated depends on.

`Dependence` looks at a whole kernel in typed IR, before anything of its derivative is there.

    varied    values that depend, through real numbers, on an element of an array or field that has
              adjoints (duals); local variables and arrays of the kernel that hold such values
    useful    values on which an element that has adjoints depends; locals that hand them on
    active    both: what a derivative flows through

A dependence through an integer, a comparison or a step has a derivative of zero and is none. Loops
need no care: a local is varied if any store to it is, wherever that stands.
"""

from __future__ import annotations

from typing import Final

from ...ir import Func, Op, walk
from ...ir import codes as C
from ...types import PointerType
from .derivatives import RULES, flows

__all__ = ["Dependence", "root_of"]

_LOADS: Final = frozenset(
    {C.LOCAL_LOAD, C.GLOBAL_LOAD, C.AD_STACK_LOAD_TOP} | {c for c in range(C.COUNT) if C.ATOMIC[c]}
)
_STORES: Final = frozenset(
    {C.LOCAL_STORE, C.GLOBAL_STORE} | {c for c in range(C.COUNT) if C.ATOMIC[c]}
)


def root_of(ptr: Op) -> Op:
    """What an address is in: an `arg_addr`, an `alloca`, an `array_alloca` or a `call_arg`."""
    while ptr.code in (C.EXTERNAL_PTR, C.SHIFT_PTR):
        ptr = ptr.args[0]
    return ptr


class Dependence:
    """See the module docstring. ops: all ops of the kernel's own body, in program order."""

    def __init__(self, func: Func) -> None:
        self.func: Final = func
        self.ops: Final = walk(func.body)
        self.with_grad: Final = frozenset(
            [i for i, p in enumerate(func.params) if p.grad >= 0 and p.dtype.is_real]
        )
        self._touching: Final = {name: self._touches(name) for name in func.callees}
        self.varied: Final = self._find_varied()
        self.useful: Final = self._find_useful()

    @property
    def active(self) -> set[Op]:
        """What a derivative flows through."""
        return self.varied & self.useful

    def has_grad(self, ptr: Op) -> bool:
        """Whether the element at this address has an adjoint or a dual."""
        root = root_of(ptr)
        return root.code == C.ARG_ADDR and root.attr[0] in self.with_grad and not root.attr[1]

    def touches(self, call: Op) -> bool:
        """Whether a call of a real function reads or writes elements with adjoints."""
        return self._touching[call.attr]

    def _touches(self, name: str) -> bool:
        """Whether a real function, or one that it calls, takes the address of such an array."""
        callees, seen, left = self.func.callees, {name}, [name]
        while left:
            for op in walk(callees[left.pop()].body):
                if op.code == C.ARG_ADDR and op.attr[0] in self.with_grad:
                    return True
                if op.code == C.CALL and op.attr not in seen:
                    seen.add(op.attr)
                    left.append(op.attr)
        return False

    def _find_varied(self) -> set[Op]:
        varied: set[Op] = set()
        ops = [op for op in self.ops if self._may_vary(op)]
        before = -1
        while before != len(varied):  # again while another local was found to vary
            before = len(varied)
            for op in ops:
                if op not in varied and self._varies(op, varied):
                    varied.add(op)
                if op.code in _STORES and op.args[1] in varied:
                    place = root_of(op.args[0])
                    if place.code != C.ARG_ADDR:
                        varied.add(place)
        return varied

    def _may_vary(self, op: Op) -> bool:
        return op.type.is_real or op.code in _STORES or op.code in (C.CALL, C.CAST_BITS)

    def _varies(self, op: Op, varied: set[Op]) -> bool:
        code = op.code
        if code in RULES:
            if code == C.CAST_BITS:
                return op.args[0] in varied
            return any(op.args[i] in varied for i in flows(op))
        if code in _LOADS and op.type.is_real:
            return self.has_grad(op.args[0]) or root_of(op.args[0]) in varied
        if code == C.CALL:
            return self.touches(op) or any(root_of(a) in varied for a in op.args)
        return False

    def _find_useful(self) -> set[Op]:
        useful: set[Op] = set()
        ops = [op for op in reversed(self.ops) if self._may_vary(op)]
        before = -1
        while before != len(useful):
            before = len(useful)
            for op in ops:
                self._use(op, useful)
        return useful

    def _use(self, op: Op, useful: set[Op]) -> None:
        """Note what ``op`` makes useful, if it is itself."""
        code = op.code
        if code in _STORES:
            if op.args[1].type.is_real:
                place = root_of(op.args[0])
                if op in useful and place.code != C.ARG_ADDR:
                    useful.add(place)
                if self.has_grad(op.args[0]) or place in useful:
                    useful.add(op.args[1])
        elif code == C.CALL:
            if self.touches(op) or op in useful:
                useful.update([a for a in op.args if _is_real(a)])
        elif op in useful:
            if code in RULES:
                useful.update([op.args[0]] if code == C.CAST_BITS else
                              [op.args[i] for i in flows(op)])  # fmt: skip
            elif code in _LOADS and (place := root_of(op.args[0])).code != C.ARG_ADDR:
                useful.add(place)


def _is_real(op: Op) -> bool:
    t = op.type
    return t.elem.is_real if isinstance(t, PointerType) else t.is_real
