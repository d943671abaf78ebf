"""Runs a parallel task over arrays of iterations, if the result is that of one after the other.

An iteration is a lane, numbered in the order in which the scalar source runs them. On arrays, an
op is done by all lanes before the next op is done by any, so accesses to memory happen in another
order. The result is the same, bit for bit, because

* each lane computes what its iteration computes from what it loads (see `vector_ops`);
* of two lanes that access the same element, one of them to change it, the lower one does so first:
  `Run.touch` refuses a lane that comes after a higher one, on every access to memory of the kind
  SHARED. Within one op lanes take their turns in ascending order;
* stores and atomics on memory of the kind BLIND, which is not read meanwhile, are kept until the
  lanes have ended (`Run.later`) and then done sorted by lane, those of one lane in its own order;
* lanes run in chunks, one after the other.

Whatever does not go well - a lane too late, an index outside of an array, a failing assert -
raises `Trouble`: memory gets back what it held before the task, and the scalar source runs and
says what is wrong, if anything is. Arrays that overlap are left to it from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...errors import QuadrantsUnsupportedError
from ...ir import Func, Op, walk
from ...ir import codes as C
from .vector import VectorEmitter
from .vector_memory import Trouble
from .vectorizable import refusal

__all__ = ["LEAST", "VectorTask", "vector_task"]

LEAST: Final = 96
"""Iterations from which arrays are faster; benchmarks/interp.py measures it."""
_LAUNCHES: Final = 4
"""The cost of code for arrays, in units of the time of `LEAST` iterations without loops."""
_CHUNK: Final = 1 << 14
_SHORT_CHUNK: Final = 1 << 10
"""Lanes of a call: where ops in loops wait for its end, few, since all of them are kept."""
_MOST_PRIVATE: Final = 1 << 22
"""Scalars in the private arrays of all lanes of a call."""
_MOST_WAITING: Final = 1 << 25
_FREE: Final = 1 << 24
_BYTES_A_LANE: Final = 1 << 10
"""Limits of the memory saved before a task, so that it can be undone: `_FREE` bytes or
`_BYTES_A_LANE` for each lane, whichever is more."""

Array = Any


class Run:
    """One run of a task. arrays: views of memory, by name. base: the first lane of the chunk."""

    def __init__(
        self, arrays: dict[str, Array], slots: list[tuple[str, Callable[..., None]]]
    ) -> None:
        self.arrays: Final = arrays
        self.base = 0
        self._slots: Final = slots
        self._waiting: Final[list[list[tuple[Array, Any, Any]]]] = [[] for _ in slots]
        self._held = 0
        self._touched: Final[dict[str, Array]] = {}

    def touch(self, name: str, offsets: Array, lanes: Array) -> None:
        """These lanes are about to access these offsets of a memory, and must not be too late."""
        touched = self._touched.get(name)
        if touched is None:
            touched = self._touched[name] = np.full(self.arrays[name].size, -1, np.int64)
        if offsets.size and offsets.min() < 0:
            raise Trouble("an access outside of an array")
        numbers = lanes + self.base
        if (touched[offsets] > numbers).any():
            raise Trouble("iterations access the same elements")
        touched[offsets] = numbers

    def later(self, slot: int, lanes: Array, offsets: Any, values: Any) -> None:
        """Keep a store or an atomic for the end of the chunk."""
        self._held += lanes.size
        if self._held > _MOST_WAITING:
            raise Trouble("too many accesses wait")
        self._waiting[slot].append((lanes, offsets, values))

    def finish(self) -> None:
        """Do what was kept, in the order of lanes, those of one lane in the order they came."""
        for (memory, act), kept in zip(self._slots, self._waiting, strict=True):
            if kept:
                array = self.arrays[memory]
                lanes = np.concatenate([lanes for lanes, _, _ in kept])
                offsets = np.concatenate([np.broadcast_to(p, x.size) for x, p, _ in kept])
                values = np.concatenate(
                    [np.broadcast_to(np.asarray(v, array.dtype), x.size) for x, _, v in kept]
                )
                order = np.argsort(lanes.astype(np.uint16), kind="stable")
                act(array, offsets[order], values[order])
                kept.clear()
        self._held = 0


class VectorTask:
    """A task that may run over arrays.

    runs: how often it did. failures: how often it could not. why: why it does not any more, which
    is so once it failed more often than not.
    """

    def __init__(self, func: Func, task: Op, debug: bool, counted: bool, least: int) -> None:
        self.func: Final = func
        self.task: Final = task
        self.least: Final = least
        self.options: Final = debug, counted
        self.why = ""
        self.runs = 0
        self.failures = 0
        self._worth: Final = least * (1 if _has_loops(task) else _LAUNCHES)
        self._seen = 0
        self._made: _Made | None = None

    def __call__(self, cx: Any, ranges: Any) -> bool:
        """Run all iterations; False if nothing was done and the scalar source has to."""
        if isinstance(ranges, range):
            ranges = (ranges,)
        total = 1
        for each in ranges:
            total *= len(each)
        self._seen += total
        if total < self.least or self.why or self._seen < self._worth:
            return False
        made = self.made()
        if made is None:
            return False
        arrays = made.views(cx)
        written = [arrays[name] for name in made.written]
        saved_bytes = sum(a.nbytes for a in written)
        if made.overlap(arrays) or saved_bytes > max(_FREE, total * _BYTES_A_LANE):
            return False
        saved = [a.copy() for a in written]
        try:
            self._run(made, Run(arrays, made.slots), cx, ranges, total)
        except (Trouble, IndexError, OverflowError) as trouble:
            for array, before in zip(written, saved, strict=True):
                array[:] = before
            self.failures += 1
            if self.failures > self.runs:
                self.why = str(trouble)
            return False
        self.runs += 1
        return True

    def _run(self, made: _Made, run: Run, cx: Any, ranges: tuple[range, ...], total: int) -> None:
        for base in range(0, total, made.chunk):
            count = min(made.chunk, total - base)
            run.base = base
            numbers = np.arange(base, base + count)
            found = np.unravel_index(numbers, [len(r) for r in ranges])
            indices = [(i + r.start).astype(np.int32) for i, r in zip(found, ranges, strict=True)]
            made.entry(cx, run, count, *indices)
            run.finish()

    def made(self) -> _Made | None:
        """The code, made when it is first wanted; None if there can be none."""
        if self._made is None and not self.why:
            try:
                self._made = _Made(self.func, self.task, *self.options)
            except (QuadrantsUnsupportedError, SyntaxError, RecursionError, MemoryError) as error:
                self.why = str(error)
        return self._made

    @property
    def source(self) -> str:
        """The code as text; empty if there can be none."""
        made = self.made()
        return made.source if made is not None else ""


class _Made:
    """The code of a task and what it needs."""

    def __init__(self, func: Func, task: Op, debug: bool, counted: bool) -> None:
        emitter = VectorEmitter(func, task, debug, counted)
        self.source: Final = emitter.run()
        names = dict(emitter.names)
        exec(compile(self.source, f"<interp {func.name} task{task.id}>", "exec"), names)
        self.entry: Final[Callable[..., None]] = names[f"task{task.id}"]
        self.slots: Final = [(memory, names[name]) for _, memory, name in emitter.slots]
        facts = emitter.facts
        chunk = _SHORT_CHUNK if facts.lengthy else _CHUNK
        self.chunk: Final = max(1, min(chunk, _MOST_PRIVATE // max(1, facts.private)))
        self._bases: Final = {emitter.memory(op).upper(): op for op in facts.bases.values()}
        self.written: Final = sorted(
            {emitter.memory(facts.bases[space]).upper() for space in facts.written}
        )
        self._fields: Final = {
            f"{letter}{number}".upper()
            for number, param in enumerate(func.params) if param.kind == "field"
            for letter in "mg"
        }  # fmt: skip

    def views(self, cx: Any) -> dict[str, Array]:
        """The memory that the task works on."""
        return {name: cx.array(op) for name, op in self._bases.items()}

    def overlap(self, arrays: dict[str, Array]) -> bool:
        """True if an array that is written shares memory with another one."""
        return any(
            name != other and array.size and np.may_share_memory(arrays[name], array)
            for name in self.written for other, array in arrays.items()
            if name[0] != "T" and not (name in self._fields and other in self._fields)
        )  # fmt: skip


def _has_loops(task: Op) -> bool:
    return any(C.LOOP[op.code] for op in walk(task.regions[1]))


def vector_task(func: Func, task: Op, debug: bool, counted: bool, least: int) -> VectorTask | None:
    """The runner of ``task`` over arrays from ``least`` iterations on; None if there is none."""
    if refusal(func, task):
        return None
    return VectorTask(func, task, debug, counted, least)
