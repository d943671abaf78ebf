"""Cells: locals, arrays and elements; the instructions that write them, and the last such write.

A search goes back from snapshot to snapshot. A stretch in which no watched element of an array was
written is skipped: the log of its snapshot says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ...ir import Op
from ...ir import codes as C
from ..contents import elements
from ..inputs import by_index
from .machine import END, Machine, Snapshot
from .values import DebugError, Frame, Names, Vector, without_gradient

__all__ = ["Cells", "Watch", "Write", "equal"]

_CELL: Final = re.compile(r"\s*([\w.]+?)\s*(?:\[(.*)\])?\s*")


class Write(NamedTuple):
    """A write of a cell. time: the moment before it. old, new: the values before and after."""

    time: int
    file: str
    line: int
    old: Any
    new: Any


class Breakpoint:
    """A place to stop at.

    line: where the user put it. at: the line with code that it is at, 0 for none. condition: stops
    only if it is true. hits: stops from this time on that it is reached, 0 for always; the times
    that were passed since it exists count, forward only once. log: text to report in place of a
    stop, with ``{expressions}``.
    """

    def __init__(self, file: str, line: int, condition: str, hits: int, log: str) -> None:
        self.file: Final = file
        self.line: Final = line
        self.condition: Final = condition
        self.hits: Final = hits
        self.log: Final = log
        self.at = 0
        self.pcs: frozenset[int] = frozenset()
        self.seen: Final[dict[int, int]] = {}
        """By moment, which time it was that the breakpoint was reached."""


class Watch:
    """Cells that are watched. pcs: what may write them. matches: true if the next instruction
    does. array: the number of the parameter, -1 for a local. cells: flat indices; None for all."""

    def __init__(self, text: str, frame: Frame) -> None:
        self.text = text
        self.frame = frame
        self.pcs: frozenset[int] = frozenset()
        self.array = -1
        self.cells: frozenset[int] | None = None
        self.variables: list[Op] = []


class Cells:
    """Finds writes in a run. values: its arguments."""

    def __init__(self, machine: Machine, names: Names, values: list[Any]) -> None:
        self._machine: Final = machine
        self._names: Final = names
        self._values: Final = values

    def search(self, text: str, changed: bool, before: int) -> Write | None:
        """The last write of a cell before a moment; with ``changed``, one with another value."""
        machine = self._machine
        now = machine.time
        failed = machine.error is not None
        watch = self.watched(text)
        machine.go(before)
        following = self.value(watch)

        def skip(snapshot: Snapshot) -> bool:
            logs = [snapshot.logs.get(f"L{watch.array}"), snapshot.logs.get(f"G{watch.array}")]
            if watch.array < 0 or machine.doubled:
                return False
            log = logs[0] or {}
            return not log if watch.cells is None else not any(c in log for c in watch.cells)

        found: list[Write] = []

        def find(begin: int, end: int) -> int | None:
            nonlocal following
            seen: list[tuple[int, int, Any]] = []

            def stop() -> bool:
                if machine.time < end and self.writes(watch):
                    seen.append((machine.time, machine.pc, self.value(watch)))
                return False

            first = self.value(watch)
            if machine.pc in watch.pcs:
                stop()
            machine.run(end, watch.pcs, stop)
            for time, pc, old in reversed(seen):
                if not changed or not equal(old, following):
                    loc = machine.code[pc].loc
                    found.append(Write(time, loc.file, loc.line, old, following))
                    return time
                following = old
            following = first
            return None

        machine.back(find, skip)
        machine.go(now)
        if failed:
            machine.run(END)
        return found[0] if found else None

    def watched(self, text: str) -> Watch:
        """The cells that an expression names. Raises DebugError."""
        found = _CELL.fullmatch(text)
        frame = self._names.frames()[0]
        if found is None:
            raise DebugError(
                f"{text!r} names no variable, array or element: write x[3] or p.pos[1]"
            )
        watch = Watch(text.strip(), frame)
        watch.variables = self._names.variable(watch.text, frame)
        if watch.variables:
            ids = {op.id for op in watch.variables}
            watch.pcs = self._pcs(lambda root: root.id in ids or root.code == C.CALL_ARG)
            return watch
        numbers = [i for i, p in enumerate(self._machine.func.params) if p.name == found[1]]
        if not numbers or self._machine.func.params[numbers[0]].kind == "scalar":
            raise DebugError(f"no variable or array {found[1]!r} has a value here")
        watch.array = numbers[0]
        if found[2] is not None:
            watch.cells = self._cells(watch.array, found[2])
        watch.pcs = self._pcs(
            lambda root: (
                root.code == C.CALL_ARG
                or (
                    root.code == C.ARG_ADDR
                    and (root.attr[0] == watch.array or self._machine.doubled)
                )
            )
        )
        return watch

    def _pcs(self, fits: Callable[[Op], bool]) -> frozenset[int]:
        """The instructions that write to memory whose root fits."""
        out: set[int] = set()
        for pc, instruction in enumerate(self._machine.code):
            op = instruction.op
            writes = op is not None and (C.WRITE[op.code] or C.ATOMIC[op.code])
            if op is not None and writes and op.args and fits(_root(op)):
                out.add(pc)
        return frozenset(out)

    def _cells(self, number: int, text: str) -> frozenset[int]:
        """The flat indices of an element of an array."""
        param, data = self._machine.func.params[number], without_gradient(self._values[number])
        try:
            index = self._names.evaluate(f"({text},)")
            flat: Any = cast("Any", np.arange(data.size))
            if param.layout is not None:
                flat = elements(param.layout, flat)
            else:
                flat = by_index(param, flat.reshape(data.shape))
            origin = param.layout.origin if param.layout is not None else (0,) * len(index)
            index = tuple(i - o for i, o in zip(index, origin, strict=False))
            if any(i < 0 for i in index):
                raise IndexError("the index is negative")
            return frozenset(np.atleast_1d(flat[index]).reshape(-1).tolist())
        except (IndexError, TypeError) as error:
            raise DebugError(f"{param.name}[{text}]: {error}") from None

    def writes(self, watch: Watch) -> bool:
        """True if the next instruction writes what is watched."""
        machine = self._machine
        op = machine.code[machine.pc].op
        assert op is not None
        root = _root(op)
        if watch.array < 0:
            if root.code == C.CALL_ARG:
                memory = machine.env.get(f"q{root.attr}m")
                return any(memory is machine.env.get(f"a{v.id}") for v in watch.variables)
            return len(machine.frames) == watch.frame.level
        if machine.doubled:
            return True
        if root.code == C.CALL_ARG:
            memory = machine.env.get(f"q{root.attr}m")
            if memory is not machine.cx.arrays[watch.array]:
                return False
        elif root.attr[1]:
            return False
        if watch.cells is None:
            return True
        return eval(machine.flat.values[op.args[0]], machine.env) in watch.cells

    def value(self, watch: Watch) -> Any:
        """The value of what is watched, as it is now."""
        if watch.array >= 0:
            data = without_gradient(self._values[watch.array])
            if watch.cells is None:
                return data.copy()
            cells = data.reshape(-1)[sorted(watch.cells)]
            return cells[0] if len(cells) == 1 else cells.copy()
        env, out = self._machine.env, list[Any]()
        for op in watch.variables:
            value = env.get(f"a{op.id}")
            kind: Any = op.type
            elem = kind.elem
            for v in cast("list[Any]", value if isinstance(value, list) else [value]):
                out.append(None if v is None else elem.np(v) if elem.is_real else int(v))
        return out[0] if len(out) == 1 else Vector(out)


def _root(op: Op) -> Op:
    """The op that the address which ``op`` writes to starts from."""
    pointer = op.args[0]
    while pointer.code in (C.EXTERNAL_PTR, C.SHIFT_PTR):
        pointer = pointer.args[0]
    return pointer


def equal(a: Any, b: Any) -> bool:
    """True if two values are the same, NaNs included."""
    if isinstance(a, Vector) and isinstance(b, Vector):
        return len(a) == len(b) and all(map(equal, a, b))
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"))
