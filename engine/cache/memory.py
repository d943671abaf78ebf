"""Artifacts of this process by the keys of the offline cache; see `offline`."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .codec import moved, without_task_places
from .places import Function

if TYPE_CHECKING:
    from ..backends.base import Artifact

__all__ = ["MEMORY", "Memory"]

_BYTES: Final = 64 << 20
_OVERHEAD: Final = 4096
"""What an artifact takes besides its code and texts, about."""


class _Kept:
    """An artifact. functions: it was made of. size: about. written: see `Memory.owes`."""

    __slots__ = ("artifact", "functions", "size", "written")

    def __init__(self, artifact: Artifact, functions: tuple[Function, ...], size: int) -> None:
        self.artifact = artifact
        self.functions = functions
        self.size = size
        self.written: set[tuple[str, str]] = set()


class Memory:
    """Artifacts by key. Bounded: what was used longest ago goes first."""

    def __init__(self, limit: int = _BYTES) -> None:
        self.limit: Final = limit
        self._lock = threading.Lock()
        self._kept: Final[dict[str, _Kept]] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes that are held, about."""
        return self._size

    def get(self, key: str, functions: Sequence[Function]) -> Artifact | None:
        """The artifact, for these functions as they lie now."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._kept[key] = found  # used last
        return moved(found.artifact, found.functions, tuple(functions))

    def put(self, key: str, artifact: Artifact, functions: Sequence[Function]) -> None:
        """Keep an artifact; one that alone is too large is not kept."""
        texts = sum(map(len, artifact.texts.values()))
        size = _OVERHEAD + len(artifact.code) + texts
        with self._lock:
            self._drop(key)
            if size > self.limit:
                return
            while self._size + size > self.limit:
                self._drop(next(iter(self._kept)))
            self._kept[key] = _Kept(without_task_places(artifact), tuple(functions), size)
            self._size += size

    def owes(self, key: str, folder: str, kernel: str) -> bool:
        """Whether an artifact that is held never went to, or came from, this place on disk.

        From now on it counts as having gone there.
        """
        with self._lock:
            found = self._kept.get(key)
            if found is None or (folder, kernel) in found.written:
                return False
            found.written.add((folder, kernel))
            return True

    def drop(self, key: str) -> None:
        """Forget one artifact."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def _drop(self, key: str) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._size -= found.size

    def after_fork(self) -> None:
        """In a child, where no other thread is left to let go of the lock."""
        self._lock = threading.Lock()


MEMORY: Final = Memory()
"""Of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MEMORY.after_fork)
