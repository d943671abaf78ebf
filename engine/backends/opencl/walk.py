"""How kernels with a flow run: the host walks through it.

``do_while`` runs its items, waits, reads its flag and goes round while that is not 0; a checkpoint
reads its flag after its items; the sections of a ``parallel`` part go each to a queue of its own.
The rules of a launch that begins at a checkpoint stand in `backends.flow`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..base import Flow
from ..frame import abi
from ..frame.branches import Branches

if TYPE_CHECKING:
    from .executable import OpenclExecutable
    from .frame import FramePool

__all__ = ["FlowRunner"]

Item = int | Flow


def _labels(part: Flow) -> set[int]:
    found = {part.label} if part.label >= 0 else set[int]()
    for item in part.items:
        if isinstance(item, Flow):
            found |= _labels(item)
    return found


def _tasks(items: Sequence[Item]) -> Iterator[int]:
    """Every task in these, in order."""
    for item in items:
        if isinstance(item, Flow):
            yield from _tasks(item.items)
        else:
            yield item


class _Walk:
    """One launch. seeking: label of the checkpoint to begin at, -1 once it is met. yielded: 1 + the
    label of the checkpoint that ended it, or 0.
    """

    __slots__ = ("pointer", "seeking", "yielded")

    def __init__(self, pointer: Any, seeking: int) -> None:
        self.pointer = pointer
        self.seeking = seeking
        self.yielded = 0


class FlowRunner:
    """See the module docstring."""

    def __init__(self, executable: OpenclExecutable, pool: FramePool) -> None:
        self._executable: Final = executable
        self._pool: Final = pool
        self._tasks: Final[dict[int, Callable[[Any], object]]] = {}
        self._branches: Final[dict[int, Branches]] = {}

    def run(self, pointer: Any) -> None:
        """Launch a filled frame; waits where the host has to know a flag."""
        meta, buffer = self._executable.meta, pointer[0]
        resume = struct.unpack_from("<q", buffer, abi.RESUME)[0] if meta.labels else 0
        walk = _Walk(pointer, resume - 1)
        self._items(meta.flow, walk)
        if meta.labels:
            struct.pack_into("<q", buffer, abi.RESUME, walk.yielded)

    def _task(self, k: int) -> Callable[[Any], object]:
        found = self._tasks.get(k)
        if found is None:
            found = self._tasks[k] = self._executable.control.task(k)
        return found

    def _items(self, items: Sequence[Item], walk: _Walk) -> bool:
        """Run these; whether the launch ends here."""
        for item in items:
            if not isinstance(item, Flow):
                self._task(item)(walk.pointer)
            elif getattr(self, f"_{item.kind}")(item, walk):
                return True
        return False

    def _do_while(self, part: Flow, walk: _Walk) -> bool:
        if walk.seeking >= 0 and walk.seeking not in _labels(part):
            return False
        while True:
            if self._items(part.items, walk):
                return True
            if not self._flag(walk.pointer, part.param):
                return False

    def _checkpoint(self, part: Flow, walk: _Walk) -> bool:
        if walk.seeking >= 0:
            if part.label != walk.seeking:
                return False
            walk.seeking = -1
        self._items(part.items, walk)
        if part.param >= 0 and self._flag(walk.pointer, part.param):
            walk.yielded = 1 + part.label
            return True
        return False

    def _section(self, part: Flow, walk: _Walk) -> bool:
        return self._items(part.items, walk)

    def _parallel(self, part: Flow, walk: _Walk) -> bool:
        if walk.seeking >= 0:
            return False
        sections = [item for item in part.items if isinstance(item, Flow)]
        if len(sections) < 2:
            return self._items(part.items, walk)
        branches = self._branches.get(id(part))
        if branches is None:
            made = Branches(self._executable.device, len(sections))
            branches = self._branches[id(part)] = made
        branches.run(self._pool.stream, [self._on(tuple(_tasks(s.items)), walk) for s in sections])
        return False

    def _on(self, tasks: Sequence[int], walk: _Walk) -> Callable[[int], None]:
        def launch(stream: int) -> None:
            queue = self._executable.device.streams.queue(stream)
            moved = (*walk.pointer[:2], queue, *walk.pointer[3:])
            for k in tasks:
                self._task(k)(moved)

        return launch

    def _flag(self, pointer: Any, param: int) -> int:
        """The i32 that a parameter points to, once all that was launched before has ended.

        Raises what it failed with: a loop whose tasks do nothing any more would never end.
        """
        at = self._executable.layout.params[param]
        (address,) = struct.unpack_from("<Q", pointer[0], at)
        device, pool = self._executable.device, self._pool
        if pool.watched:
            pool.pending[pool] = None
            device.sync(pool.stream)
        elif pool.stream:
            device.wait_for(pool.stream)
        out = np.empty(4, np.uint8)
        device.fetch(address, out)
        return int(out.view(np.int32)[0])
