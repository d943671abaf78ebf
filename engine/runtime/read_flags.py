"""Flags of elements that were read, for kernels that check the rules for gradients.

For each array and field with gradients, a kernel in the mode ``validation`` has an additional
parameter of the same type and shape: an element of it is not 0 after a kernel has read the element.
That memory is allocated when it is first needed, lives as long as the array or field and the
program, and is cleared when a tape begins.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from ..backends.array_memory import DeviceArray, view_of
from . import program

__all__ = ["clear", "read_flags_of"]

Array = np.ndarray[Any, Any]

ReadFlags = dict[int, tuple[Callable[[], Any], Array | DeviceArray]]
"""Flags by the id of the owner: torch tensors cannot be compared like other keys."""

_flags: Final[WeakKeyDictionary[program.Program, ReadFlags]] = WeakKeyDictionary()


def read_flags_of(owner: Any, memory: Array | DeviceArray) -> Array | DeviceArray:
    """The flags of an array or field whose memory is ``memory``, with the same layout and on the
    same device."""
    key = id(owner)
    running = program.current()
    flags = _flags.setdefault(running, {})
    known = flags.get(key)
    if known is not None:
        mine, found = known
        fits = found.shape == memory.shape and found.dtype == memory.dtype
        if mine() is owner and fits and type(found) is type(memory):
            return found
    found = _zeros(memory, running)

    def gone(reference: Any) -> None:
        if key in flags and flags[key][0] is reference:
            del flags[key]

    flags[key] = weakref.ref(owner, gone), found
    return found


def _zeros(like: Array | DeviceArray, running: program.Program) -> Array | DeviceArray:
    """Memory for the flags of the elements of ``like``."""
    if isinstance(like, DeviceArray):
        memory = running.device.allocate(like.nbytes)
        return view_of(memory, 0, like.shape, like.dtype)
    return np.zeros(like.shape, like.dtype)


def clear() -> None:
    """Clear all flags of the current program."""
    running = program.peek()
    flags = {} if running is None else _flags.get(running, {})
    for _, found in list(flags.values()):
        if not isinstance(found, DeviceArray):
            found.fill(0)
        elif found.memory is not None and found.memory.address:
            found.memory.fill(found.offset, b"\0", found.nbytes)
