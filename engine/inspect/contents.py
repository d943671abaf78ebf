"""Contents of fields: remembered, passed to a launch as a copy, put back. Copies are on the host.

Kernels reach fields by themselves, not through arguments, so a launch of a capture is given views
of copies of the blocks that contain its fields. The user's own fields stay as they are, and every
launch starts from the same contents: those at the moment of a recorded call, those that a workload
left, else the current ones.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np

from ..backends.array_memory import aligned_zeros
from ..lang.fields.storage import Block
from ..runtime import program
from ..types import ElementLayout, FieldHandle

__all__ = [
    "LIMIT", "NOTHING", "Contents", "Copies", "elements", "installed", "live_blocks", "offsets",
    "put_back", "put_elements", "remember",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Contents = Mapping[Block, Array]
"""Bytes of blocks at some moment. A block that is not in it keeps its current contents."""

NOTHING: Final[Contents] = MappingProxyType({})

LIMIT: Final = 1 << 30
"""Fields with more bytes than this are not remembered."""


def live_blocks() -> list[Block]:
    """The blocks of the current program that have memory."""
    current = program.peek()
    owned = [] if current is None else list(current.owned)
    return [thing for thing in owned if isinstance(thing, Block) and thing.memory is not None]


def remember(blocks: Iterable[Block] | None = None, limit: int = LIMIT) -> Contents:
    """Copies of the bytes of ``blocks``, by default of all; nothing if they are too large."""
    chosen = live_blocks() if blocks is None else list(blocks)
    if sum(block.size for block in chosen) > limit:
        return NOTHING
    return {block: _held(block) for block in chosen if block.memory is not None}


def _held(block: Block) -> Array:
    """A copy of the bytes of a block."""
    assert block.memory is not None
    # On a cache line, like the block itself: a launch on a copy shall take as long.
    copy = aligned_zeros(block.size)
    block.memory.read(0, copy)
    return copy


def put_back(contents: Contents) -> None:
    """Let the blocks hold these bytes."""
    for block, data in contents.items():
        if block.memory is not None:
            block.memory.write(0, data)
            for writes in block.writes:
                writes.touched = True


@contextmanager
def installed(contents: Contents) -> Generator[None, None, None]:
    """Within this, the fields hold ``contents``; afterwards what they held before."""
    before = remember(contents, limit=1 << 62)
    put_back(contents)
    try:
        yield
    finally:
        put_back(before)


class Copies:
    """Copies of blocks for one launch, made when a field of the block is asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents: Final = contents
        self.blocks: Final[dict[Block, Array]] = {}

    def flat(self, field: FieldHandle) -> Array:
        """The argument of a launch for ``field``: a view of the copy of its block."""
        block = cast("Block", cast(Any, field).block)
        copy = self.blocks.get(block)
        if copy is None:
            copy = self.blocks[block] = _held(block)
            held = self._contents.get(block)
            if held is not None:
                np.copyto(copy, held)
        return field.flat(copy)


def elements(layout: ElementLayout | None, flat: Array) -> Array:
    """The elements of a field, by index, from what a launch was given for it. Without a layout it
    is an array, and those are its elements."""
    if layout is None:
        return flat
    if layout.is_row_major():
        return flat[: math.prod(layout.shape)].reshape(layout.shape).copy()
    return flat[offsets(layout)]


def put_elements(layout: ElementLayout | None, flat: Array, values: Array) -> None:
    """Store ``values`` in a field, in the form passed to a launch; memory between them stays.
    Without a layout it is an array."""
    if layout is None:
        np.copyto(flat, values.reshape(flat.shape), "unsafe")
    elif layout.is_row_major():
        flat[: math.prod(layout.shape)] = values.reshape(-1)
    else:
        flat[offsets(layout)] = values


def offsets(layout: ElementLayout) -> Any:
    """The offset of each element."""
    out: Any = np.zeros(layout.shape, np.int64)
    for axis, divisor, modulus, stride in layout.terms:
        digit = np.arange(layout.shape[axis]) // divisor
        if modulus:
            digit %= modulus
        along = [1] * len(layout.shape)
        along[axis] = -1
        out += (digit * stride).reshape(along)
    return out
