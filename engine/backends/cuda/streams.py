"""Streams of CUDA, see `backends.streams`.

User streams are *non-blocking*: nothing orders them with the legacy default stream, on which
everything else runs, except events. Memory that one stream writes and another reads needs an event
between the two, also where one of them is the default stream. What the engine does with memory
itself needs none: a launch comes after fills and copies on the default stream (`after_memory`), and
memory is freed after what runs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["CudaStreams"]

_NON_BLOCKING: Final = 1
"""`CU_STREAM_NON_BLOCKING`."""
_NO_TIMES: Final = 2
"""`CU_EVENT_DISABLE_TIMING`: recording an event and waiting for it is cheap then."""


class CudaStreams:
    """See `branches.DeviceStreams`. alive: the streams of users by number. events: likewise."""

    def __init__(self, device: CudaDevice) -> None:
        self._device: Final = device
        self.alive: Final[dict[int, Any]] = {}
        self.events: Final[dict[int, Any]] = {}
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
                self._mark = self.create_event()
            self.record(self._mark, 0)
            self.hold(stream, self._mark)
            self._seen[stream] = moved

    def wait(self, stream: int) -> None:
        self._device.sync(stream)

    def create_event(self) -> int:
        handle = self._device.call("making an event", "cuEventCreate", _NO_TIMES)
        number = int(handle)
        self.events[number] = handle
        return number

    def destroy_event(self, event: int) -> None:
        handle = self.events.pop(event, None)
        if handle is not None and self._device.alive:
            self._device.call("destroying an event", "cuEventDestroy", handle)

    def record(self, event: int, stream: int) -> None:
        self._device.call("recording an event", "cuEventRecord", self.events[event], stream)

    def hold(self, stream: int, event: int) -> None:
        handle = self.events[event]
        self._device.call("waiting for an event", "cuStreamWaitEvent", stream, handle, 0)

    def wait_event(self, event: int) -> None:
        self._device.call("waiting for an event", "cuEventSynchronize", self.events[event])

    def inner(self, count: int) -> list[int]:
        with self._lock:
            while len(self._inner) < count:
                self._inner.append(self._new())
            return [int(handle) for handle in self._inner[:count]]

    def device_ended(self) -> None:
        for stream in list(self.alive):
            if self._device.alive:
                self._device.last_sync(stream)
            self.destroy_stream(stream)
        for event in list(self.events):
            self.destroy_event(event)
        with self._lock:
            handles, self._inner[:] = list(self._inner), []
        for handle in handles:
            if self._device.alive:
                self._device.call("destroying a stream", "cuStreamDestroy", handle)
