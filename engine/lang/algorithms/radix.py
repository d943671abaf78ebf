"""A part of `qd.algorithms`: one pass of radix sort over the tiles of `tiles`."""

# Functions of kernels have no annotations.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from ...types import Template, i32, u32
from ..func import func
from ..functions import bit_cast, cast, min
from ..loops import static
from .tiles import first, scan_partials, tiles_of, unsigned_of

__all__ = ["radix_pass"]


@func
def digit_of(key, dtype: Template, shift: Template):
    """Eight bits of a key, after a change that makes the order of its bits that of the keys.

    The sign bit is flipped for signed integers and for floats that are not negative; negative
    floats have all bits flipped.
    """
    bits = bit_cast(key, static(unsigned_of(dtype)))
    top = static(dtype.bits - 1)
    one = cast(1, static(unsigned_of(dtype)))
    if static(dtype.is_real):
        bits = ~bits if (bits >> top) != 0 else bits ^ (one << top)
    elif static(dtype.is_signed):
        bits = bits ^ (one << top)
    return cast((bits >> static(shift)) & 255, i32)


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
