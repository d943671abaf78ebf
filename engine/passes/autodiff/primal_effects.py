"""Removes from a gradient kernel those ops of the forward part that the reverse does not need.

The gradient performs no side effect of the kernel: it stores to no array, prints nothing and
returns nothing. The values that the reverse reads are left of the forward part, and their guards
(bounds checks). One search from there finds all that is needed: operands, the stores to a variable
that is read, pushes and pops of a stack that is read, the ifs and loops around each of them.
"""

from __future__ import annotations

from typing import Final

from ...errors import QuadrantsCompilationError
from ...ir import Block, Func, Op, base_of, walk
from ...ir import codes as C

__all__ = ["delete_unneeded"]

_OWN_MEMORY: Final = frozenset({C.ALLOCA, C.ARRAY_ALLOCA, C.AD_STACK_ALLOCA})
_LOADS: Final = frozenset(
    {C.LOCAL_LOAD, C.GLOBAL_LOAD, C.AD_STACK_LOAD_TOP, C.AD_STACK_LOAD_TOP_ADJ, C.CALL}
)
_JUMPS: Final = frozenset({C.CONTINUE, C.WHILE_CONTROL, C.BREAK})
_MAKES: Final = [C.WRITE[code] or C.ATOMIC[code] or C.STACK[code] for code in range(C.COUNT)]


def delete_unneeded(func: Func, forward: set[Op], again: set[Op], cells: set[Op]) -> None:
    """Delete what neither the reverse nor a check needs.

    forward: the ops of the kernel itself. again: those of them that are differentiated, and set no
    cells: the others did so. Raises QuadrantsCompilationError where a value is needed that only a
    side effect makes.
    """
    _Live(func, forward, again, cells).run()


class _Live:
    def __init__(self, func: Func, forward: set[Op], again: set[Op], cells: set[Op]) -> None:
        self.func = func
        self.forward = forward
        self.again = again
        self.cells = cells
        self.live: set[Op] = set()
        self.todo: list[Op] = []
        self.writers: dict[Op, list[Op]] = {}  # memory of the kernel's own -> what changes it
        self.jumps: dict[Op, list[Op]] = {}  # loop -> jumps in it that belong to it
        self.checks: list[Op] = []  # asserts of the part that fills cells

    def run(self) -> None:
        for op in walk(self.func.body):
            self.classify(op)
        self.spread()
        waiting = self.checks
        while waiting:  # a check stays where what is around it does, and may need more
            left: list[Op] = []
            for op in waiting:
                owner = op.block.owner if op.block is not None else None
                if owner is None or owner in self.live:
                    self.mark(op)
                else:
                    left.append(op)
            if len(left) == len(waiting):
                break
            waiting = left
            self.spread()
        self.sweep(self.func.body)

    def spread(self) -> None:
        """Mark all that the ops in ``todo`` need."""
        live, todo, writers, jumps = self.live, self.todo, self.writers, self.jumps
        while todo:
            op = todo.pop()
            code = op.code
            if op in self.forward:
                self.check(op)
            for a in op.args:
                if a not in live:
                    live.add(a)
                    todo.append(a)
            if code in _LOADS:
                for a in op.args:
                    for writer in writers.pop(base_of(a), ()):
                        self.mark(writer)
            elif C.ATOMIC[code] and base_of(op.args[0]) in writers:
                for writer in writers.pop(base_of(op.args[0])):
                    self.mark(writer)
            elif C.LOOP[code]:
                for jump in jumps.pop(op, ()):
                    self.mark(jump)
            owner = op.block.owner if op.block is not None else None
            if owner is not None:
                self.mark(owner)

    def mark(self, op: Op) -> None:
        if op not in self.live:
            self.live.add(op)
            self.todo.append(op)

    def classify(self, op: Op) -> None:
        """Note what ``op`` changes, or that it stays in any case."""
        code = op.code
        if code == C.ASSERT:
            if op.attr.kind != "user" and op in self.again:
                self.mark(op)
            elif op.attr.kind != "user":
                self.checks.append(op)
        elif code == C.CALL:
            for a in op.args:
                if a.type.is_ptr and base_of(a).code in _OWN_MEMORY:
                    self.writers.setdefault(base_of(a), []).append(op)
        elif _MAKES[code]:
            root = base_of(op.args[0])
            if root.code in _OWN_MEMORY:
                filled = root in self.cells and op in self.again
                if code not in _LOADS and not filled:
                    self.writers.setdefault(root, []).append(op)
            elif op not in self.forward:
                self.mark(op)
        elif code in _JUMPS:
            loop = op.block.owner if op.block is not None else None
            while loop is not None and not C.LOOP[loop.code]:
                loop = loop.block.owner if loop.block is not None else None
            if loop is not None:
                self.jumps.setdefault(loop, []).append(op)

    def check(self, op: Op) -> None:
        """Raise if ``op`` is needed but must not be done again."""
        code = op.code
        what = ""
        if C.ATOMIC[code] and base_of(op.args[0]).code == C.ARG_ADDR:
            what = "the old value of an atomic operation on global memory"
        elif code == C.RAND:
            what = "a random number, and would draw another one"
        elif code == C.CLOCK:
            what = "the time, and would read a later one"
        elif code == C.CALL and not _is_harmless(self.func, op.attr):
            what = "the result of a real function that changes memory or prints"
        if what:
            raise QuadrantsCompilationError.from_loc(
                f"The gradient of this kernel needs {what}", op.loc,
                hint="store the value to an array in another kernel, and read it here",
            )  # fmt: skip

    def sweep(self, block: Block) -> None:
        live = self.live
        block.ops = [op for op in block.ops if op in live]
        for op in block.ops:
            for region in op.regions:
                self.sweep(region)


def _is_harmless(func: Func, name: str) -> bool:
    """True if a real function, and those that it calls, may run once more."""
    seen, left = {name}, [name]
    while left:
        for op in walk(func.callees[left.pop()].body):
            code = op.code
            if code in (C.PRINT, C.RAND, C.CLOCK):
                return False
            if (C.WRITE[code] or C.ATOMIC[code]) and base_of(op.args[0]).code not in _OWN_MEMORY:
                return False
            if code == C.CALL and op.attr not in seen:
                seen.add(op.attr)
                left.append(op.attr)
    return True
