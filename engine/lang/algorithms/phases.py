"""The functions of `qd.algorithms` that kernels call, made of loops over tiles."""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportInvalidTypeForm=false

from __future__ import annotations

from typing import Any

from ...errors import QuadrantsTypeError
from ...types import Template, i32, template, u32
from ..func import FunctionOfKernels, func, named, pyfunc
from ..functions import bit_cast, cast, max, min
from ..loops import static
from .tiles import (
    check_type,
    combined,
    depth_for,
    first,
    fold_all,
    fold_tiles,
    identity,
    ordered,
    partials,
    scan_partials,
    tiles_of,
)

__all__ = [
    "exclusive_scan_add", "exclusive_scan_max", "exclusive_scan_min",
    "exclusive_scan_scratch_slots", "inclusive_scan", "reduce_add", "reduce_by_key_add",
    "reduce_by_key_scratch_slots", "reduce_max", "reduce_min", "reduce_scratch_slots", "select",
    "select_scratch_slots", "sort", "sort_scratch_slots",
]  # fmt: skip


# Scratch


@pyfunc
def reduce_scratch_slots(n, log256_max_n: template() = None):
    """The length of ``scratch`` for `reduce_add` and its like on n elements; at least 1.

    log256_max_n: as it is given to the reduction; in Python it may be left out.
    """
    if static(log256_max_n is None):
        return max(partials(n, static(depth_for(n))), 1)
    else:
        return max(partials(n, log256_max_n), 1)


@pyfunc
def exclusive_scan_scratch_slots(n, log256_max_n: template() = None):
    """The length of ``scratch`` for `exclusive_scan_add` and its like, as for reductions."""
    return reduce_scratch_slots(n, log256_max_n)


@pyfunc
def select_scratch_slots(n):
    """The length of ``scratch`` for `select` on n elements, for every log256_max_n."""
    return max(n + deep_partials(n), 1)


@pyfunc
def reduce_by_key_scratch_slots(n):
    """The length of ``scratch`` for `reduce_by_key_add` on n elements, for every log256_max_n."""
    return select_scratch_slots(n)


@pyfunc
def deep_partials(n):
    """The totals above n elements for every number of levels."""
    return partials(n, 5)


@pyfunc
def sort_scratch_slots(n, log256_max_n: template() = None):
    """The length of ``scratch`` for `sort` on n elements; see `reduce_scratch_slots`."""
    counts = 256 * tiles_of(n)
    if static(log256_max_n is None):
        return max(counts + partials(counts, static(depth_for(n))), 1)
    else:
        return max(counts + partials(counts, log256_max_n), 1)


# Reductions


@func(requires_top_level=True)
def reduce(
    arr: Template, out: Template, scratch: Template, n: i32, dtype: Template,
    depth: Template, how: Template,
):  # fmt: skip
    """``out[0]`` becomes the combination of ``arr[0:n]``."""
    static(check_type(dtype, depth))
    if static(depth == 1):
        fold_all(arr, 0, n, False, out, dtype, how)
    else:
        fold_tiles(arr, 0, n, False, scratch, 0, dtype, how)
        fold_levels(scratch, 0, tiles_of(n), out, dtype, how, static(depth - 1))


@func(requires_top_level=True)
def fold_levels(
    scratch: Template, at, count, out: Template, dtype: Template, how: Template,
    depth: Template,
):  # fmt: skip
    """The combination of ``scratch[at : at + count]`` into ``out[0]``."""
    if static(depth == 1):
        fold_all(scratch, at, count, True, out, dtype, how)
    else:
        above = at + count
        fold_tiles(scratch, at, count, True, scratch, above, dtype, how)
        fold_levels(scratch, above, tiles_of(count), out, dtype, how, static(depth - 1))


def _by(whole: Any, how: str, name: str, text: str) -> FunctionOfKernels:
    """``whole`` with the combination ``how``. text: the summary."""

    def combining(
        arr: Template, out: Template, scratch: Template, n: i32, dtype: Template,
        log256_max_n: Template,
    ):  # fmt: skip
        whole(arr, out, scratch, n, dtype, log256_max_n, how)

    text = f"{text}; see the module's text for the parameters."
    return named(combining, f"{name}_{how}", text, requires_top_level=True)


