"""The values that a gradient kernel computes once more, because its derivatives are made of them.

The gradient of a kernel begins as the kernel itself, without its effects on memory. It keeps what
the reverse needs: the values that the rules of derivatives read, the indices of elements whose
adjoints are touched, the conditions and bounds of ops with an effect; and all that these are
computed from, through local variables too. `Rerun.needed` holds all of it. Everything else in the
kernel could be missing, so no rule applies to it.
"""

from __future__ import annotations

from typing import Final

from ...ir import Block, Func, Op, base_of
from ...ir import codes as C
from .activity import Activity
from .derivatives import RULES, flows, needs

__all__ = ["Rerun"]

_UPDATES: Final = frozenset({C.LOCAL_STORE, C.GLOBAL_STORE}) | {
    code for code in range(C.COUNT) if C.ATOMIC[code]
}


class Rerun:
    """See the module docstring. needed: values, and the local variables that hold some.

    The op that needs a value is remembered, so that `why` can report it.
    """

    def __init__(self, func: Func, activity: Activity) -> None:
        self.activity: Final = activity
        self.needed: Final[dict[Op, Op | None]] = {}  # -> what it is needed for
        self._stores: Final[dict[Op, list[Op]]] = {}
        for op in activity.flat:
            if op.code in _UPDATES:
                root = base_of(op.args[0])
                if root.code != C.ARG_ADDR:
                    self._stores.setdefault(root, []).append(op)
        self._roots()
        self._close()

    def _roots(self) -> None:
        active, effects = self.activity.active, self.activity.effects
        for op in self.activity.flat:
            if op in effects:
                for x in _controls(op):
                    self.needed.setdefault(x, op)
            elif op in active and op.code in RULES:
                for i in flows(op):
                    if op.args[i] in active:
                        for x in needs(op, i):
                            self.needed.setdefault(x, op)

    def _close(self) -> None:
        """Add what needed values are made of."""
        left = list(self.needed)
        needed = self.needed

        def need(x: Op, user: Op) -> None:
            if x not in needed:
                needed[x] = user
                left.append(x)

        while left:
            op = left.pop()
            for a in op.args:
                need(base_of(a) if a.type.is_ptr and base_of(a).code != C.ARG_ADDR else a, op)
            for store in self._stores.get(op, ()):
                need(store.args[1], store)
                for a in _around(store):
                    need(a, store)

    def why(self, op: Op) -> str:
        """For a message: what a needed value is needed for."""
        user = self.needed[op]
        seen: set[Op] = set()
        while user is not None and user not in seen:
            seen.add(user)
            if user.code == C.IF:
                return f"the condition at line {user.loc.line} depends on it"
            if user.code == C.RANGE_FOR:
                return f"the bounds of the loop at line {user.loc.line} depend on it"
            if user in self.activity.active and user.code in RULES:
                return f"the derivative of {user.name} at line {user.loc.line} needs it"
            if user in self.activity.effects:
                return f"the index at line {user.loc.line} depends on it"
            user = self.needed.get(user)
        return "the gradient needs it"


def _controls(op: Op) -> tuple[Op, ...]:
    """The values that decide where the reverse of ``op`` happens."""
    if op.code in (C.IF, C.RANGE_FOR):
        return op.args
    found: list[Op] = []
    ptr = op.args[0] if op.args else None
    while ptr is not None and ptr.code in (C.EXTERNAL_PTR, C.SHIFT_PTR):
        found += ptr.args[1:]
        ptr = ptr.args[0]
    return tuple(found)


def _around(op: Op) -> list[Op]:
    """Conditions and bounds of the ifs and loops around ``op``, and what leaves the whiles."""
    found: list[Op] = []
    block = op.block
    while block is not None and block.owner is not None:
        owner = block.owner
        found += owner.args
        if owner.code == C.WHILE:
            found += _leaving(owner.regions[0])
        block = owner.block
    return found


def _leaving(block: Block) -> list[Op]:
    found: list[Op] = []
    for op in block.ops:
        if op.code == C.WHILE_CONTROL:
            found += op.args
        for region in op.regions:
            if op.code != C.WHILE:
                found += [*op.args, *_leaving(region)]
    return found
