"""Shadow memory: one launch in the interpreter, with what was done to each element.

`Followed` runs the frontend's IR on arguments of a launch and notes for each element of memory that
iterations share who wrote it last, who read it and who updated it atomically. Two iterations of one
parallel loop conflict if one of them writes plainly what the other touches; a write that leaves the
element as it is, after another that wrote the same, is harmless. Loops run one after another, so an
element is forgotten when a loop ends. Barriers order the iterations of a block: accesses in
different phases of one block do not conflict. What fences order does not either (`fences`).

An access outside of its array, and a read of an element that was never given a value, end the run.
Elements without a value are those of arrays that the caller did not fill (`numpy.empty`) and of
arrays that the iterations of a block share, until they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np

from ...analysis import is_parallel, needs_blocks
from ...backends.interp import blocks
from ...backends.interp.late_blocks import LateEmitter
from ...backends.interp.run import InterpretedKernel
from ...errors import QuadrantsRuntimeError, QuadrantsUnsupportedError
from ...ir import Func, Op, base_of, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ..interpreting import Given, TooLong, counted, discard
from ..trials import UnjudgedError
from .fences import Fences

__all__ = ["Followed", "Seen", "Shadow"]


class Seen(NamedTuple):
    """A fault that a launch had. what: race, bounds or uninitialised. op, other: the accesses;
    indices: of the element. at, before: the indices of the iterations; () outside of a loop.
    kinds: of a race, what ``before`` and then ``at`` did: r, w, a. extents: of the array."""

    what: str
    op: Op
    indices: tuple[int, ...]
    at: tuple[int, ...]
    other: Op | None = None
    before: tuple[int, ...] = ()
    kinds: str = ""
    extents: tuple[int, ...] = ()


EmptyOf = Callable[[np.ndarray[Any, Any]], "np.ndarray[Any, Any] | None"]
_Touch = tuple[tuple[int, ...], tuple[int, int], int, Op, Any, int]
"""Iteration, phase, block, op, value, time."""


class _Cell:
    """The accesses of an element in the loop that runs: the last plain write, and two different
    iterations of those that read and updated it."""

    __slots__ = ("atomics", "reads", "write")

    def __init__(self) -> None:
        self.write: _Touch | None = None
        self.reads: list[_Touch] = []
        self.atomics: list[_Touch] = []


class _Stop(Exception):
    """Ends a run that has found what it was for."""


class Shadow:
    """See the module docstring. found: faults, at most one per pair of lines. steps: accesses
    that were followed. complete: the launch came to its end."""

    def __init__(
        self, func: Func, empty_of: EmptyOf | None, ops: dict[int, Op] | None = None
    ) -> None:
        """empty_of: returns the elements of an array that have no value, or None. ops: those that
        access memory, by id."""
        self.func: Final = func
        self.found: list[Seen] = []
        self.steps = 0
        self.complete = False
        self.ops: dict[int, Op] = {} if ops is None else ops
        self._cells: dict[tuple[Any, int], _Cell] = {}
        self._keys: dict[str, Any] = {}
        self._starts: dict[str, tuple[int, int]] = {}
        self._arrays: dict[str, Any] = {}
        self._phases: dict[tuple[int, ...], tuple[int, int]] = {}
        self._empty_of = empty_of
        self._empty: dict[str, np.ndarray[Any, Any]] = {}
        self._set: dict[str, set[int]] = {}
        self._block = 0
        self._in_blocks = False
        self._fences: Fences | None = None
        self._lines: set[tuple[Any, ...]] = set()
        self._extents: dict[str, tuple[int, ...]] = {}

    def names(self) -> dict[str, Any]:
        """The functions that the emitted source calls."""
        return {
            "touch": self.touch, "touch_loop": self.begin, "touch_sync": self.sync,
            "blocks": self.blocks, "touch_fence": self.fence,
        }  # fmt: skip

    def given(self, values: Sequence[Any]) -> None:
        """The values that the kernel works on."""
        for i, (param, value) in enumerate(zip(self.func.params, values, strict=True)):
            if not isinstance(value, np.ndarray):
                continue
            array = cast("np.ndarray[Any, Any]", value)
            self._starts[f"m{i}"] = array.ctypes.data, array.itemsize
            empty = None if self._empty_of is None else self._empty_of(array)
            if empty is not None:
                self._empty[f"m{i}"] = empty
            shape: tuple[int, ...] = array.shape
            axes = param.axes or tuple(range(param.ndim))
            if param.layout is not None:
                back = tuple(param.layout.shape[: param.ndim])
            else:
                back = tuple([shape[axes.index(k)] for k in range(param.ndim)])
            self._extents[f"m{i}"] = self._extents[f"g{i}"] = (*back, *param.element_shape)

    def begin(self, in_blocks: bool) -> None:
        """A parallel loop starts, or is over."""
        self._cells.clear()
        self._phases.clear()
        self._fences = None
        self._in_blocks = in_blocks
        for memory in [m for m in self._set if m.startswith("s")]:
            del self._set[memory]

    def blocks(self, indices: Any, size: int) -> Iterator[list[tuple[int, ...]]]:
        """The iterations of each block, one block after the other."""
        for block in blocks.NAMES["blocks"](indices, size):
            self._block += 1
            yield block

    def sync(self, at: tuple[int, ...], barrier: bool) -> None:
        """An iteration reaches a barrier of its block, or one of its subgroup.

        Subgroups are not distinguished, so that accesses of two of them may pass as ordered.
        """
        whole, part = self._phases.get(at, (0, 0))
        self._phases[at] = (whole + 1, 0) if barrier else (whole, part + 1)

    def fence(self, at: tuple[int, ...]) -> None:
        """An iteration passes a fence for the whole grid."""
        if self._fences is None:
            self._fences = Fences()
        self._fences.fence(self._block if self._in_blocks else at, self.steps)

    def touch(
        self, kind: str, memory: str, place: int, number: int, indices: tuple[int, ...],
        at: tuple[int, ...], value: Any = None, shared: bool = False,
    ) -> None:  # fmt: skip
        """An access. kind: r(ead), w(rite), a(tomic); place: in its memory, below 0 if outside."""
        self.steps += 1
        op = self.ops[number]
        if place < 0:
            self._fault(Seen("bounds", op, indices, at, extents=self._extents.get(memory, ())))
            raise _Stop
        if not at:
            self._note_value(kind, memory, place, op, indices, at)
            return
        block = self._block if self._in_blocks else -1
        key = (memory, block) if shared else self._keys.get(memory)
        if key is None:
            key = self._keys[memory] = memory
        start = self._starts.get(memory)
        if start is not None:
            key, spot = "", start[0] + start[1] * place
        else:
            spot = place
        self._note_value(kind, f"s{memory}.{block}" if shared else memory, place, op, indices, at)
        cell = self._cells.get((key, spot))
        if cell is None:
            cell = self._cells[key, spot] = _Cell()
        mine: _Touch = at, self._phases.get(at, (0, 0)), block, op, value, self.steps
        if kind == "a" and self._fences is not None:
            self._fences.update(_party(mine), (key, spot))
        self._compare(kind, cell, mine, indices)
        if kind == "w":
            cell.write = mine
        else:
            several = cell.reads if kind == "r" else cell.atomics
            if len(several) < 2 and all(t[0] != at for t in several):
                several.append(mine)
            elif several and (several[-1][0] == at or self._in_blocks):
                several[-1] = mine

    def _compare(self, kind: str, cell: _Cell, mine: _Touch, indices: tuple[int, ...]) -> None:
        write = cell.write
        harmless = write is not None and kind == "w" and _equal(write[4], mine[4])
        if write is not None and not harmless and self._conflict(write, mine):
            self._race(write, mine, "w" + kind, indices)
        if kind != "r":
            for before in cell.reads:
                if self._conflict(before, mine):
                    self._race(before, mine, "r" + kind, indices)
        if kind != "a":
            for before in cell.atomics:
                if self._conflict(before, mine):
                    self._race(before, mine, "a" + kind, indices)

    def _conflict(self, a: _Touch, b: _Touch) -> bool:
        """True if two touches are of different iterations that nothing orders."""
        if a[0] == b[0] or not (a[2] != b[2] or a[2] < 0 or a[1] == b[1]):
            return False
        return self._fences is None or not self._fences.ordered(_party(a), a[5], _party(b))

    def _race(self, before: _Touch, mine: _Touch, kinds: str, indices: tuple[int, ...]) -> None:
        self._fault(Seen("race", mine[3], indices, mine[0], before[3], before[0], kinds))

    def _note_value(
        self, kind: str, memory: str, place: int, op: Op, indices: tuple[int, ...],
        at: tuple[int, ...],
    ) -> None:  # fmt: skip
        """Follow which elements have a value."""
        empty = self._empty.get(memory)
        if empty is None and not memory.startswith("s"):
            return
        done = self._set.setdefault(memory, set())
        if kind == "w":
            done.add(place)
        elif place not in done and (empty is None or (place < empty.size and empty[place])):
            self._fault(Seen("uninitialised", op, indices, at))
            done.add(place)

    def _fault(self, seen: Seen) -> None:
        other = seen.other.loc if seen.other is not None else None
        key = seen.what, seen.op.loc, other
        if key not in self._lines:
            self._lines.add(key)
            self.found.append(seen)
        if len(self.found) >= 20:
            raise _Stop


def _party(touch: _Touch) -> Any:
    """The block of an iteration, or the iteration if its loop has no blocks."""
    return touch[2] if touch[2] >= 0 else touch[0]


def _equal(a: Any, b: Any) -> bool:
    return a is not None and bool(a == b or (a != a and b != b))


class _WatchingEmitter(LateEmitter):
    """Emits a call of the shadow memory before every access that iterations share. touching: the
    ops that access memory, by id."""

    touching: dict[int, Op]

    def __init__(self, func: Func, debug: bool, counted: bool, vector: Any = None) -> None:
        super().__init__(func, debug, counted, None)
        self._around = ""
        self._inside: set[Op] = set()

    def emit(self, op: Op) -> None:
        if op.code == C.RANGE_FOR and is_parallel(self.func, op):
            body = op.regions[0]
            self.line(f"touch_loop({needs_blocks(body)})")
            count = len(op.args) // 2
            self._around = "".join(f"i{op.id}_{axis}, " for axis in range(count))
            self._inside = set(walk(body))
            super().emit(op)
            self._around, self._inside = "", set()
            self.op = op
            self.line("touch_loop(False)")
            return
        if self.callee is None:
            self._access(op)
        super().emit(op)
        if op.code == C.MEM_FENCE and op.attr == "grid" and self._around:
            self.line(f"touch_fence(({self._around}))")
        if op.code == C.BLOCK_SYNC or op.code in (
            C.SUBGROUP_SYNC, C.SUBGROUP_SHUFFLE, C.SUBGROUP_BALLOT
        ):  # fmt: skip
            self.line(f"touch_sync(({self._around}), {op.code == C.BLOCK_SYNC})")

    def _access(self, op: Op) -> None:
        load = op.code in (C.GLOBAL_LOAD, C.LOCAL_LOAD)
        store = op.code in (C.GLOBAL_STORE, C.LOCAL_STORE)
        if not load and not store and not C.ATOMIC[op.code]:
            return
        pointer = op.args[0]
        shared = False
        base = base_of(pointer)
        if base.code == C.ALLOCA:
            if not self._around or base in self._inside:
                return
            memory, place, indices = f"a{base.id}", "0", ""
        elif base.code in (C.CALL_ARG, C.GLOBAL_TMP):
            return
        else:
            memory, indices = self.memory(pointer), self._indices(pointer)
            place = self.values[pointer]
            if base.code == C.ARRAY_ALLOCA:
                shared = base.attr.space == "shared"
                place = self._own_place(pointer, base, place)
        kind = "r" if load else "w" if store else "a"
        value = self.arg(op, 1) if store else "None"
        private = base.code == C.ARRAY_ALLOCA and not shared and base in self._inside
        # Of an array of the iteration's own, only the bounds matter.
        guard = f"if {place} < 0: " if private else ""
        self.line(
            f"{guard}touch({kind!r}, {memory!r}, {place}, {op.id}, ({indices}), "
            f"({self._around}), {value}, {shared})"
        )
        self.touching[op.id] = op

    def _own_place(self, pointer: Op, base: Op, place: str) -> str:
        """The place in an array that the kernel makes; below 0 if an index is outside."""
        if pointer.code != C.SHIFT_PTR:
            return place
        offset = pointer.args[1]
        if offset.code != C.LINEARIZE:
            return f"({place} if 0 <= {place} < {base.attr.count} else -1)"
        n: int = offset.attr
        inner = [int(e.attr) for e in offset.args[n:]]
        ends = [base.attr.count // max(1, int(np.prod(inner))), *inner]
        inside = [
            f"0 <= {self.values[i]} < {end}" for i, end in zip(offset.args[:n], ends, strict=True)
        ]
        return f"({place} if {' and '.join(inside)} else -1)"

    def _indices(self, pointer: Op) -> str:
        """The indices that a pointer was made with, each followed by a comma."""
        if pointer.code == C.EXTERNAL_PTR:
            given = pointer.args[1:]
        elif pointer.code == C.SHIFT_PTR:
            offset = pointer.args[1]
            given = offset.args[: offset.attr] if offset.code == C.LINEARIZE else (offset,)
        else:
            return ""
        return "".join(f"{self.values[a]}, " for a in given)


class Followed:
    """IR of the frontend that is followed in launches; its source is emitted once.

    shadow, emitter: the classes that follow.
    """

    def __init__(
        self, func: Func, shadow: type[Shadow] = Shadow,
        emitter: type[_WatchingEmitter] = _WatchingEmitter,
    ) -> None:  # fmt: skip
        self.func: Final = func
        self._shadow: Final = shadow
        self._emitter: Final = emitter
        self._ops: Final[dict[int, Op]] = {}
        self._program: InterpretedKernel | None = None

    def launch(self, given: Given, most: int, empty_of: EmptyOf | None = None) -> Shadow:
        """Follow a launch with these arguments for at most ``most`` steps. UnjudgedError if it
        cannot be followed."""
        shadow = self._shadow(self.func, empty_of, self._ops)
        try:
            if self._program is None:
                make = type("Watching", (self._emitter,), {"touching": self._ops})
                self._program = InterpretedKernel(self.func, True, True, None, make)
            self._program.names.update(shadow.names())
            values = given()
            shadow.given(values)
            counted(self._program, values, discard, most)
            shadow.complete = True
        except (_Stop, TooLong):
            pass
        except QuadrantsUnsupportedError as error:
            raise UnjudgedError(error.message) from None
        except QuadrantsRuntimeError as error:
            text = f"the launch fails: {error.message.splitlines()[0]}"
            raise UnjudgedError(text) from None
        return shadow
