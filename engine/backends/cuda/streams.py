"""Streams of CUDA (see `backends.streams`), and branches of a kernel on several of them.

User streams are *non-blocking*: nothing orders them with the legacy default stream, on which
everything else runs, except events. Memory that one stream writes and another reads needs an event
between the two, also where one of them is the default stream. What the engine does with memory
itself needs none: a launch comes after fills and copies on the default stream (`after_memory`), and
memory is freed after what runs.

`Branches` runs the sections of a ``parallel`` part: the first on the stream of the launch, each
other one on an internal stream of the program, which first waits for that of the launch; in the end
that one waits for all of them. The internal streams are shared by all kernels of the program.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...errors import QuadrantsRuntimeError
from .events import Events

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Branches", "CudaStreams"]

_NON_BLOCKING: Final = 1
"""`CU_STREAM_NON_BLOCKING`."""


class CudaStreams:
    """See `backends.streams.Streams`. alive: the streams of users by number. events: the events."""

    def __init__(self, device: CudaDevice) -> None:
        self._device: Final = device
        self.alive: Final[dict[int, Any]] = {}
        self.events: Final = Events(device)
        self._inner: Final[list[Any]] = []
        self._seen: Final[dict[int, int]] = {}
        self._mark: int | None = None
        self._lock: Final = threading.Lock()

    def _new(self) -> Any:
        return self._device.call("making a stream", "cuStreamCreate", _NON_BLOCKING)

    def create_stream(self) -> int:
        handle = self._new()
        number = int(handle)
        self.alive[number] = handle
        return number

    def destroy_stream(self, stream: int) -> None:
        handle = self.alive.pop(stream, None)
        self._seen.pop(stream, None)
        if handle is not None and self._device.alive:
            self._device.stream_ends(stream)
            self._device.call("destroying a stream", "cuStreamDestroy", handle)

    def after_memory(self, stream: int) -> None:
        moved = self._device.moved
        if self._seen.get(stream) != moved:
            if self._mark is None:
                self._mark = self.events.create()
            self.events.record(self._mark, 0)
            self.events.hold(stream, self._mark)
            self._seen[stream] = moved

    def wait(self, stream: int) -> None:
        self._device.sync(stream)

    def create_event(self) -> int:
        return self.events.create()

    def destroy_event(self, event: int) -> None:
        self.events.destroy(event)

    def record(self, event: int, stream: int) -> None:
        self.events.record(event, stream)

    def hold(self, stream: int, event: int) -> None:
        self.events.hold(stream, event)

    def wait_event(self, event: int) -> None:
        self.events.wait(event)

    def inner(self, count: int) -> list[int]:
        """So many internal streams, for branches."""
        with self._lock:
            while len(self._inner) < count:
                self._inner.append(self._new())
            return [int(handle) for handle in self._inner[:count]]

    def device_ended(self) -> None:
        """Wait for what runs, and destroy what is left."""
        for stream in list(self.alive):
            if self._device.alive:
                try:
                    self._device.sync(stream)
                except QuadrantsRuntimeError as error:
                    log.warn(f"a kernel had failed when its program ended: {error}")
            self.destroy_stream(stream)
        self.events.end()
        with self._lock:
            handles, self._inner[:] = list(self._inner), []
        for handle in handles:
            if self._device.alive:
                self._device.call("destroying a stream", "cuStreamDestroy", handle)


class Branches:
    """Runs functions that launch, each on a stream of its own. See the module docstring."""

    def __init__(self, device: CudaDevice, count: int) -> None:
        self._streams: Final = device.streams
        self.count: Final = count
        self._begin: Final = self._streams.create_event()
        self._ends: Final = [self._streams.create_event() for _ in range(count - 1)]

    def run(self, stream: int, sections: Sequence[Callable[[int], object]]) -> None:
        """Call each with its stream; what is launched on ``stream`` next waits for all."""
        streams = self._streams
        others = streams.inner(self.count - 1)
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
