"""The writes to each variable and stack of a kernel, and the write that a load sees.

`ReachingWrites` analyses a function once. Variables (`alloca`), stacks (`ad_stack_alloca`) and
arrays that the kernel makes (`array_alloca`) are *allocas*: `writes` returns the ops that change
one, in program order, and `seen_by` the one whose value a load certainly has.
"""

from __future__ import annotations

from typing import Final

from ..ir import Func, Op, base_of
from ..ir import codes as C
from ..ir.edit import walk

__all__ = ["CHANGES_STACK", "ReachingWrites"]

CHANGES_STACK: Final = frozenset({C.AD_STACK_PUSH, C.AD_STACK_POP})
_ALLOCAS: Final = frozenset({C.ALLOCA, C.AD_STACK_ALLOCA, C.ARRAY_ALLOCA})
_JUMPS: Final = frozenset({C.CONTINUE, C.WHILE_CONTROL})
_LOADS: Final = frozenset({
    C.LOCAL_LOAD, C.GLOBAL_LOAD, C.AD_STACK_LOAD_TOP, C.AD_STACK_LOAD_TOP_ADJ,
    C.AD_STACK_ACC_ADJOINT,
})  # fmt: skip


class ReachingWrites:
    """See the module docstring.

    order: number of each op in program order. writes: of an alloca. written: numbers of the array
    parameters that some op of the kernel changes. jumping: ops in which an iteration may end early.
    """

    def __init__(self, func: Func) -> None:
        self.order: dict[Op, int] = {}
        self.writes: dict[Op, list[Op]] = {}
        self.written: set[int] = set()
        self.jumping: set[Op] = set()
        for n, op in enumerate(walk(func.body)):
            self.order[op] = n
            code = op.code
            if code in _JUMPS:
                self.jumping.update(self.owners(op))
            elif code in CHANGES_STACK or C.WRITE[code] or C.ATOMIC[code]:
                self.add(op.args[0], op)
            elif not C.PURE[code] and code not in _LOADS:
                for a in op.args:  # a callee, or what is not known, may write through an address
                    if a.type.is_ptr:
                        self.add(a, op)

        for callee in func.callees.values():
            for op in walk(callee.body):
                if C.WRITE[op.code] or C.ATOMIC[op.code]:
                    self.add(op.args[0], op)

    def add(self, ptr: Op, op: Op) -> None:
        ptr = base_of(ptr)
        if ptr.code in _ALLOCAS:
            self.writes.setdefault(ptr, []).append(op)
        elif ptr.code == C.ARG_ADDR:
            self.written.add(ptr.attr[0])

    def owners(self, op: Op) -> list[Op]:
        """The ops around ``op``, innermost first."""
        found: list[Op] = []
        block = op.block
        while block is not None and block.owner is not None:
            found.append(block.owner)
            block = block.owner.block
        return found

    def loops(self, op: Op, outside: Op | None = None) -> list[Op]:
        """The loops around ``op``, outermost first; without those around ``outside`` too."""
        around = self.owners(op)
        common = set(self.owners(outside)) if outside is not None else set[Op]()
        return [o for o in reversed(around) if o.code == C.RANGE_FOR and o not in common]

    def seen_by(self, load: Op, alloca: Op) -> Op | None:
        """The write whose value ``load`` certainly has; the alloca itself if no write came before.

        None if that depends: on a branch, on whether a loop ran, or on an iteration before.
        """
        writes = self.writes.get(alloca, [])
        at = self.order[load]
        before = [w for w in writes if self.order[w] < at]
        last = before[-1] if before else alloca
        around: list[Op] = []  # what is around the load, and inside of the block of the write
        block = load.block
        while block is not last.block:
            if block is None or block.owner is None:
                return None  # the write is in a branch or loop that the load is not in
            around.append(block.owner)
            block = block.owner.block
        for owner in around:
            if C.LOOP[owner.code] and any(owner in self.owners(w) for w in writes):
                return None
        return last
