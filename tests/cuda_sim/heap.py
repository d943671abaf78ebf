"""Memory of the simulated device: memory of the host that is never what a program hopes for.

Fresh memory holds garbage. Freed memory is overwritten, and kept for a while so that somebody who
still uses it sees the garbage and does not destroy what others have got meanwhile.
"""

from __future__ import annotations

import bisect
import ctypes
from collections import deque

import numpy as np

__all__ = ["Heap", "Room"]

ALIGN = 256
_FRESH, _FREED = 0xCB, 0xDB
_MOST_FILLED = 1 << 20
"""Bytes at both ends that get garbage; what lies between in a large room keeps its zeros."""
_KEPT = 16 << 20


class Room:
    """What one allocation got. alive: until it is freed. pinned: of the host."""

    __slots__ = ("address", "alive", "data", "nbytes", "pinned")

    def __init__(self, nbytes: int, pinned: bool) -> None:
        self.data = np.zeros(nbytes + ALIGN, np.uint8)
        self.address = (self.data.ctypes.data + ALIGN - 1) & -ALIGN
        self.nbytes = nbytes
        self.alive = True
        self.pinned = pinned
        self.spoil(_FRESH)

    def spoil(self, value: int) -> None:
        part = min(self.nbytes, _MOST_FILLED)
        ctypes.memset(self.address, value, part)
        if part < self.nbytes:
            ctypes.memset(self.address + self.nbytes - part, value, part)


class Heap:
    """All rooms. total: bytes of the device. used: of rooms on the device that are alive."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.peak = 0
        self.rooms: dict[int, Room] = {}
        self._starts: list[int] = []
        self._gone: deque[Room] = deque()
        self._gone_bytes = 0

    @property
    def free(self) -> int:
        return self.total - self.used

    def allocate(self, nbytes: int, pinned: bool = False) -> Room:
        """MemoryError if there is not so much."""
        if not pinned and nbytes > self.free:
            raise MemoryError
        room = Room(nbytes, pinned)
        self.rooms[room.address] = room
        bisect.insort(self._starts, room.address)
        if not pinned:
            self.used += (nbytes + ALIGN - 1) & -ALIGN
            self.peak = max(self.peak, self.used)
        return room

    def find(self, address: int) -> Room | None:
        """The room, alive or gone, in which an address lies."""
        k = bisect.bisect_right(self._starts, address) - 1
        if k < 0:
            return None
        room = self.rooms[self._starts[k]]
        return room if address < room.address + max(room.nbytes, 1) else None

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether so many bytes from ``address`` on lie in one room that is alive."""
        room = self.find(address)
        return room is not None and room.alive and address + nbytes <= room.address + room.nbytes

    def release(self, room: Room) -> None:
        room.alive = False
        room.spoil(_FREED)
        if not room.pinned:
            self.used -= (room.nbytes + ALIGN - 1) & -ALIGN
        self._gone.append(room)
        self._gone_bytes += room.nbytes
        while self._gone_bytes > _KEPT and len(self._gone) > 1:
            old = self._gone.popleft()
            self._gone_bytes -= old.nbytes
            del self.rooms[old.address]
            self._starts.remove(old.address)
