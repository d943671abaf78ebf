"""Sums and sorting called from Python: `PrefixSumExecutor` and `parallel_sort`.

On CUDA, where the threads of a block run at the same time, they read their data once a pass
(`look_back`); elsewhere each of their phases is a loop over tiles (`phases`).
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportInvalidTypeForm=false

from __future__ import annotations

import math
from typing import Any, Final
from weakref import WeakKeyDictionary

from ...errors import QuadrantsRuntimeTypeError
from ...named_tuple import NamedTuple
from ...runtime import program
from ...types import (
    ArrayHandle,
    FieldHandle,
    NDArray,
    Template,
    TensorHandle,
    i32,
    matrix_type,
    u32,
    u64,
)
from ..compile_ahead import compile_ahead
from ..kernel import kernel
from ..ndarray import Ndarray, ndarray
from ..tensor import Tensor
from .look_back import (
    MOST_SORTED,
    count_digits,
    scan_span,
    scan_words,
    sort_digit,
    sort_words,
    threads_for,
)
from .phases import inclusive_scan, sort, sort_scratch_slots
from .tiles import check_type, depth_for, partials, tiles_of

__all__ = ["PrefixSumExecutor", "parallel_sort"]


def _looks_back() -> bool:
    """True if the threads of a block run at the same time, and blocks in no known order."""
    return program.current().backend.name == "cuda"


@kernel
def _scan_field_once(x: Template, words: NDArray[u64, 1], epoch: i32, threads: i32):
    scan_span(x, words, epoch, x.shape[0], threads)


@kernel
def _scan_array_once(x: NDArray[i32, 1], words: NDArray[u64, 1], epoch: i32, threads: i32):
    scan_span(x, words, epoch, x.shape[0], threads)


@kernel
def _scan_field(x: Template, scratch: NDArray[u32, 1], depth: Template):
    inclusive_scan(x, scratch, x.shape[0], depth)


@kernel
def _scan_array(x: NDArray[i32, 1], scratch: NDArray[u32, 1], depth: Template):
    inclusive_scan(x, scratch, x.shape[0], depth)


_LAST_EPOCH: Final = (1 << 31) - 1


class PrefixSumExecutor:
    """Inclusive prefix sums of n numbers of i32, in place: ``PrefixSumExecutor(n).run(x)``."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._epoch = 0
        self._once = _looks_back()
        if self._once:
            self._words = ndarray(u64, scan_words(length))
            self._words.fill(0)
            return
        self._depth = depth_for(tiles_of(length))
        slots: int = tiles_of(length) + partials(tiles_of(length), self._depth)
        self._scratch = ndarray(u32, max(slots, 1))

    def run(self, input_arr: Any) -> None:
        """Replace each element by the sum of all up to it. input_arr: a field, array or tensor."""
        data = _container(input_arr, "PrefixSumExecutor")
        if data.shape != (self.length,) or data.dtype is not i32:
            raise QuadrantsRuntimeTypeError(
                f"PrefixSumExecutor({self.length}) takes i32 data of {self.length} elements, not "
                f"{data.dtype} data of shape {data.shape}"
            )
        array = isinstance(data, ArrayHandle)
        if not self._once:
            (_scan_array if array else _scan_field)(data, self._scratch, self._depth)
            return
        if self._epoch == _LAST_EPOCH:
            self._words.fill(0)
            self._epoch = 0
        self._epoch += 1
        launch = _scan_array_once if array else _scan_field_once
        launch(data, self._words, self._epoch, threads_for(self.length))


def _container(x: Any, what: str) -> Any:
    """The field or array that ``x`` is or wraps."""
    found: Any = x._unwrap() if isinstance(x, TensorHandle) else x  # pyright: ignore[reportPrivateUsage]
    if not isinstance(found, FieldHandle | Ndarray) or len(found.shape) != 1:
        raise QuadrantsRuntimeTypeError(f"{what} takes fields and arrays of one axis, not {x!r}")
    return found


@kernel
def _sort(
    keys: Tensor, tmp_keys: NDArray, values: Tensor, tmp_values: NDArray,
    scratch: NDArray[u32, 1], has_values: Template, depth: Template,
):  # fmt: skip
    sort(
        keys, tmp_keys, values, tmp_values, scratch, keys.shape[0], keys.dtype, has_values,
        keys.dtype.bits, depth,
    )  # fmt: skip


@kernel
def _count_digits(keys: Tensor, words: NDArray[u32, 1], threads: i32, length: i32, dtype: Template):
    count_digits(keys, words, keys.shape[0], threads, length, dtype)


@kernel
def _sort_digit(
    source: Tensor, target: Tensor, values: Tensor, moved: Tensor, words: NDArray[u32, 1],
    threads: i32, digit: i32, dtype: Template, value_type: Template,
):  # fmt: skip
    sort_digit(
        source, target, values, moved, words, source.shape[0], threads, digit, dtype, value_type
    )


