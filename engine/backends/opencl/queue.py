"""Streams and events of OpenCL, see `backends.streams`.

A stream is a queue that runs its commands in order; nothing orders two queues but events. Memory
that one stream writes and another reads needs an event between the two, also where one of them is
the default one. What the engine does with memory itself needs none: a launch comes after fills and
copies on the default stream (`after_memory`), and memory that is freed lives until kernels that use
it have ended.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsRuntimeError

if TYPE_CHECKING:
    from .device import OpenclDevice

__all__ = ["OpenclStreams"]

_numbers: Final = itertools.count(1)


class OpenclStreams:
    """See `branches.DeviceStreams`. Handles are numbers that no other one of the process has."""

    def __init__(self, device: OpenclDevice) -> None:
        self._device: Final = device
        self._queues: Final[dict[int, Any]] = {0: device.queue}
        self._inner: Final[list[int]] = []
        self._events: Final[dict[int, Any]] = {}
        self._seen: Final[dict[int, int]] = {}
        self._lock: Final = threading.Lock()

    def queue(self, stream: int) -> Any:
        """The queue of a stream. QuadrantsRuntimeError for one that is not there."""
        found = self._queues.get(stream)
        if found is None:
            raise QuadrantsRuntimeError(f"there is no stream {stream} on {self._device.name}")
        return found

    def queues(self) -> list[Any]:
        """Every queue there is."""
        return list(self._queues.values())

    def create_stream(self) -> int:
        number = next(_numbers)
        self._queues[number] = self._device.new_queue()
        return number

    def destroy_stream(self, stream: int) -> None:
        if stream and stream in self._queues:
            self._device.stream_ends(stream)
            self._seen.pop(stream, None)
            self._queues.pop(stream)

    def after_memory(self, stream: int) -> None:
        moved = self._device.moved
        if self._seen.get(stream) != moved:
            self._order(stream, self._mark(0))
            self._seen[stream] = moved

    def _mark(self, stream: int) -> Any:
        """An event for all that was launched on a stream so far."""
        queue, device = self.queue(stream), self._device
        event = device.call("ordering streams", device.cl.enqueue_marker, queue)
        device.call("ordering streams", queue.flush)  # others wait for it, perhaps on the device
        return event

    def _order(self, stream: int, event: Any) -> None:
        """Make later launches on a stream wait for an event."""
        device = self._device
        device.call("ordering streams", device.cl.enqueue_barrier, self.queue(stream), [event])

    def wait(self, stream: int) -> None:
        self._device.sync(stream)

    def create_event(self) -> int:
        number = next(_numbers)
        self._events[number] = None
        return number

    def destroy_event(self, event: int) -> None:
        self._events.pop(event, None)

    def record(self, event: int, stream: int) -> None:
        self._events[event] = self._mark(stream)

    def hold(self, stream: int, event: int) -> None:
        found = self._events[event]
        if found is not None:
            self._order(stream, found)

    def wait_event(self, event: int) -> None:
        found = self._events[event]
        if found is not None:
            self._device.call("waiting for an event", found.wait)

    def inner(self, count: int) -> list[int]:
        with self._lock:
            while len(self._inner) < count:
                self._inner.append(self.create_stream())
            return self._inner[:count]

    def device_ended(self) -> None:
        for stream in list(self._queues):
            if stream:
                if self._device.alive:
                    self._device.last_sync(stream)
                self.destroy_stream(stream)
        self._events.clear()