def _reduction(how: str, what: str) -> FunctionOfKernels:
    return _by(reduce, how, "reduce", f"``out[0]`` becomes the {what}")


reduce_add = _reduction("add", "sum of ``arr[0:n]``")
reduce_min = _reduction("min", "smallest of ``arr[0:n]``, the largest of the type for none")
reduce_max = _reduction("max", "largest of ``arr[0:n]``, the smallest of the type for none")


# Scans


@func(requires_top_level=True)
def exclusive_scan(
    arr: Template, out: Template, scratch: Template, n: i32, dtype: Template,
    depth: Template, how: Template,
):  # fmt: skip
    """``out[i]`` becomes the combination of ``arr[0:i]``."""
    static(check_type(dtype, depth))
    if static(depth == 1):
        for _t in range(1):
            running = cast(static(identity(how, dtype)), dtype)
            for i in range(n):
                here = cast(arr[first(arr) + i], dtype)
                out[first(out) + i] = running
                running = combined(running, here, how)
    else:
        fold_tiles(arr, 0, n, False, scratch, 0, dtype, how)
        scan_partials(scratch, 0, tiles_of(n), dtype, how, static(depth - 1))
        for t in range(tiles_of(n)):
            running = bit_cast(scratch[first(scratch) + t], dtype)
            for i in range(256 * t, min(256 * t + 256, n)):
                here = cast(arr[first(arr) + i], dtype)
                out[first(out) + i] = running
                running = combined(running, here, how)


def _scan(how: str, what: str) -> FunctionOfKernels:
    return _by(exclusive_scan, how, "exclusive_scan", f"``out[i]`` becomes the {what}")


exclusive_scan_add = _scan("add", "sum of ``arr[0:i]``")
exclusive_scan_min = _scan("min", "smallest of ``arr[0:i]``, ``out[0]`` the largest of the type")
exclusive_scan_max = _scan("max", "largest of ``arr[0:i]``, ``out[0]`` the smallest of the type")


@func(requires_top_level=True)
def select(
    arr: Template, flags: Template, out: Template, num_out: Template, scratch: Template,
    n: i32, log256_max_n: Template,
):  # fmt: skip
    """Pack the ``arr[i]`` with ``flags[i] != 0`` into the front of ``out``, in order.

    ``num_out[0]`` becomes their number. Elements may be of any type.
    """
    static(check_type(u32, log256_max_n))
    for i in range(n):
        scratch[first(scratch) + i] = cast(flags[first(flags) + i] != 0, u32)
    scan_partials(scratch, 0, n, u32, "add", log256_max_n)
    for i in range(n):
        if flags[first(flags) + i] != 0:
            out[first(out) + cast(scratch[first(scratch) + i], i32)] = arr[first(arr) + i]
    for _t in range(1):
        total = 0
        if n > 0:
            total = cast(scratch[first(scratch) + n - 1], i32) + cast(
                flags[first(flags) + n - 1] != 0, i32
            )
        num_out[first(num_out)] = total


@func(requires_top_level=True)
def reduce_by_key_add(
    keys_in: Template, values_in: Template, keys_out: Template, values_out: Template,
    num_runs: Template, scratch: Template, n: i32, value_dtype: Template,
    log256_max_n: Template,
):  # fmt: skip
    """The sums of values over runs of equal neighbouring keys.

    ``keys_out`` gets the key of each run, ``values_out`` its sum, ``num_runs[0]`` their number. A
    NaN is a run of its own.
    """
    static(check_type(value_dtype, log256_max_n))
    for i in range(n):
        head = 1
        if i > 0:
            head = cast(keys_in[first(keys_in) + i] != keys_in[first(keys_in) + i - 1], i32)
        scratch[first(scratch) + i] = cast(head, u32)
    scan_partials(scratch, 0, n, u32, "add", log256_max_n)
    for i in range(n):
        head = 1
        if i > 0:
            head = cast(keys_in[first(keys_in) + i] != keys_in[first(keys_in) + i - 1], i32)
        if head != 0:
            total = cast(values_in[first(values_in) + i], value_dtype)
            j = i + 1
            while j < n and keys_in[first(keys_in) + j] == keys_in[first(keys_in) + j - 1]:
                total = total + values_in[first(values_in) + j]
                j = j + 1
            run = cast(scratch[first(scratch) + i], i32)
            keys_out[first(keys_out) + run] = keys_in[first(keys_in) + i]
            values_out[first(values_out) + run] = total
            if j == n:
                num_runs[first(num_runs)] = run + 1
    for _t in range(1):
        if n == 0:
            num_runs[first(num_runs)] = 0