class _Buffers(NamedTuple):
    """Memory of `parallel_sort` for keys and values of one kind.

    tmp / moved: for keys and values, by turns with them. words: see `sort_digit`. values: in the
    place of those that a sort of keys alone does not have.
    """

    tmp: Any
    moved: Any
    words: Any
    values: Any


_KEPT: Final[dict[Any, _Buffers]] = {}
"""The buffers of the last sort, for the next one: to allocate them takes longer than small sorts.

A sort removes them while it uses them, so two threads never share them.
"""
_MOST_KEPT: Final = 256 << 20
"""Buffers of more bytes are not kept."""
program.ending.append(_KEPT.clear)


_OVER: Final[WeakKeyDictionary[FieldHandle, tuple[int, Ndarray | None]]] = WeakKeyDictionary()
"""For some fields, where they were and the arrays over them, which keep memory that is freed."""
_MOST_OVER: Final = 16
program.ending.append(_OVER.clear)


def _as_array(field: Any) -> Ndarray | None:
    """`Ndarray._over`, kept while the field is where it was: a launch costs less for an array that
    it has seen."""
    address, known = field.address(), _OVER.get(field)
    if known is None or known[0] != address:
        if len(_OVER) >= _MOST_OVER:
            _OVER.clear()
        made = Ndarray._over(field)  # pyright: ignore[reportPrivateUsage]
        known = _OVER[field] = address, made
    return known[1]


def _bytes(x: Any) -> int:
    return math.prod(x.shape) * math.prod(x.element_shape) * (x.dtype.bits // 8)


def _sort_by_digits(keys: Any, values: Any) -> None:
    """Sort by one digit after the other; the number of digits is even, so keys has the result.

    values: None for keys alone. Fields are sorted as arrays where they are like arrays in memory: a
    kernel is compiled for each field, and a digit's from a field to an array and back are two.
    """
    if isinstance(keys, FieldHandle):
        given = [_as_array(x) for x in (keys, values) if x is not None]
        if None not in given:
            keys, values = given[0], given[1] if len(given) == 2 else None
    n, dtype = keys.shape[0], keys.dtype
    field, has_values = isinstance(keys, FieldHandle), values is not None
    threads, length = threads_for(n), sort_words(n, dtype.bits)
    kind = n, dtype, field, has_values and (values.dtype, values.element_shape)
    kept = buffers = _KEPT.pop(kind, None)
    if buffers is None:
        like = keys if values is None else values
        # Arrays of a launch do not overlap, also those that it does not use.
        spare = None if field or has_values else _like(keys)
        buffers = _Buffers(_like(keys), _like(like), ndarray(u32, length), spare)
    tmp, moved, words, _ = buffers
    value_type = None
    if values is not None:
        near = not values.element_shape and dtype.bits + values.dtype.bits <= 64
        value_type = values.dtype if near else "far"
    other = values if has_values else keys if field else buffers.values
    there, back = (keys, tmp, other, moved), (tmp, keys, moved, other)
    if kept is None:  # LLVM and the driver work on the larger kernel while the other is compiled
        for arrays in (there, back):
            compile_ahead(_sort_digit, *arrays, words, threads, 0, dtype, value_type)
    _count_digits(keys, words, threads, length, dtype)
    for digit in range(0, dtype.bits // 8, 2):
        _sort_digit(*there, words, threads, digit, dtype, value_type)
        _sort_digit(*back, words, threads, digit + 1, dtype, value_type)
    if _bytes(tmp) + _bytes(moved) + 4 * length <= _MOST_KEPT:
        _KEPT.clear()
        _KEPT[kind] = buffers


def parallel_sort(keys: Any, values: Any = None) -> None:
    """Sort keys, ascending, and values in the same way; stable.

    keys, values: both fields or both arrays, of one axis and the same length; values may be vectors
    and matrices. QuadrantsRuntimeTypeError for others.
    """
    found = _container(keys, "parallel_sort")
    other = found if values is None else _container(values, "parallel_sort")
    fields = isinstance(found, FieldHandle)
    if isinstance(other, FieldHandle) is not fields or other.shape != found.shape:
        raise QuadrantsRuntimeTypeError(
            "parallel_sort takes keys and values of one length, both in fields or both in arrays"
        )
    if found.element_shape:
        raise QuadrantsRuntimeTypeError("parallel_sort takes keys that are numbers")
    check_type(found.dtype, 1)
    n = found.shape[0]
    has_values = values is not None
    if n <= MOST_SORTED and _looks_back():
        _sort_by_digits(found, other if has_values else None)
        return
    buffers = [_like(x) for x in (found, other)]
    if not fields and not has_values:
        other, buffers[1] = _like(found), _like(found)  # arrays of a launch do not overlap
    depth = depth_for(n)
    scratch = ndarray(u32, sort_scratch_slots(n, depth))
    _sort(found, buffers[0], other, buffers[1], scratch, has_values, depth)


def _like(x: Any) -> Any:
    """An array for the elements of a field or array."""
    if x.element_shape:
        return matrix_type(x.element_shape, x.dtype).ndarray(x.shape)
    return ndarray(x.dtype, x.shape)
