"""Counts what one launch moves and computes: bytes of distinct elements, operations on floats.

A copy of the finished IR gets counters, is compiled for the CPU, and launched once with the very
arguments that are measured::

    $43 : range_for $40, $42 body {            $43 : range_for $40, $42 body {
                                                 count[3] += 1                   (of this block)
      <f32> $7 = global_load $6           ->     x_read[offset] = 1
      <f32> $8 = mul $20, $7                     <f32> $7 = global_load $6
      <f32> $12 = add $8, $11                    ...
      $14 : global_store $10, $12                y_written[offset] = 1
    }                                            ...

So trip counts, branches and addresses that depend on data are what they are, for these arguments.
Ops in one block are executed equally often, up to one that may leave it: a counter counts each such
*segment*. `line_counts` sums the counts up by source line.

* Bytes: each element of an array or field that is read counts once, and each that is written counts
  once, however often that happens; one that is both counts twice. This is what a launch cannot do
  without, not what the caches of a machine move.
* Operations: ``+ - * /``, remainders, minimum and maximum, roots, elementary functions, roundings
  and atomic additions on floats count 1 each, whatever they cost; copies, comparisons, selections,
  conversions, signs and everything on integers count 0. They are those of the IR after all passes:
  what was merged or moved out of a loop is not counted again.

Some counts are unknown, and are reported as such: addresses that are passed to a real function,
kernels without arguments that fit, launches that take too long for one thread without vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..ir import Block, Func, Op, Param, all_ops, base_of, normalize, parse, to_text, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import i64, pointer_to, u8, void
from .access_trace import Access, Trace, TraceOps, parallel_bodies
from .dependences import Dependences, dependences
from .line_counts import LineAmounts, LineKey, is_flop, line_amounts, line_key, lines_touched
from .travel import travels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "Amounts", "Instrumented", "Mark", "Segment", "UncountableError", "instrument",
    "tasks_of_ops",
]  # fmt: skip

_INNER: Final = (C.RANGE_FOR, C.WHILE)


class UncountableError(Exception):
    """Raised when the amounts moved or computed cannot be counted; the message says why."""


class Amounts(NamedTuple):
    """The amounts of one launch. bytes, flops: None if ``no_bytes`` or ``no_flops`` says why.
    lines: by source line; empty if nothing was counted. memory: bytes of the cache lines that are
    touched. chunks: by task, into how many parts it was divided for threads. iterations: by task,
    those of its parallel loop."""

    bytes: int | None
    flops: int | None
    no_bytes: str = ""
    no_flops: str = ""
    lines: tuple[LineAmounts, ...] = ()
    memory: int = 0
    chunks: Mapping[int, int] = {}
    iterations: Mapping[int, int] = {}


class Segment(NamedTuple):
    """Ops that are executed equally often. task: index of the task, -1 for a real function that
    no task calls."""

    task: int
    ops: tuple[Op, ...]


class Mark(NamedTuple):
    """An array of marks, one for each element of a parameter. key: the line whose accesses it
    marks; None for those of all lines."""

    param: int
    written: bool
    size: int
    key: LineKey | None


class Instrumented(NamedTuple):
    """A function with counters, which are its last parameters.

    The first of these counts how often each of ``segments`` is executed. marks: the others, in
    order; the last two are those of ``trace``, if it has tasks. no_bytes: why there are no marks.
    found: the dependences among the ops.
    """

    func: Func
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...]
    no_bytes: str
    found: Dependences
    trace: Trace

    def space(self, values: Sequence[Any]) -> int:
        """The bytes of all marks for a launch on ``values``."""
        return sum(values[mark.param].size for mark in self.marks)

    def counters(self, values: Sequence[Any]) -> list[Any]:
        """Fresh arrays for the last parameters, for a launch on ``values``."""
        return [
            np.zeros(max(1, len(self.segments)), np.int64),
            *(np.zeros(max(1, values[mark.param].size), np.uint8) for mark in self.marks),
            *self.trace.arrays(),
        ]

    def amounts(self, counters: Sequence[Any]) -> Amounts:
        """Return the amounts of a launch with these counters."""
        marks, order = counters[1:-2], counters[-2:]
        runs: list[int] = counters[0].tolist()
        flops = sum(
            n * sum(map(is_flop, segment.ops))
            for segment, n in zip(self.segments, runs, strict=False)
        )
        touched = lines_touched(self.marks, marks)
        lines = line_amounts(self.segments, runs, touched, not self.no_bytes, self.found)
        if touched.read or touched.written:
            sizes = {
                mark.param: len(m) * mark.size for mark, m in zip(self.marks, marks, strict=True)
            }
            executed = {op: n for s, n in zip(self.segments, runs, strict=False) for op in s.ops}
            lines = travels(lines, self.trace, order, sizes, executed)
        moved = None if self.no_bytes else touched.bytes
        return Amounts(
            moved, flops, self.no_bytes, "", lines, touched.memory, self._chunks(runs),
            self._iterations(runs),
        )  # fmt: skip

    def _chunks(self, runs: Sequence[int]) -> dict[int, int]:
        """The number of times that the body of each task was entered."""
        out: dict[int, int] = {}
        for segment, n in zip(self.segments, runs, strict=False):
            out.setdefault(segment.task, n)
        return out

    def _iterations(self, runs: Sequence[int]) -> dict[int, int]:
        """The number of times that the body of each task's parallel loop was entered."""
        parallel = {id(body) for task in self.func.tasks() for body in parallel_bodies(task)}
        out: dict[int, int] = {}
        seen: set[int] = set()
        for segment, n in zip(self.segments, runs, strict=False):
            body = id(segment.ops[0].block)
            if body in parallel and body not in seen:
                seen.add(body)
                out[segment.task] = max(out.get(segment.task, 0), n)
        return out


