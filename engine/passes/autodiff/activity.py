"""Activity: the values and variables that a derivative flows through, which have adjoints.

A value is *varied* when it depends, through floats, on an element of an array that has adjoints,
and *useful* when such an element depends on it. It is active when it is both. A variable or an
array of the kernel is varied if any store to it is. The derivative of an integer, of a comparison
or of a step is zero, so no dependence passes through them.

An op has an *effect* when the reverse has work to do for it: it is active memory traffic, it stores
to an element with an adjoint (which is 0 after that), it keeps a value on a stack, or something
inside of it has an effect.
"""

from __future__ import annotations

from typing import Final

from ...ir import Func, Op, base_of, walk
from ...ir import codes as C
from .derivatives import RULES, flows
from .segments import cells_of, reversed_part

__all__ = ["Activity"]

_UPDATES: Final = frozenset({C.LOCAL_STORE, C.GLOBAL_STORE}) | {
    code for code in range(C.COUNT) if C.ATOMIC[code]
}
_LOADS: Final = frozenset({C.LOCAL_LOAD, C.GLOBAL_LOAD})


class Activity:
    """See the module docstring. active: values and variables; effects: ops.

    flat: all ops that are differentiated, in program order. cells: see `cells`.
    """

    def __init__(self, func: Func) -> None:
        self.func: Final = func
        part = reversed_part(func)
        self.cells: Final = cells_of(func)
        self.flat: Final = [
            o for op in part for o in (op, *[i for r in op.regions for i in walk(r)])
        ]
        self.with_adjoint: Final = frozenset(
            [i for i, p in enumerate(func.params) if p.grad >= 0 and p.dtype.is_real]
        )
        self.varied: Final[set[Op]] = set()
        self.active: Final[set[Op]] = set()
        self.effects: Final[set[Op]] = set()
        self._find_varied()
        self._find_active()
        self._find_effects(part)

    def has_adjoint(self, ptr: Op) -> bool:
        """True if ``ptr`` is the address of an array element that has an adjoint."""
        root = base_of(ptr)
        return root.code == C.ARG_ADDR and root.attr[0] in self.with_adjoint and not root.attr[1]

    def _find_varied(self) -> None:
        varied, rules = self.varied, RULES
        work = [
            op for op in self.flat
            if op.type.is_real or (op.code in _UPDATES and op.args[1].type.is_real)
        ]  # fmt: skip
        changed = True
        while changed:  # again when a variable varies that was read before that was known
            changed = False
            for op in work:
                code = op.code
                if code in rules:
                    if op not in varied:
                        args = op.args
                        for i in flows(op):
                            if args[i] in varied:
                                varied.add(op)
                                break
                elif code in _LOADS:
                    ptr = op.args[0]
                    if op not in varied and (self.has_adjoint(ptr) or base_of(ptr) in varied):
                        varied.add(op)
                elif code in _UPDATES:
                    root = base_of(op.args[0])
                    if op.args[1] in varied and root not in varied and root.code != C.ARG_ADDR:
                        varied.add(root)
                        changed = True
                    if op not in varied and (self.has_adjoint(op.args[0]) or root in varied):
                        varied.add(op)  # the old value that an atomic returns

    def _find_active(self) -> None:
        varied, active, rules = self.varied, self.active, RULES
        work = [
            op for op in reversed(self.flat)
            if op in varied or (op.code in _UPDATES and op.args[1] in varied)
        ]  # fmt: skip
        changed = True
        while changed:
            changed = False
            for op in work:
                code = op.code
                if code in _UPDATES:
                    value = op.args[1]
                    if value in varied and value not in active:
                        ptr = op.args[0]
                        if self.has_adjoint(ptr) or base_of(ptr) in active:
                            active.add(value)
                if op in active:
                    if code in rules:
                        args = op.args
                        active.update([args[i] for i in flows(op) if args[i] in varied])
                    elif code in _LOADS or code in _UPDATES:
                        root = base_of(op.args[0])
                        if root not in active and root in varied:
                            active.add(root)
                            changed = True

    def _find_effects(self, ops: list[Op]) -> bool:
        active, effects = self.active, self.effects
        found = False
        for op in ops:
            code = op.code
            if op.regions:
                inside = False
                for region in op.regions:
                    inside |= self._find_effects(region.ops)
                if not inside:
                    continue
            elif code in _LOADS:
                if op not in active:
                    continue
            elif code == C.LOCAL_STORE:
                if op.args[0] not in active:
                    continue
            elif code == C.GLOBAL_STORE:
                if not (self.has_adjoint(op.args[0]) or base_of(op.args[0]) in active):
                    continue
            elif C.ATOMIC[code]:
                if op.args[1] not in active and op not in active:
                    continue
            elif code != C.AD_STACK_PUSH:
                continue
            effects.add(op)
            found = True
        return found
