"""Written arrays: that they may be, and share no memory with others where code relies on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from ..backends.base import KernelMeta
from ..backends.memory import DeviceArray
from ..frontend.features import Leaf

__all__ = ["ArrayNames", "apart_lines", "check_writable", "overlap"]


def check_writable(name: str, value: Any) -> None:
    """ValueError if ``value`` is an array that must not be written."""
    writeable = value.writeable if isinstance(value, DeviceArray) else value.flags.writeable
    if not writeable:
        raise ValueError(f"Invalid argument {name}: the kernel writes to it, but it is read-only")


def overlap(values: Sequence[Any], meta: KernelMeta) -> bool:
    """Whether an array or field that is written shares memory with another, not both fields."""
    params = meta.params
    arrays: dict[int, tuple[int, int]] = {}
    for i, value in enumerate(values):
        if isinstance(value, DeviceArray):
            start = value.address
        elif isinstance(value, np.ndarray):
            start = cast("np.ndarray[Any, Any]", value).ctypes.data
        else:
            continue
        if value.nbytes:
            arrays[i] = start, start + value.nbytes
    for i in meta.written:
        if i in arrays:
            low, high = arrays[i]
            field = params[i].kind == "field"
            for j, (start, end) in arrays.items():
                both = field and params[j].kind == "field"
                if j != i and not both and start < high and low < end:
                    return True
    return False


class ArrayNames(NamedTuple):
    """An array as a prepared launcher knows it.

    address, extents: names, or expressions. size: bytes of an element. foreign: it may lie in
    memory of others; ours belongs to one array or field as a whole.
    """

    address: str
    extents: str
    size: int
    foreign: bool


def apart_lines(
    meta: KernelMeta, leaves: Sequence[Leaf], arrays: Mapping[int, ArrayNames], again: str,
    env: dict[str, Any],
) -> list[str]:  # fmt: skip
    """Lines of a launcher that go the long way where a written array shares memory with another.

    arrays: by parameter. again: the arguments of the call, as text. env: names of the launcher.
    """
    found = dict(arrays)
    if any(array.foreign for array in arrays.values()):
        for i, leaf in enumerate(leaves):
            if leaf.field is not None:
                span = leaf.field.flat().nbytes
                found[i] = ArrayNames(str(leaf.field.address()), "()", span, True)
    tests: dict[str, None] = {}
    for i in meta.written:
        for j, other in found.items():
            if i not in found or i == j or (j in meta.written and j < i):
                continue
            if leaves[i].field is None or leaves[j].field is None:
                tests[_shared(found[i], other)] = None
    env["prod"] = math.prod
    return [f"    if {' or '.join(tests)}: return slow({again})"] if tests else []


def _shared(one: ArrayNames, other: ArrayNames) -> str:
    """A test whether two arrays share memory."""
    if not (one.foreign or other.foreign):
        return f"{one.address} == {other.address}"
    (p, s, size, _), (q, t, more, _) = one, other
    return f"({p} < {q} + prod({t}) * {more} and {q} < {p} + prod({s}) * {size})"
