"""Conflicts between iterations of parallel loops, found by running IR of any stage once.

The interpreter runs iterations one after the other, so a lost atomic changes nothing in what it
computes. `conflicts` notes which iteration reads and writes each element: where two iterations of
one parallel loop touch the same element, and one of them writes it without an atomic, the order in
which they run decides the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..analysis import is_parallel, needs_blocks
from ..backends.interp.emit import Emitter
from ..backends.interp.run import InterpretedKernel
from ..errors import QuadrantsUnsupportedError
from ..ir import Block, Func, Op
from ..ir import codes as C
from .interpreting import Given, counted, discard
from .trials import UnjudgedError

__all__ = ["conflicts", "first_conflict"]

_STEPS: Final = 400_000
_MANY_STEPS: Final = 5 * _STEPS
"""For a question of the user's, who waits for the answer."""


class _Tracker:
    """The iteration that last touched each element, in the parallel loop that runs.

    found: the parameters whose elements iterations compete for. first: the first such element:
    parameter, element, the iteration before and the one that then touched it.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.first: tuple[str, int, int, int] | None = None
        self._iteration = -1
        # By element: its address, as arrays of a launch may overlap.
        self._plain: dict[tuple[str, int], int] = {}
        self._readers: dict[tuple[str, int], int] = {}
        self._atomics: dict[tuple[str, int], int] = {}
        self._starts: dict[str, tuple[int, int]] = {}

    def given(self, values: Sequence[Any]) -> None:
        """The values that the kernel works on."""
        self._starts = {
            f"m{i}": (value.ctypes.data, value.itemsize)
            for i, value in enumerate(values) if isinstance(value, np.ndarray)
        }  # fmt: skip

    def begin(self) -> None:
        """A parallel loop starts, or is over."""
        self._iteration = -1
        for each in (self._plain, self._readers, self._atomics):
            each.clear()

    def iteration(self) -> None:
        """The next iteration starts."""
        self._iteration += 1

    def touch(self, kind: str, memory: str, index: int) -> None:
        """The iteration touches an element. kind: r(ead), w(rite) or a(tomic)."""
        now = self._iteration
        if now < 0:
            return
        key = memory, index
        start = self._starts.get(memory)
        if start is not None:
            key = "", start[0] + start[1] * index
        others = {"r": (self._plain, self._atomics), "a": (self._plain, self._readers),
                  "w": (self._plain, self._readers, self._atomics)}[kind]  # fmt: skip
        for each in others:
            before = each.get(key, now)
            if before != now:
                self.found.add(memory)
                self.first = self.first or (memory, index, before, now)
        own = {"r": self._readers, "w": self._plain, "a": self._atomics}[kind]
        own[key] = now


class _TrackingEmitter(Emitter):
    """Emits a call to the tracker before every access to memory that iterations share."""

    tracker: _Tracker
    chosen: Callable[[Func, Op], bool]

    def __init__(
        self, func: Func, debug: bool, counted: bool, vector: Callable[[Op], Any] | None = None
    ) -> None:
        super().__init__(func, debug, counted, None)
        self.names.update(
            track=self.tracker.touch,
            track_loop=self.tracker.begin,
            track_next=self.tracker.iteration,
        )
        self._bodies: set[int] = set()

    def emit(self, op: Op) -> None:
        parallel = op.code in (C.RANGE_FOR, C.OFFLOADED) and self.chosen(self.func, op)
        if parallel:
            if needs_blocks(op.regions[-1]):
                raise QuadrantsUnsupportedError("races: iterations wait for each other")
            self._bodies.add(id(op.regions[-1]))
            self.line("track_loop()")
        elif self.callee is None and (
            C.ATOMIC[op.code] or op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE)
        ):
            self._access(op)
        super().emit(op)
        if parallel:
            self.op = op
            self.line("track_loop()")

    def block(self, block: Block) -> None:
        if id(block) in self._bodies:
            self.line("track_next()")
        super().block(block)

    def _access(self, op: Op) -> None:
        pointer = op.args[0]
        if pointer.code == C.ALLOCA:
            return
        memory = self.memory(pointer)
        if memory[0] in "mgt":
            kind = "a" if C.ATOMIC[op.code] else "r" if op.code == C.GLOBAL_LOAD else "w"
            self.line(f"track({kind!r}, {memory!r}, {self.values[pointer]})")


def _is_parallel(func: Func, op: Op) -> bool:
    if op.code == C.OFFLOADED:
        return op.attr.kind != "serial"
    return is_parallel(func, op)


def conflicts(given: Given, func: Func) -> frozenset[str]:
    """The parameters whose elements iterations of a parallel loop compete for.

    given: makes the arguments. UnjudgedError if the kernel cannot be followed in that way.
    """
    tracker = _followed(given, func, _is_parallel)
    return frozenset(_name(func, memory) for memory in tracker.found)


def first_conflict(
    given: Given, func: Func, chosen: Callable[[Op], bool]
) -> tuple[str, int, int, int] | None:
    """The first element that iterations of chosen loops compete for: parameter, element, and the
    two iterations, counted from 0. Raises as `conflicts` does."""
    first = _followed(given, func, lambda _, op: chosen(op), _MANY_STEPS).first
    return None if first is None else (_name(func, first[0]), *first[1:])


def _followed(
    given: Given, func: Func, chosen: Callable[[Func, Op], bool], most: int = _STEPS
) -> _Tracker:
    tracker = _Tracker()
    members = {"tracker": tracker, "chosen": staticmethod(chosen)}
    make = type("Tracking", (_TrackingEmitter,), members)
    try:
        program = InterpretedKernel(func, True, True, None, make)
    except QuadrantsUnsupportedError as error:
        raise UnjudgedError(error.message) from None
    values = given()
    tracker.given(values)
    counted(program, values, discard, most)
    return tracker


def _name(func: Func, memory: str) -> str:
    names = {f"{kind}{i}": p.name for i, p in enumerate(func.params) for kind in "mg"}
    return names.get(memory, "the buffer between tasks")
