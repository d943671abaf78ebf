"""Cells: values that cross from one segment of the root to another, as variables set once.

A variable that several segments use, or a parallel loop, has versions. Each segment that changes it
makes one; those after it read that. A value that another segment uses becomes such a variable too.

    a serial run      works on a variable of its own, which begins as a copy of the last version
    a parallel loop   only reads, or only adds; then it adds to a copy of the last version

So a cell does not change any more once it is set, and the reverse of any segment can read it.
`front`: the cells. `segments`: the root, in the order of the kernel.
"""

from __future__ import annotations

from typing import Final

from ...errors import QuadrantsCompilationError
from ...ir import Builder, Func, Op, walk
from ...ir import codes as C
from ...ir.edit import clone
from ...types import DataType, PointerType
from .names import name_of
from .segments import FENCE, is_parallel

__all__ = ["Cells"]

_MEMORY: Final = frozenset({C.ALLOCA, C.ARRAY_ALLOCA})


class Cells:
    """See the module docstring."""

    def __init__(self, func: Func, segments: list[list[Op]]) -> None:
        self.func: Final = func
        self.segments = segments
        self.front: Final[list[Op]] = []
        self.home: Final = {op: k for k, ops in enumerate(segments) for op in ops}
        self.version: Final[dict[Op, Op]] = {}  # crossing variable or value -> the cell it is in
        self.variables: Final[dict[Op, None]] = {}
        self.values: Final[dict[Op, None]] = {}

    def run(self) -> list[Op]:
        """Bring the segments into this form.

        Return the part that fills the cells, and the fence.
        """
        self._find_crossing()
        if not self.variables and not self.values:
            return []
        out: list[list[Op]] = []
        after_run = False
        for k, ops in enumerate(self.segments):
            if not is_parallel(ops[0]):
                out.append(self._run(k, ops))
                after_run = True
                continue
            copies, made = self._loop(k, ops[0])
            if copies and after_run:
                out[-1] += copies
            elif copies:
                out.append(copies)
            out.append(made)
            after_run = False
        self.segments = out
        first: list[Op] = []
        mapping: dict[Op, Op] = {}
        for ops in out:
            first += [clone(self.func, op, mapping, self.func.body) for op in ops]
        fence = Builder(self.func, self.func.body, first[-1].loc, first)
        fence.emit(C.MEM_FENCE, (), FENCE)
        return first

    # --- what crosses ----------------------------------------------------------------------

    def _find_crossing(self) -> None:
        """Variables and values of the root that more than one segment uses, or a parallel loop."""
        home, user = self.home, dict[Op, int]()
        for k, ops in enumerate(self.segments):
            parallel = is_parallel(ops[0])
            for op in _under(ops):
                for a in op.args:
                    if a not in home or a.code == C.RANGE_FOR:
                        continue
                    if a.code not in _MEMORY:
                        self._take(a, k)
                    elif parallel or user.setdefault(a, k) != k:
                        self.variables[a] = None
        for var in self.variables:
            if var.code == C.ARRAY_ALLOCA:
                raise QuadrantsCompilationError.from_loc(
                    f"The gradient of a kernel cannot carry the local array {var.attr.name!r} "
                    "from one loop at the root of the kernel to another", var.loc,
                    hint="use a field or ndarray, or create the array inside of the loop",
                )  # fmt: skip

    def _take(self, value: Op, segment: int) -> None:
        """Note a value of another segment; of an address, what it is made of."""
        if self.home.get(value, segment) == segment:
            return
        if value.type.is_ptr:
            for a in value.args:
                self._take(a, segment)
        else:
            self.values[value] = None

    def _cell(self, like: Op) -> Op:
        """A new cell for a version of a variable or value."""
        name = str(like.attr) if like.code == C.ALLOCA else name_of(like)
        return Builder(self.func, self.func.body, like.loc, self.front).alloca(_scalar(like), name)

    # --- segments --------------------------------------------------------------------------

    def _run(self, k: int, ops: list[Op]) -> list[Op]:
        """A serial run: copies of what it uses at the start, new versions at the end."""
        body, variables = self.func.body, self.variables
        inside = _under(ops)
        begin = Builder(self.func, body, ops[0].loc, [])
        mapping: dict[Op, Op] = {}
        used = {a: None for op in inside for a in op.args if a in variables}
        changed = {op.args[0]: None for op in inside if _changes(op) and op.args[0] in variables}
        for var in used:
            if self.home[var] == k:
                continue
            old = self.version.get(var)
            if var not in changed and old is not None:
                mapping[var] = old
                continue
            own = mapping[var] = begin.alloca(_scalar(var), str(var.attr))
            if old is not None:
                begin.store(own, begin.load(old))
        self._bring(k, inside, begin, mapping)
        end = Builder(self.func, body, ops[-1].loc, [])
        for var in changed:
            value = end.load(mapping.get(var, var))
            self.version[var] = cell = self._cell(var)
            end.store(cell, value)
        for op in ops:
            if op in self.values:
                self.version[op] = cell = self._cell(op)
                end.store(cell, op)
        return [*begin.ops, *ops, *end.ops]

    def _loop(self, k: int, loop: Op) -> tuple[list[Op], list[Op]]:
        """A parallel loop: it reads versions, or adds to new ones.

        Return the copies that fill the new ones, and the ops of the loop.
        """
        func, body = self.func, loop.regions[0]
        inside = walk(body)
        read, added = self._traffic(inside)
        copies = Builder(func, func.body, loop.loc, [])
        mapping: dict[Op, Op] = {}
        for var in read:
            mapping[var] = self.version.get(var) or self._cell(var)
        for var in added:
            old = self.version.get(var)
            self.version[var] = mapping[var] = cell = self._cell(var)
            if old is not None:
                copies.store(cell, copies.load(old))
        before = Builder(func, func.body, loop.loc, [])
        self._bring(k, [loop], before, {})
        start = Builder(func, body, loop.loc, [])
        self._bring(k, inside, start, mapping)
        body.ops[:0] = start.ops
        return copies.ops, [*before.ops, loop]

    def _traffic(self, inside: list[Op]) -> tuple[dict[Op, Op], dict[Op, Op]]:
        """Crossing variables that a loop reads, and those that it adds to, each with an access."""
        read: dict[Op, Op] = {}
        added: dict[Op, Op] = {}
        for op in inside:
            for a in op.args:
                if a in self.variables:
                    (read if op.code == C.LOCAL_LOAD else added)[a] = op
                    if op.code not in (C.LOCAL_LOAD, C.ATOMIC_ADD):
                        _refuse(a, op)
                elif C.ATOMIC[a.code] and a.args[0] in self.variables:
                    _refuse(a.args[0], a)
        for var, op in read.items():
            if var in added:
                _refuse(var, op)
        return read, added

    def _bring(self, k: int, inside: list[Op], b: Builder, mapping: dict[Op, Op]) -> None:
        """Make ``inside`` use ``mapping``, and cells of values of other segments, read by ``b``."""
        home = self.home
        for op in inside:
            for a in op.args:
                if a in mapping or (a in home and home[a] != k and a.code not in _MEMORY):
                    op.args = tuple([self._here(x, k, b, mapping) for x in op.args])
                    break

    def _here(self, op: Op, k: int, b: Builder, mapping: dict[Op, Op]) -> Op:
        """The op that stands for ``op`` in segment ``k``."""
        found = mapping.get(op)
        if found is not None:
            return found
        if self.home.get(op, k) == k or op.code in _MEMORY:
            return op
        if op.type.is_ptr:
            args = tuple([self._here(a, k, b, mapping) for a in op.args])
            made = b.emit(op.code, args, op.attr, op.type)
        else:
            made = b.load(self.version[op])
        mapping[op] = made
        return made


def _under(ops: list[Op]) -> list[Op]:
    """Ops with all that is in them."""
    return [inner for op in ops for inner in (op, *[o for r in op.regions for o in walk(r)])]


def _changes(op: Op) -> bool:
    return bool(op.args) and (C.WRITE[op.code] or C.ATOMIC[op.code])


def _scalar(op: Op) -> DataType:
    t = op.type.elem if isinstance(op.type, PointerType) else op.type
    assert isinstance(t, DataType)
    return t


def _refuse(var: Op, op: Op) -> None:
    raise QuadrantsCompilationError.from_loc(
        f"Iterations of a parallel loop change the variable {var.attr!r} of the kernel in a way "
        "that depends on their order, so there is no gradient", op.loc,
        hint="only add to it in the loop and read it after the loop, or create it inside of the "
        "loop, or call qd.loop_config(serialize=True) before the loop",
    )  # fmt: skip
