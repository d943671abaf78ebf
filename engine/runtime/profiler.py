"""Times of launches, kept by a program whose ``kernel_profiler`` is on.

A launch adds one `LaunchTimes`: the time when it began and when each of its tasks ended. Backends
that cannot time tasks (the interpreter) add the whole launch as one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..named_tuple import NamedTuple

__all__ = ["LaunchTimes", "Profiler", "TaskTime"]


class LaunchTimes(NamedTuple):
    """One launch. tasks: names. stamps: nanoseconds, one more than tasks."""

    kernel: str
    tasks: tuple[str, ...]
    stamps: tuple[int, ...]

    @property
    def ms(self) -> float:
        """The time of all tasks together, in milliseconds."""
        return (self.stamps[-1] - self.stamps[0]) / 1e6


class TaskTime(NamedTuple):
    """One run of a task; times in milliseconds, ``start`` from the first launch kept."""

    name: str
    start: float
    ms: float


class Profiler:
    """The launches of a program since it began, or since `clear`."""

    def __init__(self) -> None:
        self.launches: Final[list[LaunchTimes]] = []

    def record(self, kernel: str, tasks: Sequence[str], stamps: Sequence[int]) -> None:
        """Keep the times of a launch."""
        self.launches.append(LaunchTimes(kernel, tuple(tasks), tuple(stamps)))

    def clear(self) -> None:
        """Forget all launches."""
        self.launches.clear()

    def trace(self) -> list[TaskTime]:
        """Every run of every task, in order."""
        out: list[TaskTime] = []
        origin = self.launches[0].stamps[0] if self.launches else 0
        for launch in self.launches:
            stamps = launch.stamps
            for name, begin, end in zip(launch.tasks, stamps, stamps[1:], strict=False):
                out.append(TaskTime(name, (begin - origin) / 1e6, (end - begin) / 1e6))
        return out
