"""Reads and writes of one array that a gradient cannot take apart: errors of reverse mode.

The gradient of a parallel loop is a parallel loop, and reads arrays as the kernel left them. So

* in a loop at the root, one iteration may not write an element that another one reads, for their
  order cannot be turned around. A write and a read are fine if their indices are equal on every
  axis; if on some axis they are the same value in all iterations plus different constants (rows in
  time, components); or if they contain the indices of the loop in the same way, so that each
  iteration has a part of the array for itself;
* an element that was read may not be overwritten later, if the gradient needs what was read (the
  global data access rule). Found are writes to the same indices after the read, or before it in a
  loop that comes back to them. Anything else, and what happens between kernels, is found when the
  kernels run under ``qd.ad.Tape(validation=True)``.
"""

from __future__ import annotations

from typing import Final

from ...analysis import MemoryLocations, contains, enclosing_loops, is_invariant
from ...errors import QuadrantsCompilationError
from ...ir import Func, Op, base_of, walk
from ...ir import codes as C
from .activity import Activity
from .independent_blocks import is_parallel
from .rerun import Rerun

__all__ = ["check_accesses"]

_DEPTH: Final = 64
"""Chains of operations are looked into as far as this."""

_CROSS: Final = (
    "Cross-iteration read-after-write on the `needs_grad` global {kind} `{name}` at the "
    "offload-level loop body is not supported in reverse-mode autodiff: an iteration may read here "
    "what another one writes at line {line}, and the gradient runs them in no order"
)
_OVERWRITTEN: Final = (
    "Breaks the global data access rule. {kind} {name} is overwritten at line {line} after it was "
    "read here, and the gradient needs what was read"
)


def check_accesses(func: Func, activity: Activity, rerun: Rerun) -> None:
    """Raise for the first read that is in the way of a write, or the other way round."""
    _Accesses(func, activity, rerun).run()


