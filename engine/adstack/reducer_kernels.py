"""The computation of a captured maximum: by NumPy for few cells, by a kernel for many.

The kernel is an ordinary one, compiled by the passes and the backend of the program. It runs in
parallel over the axes of the spec, and each thread computes the maximum of the body in an
accumulator. Parts of the body that use no variable are evaluated before and are scalar arguments::

    max over i < n of a[i // 2] + m         for i in range(begin, end):
                                                atomic_max(out[0], a[i // 2] + closed)

The kernel computes in 64 bits, and its result counts only if that was exact and nothing was read
outside of an array. Both are known afterwards. The kernel checks an index that is itself read from
memory: where it is outside, the kernel reads elsewhere and reports it. Other indices, and
arithmetic, are checked by their intervals; for 64-bit elements the kernel also finds the minimum
and maximum. In doubt, NumPy computes the same again, exactly, and raises the error if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from ..ir import Builder, ForAttr, Func, Op, Param
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import PointerType, i32, i64, pointer_to
from .host_eval import GUARD, Env, evaluate
from .max_reducer import MaxReducerSpec, substituted
from .size_expr import Binary, Const, MaxOver, Read, Shape, SizeExpr, Var, children, free_vars, walk

__all__ = ["FAR", "SMALL", "Reducer", "reduce_by_kernel", "reduce_by_numpy"]

SMALL: Final = 1 << 15
"""Up to so many cells a kernel is not worth it."""
FAR: Final = 1 << 20
"""An array of more bytes that the host does not see is not fetched for few cells."""

_LOW: Final = -(1 << 63)
_HIGH: Final = (1 << 63) - 1
_NONE: Final = _LOW  # what an accumulator holds before the first cell

Interval = tuple[int, int]


class Launchable(Protocol):
    """A compiled kernel."""

    def launch(self, values: Sequence[Any]) -> tuple[Any, ...]: ...


class _Ranges(NamedTuple):
    """A spec with what is known at the launch. ranges: begin and end of each axis."""

    spec: MaxReducerSpec
    body: SizeExpr
    ranges: tuple[tuple[int, int], ...]

    @property
    def cells(self) -> int:
        out = 1
        for begin, end in self.ranges:
            out *= max(end - begin, 0)
        return out


def _at_launch(spec: MaxReducerSpec, env: Env, results: Mapping[SizeExpr, int]) -> _Ranges:
    ranges = [(_number(a.begin, env, results), _number(a.end, env, results)) for a in spec.axes]
    body = substituted(spec.body, results) if spec.depends else spec.body
    return _Ranges(spec, body, tuple(ranges))


def _number(e: SizeExpr, env: Env, results: Mapping[SizeExpr, int]) -> int:
    """A bound of a range."""
    if isinstance(e, Const):
        return e.value
    if isinstance(e, Shape):
        return env.extents(e.param)[e.axis]
    return evaluate(substituted(e, results), env)


def reduce_by_numpy(spec: MaxReducerSpec, env: Env, results: Mapping[SizeExpr, int]) -> int:
    """The maximum, by NumPy, over ranges of any length."""
    return _by_numpy(_at_launch(spec, env, results), env)


def _by_numpy(known: _Ranges, env: Env) -> int:
    if not known.cells:
        return 0
    plain = _plain_maximum(known, env)
    if plain is not None:
        return plain
    for number, (begin, end) in enumerate(known.ranges):
        if end - begin > GUARD:  # chunk by chunk
            best = None
            for at in range(begin, end, GUARD):
                ranges = list(known.ranges)
                ranges[number] = at, min(at + GUARD, end)
                value = _by_numpy(known._replace(ranges=tuple(ranges)), env)
                best = value if best is None else max(best, value)
            return best or 0
    e = known.body
    for axis, (begin, end) in zip(reversed(known.spec.axes), reversed(known.ranges), strict=True):
        e = MaxOver(axis.var, Const(begin), Const(end), e)
    return evaluate(e, env, shown=known.spec.node)


def _plain_maximum(known: _Ranges, env: Env) -> int | None:
    """The maximum of a part of a dense array; None for anything else."""
    body, axes = known.body, known.spec.axes
    if not isinstance(body, Read) or len(body.indices) != len(axes):
        return None
    if env.params[body.param].layout is not None:
        return None
    by_var = {a.var: one for a, one in zip(axes, known.ranges, strict=True)}
    part: list[slice] = []
    for index, n in zip(body.indices, env.extents(body.param), strict=True):
        begin, end = by_var.pop(index.number, (-1, 0)) if isinstance(index, Var) else (-1, 0)
        if not 0 <= begin < end <= n:
            return None
        part.append(slice(begin, end))
    return int(env.view(body.param)[tuple(part)].max())


def reduce_by_kernel(
    spec: MaxReducerSpec, env: Env, results: Mapping[SizeExpr, int],
    reducer: Callable[[], Reducer],
) -> int:  # fmt: skip
    """The maximum, by the kernel that ``reducer`` returns where that is worth it, else by NumPy."""
    known = _at_launch(spec, env, results)
    few = 0 if any(_is_far(env, read.param) for read in _reads(spec.body)) else SMALL
    if known.cells > few and all(
        i32.min <= begin and end <= i32.max for begin, end in known.ranges
    ):
        found = reducer().run(known, env, results)
        if found is not None:
            return found
    return _by_numpy(known, env)


def _is_far(env: Env, param: int) -> bool:
    return env.is_remote(param) and env.values[param].nbytes > FAR


def _closed(e: SizeExpr) -> bool:
    return not free_vars(e)


def _reads(e: SizeExpr) -> list[Read]:
    """The reads at indices that depend on the axes, each once."""
    found = [n for n in walk(e) if isinstance(n, Read) and not _closed(n)]
    return list(dict.fromkeys(found))


class Reducer:
    """The kernel of one spec.

    func: not compiled yet. closed: the parts of the body that are scalar arguments. arrays: the
    kernel's parameters that it reads. reads64: reads of 64-bit elements, whose minimum and maximum
    it finds too.
    """

    def __init__(
        self, spec: MaxReducerSpec, params: Sequence[Param], compile: Callable[[Func], Launchable]
    ) -> None:
        self.reads: Final = _reads(spec.body)
        self.arrays: Final = tuple(sorted({r.param for r in self.reads}))
        self.closed: Final = tuple(dict.fromkeys(_tops(spec.body)))
        self.reads64: Final = tuple([r for r in self.reads if params[r.param].dtype.bits == 64])
        self.func: Final = _Writer(self, spec, params).func()
        self.executable: Final = compile(self.func)
        self._params: Final = params

    def run(self, known: _Ranges, env: Env, results: Mapping[SizeExpr, int]) -> int | None:
        """The maximum; None if it cannot be sure of it."""
        closed = {e: evaluate(substituted(e, results), env) for e in self.closed}
        if any(not _LOW <= value <= _HIGH for value in closed.values()):
            return None
        if any(not env.values[p].size for p in self.arrays):
            return None
        intervals: dict[SizeExpr, Interval] = {e: (v, v) for e, v in closed.items()}
        for axis, (begin, end) in zip(known.spec.axes, known.ranges, strict=True):
            intervals[Var(axis.var)] = begin, end - 1
        if not self._inside(intervals, env):
            return None
        out = np.full(2 + 2 * len(self.reads64), _NONE, np.int64)
        out[1] = 0
        values: list[Any] = [n for one in known.ranges for n in one]
        values += closed.values()
        values += [env.values[p] for p in self.arrays]
        self.executable.launch([*values, out])
        if out[1]:
            return None  # an index is outside: NumPy says which
        for k, read in enumerate(self.reads64):
            low, high = ~int(out[3 + 2 * k]), int(out[2 + 2 * k])
            if not self._params[read.param].dtype.is_signed and low < 0:
                return None
            intervals[read] = low, high
        return int(out[0]) if self._exact(known.spec.body, intervals) else None

    def _inside(self, intervals: dict[SizeExpr, Interval], env: Env) -> bool:
        """True if every index that the kernel does not check is inside of its array."""
        for read in self.reads:
            origin, extents = env.origin(read.param), env.extents(read.param)
            for index, first, n in zip(read.indices, origin, extents, strict=True):
                if _checked(index):
                    continue
                low, high = self._interval(index, dict(intervals))
                if low < first or high >= first + n:
                    return False
        return True

    def _exact(self, body: SizeExpr, intervals: dict[SizeExpr, Interval]) -> bool:
        """True if no arithmetic of the kernel can have exceeded 64 bits."""
        for e in (body, *[index for read in self.reads for index in read.indices]):
            self._interval(e, intervals)
        return all(low >= _LOW and high <= _HIGH for low, high in intervals.values())

    def _interval(self, e: SizeExpr, known: dict[SizeExpr, Interval]) -> Interval:
        """The interval of the values of ``e``; those of all its parts are put into ``known``."""
        found = known.get(e)
        if found is None:
            if isinstance(e, Const):
                found = e.value, e.value
            elif isinstance(e, Binary):
                found = _bounds(e.op, self._interval(e.a, known), self._interval(e.b, known))
            else:
                assert isinstance(e, Read)
                dtype = self._params[e.param].dtype
                found = int(dtype.min), int(dtype.max)
            known[e] = found
        return found


def _bounds(op: str, a: Interval, b: Interval) -> Interval:
    if op == "add":
        return a[0] + b[0], a[1] + b[1]
    if op == "sub":
        return a[0] - b[1], a[1] - b[0]
    if op == "mul":
        ends = [x * y for x in a for y in b]
        return min(ends), max(ends)
    if op in ("max", "min"):
        pick = max if op == "max" else min
        return pick(a[0], b[0]), pick(a[1], b[1])
    if op == "mod":
        return min(b[0] + 1, 0), max(b[1] - 1, 0)
    far = max(abs(a[0]), abs(a[1]))
    if b[0] > 0:
        ends = [x // y for x in a for y in b]
        return min(ends), max(ends)
    return -far - 1, far


def _checked(index: SizeExpr) -> bool:
    """True if the kernel checks this index, because it is read from memory."""
    return any(isinstance(n, Read) for n in walk(index)) and not _closed(index)


def _tops(e: SizeExpr) -> list[SizeExpr]:
    """The largest parts without variables, but for numbers."""
    if isinstance(e, Const):
        return [] if _LOW <= e.value <= _HIGH else [e]
    if _closed(e):
        return [e]
    return [part for child in children(e) for part in _tops(child)]


_CODES: Final = {
    "add": C.ADD, "sub": C.SUB, "mul": C.MUL, "max": C.MAX, "min": C.MIN, "floordiv": C.FLOORDIV,
    "mod": C.FLOORMOD,
}  # fmt: skip


class _Writer:
    """Writes the kernel."""

    def __init__(self, of: Reducer, spec: MaxReducerSpec, params: Sequence[Param]) -> None:
        self.of: Final = of
        self.spec: Final = spec
        own: list[Param] = []
        for k in range(len(spec.axes)):
            own += [Param(f"begin{k}", "scalar", i32), Param(f"end{k}", "scalar", i32)]
        self.scalars: Final = {e: len(own) + k for k, e in enumerate(of.closed)}
        own += [Param(f"closed{k}", "scalar", i64) for k in range(len(of.closed))]
        self.arrays: Final = {p: len(own) + k for k, p in enumerate(of.arrays)}
        for p in of.arrays:
            plain = params[p]._replace(needs_grad=False, boundary="unsafe", grad=-1)
            own.append(plain._replace(name=f"array{p}"))
        self.out: Final = len(own)
        own.append(Param("out", "ndarray", i64, 1))
        self.params: Final = tuple(own)
        self.made: dict[SizeExpr, Op] = {}
        self.bad: list[Op] = []

    def func(self) -> Func:
        func = Func("adstack_max", self.params)
        self.b = b = Builder(func, func.body)
        bounds = [self.load(k) for k in range(2 * len(self.spec.axes))]
        loop = b.range_for(tuple(bounds), ForAttr())
        with b.inside(loop.regions[0]):
            self.indices = {
                axis.var: b.loop_index(loop, k) for k, axis in enumerate(self.spec.axes)
            }
            self.maximum(0, self.value(self.spec.body))
            for k, read in enumerate(self.of.reads64):
                element = self.value(read)
                self.maximum(2 + 2 * k, element)
                self.maximum(3 + 2 * k, b.unary(C.BIT_NOT, element))
            for flag in self.bad:
                self.maximum(1, flag)
        return func

    def load(self, param: int) -> Op:
        return self.b.emit(C.ARG_LOAD, (), param, self.params[param].dtype)

    def address(self, param: int, indices: Sequence[Op]) -> Op:
        t: PointerType = pointer_to(self.params[param].dtype)
        base = self.b.emit(C.ARG_ADDR, (), (param, False), t)
        return self.b.emit(C.EXTERNAL_PTR, (base, *indices), "unsafe", t)

    def maximum(self, slot: int, value: Op) -> None:
        target = self.address(self.out, [self.b.const(slot, i32)])
        self.b.emit(C.ATOMIC_MAX, (target, value))

    def value(self, e: SizeExpr) -> Op:
        """``e`` in 64 bits."""
        found = self.made.get(e)
        if found is None:
            found = self.made[e] = self._value(e)
        return found

    def _value(self, e: SizeExpr) -> Op:
        b = self.b
        if e in self.scalars:
            return self.load(self.scalars[e])
        if isinstance(e, Const):
            return b.const(e.value, i64)
        if isinstance(e, Var):
            return b.cast(self.indices[e.number], i64)
        if isinstance(e, Binary):
            return b.binary(_CODES[e.op], self.value(e.a), self.value(e.b))
        assert isinstance(e, Read)
        param = self.arrays[e.param]
        indices = [self.index(param, axis, index) for axis, index in enumerate(e.indices)]
        return b.cast(b.load(self.address(param, indices)), i64)

    def index(self, param: int, axis: int, index: SizeExpr) -> Op:
        """An index in 32 bits, inside of the array."""
        b = self.b
        if isinstance(index, Var):
            return self.indices[index.number]
        value = self.value(index)
        if _checked(index):
            first, last = self.limits(param, axis)
            low, high = b.binary(C.CMP_LT, value, first), b.binary(C.CMP_GT, value, last)
            outside = b.binary(C.BIT_OR, b.cast(low, i64), b.cast(high, i64))
            self.bad.append(outside)
            value = b.binary(C.MIN, b.binary(C.MAX, value, first), last)
        return b.cast(value, i32)

    def limits(self, param: int, axis: int) -> tuple[Op, Op]:
        """The first and the last index of an axis."""
        b, p = self.b, self.params[param]
        if p.layout is not None:
            first, n = p.layout.origin[axis], p.layout.shape[axis]
            return b.const(first, i64), b.const(first + n - 1, i64)
        if axis >= p.ndim:
            return b.const(0, i64), b.const(p.element_shape[axis - p.ndim] - 1, i64)
        extent = b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, param), i32)
        return b.const(0, i64), b.binary(C.SUB, b.cast(extent, i64), b.const(1, i64))
