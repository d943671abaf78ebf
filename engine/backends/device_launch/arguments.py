"""What the frames of all devices have in common whose memory the host does not see.

A launch packs its arguments into a *host frame*. What kernels leave behind (errors, reports,
results) lies in a *device frame* of the same layout, one for each kernel and stream: launches on a
stream follow each other. It is looked at when somebody waits.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from ...errors import (
    AdStackOverflowError,
    QuadrantsAssertionError,
    QuadrantsInternalError,
    QuadrantsRuntimeError,
)
from ..base import StackPlan
from ..kernarg import abi
from ..kernarg.packing import BufferPool, StackFrame, assertion, stack_full
from ..kernarg.stack_rows import StackWriter
from ..memory import Array, DeviceArray

if TYPE_CHECKING:
    from .device import AnyDevice
    from .executable import DeviceExecutable

__all__ = ["DeviceBufferPool"]

F = TypeVar("F", bound=tuple[memoryview, Any])


class DeviceBufferPool(BufferPool[F]):
    """The frames of one kernel for one stream.

    stream: handle of the stream; 0 for the default one. device_frame: its address. watched: there
    is something to look at after a launch. pending: where this is noted after a launch. plan: that
    of the last launch. diagnose: makes the error of a full adstack better. enter: launches a filled
    frame; set by the executable.
    """

    def __init__(self, executable: DeviceExecutable[Any, Any, Any], stream: int = 0) -> None:
        device, layout, meta = executable.device, executable.layout, executable.meta
        super().__init__(meta, layout)
        self.device: Final[AnyDevice] = device
        self.stream: Final = stream
        self._blocks: Final = executable.block_dims
        self.watched: Final = bool(meta.asserts or meta.reports or meta.prints or meta.has_stacks)
        self._stacks: Final = StackWriter(meta, layout, 0) if self.stacked else None
        self.plan: StackPlan | None = None
        self._failed: Final[dict[int, Exception]] = {}
        self.memory: Final = device.allocate(layout.size)
        self.device_frame: Final = self.memory.address
        self.pending: Final = device.launched_on(stream)
        self.diagnose: Final = executable.diagnosed
        self.enter: Any = None

    def rows_of(self, frame: F) -> list[int]:
        """Where the blocks of each task stand that a plan for adstacks gives."""
        raise NotImplementedError

    def write_stacks(self, frame: F, plan: StackPlan | None) -> None:
        if isinstance(frame, StackFrame) and frame.plan is plan and plan is not None:
            self.plan = plan
            return
        if self._stacks is None or not isinstance(frame, StackFrame) or plan is None:
            raise QuadrantsInternalError(
                f"kernel {self.meta.name} and a plan for adstacks: "
                "it needs one where it has adstacks, else none"
            )
        self._stacks.write(frame, plan)
        self.plan = plan
        self.rows_of(frame)[:] = [
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

    def check(self, frame: F) -> None:
        """Raise what a launch of this thread has failed with."""
        error = self._failed.pop(threading.get_ident(), None)
        if error is not None:
            raise error.with_traceback(None)

    def finish(self, buffer: memoryview) -> int:
        """Wait for a launch, look at what it left, and fetch its results: as `enter` answers."""
        try:
            if self.stream or not self.meta.results:
                self.device.sync(self.stream)
            if self.meta.results:  # which waits for the default stream
                self.read_results(buffer)
        except QuadrantsRuntimeError as error:
            return self.fail(error)
        return 0

    def flag(self, buffer: memoryview, param: int) -> int:
        """The i32 that a parameter points to, once all that was launched before has ended.

        Raises what it failed with: a loop whose tasks do nothing any more would never end.
        """
        (address,) = struct.unpack_from("<Q", buffer, self.layout.params[param])
        if self.watched:
            self.pending[self] = None
            self.device.sync(self.stream)
        elif self.stream:
            self.device.wait_for(self.stream)
        return self.device.integer(address, np.int32)

    def read_results(self, buffer: memoryview) -> None:
        """Copy the results of a launch into its host frame. Raises what failed before."""
        size = 8 * len(self.meta.results)
        part = np.frombuffer(buffer, np.uint8)[self.results_at : self.results_at + size]
        self.device.read(self.device_frame + self.results_at, part)

    def collect(self) -> None:
        """Raise what launches that have ended failed with, and tell what they report."""
        data: Array = np.empty(self.layout.stamps, np.uint8)
        self.device.fetch(self.device_frame, data)
        head = data.tobytes()
        for i, site in enumerate(self.meta.reports):
            at = self.layout.reports + abi.REPORT * i
            (count,) = struct.unpack_from("<Q", head, at)
            if count:
                from ..messages import tell_report

                self.device.set(self.device_frame + at, 0, 1, 8)
                tell_report(assertion(site, head, at + 8), count, site.loc, self.meta.name)
        (error,) = struct.unpack_from("<q", head, abi.ERROR)
        if error:
            self.device.set(self.device_frame + abi.ERROR, 0, 1, 8)
            raise self._error(error, head)

    def _error(self, error: int, head: bytes) -> Exception:
        stack = abi.stack_of_error(error)
        if stack is not None:
            full: AdStackOverflowError = stack_full(self.meta, *stack, self.plan)
            return self.diagnose(full)
        site = self.meta.asserts[error - 1]
        return QuadrantsAssertionError.from_loc(
            assertion(site, head, self.layout.failed), site.loc, kernel=self.meta.name
        )