class _Accesses:
    def __init__(self, func: Func, activity: Activity, rerun: Rerun) -> None:
        self.func: Final = func
        self.activity: Final = activity
        self.needed: Final = rerun.needed
        self.memory: Final = MemoryLocations(func)
        self.order: Final = {op: i for i, op in enumerate(activity.flat)}
        self.numbers: Final[dict[Op, int]] = {}
        self.known: Final[dict[object, int]] = {}
        self.writes: Final[dict[int, list[Op]]] = {}
        for op in activity.flat:
            if op.code == C.GLOBAL_STORE or (C.ATOMIC[op.code] and not _changes_nothing(op)):
                number = _array(op)
                if number >= 0:
                    self.writes.setdefault(number, []).append(op)

    def run(self) -> None:
        if not self.writes:
            return
        for root in self.func.body.ops:
            if is_parallel(root) and not _runs_once(root):
                self.iterations(root)
        for op in self.activity.flat:
            if op.code == C.GLOBAL_LOAD and op in self.needed:
                for write in self.writes.get(_array(op), ()):
                    if self.overwrites(write, op):
                        self.refuse(_OVERWRITTEN, op, write,
                                    "write to another array, or to another row of it")  # fmt: skip

    def refuse(self, text: str, read: Op, write: Op, hint: str) -> None:
        param = self.func.params[_array(read)]
        kind = "field" if param.kind == "field" else "ndarray"
        if text is _OVERWRITTEN:
            kind = "Field" if param.kind == "field" else "Array"
        shown = text.format(kind=kind, name=param.name, line=write.loc.line)
        raise QuadrantsCompilationError.from_loc(shown, read.loc, hint=hint)

    # --- iterations of a parallel loop -----------------------------------------------------

    def iterations(self, loop: Op) -> None:
        """No iteration reads what another one writes."""
        active, needed = self.activity.active, self.needed
        inside = walk(loop.regions[0])
        members = set(inside)
        for op in inside:
            if op.code != C.GLOBAL_LOAD or (op not in active and op not in needed):
                continue
            if not self.activity.has_adjoint(op.args[0]):
                continue
            for write in self.writes.get(_array(op), ()):
                if write in members and not self.disjoint(op.args[0], write.args[0], loop):
                    self.refuse(_CROSS, op, write,
                                "put the loop inside another one (for _ in range(1): ...), or "
                                "write to another array")  # fmt: skip

    def disjoint(self, read: Op, write: Op, loop: Op) -> bool:
        """True if two addresses are the same, or of different elements in different iterations."""
        a, b = self.memory.location(read), self.memory.location(write)
        if a is b:
            return True
        if len(a.indices) != len(b.indices) or read.attr != "unsafe" != write.attr:
            return False
        own: set[int] = set()
        for k, ((base, shift), (other, another)) in enumerate(
            zip(a.indices, b.indices, strict=True)
        ):
            if base != other:
                continue
            value = _base(read.args[k + 1])
            if shift != another:
                if value is None or is_invariant(value, loop):
                    return True
            elif value is not None and value.code == C.LOOP_INDEX and value.args[0] is loop:
                own.add(value.attr)
        return len(own) == len(loop.args) // 2

    # --- the global data access rule -------------------------------------------------------

    def overwrites(self, write: Op, read: Op) -> bool:
        """True if ``write`` certainly, or in some iteration, changes the element that was read."""
        mine, theirs = read.args[0], write.args[0]
        order = self.order
        if self.memory.location(mine) is self.memory.location(theirs):
            if order[read] < order[write] and not _exclusive(read, write):
                return True
            return self.comes_back(read, write)
        if not (_always(read) and _always(write)):
            return False
        if self.number(mine) != self.number(theirs):
            return False
        return order[read] < order[write] or self.comes_back(read, write)

    def comes_back(self, read: Op, write: Op) -> bool:
        """True if a loop around both, in some order, accesses the same elements again."""
        for loop in enclosing_loops(read.block):
            if loop.code != C.RANGE_FOR or _runs_once(loop) or not contains(loop, write):
                continue
            if not self.varies(read.args[0], loop, {}):
                return True
        return False

    def number(self, op: Op, depth: int = 0) -> int:
        """One number for all values that run through the same ones, over the loops around them."""
        found = self.numbers.get(op)
        if found is None:
            key: object = op
            if op.code == C.LOOP_INDEX and op.args[0].code == C.RANGE_FOR:
                bounds = op.args[0].args[2 * op.attr : 2 * op.attr + 2]
                key = ("index", *[self.number(b, depth + 1) for b in bounds])
            elif C.PURE[op.code] and op.code != C.LOOP_INDEX and depth < _DEPTH:
                key = (op.code, repr(op.attr), *[self.number(a, depth + 1) for a in op.args])
            found = self.numbers[op] = self.known.setdefault(key, len(self.known))
        return found

    def varies(self, op: Op, loop: Op, known: dict[Op, bool], depth: int = 0) -> bool:
        """True if ``op`` runs through different values in different iterations of ``loop``.

        known: answers for this loop.
        """
        found = known.get(op)
        if found is None:
            if not contains(loop, op):
                found = False
            elif op.code == C.LOOP_INDEX and op.args[0].code == C.RANGE_FOR:
                inner: Op = op.args[0]
                bounds = inner.args[2 * op.attr : 2 * op.attr + 2]
                found = inner is loop or any(self.varies(x, loop, known, depth) for x in bounds)
            elif not C.PURE[op.code] or depth >= _DEPTH:
                found = True
            else:
                found = any(self.varies(x, loop, known, depth + 1) for x in op.args)
            known[op] = found
        return found


def _array(op: Op) -> int:
    """The number of the parameter that a load or update touches, -1 for other memory."""
    root = base_of(op.args[0])
    return int(root.attr[0]) if root.code == C.ARG_ADDR and not root.attr[1] else -1


def _changes_nothing(op: Op) -> bool:
    """True if an atomic stands for a read that must happen each time."""
    value = op.args[1]
    return op.code == C.ATOMIC_ADD and value.code == C.CONST and value.attr == 0


def _base(index: Op) -> Op | None:
    """An index without the constants that are added to it; None if it is one."""
    while True:
        if index.code == C.CONST:
            return None
        if index.code not in (C.ADD, C.SUB):
            return index
        a, b = index.args
        if b.code == C.CONST:
            index = a
        elif a.code == C.CONST and index.code == C.ADD:
            index = b
        else:
            return index


def _exclusive(a: Op, b: Op) -> bool:
    """True if two ops are in different branches of an if."""
    regions: set[object] = set()
    block = a.block
    while block is not None and block.owner is not None:
        if block.owner.code == C.IF:
            regions.add(block)
        block = block.owner.block
    block = b.block
    while block is not None and block.owner is not None:
        owner = block.owner
        if owner.code == C.IF and block not in regions and regions & set(owner.regions):
            return True
        block = owner.block
    return False


def _always(op: Op) -> bool:
    """True if only loops over ranges are around ``op``."""
    block = op.block
    while block is not None and block.owner is not None:
        if block.owner.code != C.RANGE_FOR:
            return False
        block = block.owner.block
    return True


def _runs_once(loop: Op) -> bool:
    """True if a loop is known to have at most one iteration."""
    begin, end, *more = loop.args
    if more or begin.code != C.CONST or end.code != C.CONST:
        return False
    return end.attr - begin.attr <= 1
