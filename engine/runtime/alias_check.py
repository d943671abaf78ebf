"""Alias checks: written arrays are writable, and share no memory where code relies on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from ..backends.base import KernelMeta
from ..frontend.specialization import ParamBinding
from ..named_tuple import NamedTuple

__all__ = [
    "ArrayNames", "Back", "Copied", "alias_tests", "check_writable", "overlap", "share_copies",
]  # fmt: skip


def check_writable(name: str, value: Any) -> None:
    """ValueError if ``value`` is an array that must not be written."""
    writeable = value.flags.writeable if isinstance(value, np.ndarray) else value.writeable
    if not writeable:
        raise ValueError(f"Invalid argument {name}: the kernel writes to it, but it is read-only")


def overlap(values: Sequence[Any], meta: KernelMeta) -> bool:
    """True if a written array or field shares memory with another; pairs of fields do not count."""
    written = set(meta.written)
    ends: dict[tuple[bool, bool], int] = {}
    """Of those that begin earlier, by whether they are written and fields: where the last ends."""
    for start, end, i in sorted([(*_span(value), i) for i, value in enumerate(values)]):
        if end <= start:
            continue
        mine = i in written, meta.params[i].kind == "field"
        for other, last in ends.items():
            if last > start and (mine[0] or other[0]) and not (mine[1] and other[1]):
                return True
        ends[mine] = max(end, ends.get(mine, 0))
    return False


class Back(Protocol):
    """A dense copy of an array, on which one launch works."""

    @property
    def copy(self) -> Any:
        """The copy."""
        ...

    def span(self) -> tuple[int, int]:
        """The first address of the memory of the array itself, and the address after its end."""
        ...

    def write_back(self) -> None:
        """Copy what the launch wrote to the array."""
        ...


class Copied(NamedTuple):
    """The ``copy`` of a NumPy array that kernels cannot use in place."""

    copy: np.ndarray[Any, Any]
    array: np.ndarray[Any, Any]

    def span(self) -> tuple[int, int]:
        """See `Back`."""
        start = self.array.ctypes.data
        return start, start + self.array.nbytes

    def write_back(self) -> None:
        """See `Back`."""
        if self.copy.flags.writeable:
            np.copyto(self.array, self.copy)


def share_copies(values: list[Any], backs: Sequence[Back | None], meta: KernelMeta) -> None:
    """Let arguments that are the same array have one copy.

    values: of the parameters; backs: for those that are copies. ValueError where a written array
    shares part of its memory with a copied one: values written to one of them would not appear in
    the other, or would be lost when the copies are written back.
    """
    spans = [
        _span(value) if b is None else b.span() for value, b in zip(values, backs, strict=True)
    ]
    for i in meta.written:
        for j, (start, end) in enumerate(spans):
            low, high = spans[i]
            one, other = backs[i], backs[j]
            if i == j or (one is None and other is None) or not (start < high and low < end):
                continue
            alike = one is not None and other is not None and (start, end) == (low, high)
            if not alike or values[i].shape != values[j].shape:
                names = meta.params[i].name, meta.params[j].name
                raise ValueError(
                    f"Invalid argument {names[0]}: the kernel writes to it, and it shares memory "
                    f"with {names[1]}, and the launch would use a copy of that; pass arrays that "
                    "share no memory, or C-contiguous ones: numpy.ascontiguousarray(...)"
                )
            values[j] = values[i]


def _span(value: Any) -> tuple[int, int]:
    """The address of the memory of an array, and that after its end; zeros for other values."""
    if isinstance(value, np.ndarray):
        start = cast("np.ndarray[Any, Any]", value).ctypes.data
        return start, start + value.nbytes
    if isinstance(value, int | float):
        return 0, 0
    from ..backends.array_memory import DeviceArray  # not by programs with NumPy arrays alone

    if isinstance(value, DeviceArray):
        return value.address, value.address + value.nbytes
    return 0, 0


class ArrayNames(NamedTuple):
    """An array as a launch stub knows it.

    address, extents: names, or expressions. size: bytes of an element. foreign: it may use memory
    of other libraries; a block of our own memory belongs to one array or field as a whole.
    """

    address: str
    extents: str
    size: int
    foreign: bool


def alias_tests(
    meta: KernelMeta, bindings: Sequence[ParamBinding], arrays: Mapping[int, ArrayNames]
) -> list[str]:
    """Tests of a launch stub that are true where a written array shares memory with another.

    arrays: by parameter. The tests use ``prod``.
    """
    found = dict(arrays)
    if any(array.foreign for array in arrays.values()):
        for i, binding in enumerate(bindings):
            if binding.field is not None:
                span = binding.field.flat().nbytes
                found[i] = ArrayNames(str(binding.field.address()), "()", span, True)
    tests: dict[str, None] = {}
    written = set(meta.written)
    for i in [i for i in meta.written if i in found]:
        # Fields share no memory with each other.
        for j, other in (found if bindings[i].field is None else arrays).items():
            if i != j and not (j in written and j < i):
                tests[_shared(found[i], other)] = None
    return list(tests)


def _shared(one: ArrayNames, other: ArrayNames) -> str:
    """A test that is true if two arrays share memory."""
    if not (one.foreign or other.foreign):
        return f"{one.address} == {other.address}"
    (p, s, size, _), (q, t, more, _) = one, other
    return f"({p} < {q} + prod({t}) * {more} and {q} < {p} + prod({s}) * {size})"
