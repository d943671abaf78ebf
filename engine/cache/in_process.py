"""Values that a process holds by key, the artifacts of `offline` among them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from ..ir import UNKNOWN
from .locations import Function

if TYPE_CHECKING:
    from ..backends.base import Artifact

__all__ = ["IN_PROCESS", "InProcessCache", "Recent"]

T = TypeVar("T")

_BYTES: Final = 64 << 20
_OVERHEAD: Final = 4096
"""Approximate bytes of an artifact besides its code and sources."""


class _Kept:
    """An artifact. functions: those it was made from. written: see `InProcessCache.owes`. shared:
    the artifact has the form that other kernels use, too."""

    __slots__ = ("artifact", "functions", "shared", "written")

    def __init__(self, artifact: Artifact, functions: tuple[Function, ...]) -> None:
        self.artifact = artifact
        self.functions = functions
        self.shared = False
        self.written: set[tuple[str, str]] = set()


class Recent(Generic[T]):
    """Values by key, of ``limit`` bytes in all: the least recently used is dropped first."""

    def __init__(self, limit: int = _BYTES) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._kept: Final[dict[str, tuple[T, int]]] = {}
        self.size = 0
        """Approximate number of bytes that are held."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> T | None:
        """The value, which becomes the most recently used."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._kept[key] = found
            return found[0]

    def add(self, key: str, value: T, size: int) -> T:
        """Hold a value, unless it alone is too large, and return it; an earlier one wins."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self._insert(key, value, size)
            return value if found is None else found[0]

    def _insert(self, key: str, value: T, size: int) -> None:
        if size <= self.limit:
            self._kept[key] = value, size
            self.size += size
            while self.size > self.limit:
                self._drop(next(iter(self._kept)))

    def drop(self, key: str) -> None:
        """Forget one value."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self.size = 0

    def _drop(self, key: str) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= found[1]

    def _after_fork(self) -> None:
        """Reset in a child: the thread that held the lock, in the middle of a change, is gone."""
        self._lock = threading.Lock()
        self.size = sum([size for _, size in self._kept.values()])


def _without_task_locations(artifact: Artifact) -> Artifact:
    """The artifact in the form that any kernel of its key may use."""
    meta = artifact.meta
    tasks = tuple([task._replace(loc=UNKNOWN) for task in meta.tasks])
    return artifact.replaced(meta=meta._replace(tasks=tasks))


class InProcessCache(Recent[_Kept]):
    """Artifacts by the keys of the offline cache."""

    def artifact(self, key: str, functions: Sequence[Function]) -> Artifact | None:
        """The artifact, for these functions at their present locations."""
        found = self.get(key)
        if found is None:
            return None
        from .codec import moved

        if not found.shared:  # few artifacts are used again
            found.artifact, found.shared = _without_task_locations(found.artifact), True
        return moved(found.artifact, found.functions, tuple(functions))

    def put(self, key: str, artifact: Artifact, functions: Sequence[Function]) -> None:
        """Keep an artifact, in place of an older one; one that alone is too large is not kept."""
        texts = sum(map(len, artifact.texts.values()))
        kept = _Kept(artifact, tuple(functions))
        with self._lock:
            self._drop(key)
            self._insert(key, kept, _OVERHEAD + len(artifact.code) + texts)

    def owes(self, key: str, folder: str, kernel: str) -> bool:
        """True if an artifact that is held never went to, or came from, this place on disk.

        From then on it counts as written there.
        """
        with self._lock:
            found = self._kept.get(key)
            if found is None or (folder, kernel) in found[0].written:
                return False
            found[0].written.add((folder, kernel))
            return True


IN_PROCESS: Final = InProcessCache()
"""The artifacts of this process."""