def instrument(func: Func, by_line: bool = True, threads: int = 1) -> Instrumented:
    """A copy of a finished function (stage ``accesses``) with counters.

    by_line: elements are marked for each source line, not only for the launch. threads: that
    execute it.
    """
    copy = parse(to_text(func))
    for mine, theirs in zip(all_ops(copy), all_ops(func), strict=True):
        mine.loc = theirs.loc
    first = len(copy.params)
    no_bytes = ""
    accesses: dict[Op, list[tuple[int, bool]]] = {}
    try:
        accesses = _accesses(copy)
    except UncountableError as error:
        no_bytes = str(error)
    found = dependences(copy)
    tasks = tasks_of_ops(copy)
    keys = {op: line_key(op, tasks.get(op, -1)) if by_line else None for op in accesses}
    kinds = list(
        dict.fromkeys((*kind, keys[op]) for op, several in accesses.items() for kind in several)
    )
    numbers = {kind: first + 1 + i for i, kind in enumerate(kinds)}
    trace = _trace_of(
        copy, accesses if by_line else {}, keys, found, first + 1 + len(kinds), threads
    )
    copy.params = (
        *copy.params,
        Param("executions counted", "ndarray", i64, 1),
        *(
            Param(f"{copy.params[n].name} {'written' if w else 'read'} {i}", "ndarray", u8, 1)
            for i, (n, w, _) in enumerate(kinds)
        ),
        *trace.params(),
    )
    marked = {op: [numbers[*kind, keys[op]] for kind in kinds_of] for op, kinds_of in
              accesses.items()}  # fmt: skip
    writer = _Writer(copy, first, marked, tasks, trace)
    writer.kernel()
    marks = tuple([Mark(n, w, copy.params[n].dtype.size, key) for n, w, key in kinds])
    return Instrumented(copy, tuple(writer.segments), marks, no_bytes, found, trace.trace())


