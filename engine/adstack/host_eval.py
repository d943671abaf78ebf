"""Values of size expressions on the host, from the arguments of a launch.

`Env` holds the arguments of one launch: a number for each scalar parameter, and for each array
and field the memory as passed to `Executable.launch`. Of memory that the host cannot read, single
elements are fetched one by one, and an array as a whole where the walk reads a range of it.
`evaluate` computes an expression from it::

    evaluate(parse("(maxover 0 0 (shape 1 0) (read 1 (var 0)))"), Env(params, values))

The walk is exact. It is vectorised: inside of a `MaxOver` every value is a column of many *cells*,
one for each tuple of the variables around it, and a range that depends on such a variable unfolds
into as many cells as it has for each of them. Columns are made chunk by chunk, so memory use stays
small; arithmetic is in 64 bits and changes to Python's integers where 64 bits might overflow.

One range of more than `GUARD` numbers is refused, with an error. So is an index outside of an
array: no memory is read that does not belong to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

import numpy as np

from ..errors import QuadrantsRuntimeError
from ..ir import Param
from ..named_tuple import NamedTuple
from .formulas import formula, names_of
from .size_expr import OPS, Arg, Binary, Const, MaxOver, Read, Shape, SizeExpr, Var, free_vars

__all__ = ["GUARD", "Env", "Fetch", "evaluate", "guard_error"]

GUARD: Final = 1 << 24
"""The most numbers that one range is walked over."""

_PIECE: Final = 1 << 16
_INT64_MAX: Final = (1 << 63) - 1


class Fetch(Protocol):
    """Reads memory that the host cannot access."""

    def whole(self, value: Any) -> np.ndarray[Any, Any]:
        """All elements of an array."""
        ...

    def element(self, value: Any, number: int) -> int:
        """One element, by its place in memory."""
        ...


class Env:
    """The arguments of one launch.

    values: the argument of `Executable.launch` for each parameter. what: names what is sized, for
    messages. fetch: reads those arrays that are not NumPy's.
    """

    __slots__ = ("_fetch", "_views", "params", "values", "what")

    def __init__(
        self, params: Sequence[Param], values: Sequence[Any], what: str = "",
        fetch: Fetch | None = None,
    ) -> None:  # fmt: skip
        self.params = params
        self.values = values
        self.what = what
        self._fetch = fetch
        self._views: dict[int, np.ndarray[Any, Any]] = {}

    def is_remote(self, param: int) -> bool:
        """True if the host cannot read an array, and it was not fetched as a whole."""
        seen = isinstance(self.values[param], np.ndarray)
        return self._fetch is not None and not seen and param not in self._views

    def element(self, param: int, number: int) -> int:
        """An element of an array in device memory, by its position there."""
        assert self._fetch is not None
        return self._fetch.element(self.values[param], number)

    def flat(self, param: int) -> np.ndarray[Any, Any]:
        """The memory of an array or field, in its own order."""
        value: Any = self.values[param]
        is_numpy = isinstance(cast(object, value), np.ndarray)
        return value if is_numpy or self._fetch is None else self._fetch.whole(value)

    def number(self, param: int) -> int:
        """A scalar argument."""
        return int(self.values[param])

    def view(self, param: int) -> np.ndarray[Any, Any]:
        """An array with its axes as the user indexes them; of a field the flat memory."""
        found = self._views.get(param)
        if found is None:
            found = self.flat(param)
            axes = self.params[param].axes
            if axes is not None:
                order = [axes.index(axis) for axis in range(len(axes))]
                found = found.transpose(order + list(range(len(axes), found.ndim)))
            self._views[param] = found
        return found

    def extents(self, param: int) -> tuple[int, ...]:
        """Extents of an array or field and of its elements, as the user indexes them."""
        p = self.params[param]
        if p.layout is not None:
            return p.layout.shape
        if not self.is_remote(param):
            return self.view(param).shape
        shape: tuple[int, ...] = self.values[param].shape
        if p.axes is None:
            return shape
        return (*[shape[p.axes.index(axis)] for axis in range(p.ndim)], *shape[p.ndim :])

    def origin(self, param: int) -> tuple[int, ...]:
        """The first index of each axis."""
        layout = self.params[param].layout
        return layout.origin if layout is not None else (0,) * len(self.extents(param))


class _Run(NamedTuple):
    """Consecutive numbers: ``count`` from ``begin`` on."""

    begin: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]


class _Column(NamedTuple):
    """A number for each cell. limit: no magnitude is above it."""

    data: np.ndarray[Any, Any]
    limit: int


_Value = int | _Run | _Column


def evaluate(
    e: SizeExpr, env: Env, vars: Mapping[int, int] | None = None, shown: SizeExpr | None = None
) -> int:
    """The exact value of ``e``.

    vars: numbers for its free variables. shown: what errors show in its place. Raises
    QuadrantsRuntimeError for a range of more than `GUARD` numbers, and for an index outside of an
    array.
    """
    value = _Evaluation(shown or e, env).eval(e, dict(vars or {}), 1)
    return value if isinstance(value, int) else int(_column(value).data[0])


def guard_error(e: SizeExpr, env: Env, node: MaxOver, count: int) -> QuadrantsRuntimeError:
    """The error for a range that is too long to be walked."""
    what = f"{env.what}: " if env.what else ""
    where = f"in {formula(node, env.params, names_of(e, env.params))} " if node != e else ""
    return QuadrantsRuntimeError(
        f"{what}the size of an adstack is {formula(e, env.params)}; {where}the MaxOverRange"
        f" iteration count {count} exceeds the {GUARD} guard; refusing to enumerate",
        hint="shorten that loop of the reverse-mode kernel, or make the bounds of the loops inside"
        " of it independent of the loops in between: such ranges are evaluated in parallel, without"
        " a limit",
    )


class _Evaluation:
    """One evaluation. ``cells`` is how many cells a column has."""

    def __init__(self, root: SizeExpr, env: Env) -> None:
        self.root = root
        self.env = env

    def eval(self, e: SizeExpr, vars: dict[int, _Value], cells: int) -> _Value:
        """The value of ``e`` in every cell."""
        if isinstance(e, Const):
            return e.value
        if isinstance(e, Var):
            if e.number not in vars:
                raise ValueError(f"variable {e.number} has no value")
            return vars[e.number]
        if isinstance(e, Binary):
            return _binary(e.op, self.eval(e.a, vars, cells), self.eval(e.b, vars, cells))
        if isinstance(e, Read):
            return self.read(e, [self.eval(i, vars, cells) for i in e.indices])
        if isinstance(e, Arg):
            return self.env.number(e.param)
        if isinstance(e, Shape):
            return self.env.extents(e.param)[e.axis]
        return self.max_over(e, vars, cells)

    # --- ranges -------------------------------------------------------------------------------

    def max_over(self, e: MaxOver, vars: dict[int, _Value], cells: int) -> _Value:
        vars = {number: vars[number] for number in free_vars(e) if number in vars}
        begin = self.eval(e.begin, vars, cells)
        end = self.eval(e.end, vars, cells)
        if isinstance(begin, int) and isinstance(end, int):
            self.check_count(e, end - begin)
            if end <= begin:
                return 0
            if all(isinstance(value, int) for value in vars.values()):
                return self.one_range(e, vars, begin, end)
        begins, ends = _spread(begin, cells), _spread(end, cells)
        counts = np.maximum(ends - begins, 0)
        self.check_count(e, int(counts.max(initial=0)))
        if e.var not in free_vars(e.body):
            counts = np.minimum(counts, 1)  # any number of the range will do
        return self.many_ranges(e, vars, begins, counts.astype(np.int64))

    def check_count(self, e: MaxOver, count: int) -> None:
        if count > GUARD:
            raise guard_error(self.root, self.env, e, count)

    def one_range(self, e: MaxOver, vars: dict[int, _Value], begin: int, end: int) -> int:
        """The largest body over one range; the other variables are numbers."""
        best: int | None = None
        for at in range(begin, end, _PIECE):
            run = _Run(at, min(_PIECE, end - at))
            value = self.eval(e.body, {**vars, e.var: run}, run.count)
            top = _top(value)
            best = top if best is None else max(best, top)
            if isinstance(value, int):
                break  # it does not depend on the variable
        return best or 0

    def many_ranges(
        self,
        e: MaxOver,
        vars: dict[int, _Value],
        begins: np.ndarray[Any, Any],
        counts: np.ndarray[Any, Any],
    ) -> _Value:
        """The largest body over a range of its own for each cell."""
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        starts = ends - counts
        out = np.zeros(len(counts), dtype=np.int64)
        seen = np.zeros(len(counts), dtype=bool)
        for at in range(0, total, _PIECE):
            to = min(at + _PIECE, total)
            low, high = np.searchsorted(ends, (at, to - 1), side="right")
            which = low + np.flatnonzero(counts[low : high + 1])  # the cells with a part here
            first = np.maximum(starts[which], at)
            parts = np.minimum(ends[which], to) - first
            cell = np.repeat(which, parts)
            inner = {number: _pick(value, cell) for number, value in vars.items()}
            numbers = np.repeat(begins[which] - starts[which], parts)
            inner[e.var] = _as_column(numbers + np.arange(at, to))
            body = _spread(self.eval(e.body, inner, to - at), to - at)
            tops = np.maximum.reduceat(body, first - at)
            out = out.astype(tops.dtype, copy=False) if tops.dtype == object else out
            out[which] = np.where(seen[which], np.maximum(out[which], tops), tops)
            seen[which] = True
        return _as_column(out)

    # --- memory -------------------------------------------------------------------------------

    def read(self, e: Read, indices: list[_Value]) -> _Value:
        extents, origin = self.env.extents(e.param), self.env.origin(e.param)
        if len(indices) != len(extents):
            raise ValueError(f"{len(indices)} indices for the {len(extents)} axes of {e}")
        if 0 in extents:
            return 0
        for axis, index in enumerate(indices):
            self.check_index(e, axis, index, origin[axis], extents[axis])
        layout = self.env.params[e.param].layout
        if layout is None:
            if self.env.is_remote(e.param) and all(isinstance(i, int) for i in indices):
                return self.env.element(e.param, self.offset(e, cast("list[int]", indices)))
            return _gather(self.env.view(e.param), indices)
        alone = self.env.is_remote(e.param) and all(isinstance(i, int) for i in indices)
        if layout.is_row_major() and not alone:
            flat = self.env.view(e.param)[: layout.span].reshape(layout.shape)
            moved = [_binary("sub", i, o) for i, o in zip(indices, origin, strict=True)]
            return _gather(flat, moved)
        offset: _Value = 0
        for axis, div, mod, stride in layout.terms:
            digit = _binary("sub", indices[axis], origin[axis])
            digit = _binary("floordiv", digit, div) if div != 1 else digit
            digit = _binary("mod", digit, mod) if mod else digit
            offset = _binary("add", offset, _binary("mul", digit, stride))
        if alone:
            assert isinstance(offset, int)
            return self.env.element(e.param, offset)
        return _gather(self.env.view(e.param), [offset])

    def offset(self, e: Read, indices: list[int]) -> int:
        """Return the position of an element in the memory of its array."""
        p, extents = self.env.params[e.param], self.env.extents(e.param)
        order = [*(p.axes or range(p.ndim)), *range(p.ndim, len(extents))]
        offset = 0
        for axis in order:
            offset = offset * extents[axis] + indices[axis]
        return offset

    def check_index(self, e: Read, axis: int, index: _Value, first: int, extent: int) -> None:
        low, high = _low_and_high(index)
        if first <= low and high < first + extent:
            return
        wrong, params = low if low < first else high, self.env.params
        names = names_of(self.root, params)
        what = f"{self.env.what}: " if self.env.what else ""
        raise QuadrantsRuntimeError(
            f"{what}the size of an adstack is {formula(self.root, params, names)}; it reads"
            f" {formula(e, params, names)} with the index {wrong} on axis {axis} of"
            f" {params[e.param].name} (valid: {first} to {first + extent - 1})",
            hint="the kernel itself would read outside of the array",
        )


# --- values of cells --------------------------------------------------------------------------


def _column(value: _Value) -> _Column:
    """A value as a column; a number has one cell."""
    if isinstance(value, _Column):
        return value
    if isinstance(value, _Run):
        data = np.arange(value.begin, value.begin + value.count, dtype=np.int64)
        return _Column(data, max(abs(value.begin), abs(value.begin + value.count)))
    small = abs(value) <= _INT64_MAX
    return _Column(np.array([value], dtype=np.int64 if small else object), abs(value))


def _as_column(data: np.ndarray[Any, Any]) -> _Column:
    """Numbers of any kind as a column, in 64 bits if they fit."""
    low, high = int(data.min(initial=0)), int(data.max(initial=0))
    limit = max(abs(low), abs(high))
    if limit <= _INT64_MAX:
        data = data.astype(np.int64, copy=False)
    return _Column(data, limit)


def _spread(value: _Value, cells: int) -> np.ndarray[Any, Any]:
    """A value as an array with all of its cells, in which no sum or difference of two wraps."""
    column = _column(value)
    if column.limit > _INT64_MAX >> 1:
        column = _as_column(column.data)
    kind = np.int64 if column.limit <= _INT64_MAX >> 1 else object
    return np.broadcast_to(column.data.astype(kind, copy=False), (cells,))


def _pick(value: _Value, cell: np.ndarray[Any, Any]) -> _Value:
    if isinstance(value, int):
        return value
    column = _column(value)
    return _Column(column.data[cell], column.limit) if len(column.data) > 1 else column


def _top(value: _Value) -> int:
    return _low_and_high(value)[1] if not isinstance(value, int) else value


def _low_and_high(value: _Value) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    if isinstance(value, _Run):
        return value.begin, value.begin + value.count - 1
    data = value.data
    return int(data.min()), int(data.max())


_NUMPY: Final[dict[str, Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _binary(op: str, a: _Value, b: _Value) -> _Value:
    if isinstance(b, int):
        if isinstance(a, int):
            return OPS[op](a, b)
        if isinstance(a, _Run) and op in ("add", "sub"):
            return _Run(OPS[op](a.begin, b), a.count)
    if isinstance(a, int) and isinstance(b, _Run) and op == "add":
        return _Run(a + b.begin, b.count)
    x, y = _column(a), _column(b)
    limit = x.limit * y.limit if op == "mul" else x.limit + y.limit
    left, right = x.data, y.data
    if limit > _INT64_MAX:
        x, y = _as_column(left), _as_column(right)  # what they really are may be less
        limit = x.limit * y.limit if op == "mul" else x.limit + y.limit
    kind = np.int64 if limit <= _INT64_MAX else object
    left, right = left.astype(kind, copy=False), right.astype(kind, copy=False)
    if op in ("floordiv", "mod"):
        whole = np.where(right == 0, 1, right)
        data = left // whole if op == "floordiv" else left % whole
        return _Column(np.where(right == 0, 0, data), limit)
    if op in ("max", "min"):
        limit = max(x.limit, y.limit)
    return _Column(_NUMPY[op](left, right), limit)


def _gather(view: np.ndarray[Any, Any], indices: list[_Value]) -> _Value:
    """Elements of a view at indices that are known to be inside of it."""
    if all(isinstance(index, int) for index in indices):
        return int(view[tuple(cast("list[int]", indices))])
    runs = [index for index in indices if isinstance(index, _Run)]
    if len(runs) == 1 and not any(isinstance(index, _Column) for index in indices):
        run = runs[0]
        where = [slice(run.begin, run.begin + run.count) if i is run else i for i in indices]
        data = view[tuple(cast("list[Any]", where))]
    else:
        data = view[tuple([i if isinstance(i, int) else _column(i).data for i in indices])]
    if data.dtype == np.bool_:
        data = data.astype(np.int64)
    kind = np.iinfo(data.dtype)
    return _Column(data, max(abs(int(kind.min)), int(kind.max)))
