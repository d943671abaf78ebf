"""The work of a launch, known before it: the iterations of its loops and what each does.

Bounds of loops are computed from the arguments of the launch as intervals. The iterations of a
chunk end at ``min(begin + length, extent)``: the difference of two bounds follows such terms, since
intervals alone would give each chunk the whole loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...ir import Block, Func, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...passes.cost import op_cost
from ...types import i32

if TYPE_CHECKING:
    from ..kernarg.abi import ArgumentLayout

__all__ = ["Work", "work_of"]

_PLAIN: Final = 5
"""Tenths of a nanosecond of each operation in code that is not optimised, as measured with PoCL on
sample kernels; `passes.cost` adds what is slow in any code."""
_REFUSED: Final = frozenset({C.WHILE, C.CALL, C.PRINT, C.ASSERT})
"""Operations whose work is not known."""
_KNOWN: Final = 1024
"""Launches whose work is remembered."""

Span = tuple[int, int]
"""The least and the largest value of an integer."""


class _UnknownError(Exception):
    """The bounds of a loop depend on what only the device knows."""


class _Part(NamedTuple):
    """A loop, or a task. bounds: begin and end of each axis. cost: of one iteration without the
    loops in it. inner: those."""

    bounds: tuple[Op, ...]
    cost: int
    inner: tuple[_Part, ...]


class Work:
    """The estimated work of the launches of one kernel, in nanoseconds of code without
    optimisation on one thread."""

    def __init__(self, func: Func, layout: ArgumentLayout, tasks: Sequence[_Part]) -> None:
        self._params: Final = func.params
        self._layout: Final = layout
        self._tasks: Final = tasks
        self._reads: Final[dict[int, None]] = {}
        self._found: Final[dict[tuple[int, ...], int | None]] = {}

    def of(self, ints: memoryview) -> int | None:
        """Return the work of a launch with an argument buffer, as i32; None if it is not known."""
        key = tuple([ints[at] for at in self._reads])
        found = self._found.get(key, -1)
        if found == -1:
            evaluation = _Evaluation(self._read(ints))
            try:
                found = sum(map(evaluation.total, self._tasks)) // 10
            except _UnknownError:
                found = None
            if len(self._found) > _KNOWN:
                self._found.clear()
            # What was read meanwhile is a part of the key from now on.
            self._found[tuple([ints[at] for at in self._reads])] = found
        return found

    def _read(self, ints: memoryview) -> Callable[[Op], int]:
        """A function that returns the value of an operation that reads an argument."""

        def value(op: Op) -> int:
            if op.code == C.ARG_LOAD:
                at = self._layout.params[int(op.attr)]
            else:
                axis, number = map(int, op.attr)
                param = self._params[number]
                at = self._layout.params[number] + 8 * (1 + param.needs_grad + axis)
            self._reads[at // 4] = None
            return int(ints[at // 4])

        return value


def work_of(func: Func, layout: ArgumentLayout) -> Work | None:
    """The work of a finished function; None if it depends on more than the bounds of loops."""
    tasks: list[_Part] = []
    try:
        for task in func.tasks():
            bounds = () if task.attr.kind == "serial" else task.regions[0].ops[-1].args
            cost, inner = _parts(task.regions)
            tasks.append(_Part(tuple(bounds), cost, inner))
    except _UnknownError:
        return None
    return Work(func, layout, tasks)


def _parts(blocks: Iterable[Block]) -> tuple[int, tuple[_Part, ...]]:
    """The cost of running blocks once without their loops, and these loops.

    Both branches of an `if` count: each is chosen in an unknown number of iterations.
    """
    total, loops = 0, list[_Part]()
    for op in [op for block in blocks for op in block.ops]:
        code = op.code
        if code in _REFUSED:
            raise _UnknownError
        total += _PLAIN + op_cost(op)
        if code == C.ARRAY_ALLOCA:
            total += _PLAIN * int(op.attr.count)
        if not op.regions:
            continue
        cost, inner = _parts(op.regions)
        if code == C.IF:
            total += cost
            loops += inner
        elif code == C.RANGE_FOR:
            loops.append(_Part(tuple(op.args), cost, inner))
        else:
            raise _UnknownError
    return total, tuple(loops)


class _Evaluation:
    """The intervals of integers of one launch. read: the value of an argument."""

    def __init__(self, read: Callable[[Op], int]) -> None:
        self._read: Final = read
        self._spans: Final[dict[int, Span]] = {}

    def total(self, part: _Part) -> int:
        """The most work of a loop."""
        trips = 1
        for begin, end in zip(part.bounds[::2], part.bounds[1::2], strict=True):
            trips *= max(0, self._distance(begin, end))
        if not trips:
            return 0
        return trips * (part.cost + sum(map(self.total, part.inner)))

    def _distance(self, begin: Op, end: Op) -> int:
        """The most that ``end - begin`` can be."""
        begin, end = self._without_casts(begin), self._without_casts(end)
        if begin is end:
            return 0
        if end.code == C.MIN:
            return min(self._distance(begin, x) for x in end.args)
        if end.code == C.ADD:
            a, b = end.args
            if begin.code == C.ADD:
                for x, y in ((a, b), (b, a)):
                    if y in begin.args:
                        other = begin.args[begin.args[0] is y]
                        return self._distance(other, x)
            for x, y in ((a, b), (b, a)):
                if x is begin:
                    return self.span(y)[1]
        if end.code == C.MUL and begin.code == C.MUL and end.args[1] is begin.args[1]:
            times = self.span(end.args[1])
            if times[0] >= 0:
                each = self._distance(begin.args[0], end.args[0])
                return max(each * times[0], each * times[1])
        return self.span(end)[1] - self.span(begin)[0]

    def _without_casts(self, op: Op) -> Op:
        """The operation that casts which change nothing were applied to."""
        while op.code == C.CAST_VALUE and op.args[0].type.is_int:
            self.span(op)  # which is not known if the cast changes something
            op = op.args[0]
        return op

    def span(self, op: Op) -> Span:
        """The values that an integer may have; _UnknownError if that depends on the device."""
        found = self._spans.get(op.id)
        if found is None:
            found = self._spans[op.id] = self._span(op)
            size = op.type.bits
            least, most = (-(1 << size - 1), (1 << size - 1) - 1) if op.type.is_signed else (
                0, (1 << size) - 1)  # fmt: skip
            if found[0] < least or found[1] > most:
                raise _UnknownError  # it wraps
        return found

    def _span(self, op: Op) -> Span:
        code = op.code
        if not op.type.is_int:
            raise _UnknownError
        if code == C.CONST:
            return int(op.attr), int(op.attr)
        if code == C.LOOP_INDEX:
            return self._index(op)
        if code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS or (code == C.ARG_LOAD and op.type is i32):
            value = self._read(op)
            return value, value
        if C.COMPARE[code]:
            return 0, 1
        if code == C.CAST_VALUE:
            return self.span(op.args[0])
        rule = _RULES.get(code)
        if rule is None:
            raise _UnknownError
        a, b = op.args[-2:]
        return rule(self.span(a), self.span(b))

    def _index(self, op: Op) -> Span:
        """The values of the index of a loop, or of a task."""
        loop, axis = op.args[0], int(op.attr)
        bounds = loop.args if loop.code == C.RANGE_FOR else loop.regions[0].ops[-1].args
        if loop.code not in (C.RANGE_FOR, C.OFFLOADED):
            raise _UnknownError
        return self.span(bounds[2 * axis])[0], self.span(bounds[2 * axis + 1])[1] - 1


def _quotient(a: Span, b: Span) -> Span:
    """Of truncating divisions, and those that round down."""
    if b[0] < 1:
        raise _UnknownError
    found = [x // y for x in a for y in b] + [-(-x // y) for x in a for y in b]
    return min(found), max(found)


def _remainder(a: Span, b: Span) -> Span:
    if b[0] < 1:
        raise _UnknownError
    return (0 if a[0] >= 0 else 1 - b[1]), b[1] - 1


def _shifted(a: Span, b: Span) -> Span:
    if not 0 <= b[0] <= b[1] < 31:
        raise _UnknownError
    found = [x << y for x in a for y in b]
    return min(found), max(found)


def _shifted_back(a: Span, b: Span) -> Span:
    if not 0 <= b[0] <= b[1] < 31:
        raise _UnknownError
    found = [x >> y for x in a for y in b]
    return min(found), max(found)


def _common_bits(a: Span, b: Span) -> Span:
    if a[0] < 0 or b[0] < 0:
        raise _UnknownError
    return 0, min(a[1], b[1])


def _product(a: Span, b: Span) -> Span:
    found = [x * y for x in a for y in b]
    return min(found), max(found)


_RULES: Final[dict[int, Callable[[Span, Span], Span]]] = {
    C.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    C.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    C.MUL: _product,
    C.DIV: _quotient,
    C.FLOORDIV: _quotient,
    C.MOD: _remainder,
    C.FLOORMOD: _remainder,
    C.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    C.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    C.BIT_AND: _common_bits,
    C.BIT_SHL: _shifted,
    C.BIT_SAR: _shifted_back,
    C.SELECT: lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
}
"""The interval of a result, from those of its last two operands."""
