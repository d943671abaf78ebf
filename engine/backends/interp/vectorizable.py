"""Finds the parallel tasks that can run over arrays of iterations, and the facts for such a run.

`refusal` says why a task cannot; the kinds of its ops alone decide that, so it costs a kernel
next to nothing. `Facts` are found when a task first runs this way:

* an op is *varying* if iterations may differ in its value; all others are computed once;
* a *space* of memory (an array, its gradient, one global temporary) is of one of three kinds:

      READ    the task only loads from it: the order of loads does not matter
      BLIND   the task only stores to it, or only applies one kind of atomic whose result is not
              used: what happens to an element depends on the order of these ops alone, so they
              can be kept and done afterwards, in the order of iterations
      SHARED  everything else: each access checks that it is not too late (`vector_run.Run.touch`)

* a loop *splits* its lanes if some of them can leave it, or go on to the next iteration, from
  inside of a branch that others do not take.
"""

from __future__ import annotations

from typing import Final

from ...analysis import is_parallel, use_counts
from ...ir import Block, Func, Op, base_of, walk
from ...ir import codes as C
from ...types import PointerType

__all__ = ["BLIND", "READ", "SHARED", "Facts", "Key", "refusal"]

READ: Final = "read"
BLIND: Final = "blind"
SHARED: Final = "shared"

Key = Op | tuple[Op, int]
"""A value that has a name: of an op, or the index of a loop along an axis."""

_CODES: Final = frozenset({
    C.CONST, C.ALLOCA, C.ARRAY_ALLOCA, C.LOCAL_LOAD, C.LOCAL_STORE, C.ARG_LOAD, C.ARG_ADDR,
    C.EXTERNAL_PTR, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.LINEARIZE, C.SHIFT_PTR, C.GLOBAL_LOAD,
    C.GLOBAL_STORE, C.GLOBAL_TMP, C.LAUNCH_SEED, C.LOOP_INDEX, C.SELECT, C.IF, C.RANGE_FOR,
    C.WHILE, C.WHILE_CONTROL, C.BREAK, C.CONTINUE, C.ASSERT,
    *(c for c in range(C.COUNT) if C.UNARY[c] or C.BINARY[c] or C.ATOMIC[c]),
})  # fmt: skip
_LEAVES: Final = frozenset({C.WHILE_CONTROL, C.BREAK, C.CONTINUE})
_PURE_ATOMICS: Final = frozenset({
    C.ATOMIC_ADD, C.ATOMIC_MUL, C.ATOMIC_MIN, C.ATOMIC_MAX, C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR,
    C.ATOMIC_BIT_XOR, C.ATOMIC_XCHG,
})  # fmt: skip


def refusal(func: Func, task: Op) -> str:
    """Return why ``task`` runs one iteration after the other; empty if it need not."""
    if task.code != C.OFFLOADED or not is_parallel(func, task):
        return "it is no parallel task"
    known: set[Op] = {task}
    for op in walk(task.regions[1]):
        if op.code not in _CODES:
            return f"it has {op.name}"
        if op.code == C.ARRAY_ALLOCA and op.attr.space != "private":
            return "iterations share an array"
        if not known.issuperset(op.args):
            return "it uses a value from outside of it"
        known.add(op)
    return ""


