"""Parts of a kernel that run concurrently: the sections of a ``parallel``, each on a stream.

The first section goes to the stream of the launch, each other one to an internal stream of the
program, which first waits for that of the launch; in the end the launch's stream waits for all
others. The internal streams are shared by all kernels of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ..streams import Streams

if TYPE_CHECKING:
    from .device import AnyDevice

__all__ = ["Branches", "DeviceStreams"]


class DeviceStreams(Streams, Protocol):
    """The streams and events of one program."""

    def inner(self, count: int) -> list[int]:
        """So many internal streams, for branches, the same for all kernels of the program."""
        ...

    def device_ended(self) -> None:
        """Wait for what runs, and free what is left."""
        ...


class Branches:
    """Runs functions that launch, each on a stream of its own. See the module docstring."""

    def __init__(self, device: AnyDevice, count: int) -> None:
        self._streams: Final[DeviceStreams] = device.streams
        self._count: Final = count
        self._begin: Final = self._streams.create_event()
        self._ends: Final = [self._streams.create_event() for _ in range(count - 1)]

    def run(self, stream: int, sections: Sequence[Callable[[int], object]]) -> None:
        """Call each with its stream; what is launched on ``stream`` next waits for all."""
        streams = self._streams
        others = streams.inner(self._count - 1)
        streams.record(self._begin, stream)
        for other in others:
            streams.hold(other, self._begin)
        try:
            sections[0](stream)
            for section, other in zip(sections[1:], others, strict=True):
                section(other)
        finally:  # also what was launched before an error must have an end
            for other, event in zip(others, self._ends, strict=True):
                streams.record(event, other)
                streams.hold(stream, event)
