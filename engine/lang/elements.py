"""The elements of arrays and fields in memory that the host may not see.

Arrays and fields are stored in `backends.array_memory.ArrayMemory` of their program's device. Where
the host sees it, their elements are a plain NumPy view, without this module. Elsewhere they are a
`Window`: it replaces that view, and copies the elements that are read or written, no more than
needed::

    elements = elements_of(view_of(memory, 0, shape, dtype))    np.ndarray or Window
    elements[2, 3]                      one number, or the window of a vector: reads that number
    elements[...] = 0                   set all; `ArrayMemory.fill` where the layout is dense
    assign(elements, source)            with conversion; device to device between equal layouts
    host_of(elements)                   by index, on the host: the view itself, or a copy

A dense window, whatever the order of its axes in memory, is copied in one piece. Of one with gaps,
such as a member of a struct, the range from its first to its last element is read; to write it,
that range is read, changed and written back.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..backends.array_memory import ArrayMemory, DeviceArray, HostMemory, freed
from ..errors import QuadrantsRuntimeError
from ..runtime.program import Program
from ..types import DataType

__all__ = [
    "CPU", "CUDA", "DEFAULT_STREAM", "Elements", "Window", "allocated", "assign", "elements_of",
    "far", "fresh", "host_of", "keep", "let_go", "memory_shortage", "placed", "release",
]  # fmt: skip

Array = np.ndarray[Any, Any]
CPU: Final = 1
CUDA: Final = 2
"""The numbers of kinds of devices in DLPack."""
DEFAULT_STREAM: Final = 1
"""The number of the legacy default stream in it and the array interface."""
_TILE: Final = 1 << 16
_PIECE: Final = 1 << 20
"""Gaps of more bytes than this are not read, if the parts between them are worth a copy each."""


def allocated(owner: Program, nbytes: int, what: str) -> ArrayMemory:
    """Zeroed memory of the device of ``owner``. QuadrantsRuntimeError if there is not enough.

    what: the purpose of the memory, for that error: "an ndarray of shape (3,)".
    """
    try:
        return owner.device.allocate(nbytes)
    except (MemoryError, ValueError) as error:
        shortage, hint = memory_shortage(owner, error)
        needs = f", which takes {nbytes} bytes: {shortage}" if shortage else ""
        text = f"there is not enough memory for {what}{needs}"
        raise QuadrantsRuntimeError(text, hint=hint) from None


def memory_shortage(owner: Program, error: BaseException) -> tuple[str, str | None]:
    """The device's error message and hint for a failed allocation; empty for the host."""
    if owner.device.host_arrays:
        return "", None
    if isinstance(error, QuadrantsRuntimeError):
        return error.message, error.hint
    return str(error), None