# Sorting


@func
def digit_of(key, dtype: Template, shift: Template):
    """Eight bits of the order of a key."""
    return cast((ordered(key, dtype) >> static(shift)) & 255, i32)


@func(requires_top_level=True)
def radix_pass(
    source: Template, target: Template, values: Template, moved: Template,
    scratch: Template, n, dtype: Template, has_values: Template, shift: Template,
    depth: Template,
):  # fmt: skip
    """Move the elements of source, and of values, into the order of one digit of the keys.

    Scratch holds the counts of digits, by digit, then by tile. Their scan is the position of the
    next key with that digit in each tile, so equal digits keep their order.
    """
    tiles = tiles_of(n)
    for t in range(tiles):
        for digit in range(256):
            scratch[first(scratch) + digit * tiles + t] = cast(0, u32)
        for i in range(256 * t, min(256 * t + 256, n)):
            at = digit_of(source[first(source) + i], dtype, shift) * tiles + t
            scratch[first(scratch) + at] = scratch[first(scratch) + at] + cast(1, u32)
    scan_partials(scratch, 0, 256 * tiles, u32, "add", depth)
    for t in range(tiles):
        for i in range(256 * t, min(256 * t + 256, n)):
            at = digit_of(source[first(source) + i], dtype, shift) * tiles + t
            to = scratch[first(scratch) + at]
            scratch[first(scratch) + at] = to + cast(1, u32)
            target[first(target) + cast(to, i32)] = source[first(source) + i]
            if static(has_values):
                moved[first(moved) + cast(to, i32)] = values[first(values) + i]


@func(requires_top_level=True)
def sort(
    keys: Template, tmp_keys: Template, values: Template, tmp_values: Template,
    scratch: Template, n: i32, key_dtype: Template, has_values: Template,
    end_bit: Template, log256_max_n: Template,
):  # fmt: skip
    """Sort ``keys[0:n]``, ascending, and with has_values ``values`` in the same way; stable.

    tmp_keys, tmp_values: buffers like keys and values. end_bit: how many low bits of the keys
    count, a multiple of 16. Negative zero comes before zero, NaN by its bits.

    Radix sort by 8 bits a pass, from the lowest.
    """
    static(check_type(key_dtype, log256_max_n))
    static(check_bits(key_dtype, end_bit))
    for k in static(range(end_bit // 8)):
        if static(k % 2 == 0):
            radix_pass(
                keys, tmp_keys, values, tmp_values, scratch, n, key_dtype, has_values,
                static(8 * k), log256_max_n,
            )  # fmt: skip
        else:
            radix_pass(
                tmp_keys, keys, tmp_values, values, scratch, n, key_dtype, has_values,
                static(8 * k), log256_max_n,
            )  # fmt: skip


def check_bits(dtype: Any, end_bit: Any) -> None:
    """QuadrantsTypeError for a number of bits that `sort` cannot use."""
    if not isinstance(end_bit, int) or end_bit % 16 or not 0 < end_bit <= dtype.bits:
        raise QuadrantsTypeError(
            f"end_bit must be a multiple of 16 from 16 to the {dtype.bits} bits of the keys, not "
            f"{end_bit!r}"
        )


@func(requires_top_level=True)
def inclusive_scan(x: Template, scratch: Template, n: i32, depth: Template):
    """``x[i]`` becomes the sum of ``x[0 : i + 1]``, of i32."""
    fold_tiles(x, 0, n, False, scratch, 0, i32, "add")
    scan_partials(scratch, 0, tiles_of(n), i32, "add", depth)
    for t in range(tiles_of(n)):
        running = bit_cast(scratch[first(scratch) + t], i32)
        for i in range(256 * t, min(256 * t + 256, n)):
            running = running + x[first(x) + i]
            x[first(x) + i] = running
