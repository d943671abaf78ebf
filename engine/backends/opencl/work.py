"""The work of a launch, known before it: the iterations of its loops and what each does.

Bounds of loops are computed from the arguments of the launch as intervals. The iterations of a
chunk end at ``min(begin + length, extent)``: the difference of two bounds follows such terms, since
intervals alone would give each chunk the whole loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from ...ir import Block, Func, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...passes.cost import op_cost
from ...types import i32
from . import counted

if TYPE_CHECKING:
    from ..kernarg.abi import ArgumentLayout

__all__ = ["Work", "work_of"]

_PLAIN: Final = 5
"""Tenths of a nanosecond of each operation in code that is not optimised, as measured with PoCL on
sample kernels; `passes.cost` adds what is slow in any code."""
_REFUSED: Final = frozenset({C.CALL, C.PRINT, C.ASSERT})
"""Operations whose work is not known."""
_KNOWN: Final = 1024
"""Launches whose work is remembered."""

Span = tuple[int, int]
"""The least and the largest value of an integer."""


class _UnknownError(Exception):
    """The bounds of a loop depend on what only the device knows."""


class _Value:
    """An integer of a kernel, without its IR.

    code: of its operation. args: the operands; of the index of a loop its first value and its end.
    given: a constant; of an argument, its index in the argument buffer as i32. least, most: of its
    type.
    """

    __slots__ = ("args", "code", "given", "least", "most")

    def __init__(self, op: Op) -> None:
        self.code: int = op.code
        self.given = 0
        self.args: tuple[_Value, ...] = ()
        bits = op.type.bits
        self.least, self.most = 0, (1 << bits) - 1
        if op.type.is_signed:
            self.least, self.most = -(1 << bits - 1), (1 << bits - 1) - 1


class _Part(NamedTuple):
    """A loop, or a task. bounds: begin and end of each axis. cost: of one iteration without the
    loops in it. inner: those. step: of a counter that ends a `while` (see `counted`), else 0."""

    bounds: tuple[_Value, ...]
    cost: int
    inner: tuple[_Part, ...]
    step: int = 0


class Work:
    """The estimated work of the launches of one kernel, in nanoseconds of code without
    optimisation on one thread."""

    def __init__(self, tasks: Sequence[_Part], reads: Sequence[int]) -> None:
        """reads: what it depends on, as indices of the argument buffer as i32."""
        self._tasks: Final = tasks
        self._reads: Final = reads
        self._found: Final[dict[tuple[int, ...], int | None]] = {}

    def of(self, ints: memoryview) -> int | None:
        """Return the work of a launch with an argument buffer, as i32; None if it is not known."""
        key = tuple([ints[at] for at in self._reads])
        found = self._found.get(key, -1)
        if found == -1:
            try:
                found = sum(map(_Evaluation(ints).total, self._tasks)) // 10
            except _UnknownError:
                found = None
            if len(self._found) > _KNOWN:
                self._found.clear()
            self._found[key] = found
        return found


def work_of(func: Func, layout: ArgumentLayout) -> Work | None:
    """The work of a finished function; None if it depends on more than the bounds of loops."""
    values = _Values(func, layout)
    tasks: list[_Part] = []
    try:
        for task in func.tasks():
            bounds = () if task.attr.kind == "serial" else task.regions[0].ops[-1].args
            cost, inner = _parts(task.regions, values)
            tasks.append(_Part(tuple(map(values.of, bounds)), cost, inner))
    except _UnknownError:
        return None
    return Work(tasks, sorted(values.reads))


class _Values:
    """The values that bounds of loops depend on. reads: see `Work`. sources: of each `while` for
    groups of iterations the one that it comes from."""

    def __init__(self, func: Func, layout: ArgumentLayout) -> None:
        self._func: Final = func
        self._layout: Final = layout
        self._made: Final[dict[int, _Value]] = {}
        self.reads: Final[set[int]] = set()
        self.sources: Final[dict[Op, Op]] = {}

    def of(self, op: Op) -> _Value:
        """The value of an integer operation; _UnknownError if it depends on the device."""
        found = self._made.get(op.id)
        if found is None:
            found = self._made[op.id] = self._value(op)
        return found

    def _value(self, op: Op) -> _Value:
        code, found = op.code, _Value(op)
        if not op.type.is_int:
            raise _UnknownError
        if code == C.CONST:
            found.given = int(op.attr)
        elif code == C.LOOP_INDEX:
            loop, axis = op.args[0], int(op.attr)
            bounds = loop.args if loop.code == C.RANGE_FOR else loop.regions[0].ops[-1].args
            found.args = self.of(bounds[2 * axis]), self.of(bounds[2 * axis + 1])
        elif code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS or (code == C.ARG_LOAD and op.type is i32):
            found.given = self._place(op)
        elif code == C.CAST_VALUE:
            found.args = (self.of(op.args[0]),)
        elif code in _RULES:
            a, b = op.args[-2:]
            found.args = self.of(a), self.of(b)
        elif not C.COMPARE[code]:
            raise _UnknownError
        return found

    def _place(self, op: Op) -> int:
        """The index of an argument in the argument buffer, as i32."""
        if op.code == C.ARG_LOAD:
            at = self._layout.params[int(op.attr)]
        else:
            axis, number = map(int, op.attr)
            param = self._func.params[number]
            at = self._layout.params[number] + 8 * (1 + param.needs_grad + axis)
        self.reads.add(at // 4)
        return at // 4

    def counter(self, loop: Op) -> tuple[tuple[_Value, _Value], int]:
        """The bounds of the counter that ends a `while`, and its step."""
        found = counted.counter_of(self.sources.get(loop, loop))
        if found is None:
            raise _UnknownError
        limit = self.of(found.limit)
        start = _Value(found.limit) if found.start is None else self.of(found.start)
        if found.start is None:
            start.code = C.CONST
        return (start, limit), found.step + found.closed


def _parts(blocks: Iterable[Block], values: _Values) -> tuple[int, tuple[_Part, ...]]:
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
        if code == C.IF:
            values.sources.update(counted.masked(op))
        cost, inner = _parts(op.regions, values)
        if code == C.IF:
            total += cost
            loops += inner
        elif code == C.WHILE:
            bounds, step = values.counter(op)
            loops.append(_Part(bounds, cost, inner, step))
        elif code == C.RANGE_FOR:
            loops.append(_Part(tuple(map(values.of, op.args)), cost, inner))
        else:
            raise _UnknownError
    return total, tuple(loops)


class _Evaluation:
    """The intervals of integers of one launch. ints: its argument buffer, as i32."""

    def __init__(self, ints: memoryview) -> None:
        self._ints: Final = ints
        self._spans: Final[dict[_Value, Span]] = {}

    def total(self, part: _Part) -> int:
        """The most work of a loop."""
        bounds = part.bounds
        if part.step:
            trips = self._tests(bounds[0], bounds[1], part.step)
        else:
            each = zip(bounds[::2], bounds[1::2], strict=True)
            trips = prod([max(0, self._distance(begin, end)) for begin, end in each])
        if not trips:
            return 0
        return trips * (part.cost + sum(map(self.total, part.inner)))

    def _tests(self, start: _Value, limit: _Value, step: int) -> int:
        """The most iterations of a `while`: one ends it, and the test may come after the step."""
        if max(self.span(start)[1], self.span(limit)[1]) + step > limit.most:
            raise _UnknownError  # the counter may wrap
        return max(0, self._distance(start, limit)) + 3

    def _distance(self, begin: _Value, end: _Value) -> int:
        """The most that ``end - begin`` can be."""
        begin, end = self._without_casts(begin), self._without_casts(end)
        if begin is end:
            return 0
        if end.code == C.MIN:
            return min(self._distance(begin, x) for x in end.args)
        if end.code == C.ADD:
            a, b = end.args
            for x, y in ((a, b), (b, a)):
                if begin.code == C.ADD and y in begin.args:
                    return self._distance(begin.args[begin.args[0] is y], x)
                if x is begin:
                    return self.span(y)[1]
        if end.code == C.MUL and begin.code == C.MUL and end.args[1] is begin.args[1]:
            times = self.span(end.args[1])
            if times[0] >= 0:
                each = self._distance(begin.args[0], end.args[0])
                return max(each * times[0], each * times[1])
        return self.span(end)[1] - self.span(begin)[0]

    def _without_casts(self, value: _Value) -> _Value:
        """The integer that casts which change nothing were applied to."""
        while value.code == C.CAST_VALUE:
            self.span(value)  # which is not known if the cast changes something
            value = value.args[0]
        return value

    def span(self, value: _Value) -> Span:
        """The values that an integer may have; _UnknownError if it may wrap."""
        found = self._spans.get(value)
        if found is None:
            found = self._spans[value] = self._span(value)
            if found[0] < value.least or found[1] > value.most:
                raise _UnknownError
        return found

    def _span(self, value: _Value) -> Span:
        code = value.code
        if code == C.CONST:
            return value.given, value.given
        if code in (C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, C.ARG_LOAD):
            given = int(self._ints[value.given])
            return given, given
        if C.COMPARE[code]:
            return 0, 1
        a = self.span(value.args[0])
        if code == C.CAST_VALUE:
            return a
        b = self.span(value.args[1])
        return (a[0], b[1] - 1) if code == C.LOOP_INDEX else _RULES[code](a, b)


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