def _trace_of(
    func: Func, accesses: dict[Op, list[tuple[int, bool]]], keys: Mapping[Op, LineKey | None],
    found: Dependences, first: int, threads: int,
) -> TraceOps:  # fmt: skip
    """The trace of all accesses. first: the number of its first parameter."""
    out: dict[Op, Access] = {}
    for op, kinds in accesses.items():
        key, param = keys[op], kinds[0][0]
        if key is not None:
            written = {w for _, w in kinds}
            out[op] = Access(
                key, op, param, func.params[param].dtype.size, False in written, True in written,
                op in found.gathers,
            )  # fmt: skip
    tasks = [None if _leaves_early(task.regions[1]) else task for task in func.tasks()]
    return TraceOps(out, tasks, first, threads)


def tasks_of_ops(func: Func) -> dict[Op, int]:
    """The task of each op; of an op in a real function, the first task that calls it."""
    out: dict[Op, int] = {}
    callers: dict[str, int] = {}
    for number, task in enumerate(func.tasks()):
        for region in task.regions:
            _note(region, number, out, callers)
    done: set[str] = set()
    while waiting := [name for name in callers if name not in done]:
        for name in waiting:
            done.add(name)
            if name in func.callees:
                _note(func.callees[name].body, callers[name], out, callers)
    return out


def _note(block: Block, task: int, out: dict[Op, int], callers: dict[str, int]) -> None:
    for op in walk(block):
        out[op] = task
        if op.code == C.CALL:
            callers.setdefault(op.attr, task)


def _accesses(func: Func) -> dict[Op, list[tuple[int, bool]]]:
    """(number of the parameter, written) of everything that goes to an array or a field."""
    out: dict[Op, list[tuple[int, bool]]] = {}
    for body in func.bodies():
        for op in walk(body):
            both = C.ATOMIC[op.code]
            if both or op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE):
                number = _array_of(op.args[0])
                if number is not None:
                    reads, writes = both or op.code == C.GLOBAL_LOAD, op.code != C.GLOBAL_LOAD
                    out[op] = [(number, w) for w, does in ((False, reads), (True, writes)) if does]
    return out


def _array_of(pointer: Op) -> int | None:
    """The parameter that an address belongs to; None for memory that the kernel makes itself."""
    pointer = base_of(pointer)
    if pointer.code == C.ARG_ADDR and not pointer.attr[1]:
        return int(pointer.attr[0])
    if pointer.code in (C.GLOBAL_TMP, C.ALLOCA, C.ARRAY_ALLOCA):
        return None
    raise UncountableError("a real function receives an address, and its array is not known")


