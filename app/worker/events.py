"""The events that a `WorkerClient` reports to its owner, from the client's thread, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.inspect.record import ErrorRecord, KernelRecord, LogLine, Record
from ..core.progress import State, forms

__all__ = [
    "Event", "Exited", "Failed", "KernelUpdated", "Log", "Progress", "RecordUpdated", "Stale",
    "Started", "Studied",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Started:
    """A worker process is up; ``restarts`` counts those that ended unasked before it."""

    pid: int
    restarts: int


@dataclass(frozen=True, slots=True)
class KernelUpdated:
    """A kernel's record is new or has grown; `Record` order and the other kernels stay.

    final: nothing will follow in this job.
    """

    kernel: KernelRecord
    final: bool


@dataclass(frozen=True, slots=True)
class RecordUpdated:
    """The whole, after a file was loaded (complete False) and when a job is over (True).

    again: the look that was complete before, with times of more launches.
    """

    record: Record
    complete: bool
    again: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """The worker's current activity. total 0: unknown. state: the same in words, with an estimate
    of the time left where there is a basis for one; see `core.progress`."""

    text: str
    done: int
    total: int
    state: State | None = None

    @property
    def forms(self) -> Sequence[str]:
        """It in words, the longest form first."""
        if self.state is not None:
            return forms(self.state)
        return (f"{self.text} {self.done}/{self.total}" if self.total else self.text,)


@dataclass(frozen=True, slots=True)
class Log:
    """A line of output."""

    line: LogLine


@dataclass(frozen=True, slots=True)
class Failed:
    """A file or kernel failed in a way that leaves it without a new result."""

    error: ErrorRecord


@dataclass(frozen=True, slots=True)
class Stale:
    """These kernels (ids) keep showing an older result; ``reason`` in one line."""

    kernels: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Studied:
    """The answer of a study about the kernel of this id, as JSON."""

    kernel: str
    answer: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker process ended. expected: it was asked to. Another starts when there is work."""

    reason: str
    expected: bool


Event = (
    Started | KernelUpdated | RecordUpdated | Progress | Log | Failed | Stale | Studied | Exited
)  # fmt: skip
