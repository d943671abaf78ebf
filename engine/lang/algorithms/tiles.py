"""Parts of `qd.algorithms`: reductions and scans of tiles, written in the language itself.

Data is cut into tiles of 256 elements. Each top-level loop goes over the tiles of one level, so
that every loop is a parallel task of its own; a tile is worked through in order, so results do not
depend on the number of threads. The totals of one level are the data of the next, 256 times
smaller: ``depth`` levels are enough for 256**depth elements.

Totals are kept in a scratch buffer of unsigned integers, by their bits.
"""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Final

from ...errors import QuadrantsTypeError
from ...frontend.registry import intrinsic
from ...types import DataType, Template, f32, f64, i32, i64, u32, u64
from ..func import func, pyfunc
from ..functions import bit_cast, cast, max, min, only_in_kernels, select
from ..loops import static

__all__ = [
    "TILE", "check_type", "combined", "depth_for", "first", "fold_all", "fold_tiles", "identity",
    "ordered", "partials", "scan_partials", "tiles_of", "unsigned_of",
]  # fmt: skip

TILE: Final = 256
_UNSIGNED: Final[dict[DataType, DataType]] = {
    i32: u32, u32: u32, f32: u32, i64: u64, u64: u64, f64: u64,
}  # fmt: skip


def unsigned_of(dtype: Any) -> DataType:
    """The type that holds the bits of ``dtype``; QuadrantsTypeError for one that is not taken."""
    if dtype not in _UNSIGNED:
        names = ", ".join(t.name for t in _UNSIGNED)
        raise QuadrantsTypeError(f"qd.algorithms works on {names}, not on {dtype!r}")
    return _UNSIGNED[dtype]


def check_type(dtype: Any, depth: Any) -> None:
    """QuadrantsTypeError for a type or a number of levels that cannot be."""
    unsigned_of(dtype)
    if not isinstance(depth, int) or not 1 <= depth <= 4:
        raise QuadrantsTypeError(f"log256_max_n must be a constant from 1 to 4, not {depth!r}")


def identity(how: str, dtype: DataType) -> float | int:
    """The value that changes nothing when it is combined with other values."""
    if how == "add":
        return 0.0 if dtype.is_real else 0
    if dtype.is_real:
        return float("inf") if how == "min" else -float("inf")
    return dtype.max if how == "min" else dtype.min


def depth_for(n: int) -> int:
    """The levels that ``n`` elements need."""
    levels, reach = 1, TILE
    while reach < n:
        levels, reach = levels + 1, reach * TILE
    return levels


@pyfunc
def tiles_of(n):
    """The number of tiles that n elements fill."""
    return (n + 255) // 256


@pyfunc
def partials(n, depth: Template):
    """The number of totals in the levels above n elements, without the highest level."""
    total = 0
    count = n
    for _ in static(range(depth - 1)):
        count = tiles_of(count)
        total = total + count
    return total


@intrinsic("first_index")
def first(x: Any) -> int:
    """The index of the first element of ``x``. A field with an offset does not begin at 0."""
    return only_in_kernels("algorithms")


@func
def combined(a, b, how: Template):
    """The sum, the smaller or the larger of two values."""
    if static(how == "add"):
        return a + b
    elif static(how == "min"):
        return min(a, b)
    else:
        return max(a, b)


@func
def element(x: Template, i, dtype: Template, raw: Template):
    """An element of the data, or the value whose bits are in scratch."""
    if static(raw):
        return bit_cast(x[first(x) + i], dtype)
    else:
        return cast(x[first(x) + i], dtype)


@func
def ordered(key, dtype: Template):
    """The bits of a key as an unsigned number whose order is that of the keys.

    The sign bit is flipped for signed integers and for floats that are not negative; negative
    floats have all bits flipped.
    """
    bits = bit_cast(key, static(unsigned_of(dtype)))
    top = static(dtype.bits - 1)
    one = cast(1, static(unsigned_of(dtype)))
    if static(dtype.is_real):
        bits = select((bits >> top) != 0, ~bits, bits ^ (one << top))
    elif static(dtype.is_signed):
        bits = bits ^ (one << top)
    return bits


@func(requires_top_level=True)
def fold_tiles(
    source: Template, at, count, raw: Template, scratch: Template, to, dtype: Template,
    how: Template,
):  # fmt: skip
    """One total for each tile of ``source[at : at + count]``, into ``scratch[to:]``.

    raw: source is scratch, too.
    """
    for t in range(tiles_of(count)):
        total = cast(static(identity(how, dtype)), dtype)
        for i in range(256 * t, min(256 * t + 256, count)):
            total = combined(total, element(source, at + i, dtype, raw), how)
        scratch[first(scratch) + to + t] = bit_cast(total, static(unsigned_of(dtype)))


@func(requires_top_level=True)
def fold_all(
    source: Template, at, count, raw: Template, out: Template, dtype: Template,
    how: Template,
):  # fmt: skip
    """The total of ``source[at : at + count]``, into ``out[0]``."""
    for _t in range(1):
        total = cast(static(identity(how, dtype)), dtype)
        for i in range(count):
            total = combined(total, element(source, at + i, dtype, raw), how)
        out[first(out)] = total


@func(requires_top_level=True)
def scan_partials(
    scratch: Template, at, count, dtype: Template, how: Template, depth: Template
):  # fmt: skip
    """Replace ``scratch[at : at + count]`` by its exclusive scan; totals follow it in scratch."""
    if static(depth == 1):
        for _t in range(1):
            running = cast(static(identity(how, dtype)), dtype)
            for i in range(count):
                here = bit_cast(scratch[first(scratch) + at + i], dtype)
                scratch[first(scratch) + at + i] = bit_cast(running, static(unsigned_of(dtype)))
                running = combined(running, here, how)
    else:
        above = at + count
        tiles = tiles_of(count)
        fold_tiles(scratch, at, count, True, scratch, above, dtype, how)
        scan_partials(scratch, above, tiles, dtype, how, static(depth - 1))
        for t in range(tiles):
            running = bit_cast(scratch[first(scratch) + above + t], dtype)
            for i in range(256 * t, min(256 * t + 256, count)):
                here = bit_cast(scratch[first(scratch) + at + i], dtype)
                scratch[first(scratch) + at + i] = bit_cast(running, static(unsigned_of(dtype)))
                running = combined(running, here, how)
