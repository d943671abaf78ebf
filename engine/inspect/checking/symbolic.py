"""The memory accesses of a kernel, as formulas over its loop variables, arguments and shapes.

`Tracer` executes the frontend's IR once, symbolically: a local variable holds a term, both branches
of an ``if`` are taken and merged, the body of a loop is taken for one unknown iteration. The result
is one `Access` per load, store and atomic::

    for i in range(n):                  x: written at (i + 1,)
        if i % 2 == 0:                     when 0 <= i, i < n, i % 2 == 0
            x[i + 1] = 0.0                 in the parallel loop at line 1, whose own constant is i

A variable that a loop changes by a constant in each iteration is that multiple of the loop's index;
of any other variable that it changes, only bounds are known in its body and after it (`loops`).
What an array that the kernel writes holds is unknown at each load; one that it only reads is a
function of the indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...analysis import is_parallel, needs_blocks
from ...ir import Block, Func, Op, base_of, walk
from ...ir import codes as C
from ...types import DataType, PointerType, i32
from .accesses import (
    Access,
    Limits,
    Scope,
    Taken,
    changed_by,
    elem_of,
    memory_of,
    own,
    written_of,
)
from .elements import Elements
from .late import Late
from .loops import Carried, bounds_of, leaves, steps_of, whole_only
from .terms import is_float

__all__ = ["Tracer"]

_DEEP: Final = 5
"""Nested loops whose changes of variables are looked for; the bodies of deeper ones are unknown."""
_TRIED: Final = 8000
"""Ops of loops that are followed twice: in a kernel of 60,000 ops this took half of the time."""
_MOST: Final = 4000
"""Accesses of one kernel that are looked at."""
_SOME: Final = 32
"""Accesses from one look at verdicts to the next."""


class _Settled(Exception):
    """Raised where no verdict needs more accesses."""


class Tracer(Elements):
    """Follows the frontend's IR. MissingSolverError without z3. out: the result."""

    def __init__(self, func: Func) -> None:
        super().__init__(func)
        self.settled: Callable[[], bool] = lambda: False
        self.parallel = sum(is_parallel(func, op) for block in func.roots() for op in block.ops)
        """Parallel loops that were not followed yet. The sections of a graph may run at once."""
        self.parallel += sum(op.code == C.GRAPH_REGION for op in func.body.ops)
        self.variables: dict[Op, Any] = {}
        self.indices: dict[tuple[Op, int], Any] = {}
        self.when: list[Any] = []
        self.around: list[tuple[Any, Any, Any]] = []
        self.scope: Scope | None = None
        self.inside: set[Op] = set()
        """The ops of the parallel loop."""
        self.shared: set[Op] = set()
        """The variables that its iterations change together."""
        self.recording = True
        self.depth = 0
        self.found: Final[dict[Op, Carried]] = {}
        """Of loops."""
        self.tried = 0
        self.out.written = written_of(func)
        self.names: Final[dict[Op, str]] = {}
        """The identities of memory."""
        self.changes: Final[dict[Block, list[Op]]] = {}
        """The variables that ops of a block change."""

    def run(self, settled: Callable[[], bool] = lambda: False) -> None:
        """Follow the kernel. TooSlowError for a large one.

        settled: called now and then where no parallel loop follows. If it returns True, no verdict
        needs another access, and the rest is left out."""
        self.settled = settled
        try:
            self.block(self.func.body)
        except _Settled:
            self.out.whole = False

    # ---- constants

    def unknown(self, hint: str, t: Any) -> Any:
        """A value that nothing is known about, its own in each iteration."""
        if is_float(t):
            scope = self.scope
            return self.terms.late(lambda _: own(scope, self.terms.fresh(hint, t)))
        term = self.own(self.terms.fresh(hint, t))
        self.when += self.terms.limits(term, t)
        return term

    def own(self, term: Any) -> Any:
        return own(self.scope, term)

    def index_of(self, loop: Op, axis: int) -> Any:
        return self.own(self.terms.numbered(f"index {loop.id} {axis}"))

    # ---- control

    def block(self, block: Block) -> Any:
        """Follow a block. Returns the condition under which its end is reached."""
        start = len(self.when)
        for op in block.ops:
            self.terms.go_on()
            if C.END[op.code] or op.code == C.WHILE_CONTROL:
                if op.code != C.WHILE_CONTROL:
                    del self.when[start:]
                    return self.terms.z3.BoolVal(False)
                self.when.append(self.terms.as_bool(self.values[op.args[0]]))
                continue
            self.op(op)
        reached = self.terms.z3.And(*self.when[start:])
        del self.when[start:]
        return reached

    def op(self, op: Op) -> None:
        code = op.code
        if code == C.IF:
            self.if_(op)
        elif code == C.RANGE_FOR:
            self.range_for(op)
        elif code == C.WHILE:
            self.while_(op)
        elif code == C.GRAPH_REGION:
            self.region(op)
        elif code == C.ASSERT:
            self.assertion(op)
        elif code == C.ALLOCA:
            elem = op.type.elem if isinstance(op.type, PointerType) else None
            self.variables[op] = self.terms.constant(0, elem)
        elif code in (C.LOCAL_LOAD, C.GLOBAL_LOAD):
            self.load(op)
        elif code in (C.LOCAL_STORE, C.GLOBAL_STORE) or C.ATOMIC[code]:
            self.store(op)
        elif code == C.CALL:
            self.hide(f"the call of {op.attr}", op)
            self.values[op] = self.unknown("call", op.type)
        elif isinstance(op.type, PointerType) or op.code in _SILENT:
            return
        else:
            self.values[op] = self.result(op)

    def hide(self, why: str, op: Op) -> None:
        text = f"{why} at line {op.loc.root.line}"
        if self.scope is not None:
            self.scope.unfollowed = self.scope.unfollowed or text
        self.out.hidden = self.out.hidden or text

    def assertion(self, op: Op) -> None:
        if op.attr.kind == "user":
            self.when.append(self.terms.as_bool(self.values[op.args[0]]))
            if op not in self.out.asserts:
                self.out.asserts.append(op)

    def region(self, op: Op) -> None:
        if op.attr.kind == "parallel":
            self.out.unfollowed = f"sections of a graph run at once at line {op.loc.root.line}"
        if op.attr.kind == "do_while":
            self.forget(op.regions[0])
        for region in op.regions:
            # A checkpoint and a section go on with what follows.
            self.block(region)
            # A launch that begins at a checkpoint has left out what is before it.
            self.forget(region)

    def if_(self, op: Op) -> None:
        cond = self.terms.z3.simplify(self.terms.as_bool(self.values[op.args[0]]))
        z3 = self.terms.z3
        before = {v: self.variables[v] for v in self.changed_in(op) if v in self.variables}
        ends: list[Any] = []
        after: list[dict[Op, Any]] = []
        for region, taken in zip(op.regions, (cond, z3.Not(cond)), strict=True):
            mark = len(self.when)
            self.when.append(taken)
            if z3.is_false(z3.simplify(taken)):
                ends.append(z3.BoolVal(False))
            else:
                ends.append(self.block(region))
            del self.when[mark:]
            after.append({v: self.variables[v] for v in before})
            self.variables.update(before)
        self.variables.update(self.merged(cond, ends, *after))
        reached = z3.simplify(z3.Or(z3.And(cond, ends[0]), z3.And(z3.Not(cond), ends[1])))
        if not z3.is_true(reached):
            self.when.append(reached)

    def merged(
        self, cond: Any, ends: list[Any], yes: dict[Op, Any], no: dict[Op, Any]
    ) -> dict[Op, Any]:
        """The variables after an ``if``."""
        z3 = self.terms.z3
        if z3.is_false(ends[0]):
            return no
        if z3.is_false(ends[1]):
            return yes
        out: dict[Op, Any] = {}
        for variable, a in yes.items():
            b = no[variable]
            if a is b:
                out[variable] = a
            elif isinstance(a, Late) or isinstance(b, Late):
                out[variable] = self.terms.late(lambda p: z3.If(cond, p[0], p[1]), (a, b))
            else:
                out[variable] = a if a.eq(b) else z3.If(cond, a, b)
        return out

    def changed(self, body: Block) -> list[Op]:
        found = self.changes.get(body)
        if found is None:
            several = [
                v for op in body.ops
                for v in (changed_by(op) if not op.regions else self.changed_in(op))
            ]  # fmt: skip
            found = self.changes[body] = list(dict.fromkeys(several))
        return found

    def changed_in(self, op: Op) -> list[Op]:
        return [v for region in op.regions for v in self.changed(region)]

    def range_for(self, op: Op) -> None:
        body = op.regions[0]
        parallel = is_parallel(self.func, op)
        bounds = [self.number(a) for a in op.args]
        pairs = tuple(zip(bounds[::2], bounds[1::2], strict=True))
        if parallel:
            self.scope = self.terms.scope = Scope(op)
            self.inside = set(walk(body))
            self.shared = {v for v in self.changed(body) if v not in self.inside}
            self.out.scopes.append(self.scope)
            if needs_blocks(body):
                self.scope.hidden = "its iterations wait for each other at barriers"
            elif any(inner.code == C.MEM_FENCE for inner in self.inside):
                self.scope.hidden = "fences may order its iterations"
        first = self.changing(body)
        mark = len(self.when)
        carried = None if parallel else self.carried(op, pairs)
        index = self.enter(op, pairs)
        if self.scope is not None and parallel:
            self.scope.index, self.scope.bounds = index, pairs
        count = index[0] - pairs[0][0] if len(index) == 1 else None
        self.forget(body, carried, first, count)
        self.block(body)
        del self.around[-len(index) :]
        del self.when[mark:]
        if parallel:
            self.scope = self.terms.scope = None
            self.inside = set()
            self.parallel -= 1
        if count is not None:
            count = pairs[0][1] - pairs[0][0]
            count = self.terms.z3.If(count > 0, count, 0)
        self.forget(body, None if leaves(body, C.BREAK) else carried, first, count)

    def enter(self, op: Op, pairs: tuple[Limits, ...]) -> tuple[Any, ...]:
        """The indices of an iteration of a loop, which is inside of its bounds."""
        index = tuple([self.index_of(op, axis) for axis in range(len(pairs))])
        for axis, (i, (begin, end)) in enumerate(zip(index, pairs, strict=True)):
            self.indices[op, axis] = i
            self.when += [i >= begin, i < end]
            self.around.append((i, begin, end))
        return index

    def changing(self, body: Block) -> dict[Op, Any]:
        """The variables that a loop changes."""
        return {v: self.variables[v] for v in self.changed(body) if v in self.variables}

    def carried(self, op: Op, pairs: tuple[Limits, ...] = ()) -> Carried | None:
        """The facts of each iteration of a loop, which is followed once for them."""
        if op in self.found:
            return self.found[op]
        body = op.regions[0]
        whole = [v for v in self.changing(body) if is_whole(elem_of(v))]
        uneven = len(pairs) > 1 or (op.code == C.RANGE_FOR and op.attr.reversed)
        if not whole or uneven or self.depth >= _DEEP or leaves(body, C.CONTINUE):
            return None
        if not self.depth:
            self.tried += sum(1 for _ in walk(body))
        if self.tried > _TRIED:
            return None
        saved = dict(self.variables), self.recording, len(self.when), len(self.around)
        self.recording, self.depth = False, self.depth + 1
        self.enter(op, pairs)
        self.forget(body)
        before = {v: self.variables[v] for v in whole}
        known = [*self.out.facts, *self.when]
        reached = self.block(body)
        steps = steps_of(self.terms.z3, before, self.variables)
        others = {v: start for v, start in before.items() if v not in steps}
        bounds = bounds_of(self.terms.z3, known, reached, others, self.variables)
        self.variables, self.recording = saved[0], saved[1]
        del self.when[saved[2] :], self.around[saved[3] :]
        self.depth -= 1
        # What holds where less is known of other variables holds where more is.
        self.found[op] = Carried(steps, bounds)
        return self.found[op]

    def forget(
        self, body: Block, carried: Carried | None = None,
        first: dict[Op, Any] | None = None, count: Any = None,
    ) -> None:  # fmt: skip
        """Give variables that a loop changes the values of an unknown iteration."""
        for v in self.changing(body):
            start = first.get(v) if first and carried is not None else None
            if start is None or carried is None:
                self.variables[v] = self.unknown(v.attr or "variable", elem_of(v))
            elif count is not None and v in carried.steps:
                self.variables[v] = start + carried.steps[v] * count
            else:
                now = self.variables[v] = self.unknown(v.attr or "variable", elem_of(v))
                self.when += [b(self.terms.z3, start, now) for b in carried.bounds.get(v, ())]

    def while_(self, op: Op) -> None:
        body, first = op.regions[0], self.changing(op.regions[0])
        carried = self.carried(op)
        mark = len(self.when)
        self.forget(body, carried, first, self.count())
        self.block(body)
        del self.when[mark:]
        self.forget(body, whole_only(carried, body), first, self.count())

    def count(self) -> Any:
        """The number of iterations that a loop has had."""
        count = self.unknown("count", i32)
        self.when.append(count >= 0)
        return count

    # ---- values

    def result(self, op: Op) -> Any:
        code = op.code
        if code == C.CONST:
            return self.terms.constant(op.attr, op.type)
        if code == C.ARG_LOAD:
            return self.size(str(self.func.params[int(op.attr)].name), op.type)
        if code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            return self.extent(op.attr[1], op.attr[0])
        if code == C.LOOP_INDEX:
            return self.indices[op.args[0], op.attr]
        if code == C.LINEARIZE:
            return self.linear(op)
        if not C.PURE[code] or any(a not in self.values for a in op.args):
            return self.unknown(op.name, op.type)
        return self.terms.operation(op, [self.values[a] for a in op.args])

    # ---- memory

    def load(self, op: Op) -> None:
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            found = None if self.is_shared(pointer) else self.variables.get(pointer)
            self.values[op] = self.unknown("variable", op.type) if found is None else found
            if self.is_outer(pointer):
                self.note(op, "r", None)
            return
        index = self.note(op, "r", None)
        memory = self.memory(pointer)
        if memory in self.out.written or memory.startswith("local"):
            self.values[op] = self.unknown("load", op.type)
        elif is_float(op.type):
            self.values[op] = self.terms.late(lambda _: self.constant_load(op, memory, index))
        else:
            found = self.values[op] = self.constant_load(op, memory, index)
            self.when += self.terms.limits(found, op.type)

    def constant_load(self, op: Op, memory: str, index: tuple[Any, ...]) -> Any:
        """An element of an array that the kernel does not write."""
        self.out.read.add(memory)
        return self.terms.function(f"load {memory}", index or (self.zero,), op.type)

    def store(self, op: Op) -> None:
        pointer = op.args[0]
        atomic = C.ATOMIC[op.code]
        value = self.values.get(op.args[1])
        if value is not None and isinstance(pointer.type, PointerType):
            value = self.terms.cast(value, pointer.type.elem, op.args[1].type)
        if pointer.code == C.ALLOCA:
            if self.is_outer(pointer):
                self.note(op, "a" if atomic else "w", value)
            old = None if self.is_shared(pointer) else self.variables.get(pointer)
            if atomic:
                old = self.unknown("old", op.type) if old is None else old
                self.values[op] = old
                self.variables[pointer] = self.updated(op, old, value)
                self.take(op, (), value)
            elif value is not None:
                self.variables[pointer] = value
            return
        index = self.note(op, "a" if atomic else "w", value)
        if atomic:
            self.values[op] = self.unknown("old", op.type)
            self.take(op, index, value)

    def take(self, op: Op, index: tuple[Any, ...], by: Any) -> None:
        """Note what an atomic addition found. Each block has arrays of its own, so that their
        counters count for some of the iterations only."""
        if op.code != C.ATOMIC_ADD or isinstance(by, Late) or not self.terms.is_number(by):
            return
        wide = op.type.is_signed and op.type.bits >= 32
        mine = base_of(op.args[0]).code == C.ARRAY_ALLOCA
        if self.scope is not None and self.recording and wide and not mine:
            memory = self.memory(op.args[0])
            self.scope.taken.append(Taken(memory, index, self.values[op], by.as_long()))

    def updated(self, op: Op, old: Any, value: Any) -> Any:
        """A variable after an update."""
        t: Any = op.type
        if op.code != C.ATOMIC_ADD or value is None or not is_whole(t):
            return self.unknown("variable", t)
        return self.terms.fitting(old + value, t)

    def is_outer(self, variable: Op) -> bool:
        """True if iterations of the parallel loop share a variable."""
        return self.scope is not None and variable not in self.inside

    def is_shared(self, variable: Op) -> bool:
        """True if another iteration may have changed a variable in the meantime."""
        return self.scope is not None and variable in self.shared

    def memory(self, pointer: Op) -> str:
        base = base_of(pointer)
        found = self.names.get(base)
        if found is None:
            found = self.names[base] = memory_of(self.func, base)
        return found

    def note(self, op: Op, kind: str, value: Any) -> tuple[Any, ...]:
        """Record an access. Returns its indices."""
        pointer = op.args[0]
        index, limits = self.place(pointer)
        if self.recording and len(self.out.accesses) < _MOST:
            self.out.accesses.append(Access(
                op, kind, self.memory(pointer), index, tuple(self.when), limits,
                tuple(self.around), value, self.scope,
            ))  # fmt: skip
            look = not self.parallel and not len(self.out.accesses) % _SOME
            if look and self.settled():
                raise _Settled
        elif self.recording:
            self.hide("too many accesses", op)
        return index


def is_whole(t: Any) -> bool:
    """True if values of a type are integers other than truth values."""
    return isinstance(t, DataType) and t.is_int and t.bits > 1


_SILENT: Final = frozenset({C.PRINT, C.BLOCK_SYNC, C.MEM_FENCE, C.SUBGROUP_SYNC})