class Window:
    """Elements at fixed distances in memory that the host does not see.

    offset: of the first one, in bytes. strides: in bytes, none negative. An index is a tuple of as
    many integers as there are axes, or fewer for a window of the axes left; they are not checked.
    """

    __slots__ = ("dtype", "memory", "offset", "shape", "strides")

    def __init__(
        self, memory: ArrayMemory, offset: int, shape: Sequence[int], strides: Sequence[int],
        dtype: Any,
    ) -> None:  # fmt: skip
        self.memory: Final = memory
        self.offset: Final = offset
        self.shape: Final = tuple(shape)
        self.strides: Final = tuple(strides)
        self.dtype: Final[np.dtype[Any]] = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def address(self) -> int:
        """The address of the first element."""
        return self.memory.address + self.offset

    def order(self) -> tuple[int, ...] | None:
        """The axes in the order of memory if there are no gaps between the elements, else None."""
        shape, strides = self.shape, self.strides
        axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
        wanted = self.dtype.itemsize
        for axis in sorted(axes, key=lambda axis: strides[axis]):
            if strides[axis] != wanted:
                return None
            wanted *= shape[axis]
        axes.sort(key=lambda axis: -strides[axis])
        for axis, extent in enumerate(shape):
            if extent == 1:
                axes.insert(axis, axis)
        return tuple(axes)

    def span(self) -> int:
        """Bytes from the first element to the end of the last."""
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return sum(steps) + self.dtype.itemsize

    def equal_layout(self, other: Window) -> bool:
        """True if equal elements mean equal bytes: both windows are dense and in the same order."""
        if (self.dtype, self.shape) != (other.dtype, other.shape):
            return False
        mine = [s for s, n in zip(self.strides, self.shape, strict=True) if n > 1]
        theirs = [s for s, n in zip(other.strides, other.shape, strict=True) if n > 1]
        return mine == theirs and self.order() is not None

    # --- parts ----------------------------------------------------------------------------------

    def at(self, where: Sequence[int]) -> Window:
        """The part with these first indices."""
        count, offset = len(where), self._offset(where)
        return Window(self.memory, offset, self.shape[count:], self.strides[count:], self.dtype)

    def reshape(self, shape: Sequence[int]) -> Elements:
        """The same elements with other axes: a window if memory has their order, else a copy."""
        if tuple(shape) == self.shape:
            return self
        if self.order() != tuple(range(self.ndim)):
            return self.read().reshape(shape)
        flat = DeviceArray(self.address, shape, self.dtype, self.memory, self.offset)
        return elements_of(flat)

    def _offset(self, where: Sequence[int]) -> int:
        """The offset of the part with these first indices, in bytes."""
        return self.offset + sum(map(operator.mul, where, self.strides))

    def __getitem__(self, where: Sequence[int]) -> Any:
        if len(where) < len(self.shape):
            return self.at(where)
        one = np.empty(1, self.dtype)
        self.memory.read(self._offset(where), one)
        return one[0]

    def __setitem__(self, where: Any, value: Any) -> None:
        with np.errstate(all="ignore"):
            given = np.asarray(value).astype(self.dtype)
        if where is not Ellipsis and len(where) == len(self.shape) and not given.shape:
            self.memory.write(self._offset(where), given)
        else:
            part = self if where is Ellipsis else self.at(where)
            part.fill(given)

    def fill(self, value: Any) -> None:
        """Set every element to a number, or every vector or matrix to an array of its shape."""
        one = np.asarray(value, self.dtype)
        order = self.order()
        if self.size == one.size or order is None:
            self.write(np.broadcast_to(one, self.shape))
            return
        if one.ndim and (one == one.flat[0]).all():
            one = one.flat[0]
        first = self.ndim - one.ndim
        if order[first:] != tuple(range(first, self.ndim)):
            self.write(np.broadcast_to(one, self.shape))
            return
        pattern, count = one.tobytes(), self.size // one.size
        if len(pattern) in (1, 2, 4, 8):
            self.memory.fill(self.offset, pattern, count)
        else:
            self._tile(pattern, count)

    def _tile(self, pattern: bytes, count: int) -> None:
        """Repeat a pattern of any length: the host writes a part, the device copies it."""
        total = len(pattern) * count
        first = pattern * min(count, max(_TILE // len(pattern), 1))
        self.memory.write(self.offset, np.frombuffer(first, np.uint8))
        done = len(first)
        while done < total:
            more = min(done, total - done)
            self.memory.copy(self.offset + done, self.memory, self.offset, more)
            done += more

    # --- copies ---------------------------------------------------------------------------------

    def read(self) -> Array:
        """The elements by index: a copy, with the axes in the order of memory if it is dense."""
        order = self.order()
        if order is not None:
            found = np.empty([self.shape[axis] for axis in order], self.dtype)
            self.memory.read(self.offset, found)
            return found.transpose(np.argsort(order)) if order else found
        axis = self._parted()
        if axis is None:
            return self._covered(np.empty(self.span(), np.uint8)).copy()
        found = np.empty(self.shape, self.dtype)
        inside = np.moveaxis(found, axis, 0)
        for number, part in enumerate(self._parts(axis)):
            inside[number] = part.read()
        return found

    def write(self, source: Array) -> None:
        """Set the elements to those of ``source``, which has the same shape, with conversion."""
        order = self.order()
        if order is not None:
            turned = source.transpose(order)
            if turned.dtype != self.dtype or not turned.flags.c_contiguous:
                with np.errstate(all="ignore"):
                    turned = turned.astype(self.dtype, order="C")
            self.memory.write(self.offset, turned)
            return
        axis = self._parted()
        if axis is None:
            raw = np.empty(self.span(), np.uint8)
            with np.errstate(all="ignore"):
                np.copyto(self._covered(raw), source, casting="unsafe")
            self.memory.write(self.offset, raw)
            return
        for part, piece in zip(self._parts(axis), np.moveaxis(source, axis, 0), strict=True):
            part.write(piece)

    def _covered(self, raw: Array) -> Array:
        """Read the range of the elements into ``raw``; the view of them in it."""
        self.memory.read(self.offset, raw)
        return np.ndarray(self.shape, self.dtype, raw, 0, self.strides)

    def _parted(self) -> int | None:
        """The axis whose parts are better copied one by one, without the gaps between them."""
        span, size = self.span(), self.size * self.dtype.itemsize
        axis = max(range(self.ndim), key=lambda a: self.strides[a] if self.shape[a] > 1 else 0)
        worth = size // self.shape[axis] >= _TILE
        return axis if worth and span - size > _PIECE and span > 2 * size else None

    def _parts(self, axis: int) -> list[Window]:
        shape = self.shape[:axis] + self.shape[axis + 1 :]
        strides = self.strides[:axis] + self.strides[axis + 1 :]
        return [
            Window(self.memory, self.offset + k * self.strides[axis], shape, strides, self.dtype)
            for k in range(self.shape[axis])
        ]


Elements = Array | Window
"""The elements of an array or field, by index."""


def far(elements: Any) -> bool:
    """True if elements are in memory that the host does not see."""
    return elements.__class__ is Window


def elements_of(view: Array | DeviceArray, axes: Sequence[int] | None = None) -> Elements:
    """The elements of the whole array at ``view``, with its axes in the order ``axes``."""
    if not isinstance(view, DeviceArray):
        return view if axes is None else view.transpose(axes)
    assert view.memory is not None
    strides: list[int] = []
    step = view.dtype.itemsize
    for extent in reversed(view.shape):
        strides.append(step)
        step *= extent
    strides.reverse()
    order = range(view.ndim) if axes is None else axes
    shape = [view.shape[a] for a in order]
    return Window(view.memory, view.offset, shape, [strides[a] for a in order], view.dtype)


def placed(
    memory: ArrayMemory, offset: int, shape: Sequence[int], strides: Sequence[int], dtype: DataType
) -> Elements:
    """The elements with these offset and strides, in bytes, in ``memory``."""
    host = memory.host
    if host is not None:
        return np.ndarray(tuple(shape), dtype.np, host, offset, strides)
    if isinstance(memory, HostMemory):
        raise freed()
    return Window(memory, offset, shape, strides, dtype.np)


def host_of(elements: Elements) -> Array:
    """The elements by index on the host: a view of them, or a copy where there is none."""
    return elements.read() if isinstance(elements, Window) else elements


def fresh(elements: Elements, dtype: np.dtype[Any]) -> Array:
    """A C-contiguous copy of the elements on the host, converted."""
    with np.errstate(all="ignore"):
        if isinstance(elements, Window):
            return np.ascontiguousarray(elements.read(), dtype).reshape(elements.shape)
        return np.array(elements, dtype, order="C")


def assign(target: Elements, source: Elements) -> None:
    """Copy with conversion: floats are truncated to integers, integers wrap, and u1 is 1 if not 0.

    Shapes are equal, or ``source`` is broadcast.
    """
    if isinstance(target, Window):
        if not isinstance(source, Window):
            target.write(np.broadcast_to(source, target.shape))
        elif target.equal_layout(source):
            size = target.size * target.dtype.itemsize
            target.memory.copy(target.offset, source.memory, source.offset, size)
        else:
            target.write(np.broadcast_to(source.read(), target.shape))
        return
    with np.errstate(all="ignore"):
        np.copyto(target, host_of(source), casting="unsafe")


# --- memory that other libraries look at ----------------------------------------------------------

_kept: Final[dict[int, list[Any]]] = {}
"""Memory that other libraries use, by its id: the memory, the number of users, program ended."""


def keep(memory: ArrayMemory) -> None:
    """Another library looks at ``memory`` from now on."""
    _kept.setdefault(id(memory), [memory, 0, False])[1] += 1


def let_go(memory: ArrayMemory) -> None:
    """It does not any more."""
    kept = _kept[id(memory)]
    kept[1] -= 1
    if not kept[1]:
        del _kept[id(memory)]
        if kept[2]:
            memory.free()


def release(memory: ArrayMemory) -> None:
    """Free ``memory`` when the program, or the tree, that it belongs to has ended.

    Views of NumPy keep memory of the host alive. On a device, another library that uses the memory
    keeps it alive: it is freed when no library uses it any more.
    """
    kept = _kept.get(id(memory))
    if kept is None:
        memory.free()
    else:
        kept[2] = True
