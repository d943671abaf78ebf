"""Amounts of a launch from the bounds of its loops, for launches that are too long to count.

Bounds are computed from scalar arguments, shapes and constants, as intervals: the index of a loop
is anything between its bounds. A loop runs at most as often as these allow, a branch at most as
often as what contains it. How often a ``while`` loop runs is unknown: its lines are left out, and
named. A line touches at most the elements that it asks for, and at most all of an array.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

from ..analysis import cell_loop
from ..ir import Block, Func, Op, base_of, walk
from ..ir import codes as C
from ..ir.semantics import binary_fn
from ..named_tuple import NamedTuple
from .counting import Segment, tasks_of_ops
from .dependences import dependences
from .line_counts import LineAmounts, LineKey, Touched, line_amounts, line_key

__all__ = ["Bounded", "bounded"]

_Interval = tuple[int, int]
_UNKNOWN: Final = None
_NOTHING: Final = Touched(0, 0, {}, {}, {}, {})


class Bounded(NamedTuple):
    """lines: the amounts. exact: the lines whose executions and operations are no upper limits.
    unknown: lines of the kernel where loops run unknown times. memory: bytes of all arrays that are
    touched."""

    lines: tuple[LineAmounts, ...]
    exact: frozenset[LineKey]
    unknown: tuple[int, ...]
    memory: int


def bounded(func: Func, values: Sequence[Any]) -> Bounded:
    """The amounts of a launch of a finished function whose tasks are not divided for threads."""
    walker = _Walker(func, values)
    for task in func.tasks():
        walker.task(task)
    segments = [Segment(tasks, tuple(ops)) for tasks, ops, _, _ in walker.parts]
    runs = [n for _, _, n, _ in walker.parts]
    found = line_amounts(segments, runs, _NOTHING, False, dependences(func))
    sizes = walker.touched()
    lines: list[LineAmounts] = []
    for line in found:
        read, written = sizes.get(line.key, (0, 0))
        lines.append(line._replace(
            read_bytes=read, written_bytes=written, moved_read=read, moved_written=written
        ))  # fmt: skip
    inexact = {
        line_key(op, task) for task, ops, _, exact in walker.parts for op in ops if not exact
    }
    exact = frozenset(line.key for line in lines) - inexact
    return Bounded(tuple(lines), exact, tuple(sorted(walker.unknown)), walker.memory())


class _Walker:
    """Finds out how often blocks are executed. parts: (task, ops, executions, exact)."""

    def __init__(self, func: Func, values: Sequence[Any]) -> None:
        self._func: Final = func
        self._values: Final = values
        self._tasks: Final = tasks_of_ops(func)
        self._indices: Final[dict[tuple[int, int], _Interval]] = {}
        self._known: Final[dict[Op, _Interval | None]] = {}
        self.parts: Final[list[tuple[int, list[Op], int, bool]]] = []
        self.unknown: Final[set[int]] = set()
        self._called: Final[set[str]] = set()

    def task(self, task: Op) -> None:
        """Walk through a task."""
        header, body = task.regions
        bounds = header.ops[-1].args if header.ops else ()
        trips, exact = self._trips(task, bounds)
        if trips is None:
            self.unknown.add(task.loc.root.line)
            return
        loop = cell_loop(task)
        if loop is not None and task.attr.unit == "thread":  # which share the iterations
            self._trips(loop, bounds)
            body = loop.regions[0]
        self._block(body, trips, exact)

    def _trips(self, loop: Op, bounds: Sequence[Op]) -> tuple[int | None, bool]:
        """The number of times a loop over these bounds runs, and True if that is no upper limit."""
        most, exact = 1, True
        for axis in range(len(bounds) // 2):
            begin, end = self._value(bounds[2 * axis]), self._value(bounds[2 * axis + 1])
            if begin is None or end is None:
                return None, False
            most *= max(0, end[1] - begin[0])
            exact = exact and begin[0] == begin[1] and end[0] == end[1]
            self._indices[loop.id, axis] = begin[0], max(begin[0], end[1] - 1)
        return most, exact

    def _block(self, block: Block, runs: int, exact: bool) -> None:
        ops: list[Op] = []
        task = self._tasks.get(block.ops[0], -1) if block.ops else -1
        for op in block.ops:
            ops.append(op)
            if op.code == C.IF:
                for region in op.regions:
                    self._block(region, runs, False)
            elif op.code == C.RANGE_FOR:
                trips, known = self._trips(op, op.args)
                if trips is None:
                    self.unknown.add(op.loc.root.line)
                else:
                    self._block(op.regions[0], runs * trips, exact and known)
            elif op.code == C.WHILE:
                self.unknown.add(op.loc.root.line)
            elif op.code == C.CALL and op.attr in self._func.callees:
                self._callee(op, runs)
            if op.code == C.WHILE_CONTROL or (op.regions and _leaves(op)):
                self.parts.append((task, ops, runs, exact))
                ops, exact = [], False
        if ops:
            self.parts.append((task, ops, runs, exact))

    def _callee(self, op: Op, runs: int) -> None:
        """Walk through a real function; one that calls itself runs unknown times."""
        if op.attr in self._called:
            self.unknown.add(op.loc.root.line)
            return
        self._called.add(op.attr)
        self._block(self._func.callees[op.attr].body, runs, False)
        self._called.discard(op.attr)

    # ---- values

    def _value(self, op: Op) -> _Interval | None:
        if op not in self._known:
            self._known[op] = self._computed(op)
        return self._known[op]

    def _computed(self, op: Op) -> _Interval | None:
        """The values that an op of integers can have; None if not known."""
        if op.code == C.CONST:
            return (int(op.attr), int(op.attr)) if not op.type.is_real else _UNKNOWN
        if op.code == C.ARG_LOAD:
            value = self._values[op.attr]
            return (int(value), int(value)) if not op.type.is_real else _UNKNOWN
        if op.code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            axis, param = op.attr
            n = int(self._values[param].shape[axis])
            return n, n
        if op.code == C.LOOP_INDEX:
            return self._indices.get((op.args[0].id, op.attr))
        several = [self._value(arg) for arg in op.args]
        known = [one for one in several if one is not None]
        if len(known) < len(several) or op.type.is_real or any(a.type.is_real for a in op.args):
            return _UNKNOWN
        if C.BINARY[op.code] and all(low == high for low, high in known):
            a, b = op.args
            kinds: Any = (a.type, b.type, op.type)
            value = int(binary_fn(op.code, *kinds)(known[0][0], known[1][0]))
            return value, value
        return _RULES[op.code](*known) if op.code in _RULES else _UNKNOWN

    # ---- bytes

    def touched(self) -> dict[LineKey, tuple[int, int]]:
        """By line: bytes read and written, at most."""
        asked: dict[tuple[LineKey, int, bool], int] = {}
        for task, ops, runs, _ in self.parts:
            for op in ops:
                for param, written, size in _accesses(op):
                    key = line_key(op, task), param, written
                    asked[key] = asked.get(key, 0) + runs * size
        out: dict[LineKey, tuple[int, int]] = {}
        for (key, param, written), n in asked.items():
            n = min(n, int(getattr(self._values[param], "nbytes", n)))
            read, stored = out.get(key, (0, 0))
            out[key] = (read, stored + n) if written else (read + n, stored)
        return out

    def memory(self) -> int:
        """Bytes of the arrays that the kernel works on."""
        params = {
            param for body in self._func.bodies() for op in walk(body)
            for param, _, _ in _accesses(op)
        }  # fmt: skip
        return sum(int(getattr(self._values[param], "nbytes", 0)) for param in params)


def _accesses(op: Op) -> list[tuple[int, bool, int]]:
    """(parameter, written, bytes) of what an op reads and writes of arrays."""
    both = C.ATOMIC[op.code]
    if not (both or op.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE)):
        return []
    pointer = op.args[0]
    size = int(getattr(getattr(pointer.type, "elem", None), "size", 0))
    pointer = base_of(pointer)
    if pointer.code != C.ARG_ADDR:
        return []
    kinds = (False, True) if both else (op.code == C.GLOBAL_STORE,)
    return [(int(pointer.attr[0]), written, size) for written in kinds]


def _leaves(op: Op) -> bool:
    """True if an iteration or the kernel may end inside of an op."""
    codes = (C.RETURN, C.CONTINUE, C.WHILE_CONTROL)
    return any(inner.code in codes for region in op.regions for inner in walk(region))


def _corners(rule: Any) -> Any:
    """A rule that is monotonous in each operand, for intervals."""

    def applied(a: _Interval, b: _Interval) -> _Interval:
        found = [rule(x, y) for x in a for y in b]
        return min(found), max(found)

    return applied


def _divided(a: _Interval, b: _Interval) -> _Interval | None:
    if b[0] != b[1] or b[0] <= 0 or a[0] < 0:
        return None
    return a[0] // b[0], a[1] // b[0]


def _shifted(a: _Interval, b: _Interval) -> _Interval | None:
    if b[0] != b[1] or not 0 <= b[0] < 64:
        return None
    return a[0] >> b[0], a[1] >> b[0]


def _same(a: _Interval) -> _Interval:
    return a


_RULES: Final[dict[int, Any]] = {
    C.ADD: _corners(operator.add), C.SUB: _corners(operator.sub),
    C.MUL: _corners(operator.mul), C.MAX: _corners(max), C.MIN: _corners(min),
    C.BIT_SAR: _shifted, C.DIV: _divided, C.FLOORDIV: _divided, C.CAST_VALUE: _same,
}  # fmt: skip
