"""Argument buffers for a device whose memory the host does not see.

A launch packs an *argument buffer* on the host. Kernels write their errors, reports and results to
a *device buffer* of the same layout, one for each kernel and stream: launches on a stream follow
each other. The host reads it when it waits.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import numpy as np

from ...errors import AdStackOverflowError, QuadrantsRuntimeError
from ..array_memory import Array, DeviceArray
from ..base import StackPlan
from ..kernarg import abi
from ..kernarg.packing import BufferPool

if TYPE_CHECKING:
    from .device import AnyDevice
    from .executable import DeviceExecutable

__all__ = ["DeviceArguments", "DeviceBufferPool", "Launch"]


class DeviceArguments:
    """See `base.ArgumentBuffer`.

    ints: the memory as i32. stream: the stream to launch on, in the form that the driver accepts.
    device_buffer: the address of the device buffer. rows: blocks of each task, where a plan for
    adstacks sets them.
    """

    __slots__ = ("device_buffer", "ints", "plan", "rows", "stream", "view")

    def __init__(self, view: memoryview, stream: Any, device_buffer: int) -> None:
        self.view: memoryview = view
        self.ints: Final = view.cast("i")
        self.plan: StackPlan | None = None
        self.rows: Final[list[int]] = []
        self.stream: Any = stream
        self.device_buffer: Final = device_buffer

    def on(self, stream: Any) -> Self:
        """The same arguments for a launch on another stream."""
        other = copy(self)
        other.stream = stream
        return other


A = TypeVar("A", bound=DeviceArguments)
Launch = Callable[[A], object]
"""Launches tasks with a packed buffer."""


class DeviceBufferPool(BufferPool[A]):
    """The argument buffers of one kernel for one stream.

    stream: handle of the stream; 0 for the default one. device_buffer: address of the device
    buffer. watched: there is something to look at after a launch. pending: where this is noted
    after a launch. plan: that of the last launch. diagnose: makes the error of a full adstack
    better.
    """

    def __init__(self, executable: DeviceExecutable[Any, Any, Any], stream: int = 0) -> None:
        device, layout, meta = executable.device, executable.layout, executable.meta
        super().__init__(meta, layout)
        self.device: Final[AnyDevice] = device
        self.stream: Final = stream
        self._blocks: Final = executable.block_dims
        self.watched: Final = bool(meta.asserts or meta.reports or meta.prints or meta.has_stacks)
        self.plan: StackPlan | None = None
        self._failed: Final[dict[int, Exception]] = {}
        self.memory: Final = device.allocate(layout.size)
        self.device_buffer: Final = self.memory.address
        self.pending: Final = device.launched_on(stream)
        self.diagnose: Final = executable.diagnosed

    def write_stacks(self, args: A, plan: StackPlan | None) -> None:
        before = args.plan
        super().write_stacks(args, plan)
        self.plan = plan
        if plan is not None and plan is not before:
            args.rows[:] = [
                0 if given is None else max(1, given.integer_rows // block)
                for block, given in zip(self._blocks, plan.tasks, strict=True)
            ]

    def addresses(self, arguments: Sequence[Any]) -> list[int]:
        return [value.address if isinstance(value, DeviceArray) else 0 for value in arguments]

    # --- after a launch -------------------------------------------------------------------------

    def fail(self, error: Exception) -> int:
        """Keep an error for `check` in this thread."""
        self._failed[threading.get_ident()] = error
        return abi.ASSERTED

    def check(self, args: A) -> None:
        """See `base.ArgumentPool`."""
        error = self._failed.pop(threading.get_ident(), None)
        if error is not None:
            raise error.with_traceback(None)

    def finish(self, args: A) -> int:
        """Wait for a launch, look at what it left, and fetch its results; returns as `enter`."""
        try:
            if self.stream or not self.meta.results:
                self.device.sync(self.stream)
            if self.meta.results:  # which waits for the default stream
                self._read_results(args)
        except QuadrantsRuntimeError as error:
            return self.fail(error)
        return 0

    def flag(self, args: A, param: int) -> int:
        """The i32 that a parameter points to, once all that was launched before has ended.

        Raises what it failed with: a loop whose tasks do nothing any more would never end.
        """
        (address,) = struct.unpack_from("<Q", args.view, self.layout.params[param])
        if self.watched:
            self.pending[self] = None
            self.device.sync(self.stream)
        elif self.stream:
            self.device.wait_for(self.stream)
        return self.device.integer(address, np.int32)

    def _read_results(self, args: A) -> None:
        """Copy the results of a launch into its argument buffer. Raises what failed before."""
        size = 8 * len(self.meta.results)
        part = np.frombuffer(args.view, np.uint8)[self.results_at : self.results_at + size]
        self.device.read(self.device_buffer + self.results_at, part)

    def collect(self) -> None:
        """Raise what launches that have ended failed with, and print what they report."""
        device, at = self.device, self.device_buffer
        data: Array = np.empty(self.layout.stamps, np.uint8)
        device.fetch(at, data)
        left = data.tobytes()
        self.print_reports(left, lambda offset: device.set(at + offset, 0, 1, 8))
        error = self.failure(left, self.plan)
        if error is not None:
            device.set(at + abi.ERROR, 0, 1, 8)
            raise self.diagnose(error) if isinstance(error, AdStackOverflowError) else error
