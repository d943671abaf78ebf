"""Values of a launch where its backend works on them: on the host as they are, or on a device.

`Inputs` are NumPy arrays of the host. `placed` returns what the executable is launched with: these
very arrays, or, for a backend with memory of its own, arrays of the device that hold the same.
``fetch`` copies what the launch wrote back into the inputs, where comparisons and checks look.

Arrays that overlap on the host overlap on the device. Memory is freed with its last reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..backends.array_memory import ALIGN, Array, ArrayMemory, view_of
from ..named_tuple import NamedTuple
from .clocks import Clock, EventClock, HostClock, QueueClock
from .inputs import HostValues
from .record import DeviceRecord

if TYPE_CHECKING:
    from ..runtime.compile import FullCompile

__all__ = ["Placed", "clock_of", "device_of", "placed"]

_OWN: Final = 16
"""Bytes to write so that the device is in this backend's context again."""


def device_of(compiled: FullCompile) -> Any:
    """The device that a loaded kernel runs on; None for the host."""
    device: Any = getattr(compiled.executable, "device", None)
    return None if device is None or device.host_arrays else device


def placed(compiled: FullCompile, given: HostValues) -> Placed:
    """Return ``given`` where the kernel needs it."""
    device = device_of(compiled)
    return Placed(given) if device is None else _OnDevice(given, device, compiled)


class Placed:
    """Values on the host. values: for the launch. clock: times the launch. device: None."""

    def __init__(self, given: HostValues) -> None:
        self.given: Final = given
        self.values: list[Any] = given.values
        self.clock: Clock = HostClock()

    def wait(self) -> None:
        """Wait until launches are over; raises their error."""

    def fetch(self) -> None:
        """Copy what launches have written into the inputs."""

    def launched(self, start: Callable[[], tuple[Any, ...]]) -> tuple[tuple[Any, ...], float]:
        """(the results of a launch, microseconds until it was over); then fetches what it wrote."""
        began = time.perf_counter_ns()
        results = start()
        self.wait()
        took = (time.perf_counter_ns() - began) / 1e3
        self.fetch()
        return results, took

    def restorer(self, written: Iterable[int]) -> Callable[[], None]:
        """A function that lets the arrays and fields numbered ``written`` hold what they do now."""
        return self.given.restorer(written)

    @property
    def record(self) -> DeviceRecord | None:
        """The device that the launches ran on; None for the host."""
        return None

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the device in use."""
        return None


class _Piece(NamedTuple):
    """Memory of the device for arrays that overlap. arrays: each with its place in it."""

    memory: ArrayMemory
    arrays: list[tuple[Array, int]]
    numbers: set[int]


def clock_of(device: Any, executable: Any) -> Clock:
    """Return the clock for launches on a device: its own times, if it has such."""
    if hasattr(device, "queue"):
        fits = QueueClock.fits(device)
        return QueueClock(device, executable) if fits else HostClock(device.sync)
    # A device that has events answers calls of its driver.
    return EventClock(device, executable) if hasattr(device, "call") else HostClock(device.sync)


class _OnDevice(Placed):
    """Values on a device with memory of its own."""

    def __init__(self, given: HostValues, device: Any, compiled: FullCompile) -> None:
        super().__init__(given)
        self._device: Final = device
        self._written: Final = frozenset(compiled.executable.meta.written)
        self._pieces: Final[list[_Piece]] = []
        self.values = list(given.values)
        self._upload()
        self.clock = clock_of(device, compiled.executable)

    def _upload(self) -> None:
        arrays = [
            (number, cast("Array", value))
            for number, value in enumerate(self.given.values)
            if isinstance(value, np.ndarray)
        ]
        arrays.sort(key=lambda pair: pair[1].ctypes.data)
        group: list[tuple[int, Array]] = []
        end = 0
        for number, array in arrays:
            if group and array.ctypes.data >= end:
                self._place(group, end)
                group = []
            group.append((number, array))
            end = max(end, array.ctypes.data + array.nbytes)
        if group:
            self._place(group, end)

    def _place(self, group: list[tuple[int, Array]], end: int) -> None:
        """Put arrays from one piece of memory, up to ``end``, into memory with equal alignment."""
        first = group[0][1].ctypes.data
        start = first - first % ALIGN
        memory: ArrayMemory = self._device.allocate(max(1, end - start))
        places: list[tuple[Array, int]] = []
        for number, array in group:
            at = array.ctypes.data - start
            if array.nbytes:
                memory.write(at, array)
            self.values[number] = view_of(memory, at, array.shape, array.dtype)
            places.append((array, at))
        self._pieces.append(_Piece(memory, places, {number for number, _ in group}))

    def _changing(self, written: Iterable[int]) -> list[_Piece]:
        numbers = set(written)
        return [piece for piece in self._pieces if piece.numbers & numbers]

    def wait(self) -> None:
        self._device.sync()

    def fetch(self) -> None:
        self.wait()
        for piece in self._changing(self._written):
            for array, at in piece.arrays:
                if array.nbytes:
                    piece.memory.read(at, array)

    def restorer(self, written: Iterable[int]) -> Callable[[], None]:
        pairs: list[tuple[ArrayMemory, ArrayMemory]] = []
        for piece in self._changing(written):
            copy: ArrayMemory = self._device.allocate(piece.memory.nbytes)
            copy.copy(0, piece.memory, 0, piece.memory.nbytes)
            pairs.append((piece.memory, copy))
        # Backends on one device have contexts of their own, and it takes 150 us to go from one to
        # another, on an H200. By this it is ours again before the launch that is timed.
        own: ArrayMemory = self._device.allocate(_OWN)

        def restore() -> None:
            for memory, copy in pairs:
                memory.copy(0, copy, 0, memory.nbytes)
            own.fill(0, b"\0", _OWN)

        return restore

    @property
    def record(self) -> DeviceRecord | None:
        from .hardware import device_record

        return device_record(self._device)

    @property
    def memory_bytes(self) -> int | None:
        return getattr(self._device, "used", None)
