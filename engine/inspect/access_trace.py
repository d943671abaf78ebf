"""Records which elements a launch touches, in order: the trace that `travel` reads.

The counters of `counting` say how often, not in which order. So each task with a trace writes down
the last accesses of its chunks, in rings that are used by one thread at a time::

    slot = chunk & (slots - 1)               (at the start of the body; 0 in a serial task)
    trace[task, slot, at & (length - 1)] = access << 40 | offset of the element; at += 1
    lengths[task, slot] = at                 (at its end)

The start of each iteration of a parallel loop is an entry, too: access 0, and in place of an offset
the number of the iteration in its chunk. A chunk is executed by
one thread, so that its entries are in the order of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..ir import Block, Op, Param, normalize, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import i64, pointer_to, void

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .line_counts import LineKey

__all__ = ["OFFSET_BITS", "Access", "Trace", "TraceOps", "parallel_bodies"]

_READ: Final = 4
"""Slots of a task that are read."""
OFFSET_BITS: Final = 40
_LENGTH: Final = 1 << 16
_LEAST_LENGTH: Final = 1 << 10
_ENTRIES: Final = 1 << 22
"""Entries of all tasks together, at most: 32 MiB; a launch touches only those that it needs."""


class Access(NamedTuple):
    """An op that touches elements of an array. gather: its address was loaded from an array."""

    key: LineKey
    op: Op
    param: int
    size: int
    read: bool
    written: bool
    gather: bool


class Trace(NamedTuple):
    """The layout of a trace. tasks: the tasks that have one. accesses: by number, from 1."""

    tasks: tuple[int, ...]
    slots_each: int
    length: int
    accesses: tuple[Access, ...]

    def arrays(self) -> list[Any]:
        """Fresh memory for the entries and for their number."""
        count = max(1, len(self.tasks) * self.slots_each)
        return [np.zeros(count * self.length, np.int64), np.zeros(count, np.int64)]

    def slots(self, arrays: Sequence[Any]) -> dict[int, list[tuple[Any, bool]]]:
        """By task: the entries of the fullest slots, in order; True if the first ones were lost."""
        entries, lengths = arrays
        out: dict[int, list[tuple[Any, bool]]] = {}
        for i, task in enumerate(self.tasks):
            mine = lengths[i * self.slots_each : (i + 1) * self.slots_each]
            fullest = np.argsort(-mine, kind="stable")[:_READ]
            for slot in (fullest + i * self.slots_each).tolist():
                n = int(lengths[slot])
                part = entries[slot * self.length : (slot + 1) * self.length]
                if n > self.length:
                    part = np.roll(part, -(n % self.length))
                if n:
                    out.setdefault(task, []).append((part[:n], n > self.length))
        return out


class TraceOps:
    """Emits the ops of a trace.

    tasks: all of them; None for one that shall have none. first: the number of the first parameter.
    threads: that execute chunks.
    """

    def __init__(
        self, accesses: dict[Op, Access], tasks: Sequence[Op | None], first: int, threads: int
    ) -> None:
        self._accesses: Final = accesses
        self._first: Final = first
        self._numbers: Final = {op: i + 1 for i, op in enumerate(accesses)}
        self._traced: Final = [
            i for i, task in enumerate(tasks) if task is not None and _can_trace(task, accesses)
        ]
        self._emit: Callable[..., Op] = _no_emitter
        self._at: Op | None = None
        self._turn: Op | None = None
        self._base: Op | None = None
        self._slot: Op | None = None
        self._starts: frozenset[int] = frozenset()
        self._slots: Final = 1 << max(2, threads.bit_length() + 1)
        each = _ENTRIES // self._slots // max(1, len(self._traced))
        self.length: Final = min(_LENGTH, max(_LEAST_LENGTH, 1 << max(0, each.bit_length() - 1)))

    def trace(self) -> Trace:
        """The layout."""
        return Trace(tuple(self._traced), self._slots, self.length, tuple(self._accesses.values()))

    @staticmethod
    def params() -> tuple[Param, Param]:
        """The parameters of the trace."""
        return (
            Param("accesses in order", "ndarray", i64, 1),
            Param("number of accesses", "ndarray", i64, 1),
        )

    def begin(self, number: int, task: Op, emit: Callable[..., Op]) -> None:
        """Emit the start of a task's body. number: of the task."""
        self._emit, self._at = emit, None
        self._starts = frozenset()
        if number not in self._traced:
            return
        self._starts = frozenset(map(id, parallel_bodies(task)))
        self._at = emit(C.ALLOCA, (), "accesses", pointer_to(i64))
        self._turn = emit(C.ALLOCA, (), "iterations", pointer_to(i64))
        slot = self._const(0)
        if task.attr.kind == "range_for":
            index = emit(C.LOOP_INDEX, (task,), 0, _index_type(task))
            wide = emit(C.CAST_VALUE, (index,), None, i64) if index.type != i64 else index
            slot = self._binary(C.BIT_AND, wide, self._const(self._slots - 1))
        start = self._const(self._traced.index(number) * self._slots)
        self._slot = self._binary(C.ADD, start, slot)
        self._base = self._binary(C.MUL, self._slot, self._const(self.length))

    def block(self, block: Block, emit: Callable[..., Op]) -> None:
        """Emit the start of a block: an entry if it is an iteration of the parallel loop."""
        if self._at is not None and id(block) in self._starts:
            self._emit = emit
            turn = emit(C.LOCAL_LOAD, (self._turn,), None, i64)
            self._entry(turn)
            more = self._binary(C.ADD, turn, self._const(1))
            emit(C.LOCAL_STORE, (self._turn, more), None, void)

    def access(self, op: Op, emit: Callable[..., Op]) -> None:
        """Emit the entry of an access."""
        number = self._numbers.get(op)
        if self._at is None or number is None:
            return
        self._emit = emit
        value = self._const(number << OFFSET_BITS)
        pointer = op.args[0]
        while pointer.code == C.SHIFT_PTR:
            offset = pointer.args[1]
            if offset.type != i64:
                offset = emit(C.CAST_VALUE, (offset,), None, i64)
            value = self._binary(C.ADD, value, offset)
            pointer = pointer.args[0]
        self._entry(value)

    def end(self, emit: Callable[..., Op]) -> None:
        """Emit the end of a task's body."""
        if self._at is not None:
            self._emit = emit
            assert self._slot is not None
            at = emit(C.LOCAL_LOAD, (self._at,), None, i64)
            self._store(self._first + 1, self._slot, at)
        self._at = None

    def _entry(self, value: Op) -> None:
        assert self._at is not None
        assert self._base is not None
        at = self._emit(C.LOCAL_LOAD, (self._at,), None, i64)
        index = self._binary(C.BIT_AND, at, self._const(self.length - 1))
        self._store(self._first, self._binary(C.ADD, self._base, index), value)
        more = self._binary(C.ADD, at, self._const(1))
        self._emit(C.LOCAL_STORE, (self._at, more), None, void)

    def _store(self, param: int, index: Op, value: Op) -> None:
        array = self._emit(C.ARG_ADDR, (), (param, False), pointer_to(i64))
        place = self._emit(C.SHIFT_PTR, (array, index), None, array.type)
        self._emit(C.GLOBAL_STORE, (place, value), None, void)

    def _const(self, value: int) -> Op:
        return self._emit(C.CONST, (), normalize(value, i64), i64)

    def _binary(self, code: int, a: Op, b: Op) -> Op:
        return self._emit(code, (a, b), None, i64)


def parallel_bodies(task: Op) -> list[Block]:
    """The blocks that are executed for each iteration of a task's parallel loop."""
    body = task.regions[1]
    if task.attr.kind != "range_for":
        return []
    if task.attr.unit == "cell":
        return [body]
    return [op.regions[0] for op in body.ops if op.code == C.RANGE_FOR]


def _index_type(task: Op) -> Any:
    """The type of the index of a task's loop."""
    header = task.regions[0]
    return header.ops[-1].args[0].type


def _can_trace(task: Op, accesses: dict[Op, Access]) -> bool:
    """True if a task is executed in chunks, each by one thread, and touches elements itself."""
    if task.attr.kind != "serial" and (task.attr.kind != "range_for" or task.attr.unit != "chunk"):
        return False
    ops = list(walk(task.regions[1]))
    return any(op in accesses for op in ops) and not any(op.code == C.CALL for op in ops)


def _no_emitter(*_: Any) -> Op:
    raise AssertionError("no task has begun")