class _Writer:
    """Puts the counters into a function. marks: of an access, the parameters that it marks."""

    def __init__(
        self, func: Func, first: int, marks: dict[Op, list[int]], tasks: dict[Op, int],
        trace: TraceOps,
    ) -> None:  # fmt: skip
        self._func: Final = func
        self._first: Final = first
        self._marks: Final = marks
        self._tasks: Final = tasks
        self._trace: Final = trace
        self.segments: Final[list[Segment]] = []
        self._ops: list[Op] = []
        self._block = func.body
        # By segment: where a task keeps its count; None where each addition goes to memory.
        self._local: dict[int, Op] | None = None

    def kernel(self) -> None:
        numbers = {task: i for i, task in enumerate(self._func.tasks())}
        for root in self._func.roots():
            for task in root.ops:
                if task.code == C.OFFLOADED:
                    self._task(task, numbers[task])
        for callee in self._func.callees.values():
            self._local = None
            self._counted(callee.body)

    def _task(self, task: Op, number: int) -> None:
        """Count in variables, and add these to the counters at the end, if every path gets
        there."""
        body = task.regions[1]
        self._local = None
        if _leaves_early(body):
            self._counted(body)
            return
        local: dict[int, Op] = {}
        self._local = local
        self._ops, self._block = [], body
        self._trace.begin(number, task, self._emit)
        begun = self._ops
        self._counted(body)
        last = body.ops.pop() if body.ops and C.END[body.ops[-1].code] else None
        self._ops, self._block = [], body
        for number, variable in local.items():
            self._to_memory(number, self._emit(C.LOCAL_LOAD, (variable,), None, i64))
        self._trace.end(self._emit)
        ends = [] if last is None else [last]
        body.ops = [*local.values(), *begun, *body.ops, *self._ops, *ends]

    def _counted(self, block: Block) -> None:
        """Rewrite a block and those inside of it."""
        out: list[Op] = []
        part: list[Op] = []
        own: list[Op] = []
        ops = block.ops
        self._ops, self._block = [], block
        self._trace.block(block, self._emit)
        part += self._ops
        for op in ops:
            self._ops, self._block = [], block
            for number in self._marks.get(op, ()):
                self._mark(number, op.args[0])
            self._trace.access(op, self._emit)
            part += self._ops
            part.append(op)
            own.append(op)
            if op.code == C.WHILE_CONTROL or any(_leaves(region) for region in op.regions):
                # What follows may be left out: a loop that ends here, an iteration that does.
                out += self._added(own, block) + part
                part, own = [], []
        block.ops = out + self._added(own, block) + part
        for op in ops:
            for region in op.regions:
                self._counted(region)

    def _added(self, own: list[Op], block: Block) -> list[Op]:
        """The ops that count an execution of ``own``, a new segment."""
        self._ops, self._block = [], block
        if not own:
            return []
        number = len(self.segments)
        self.segments.append(Segment(self._tasks.get(own[0], -1), tuple(own)))
        one = self._emit(C.CONST, (), normalize(1, i64), i64)
        if self._local is None:
            self._to_memory(number, one)
        else:
            variable = self._func.new_op(
                C.ALLOCA, pointer_to(i64), (), f"executions {number}", block=block
            )
            self._local[number] = variable
            before = self._emit(C.LOCAL_LOAD, (variable,), None, i64)
            total = self._emit(C.ADD, (before, one), None, i64)
            self._emit(C.LOCAL_STORE, (variable, total), None, void)
        return self._ops

    def _to_memory(self, number: int, more: Op) -> None:
        counts = self._emit(C.ARG_ADDR, (), (self._first, False), pointer_to(i64))
        offset = self._emit(C.CONST, (), normalize(number, i64), i64)
        count = self._emit(C.SHIFT_PTR, (counts, offset), None, counts.type)
        self._emit(C.ATOMIC_ADD, (count, more), None, i64)

    def _mark(self, number: int, pointer: Op) -> None:
        """Mark the element at ``pointer``."""
        base = self._emit(C.ARG_ADDR, (), (number, False), pointer_to(u8))
        offsets: list[Op] = []
        while pointer.code == C.SHIFT_PTR:
            offsets.append(pointer.args[1])
            pointer = pointer.args[0]
        for offset in offsets:
            base = self._emit(C.SHIFT_PTR, (base, offset), None, base.type)
        one = self._emit(C.CONST, (), normalize(1, u8), u8)
        self._emit(C.GLOBAL_STORE, (base, one), None, void)

    def _emit(self, code: int, args: tuple[Op, ...], attr: Any, type: Any) -> Op:
        op = self._func.new_op(code, type, args, attr, block=self._block)
        self._ops.append(op)
        return op


def _leaves_early(body: Block) -> bool:
    """True if an op inside a task's body, before its last op, ends all of it."""

    def ends(block: Block, top: bool) -> bool:
        for i, op in enumerate(block.ops):
            last = top and i == len(block.ops) - 1
            if op.code in (C.RETURN, C.CONTINUE) and not last:
                return True
            inner = op.code in _INNER
            if any(_has_return(r) if inner else ends(r, False) for r in op.regions):
                return True
        return False

    return ends(body, True)


def _leaves(block: Block) -> bool:
    """True if what follows the op of ``block`` may be left out: a loop, an iteration or the kernel
    ends in it."""
    for op in block.ops:
        if op.code in (C.RETURN, C.CONTINUE, C.WHILE_CONTROL, C.BREAK):
            return True
        inner = op.code in _INNER
        if any(_has_return(r) if inner else _leaves(r) for r in op.regions):
            return True
    return False


def _has_return(block: Block) -> bool:
    return any(op.code == C.RETURN for op in walk(block))
