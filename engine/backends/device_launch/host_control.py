"""Loops and checkpoints that the host runs, on a device whose memory it does not see.

The flow is cut into *steps* once, and a launch goes through these. ``do_while`` runs its steps,
waits, reads its flag and repeats while that is not 0; a checkpoint reads its flag after its
steps; the sections of a ``parallel`` part go each to a stream of its own. For the rules of a launch
that begins at a checkpoint see `backends.flow`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import Any, Final, Generic, TypeVar

from ..base import Flow
from ..kernarg.abi import RESUME
from .arguments import DeviceArguments, DeviceBufferPool, Launch
from .branches import Branches
from .executable import DeviceExecutable

__all__ = ["HostControl", "HostLaunch", "Item", "Step", "tasks_of"]

Item = int | Flow


def tasks_of(items: Sequence[Item]) -> Iterator[int]:
    """The tasks in these parts of a flow, at any depth, in order."""
    for item in items:
        if isinstance(item, Flow):
            yield from tasks_of(item.items)
        else:
            yield item


def _labels(part: Flow) -> set[int]:
    found = {part.label} if part.label >= 0 else set[int]()
    for item in part.items:
        if isinstance(item, Flow):
            found |= _labels(item)
    return found


class HostLaunch:
    """One launch whose loops and checkpoints the host runs.

    seeking: label of the checkpoint to begin at, -1 once it is met. yielded: 1 + the label of the
    checkpoint that ended it, or 0.
    """

    __slots__ = ("args", "seeking", "yielded")

    def __init__(self, args: Any, seeking: int) -> None:
        self.args = args
        self.seeking = seeking
        self.yielded = 0


Step = Callable[[HostLaunch], bool]
"""A part of a launch; True if the launch ends there."""

E = TypeVar("E", bound=DeviceExecutable[Any, Any, Any])
A = TypeVar("A", bound=DeviceArguments)


class HostControl(Generic[E, A]):
    """Launches the buffers of ``pool``. rounds: of loops on the host, so far."""

    def __init__(
        self, executable: E, pool: DeviceBufferPool[A], launcher: Callable[[int], Launch[A]],
        handle: Callable[[int], Any],
    ) -> None:  # fmt: skip
        """launcher: returns a function that launches one task. handle: the driver's stream."""
        self.executable: Final = executable
        self.pool: Final = pool
        self.rounds = 0
        self._launcher: Final = launcher
        self._handle: Final = handle
        self._tasks: Final[dict[int, Launch[A]]] = {}
        self._branches: Final[dict[Flow, Branches]] = {}

    # --- cutting the flow -----------------------------------------------------------------------

    def steps(self, items: Sequence[Item]) -> list[Step]:
        """The steps of the host, one after the other."""
        return [self.step(item) for item in items]

    def step(self, item: Item) -> Step:
        """The step of the host for one item by itself."""
        if not isinstance(item, Flow):
            return partial(self._task, item)
        if item.kind == "parallel":
            return partial(self._parallel, item)
        steps = self.steps(item.items)
        if item.kind == "checkpoint":
            return partial(self._checkpoint, item, steps)
        return partial(self._loop, item.param, _labels(item), steps)

    def _task(self, k: int, launch: HostLaunch) -> bool:
        """A task, which runs also before the checkpoint that a launch begins at."""
        self.task(k)(launch.args)
        return False

    def _parallel(self, part: Flow, launch: HostLaunch) -> bool:
        if launch.seeking < 0:
            self.parallel(part, launch.args)
        return False

    def _loop(
        self, param: int, labels: Set[int], steps: Sequence[Step], launch: HostLaunch
    ) -> bool:
        """A do_while. labels: of the checkpoints in it."""
        if launch.seeking >= 0 and launch.seeking not in labels:
            return False
        while True:
            for step in steps:
                if step(launch):
                    return True
            self.rounds += 1
            if not self.pool.flag(launch.args, param):
                return False

    def _checkpoint(self, part: Flow, steps: Sequence[Step], launch: HostLaunch) -> bool:
        """A checkpoint: after it the launch ends where its flag is not 0."""
        if launch.seeking >= 0:
            if part.label != launch.seeking:
                return False
            launch.seeking = -1
        for step in steps:
            step(launch)
        if part.param >= 0 and self.pool.flag(launch.args, part.param):
            launch.yielded = 1 + part.label
            return True
        return False

    # --- launching ------------------------------------------------------------------------------

    def run_steps(self, args: A, steps: Sequence[Step]) -> None:
        """Launch a packed buffer; waits only where the host has to know a flag."""
        labels = self.executable.meta.labels
        resume = struct.unpack_from("<q", args.view, RESUME)[0] if labels else 0
        launch = HostLaunch(args, resume - 1)
        for step in steps:
            if step(launch):
                break
        if labels:
            struct.pack_into("<q", args.view, RESUME, launch.yielded)

    def task(self, k: int) -> Launch[A]:
        """Return the function that launches one task."""
        found = self._tasks.get(k)
        if found is None:
            found = self._tasks[k] = self._launcher(k)
        return found

    def parallel(self, part: Flow, args: A) -> None:
        """Launch sections, each on a stream of its own."""
        sections = [section for section in part.items if isinstance(section, Flow)]
        if len(sections) < 2:
            for k in tasks_of(part.items):
                self.task(k)(args)
            return
        branches = self._branches.get(part)
        if branches is None:
            branches = self._branches[part] = Branches(self.executable.device, len(sections))
        branches.run(
            self.pool.stream, [self._section(tuple(tasks_of(s.items)), args) for s in sections]
        )

    def _section(self, tasks: Sequence[int], args: A) -> Callable[[int], None]:
        def launch(stream: int) -> None:
            moved = args.on(self._handle(stream))
            for k in tasks:
                self.task(k)(moved)

        return launch