class Facts:
    """The facts that a run over arrays needs of a task that `refusal` does not refuse.

    varying: ops, and loops whose bounds vary. kinds: of each space, by `space`. deferred: the BLIND
    spaces whose ops must wait: not those with only one op, outside of loops, nor those where the
    order means nothing (integers). lengthy: an op that must wait is in a loop. bases: the op
    where addresses into a space begin; written: the spaces that are changed. uses: how often the
    value of an op is used. position: of each op in program order; last: that of a value's last use.
    split, leaving: the loops (or the task) that split their lanes, and those that lanes can leave
    or cut short at all. leaves_in: the ifs that they do so from. private: scalars in the arrays of
    an iteration. problem: why the task cannot be run so after all.
    """

    def __init__(self, task: Op) -> None:
        self.task: Final = task
        self.body: Final[Block] = task.regions[1]
        self.varying: Final[set[Op]] = {task}
        self.kinds: Final[dict[object, str]] = {}
        self.deferred: Final[set[object]] = set()
        self.lengthy = False
        self.position: Final[dict[Op, int]] = {}
        self.last: Final[dict[Key, int]] = {}
        self.split: Final[set[Op]] = set()
        self.leaving: Final[set[Op]] = set()
        self.leaves_in: Final[set[Op]] = set()
        self.bases: Final[dict[object, Op]] = {}
        self.written: Final[set[object]] = set()
        self.uses: Final = use_counts(self.body)
        self.problem = ""
        ops = walk(self.body)
        self.private: Final = sum(op.attr.count for op in ops if op.code == C.ARRAY_ALLOCA)
        self._spaces(ops)
        self._find_varying(ops)
        for number, op in enumerate(ops):
            self.position[op] = number
            for key in keys_of(op):
                self.last[key] = number
        self._find_leaves(self.body, task, [], False)

    @staticmethod
    def space(pointer: Op) -> object:
        """The key of the memory space that addresses point into."""
        base = base_of(pointer)
        if base.code == C.ARG_ADDR:
            return base.attr
        if base.code == C.GLOBAL_TMP:
            elem = base.type.elem if isinstance(base.type, PointerType) else None
            return "tmp", base.attr, elem
        return base  # of one iteration alone

    def own(self, pointer: Op) -> bool:
        """True if only the iteration itself sees the memory."""
        return base_of(pointer).code in (C.ALLOCA, C.ARRAY_ALLOCA)

    def _spaces(self, ops: list[Op]) -> None:
        uses: dict[object, list[Op]] = {}
        for op in ops:
            code = op.code
            if code == C.GLOBAL_LOAD or C.WRITE[code] or C.ATOMIC[code]:
                pointer = op.args[0]
                if not self.own(pointer):
                    space = self.space(pointer)
                    self.bases[space] = base_of(pointer)
                    uses.setdefault(space, []).append(op)
        for space, users in uses.items():
            codes = {op.code for op in users}
            if codes == {C.GLOBAL_LOAD}:
                self.kinds[space] = READ
                continue
            self.written.add(space)
            (code,) = codes if len(codes) == 1 else (C.GLOBAL_LOAD,)
            blind = code == C.GLOBAL_STORE or code in _PURE_ATOMICS
            if blind and not any(self.uses.get(op) for op in users):
                self.kinds[space] = BLIND
                in_loop = any(_in_loop(op, self.task) for op in users)
                ordered = code in (C.GLOBAL_STORE, C.ATOMIC_XCHG) or users[0].type.is_real
                if ordered and (in_loop or len(users) > 1):
                    self.deferred.add(space)
                    self.lengthy = self.lengthy or in_loop
            else:
                self.kinds[space] = SHARED

    def _find_varying(self, ops: list[Op]) -> None:
        varying = self.varying
        for op in ops:
            code = op.code
            if code == C.LOCAL_LOAD or C.ATOMIC[code]:
                varies = True
            elif code == C.GLOBAL_LOAD:
                pointer = op.args[0]
                varies = (
                    pointer in varying
                    or self.own(pointer)
                    or self.kinds[self.space(pointer)] != READ
                )
            else:
                varies = any(a in varying for a in op.args)
            if varies:
                varying.add(op)
                if code == C.RANGE_FOR and len(op.args) > 2:
                    self.problem = "a loop over several axes has bounds that vary"

    def _find_leaves(self, block: Block, loop: Op, above: list[Op], branched: bool) -> None:
        """Note how lanes can leave ``loop``; above: the ifs around ``block`` inside of it."""
        for op in block.ops:
            if op.code in _LEAVES:
                self.leaving.add(loop)
                self.leaves_in.update(above)
                if branched or op.code != C.WHILE_CONTROL:
                    self.split.add(loop)
            elif op.code == C.IF:
                inside = branched or op.args[0] in self.varying
                for region in op.regions:
                    self._find_leaves(region, loop, [*above, op], inside)
            elif C.LOOP[op.code]:
                self._find_leaves(op.regions[0], op, [], False)


def keys_of(op: Op) -> list[Key]:
    """The values that an op itself uses."""
    if op.code == C.LOOP_INDEX:
        return [(op.args[0], op.attr)]
    return list(op.args)


def _in_loop(op: Op, task: Op) -> bool:
    owner = op.block.owner if op.block is not None else None
    while owner is not None and owner is not task:
        if C.LOOP[owner.code]:
            return True
        owner = owner.block.owner if owner.block is not None else None
    return False
