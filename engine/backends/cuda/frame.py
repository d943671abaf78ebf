"""Frames of the CUDA backend: what a launch packs, and what it finds afterwards.

A *host frame* has the layout of `frame.abi`. Behind it lie, for each task, the array of pointers
that ``cuLaunchKernel`` takes: the first to the address of the device frame, the others into the
host frame. They never change, and the driver reads the values before it returns, so that a launch
writes values and nothing else, and a frame is free again when the launch is under way.

A `FramePool` belongs to one kernel and one stream, with one *device frame*: launches on a stream
follow each other.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import AdStackOverflowError, QuadrantsAssertionError, QuadrantsInternalError
from ..base import StackPlan
from ..frame import abi, grids
from ..frame.packing import (
    FieldFrames,
    StackFrame,
    assertion,
    packer,
    params_of,
    stack_full,
    unpacker,
)
from ..frame.rows import StackWriter
from ..memory import Array, DeviceArray

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .replay import Runner

__all__ = ["Frame", "FramePool"]

Frame = tuple[memoryview, Any]
"""The memory, and what `FramePool.enter` takes: the memory again, the same as i32, the stream, the
address of the device frame, the address of the host frame, blocks of each task that a plan for
adstacks gives, and for each task the address of its pointers."""


class FramePool(FieldFrames[Frame]):
    """Makes, fills, reads and keeps frames of one kernel for one stream.

    free, start, pack, unpack, results_at, stacked, take, give, new, bind_fields, write_stacks:
    as those of the CPU's pool. stream: handle of the stream; 0 for the default one. device_frame:
    address. watched: there is something to look at after a launch. enter: launches a filled frame.
    runner: by which `enter` does so, where it is not plain launches.
    pending: where this is noted after a launch.
    """

    def __init__(self, executable: CudaExecutable, stream: int = 0) -> None:
        device, layout, meta = executable.device, executable.layout, executable.meta
        super().__init__(meta, layout)
        self.device: Final = device
        self.tasks: Final = executable.tasks
        self.graph: Final = meta.graph
        self.stream: Final = stream
        self.handle: Final = device.driver.CUstream(stream) if stream else None
        self.pending: Final = device.launched_on(stream)
        self.watched: Final = bool(meta.asserts or meta.reports or meta.prints or meta.has_stacks)
        self.start: Final = abi.SEED if meta.seeded else abi.PARAMS
        self.pack: Final = packer(meta).pack_into
        self.stacked: Final = meta.has_stacks
        self._stacks: Final = StackWriter(meta, layout, 0) if self.stacked else None
        self.plan: StackPlan | None = None
        self._failed: Final[dict[int, Exception]] = {}
        self.pointers: Final[dict[int, Any]] = {}
        self.results_at: Final = layout.results
        self.unpack: Final = unpacker(meta.results).unpack_from
        self._memory: Final = device.allocate(layout.size)
        self.device_frame: Final = self._memory.address
        if meta.prints:
            address = struct.pack("<Q", device.prints().address)
            device.write(self.device_frame + grids.PRINTS, np.frombuffer(address, np.uint8))
        self.diagnose = executable.diagnosed
        self.runner: Runner | None = None
        self.enter: Any = None  # both set by the executable

    def bare(self) -> Frame:
        size = self.layout.tmp
        counts = [1 + (0 if self.graph else len(task.slots)) for task in self.tasks]
        raw = (ctypes.c_char * (size + 8 + 8 * sum(counts) + 64))()
        base = ctypes.addressof(raw)
        pad = -base % 64
        base += pad
        data = memoryview(raw).cast("B")[pad:]
        view = data[:size]
        struct.pack_into("<Q", data, size, self.device_frame)
        at = size + 8
        params: list[int] = []
        for task, count in zip(self.tasks, counts, strict=True):
            params.append(base + at)
            places = (size, *task.slots)[:count]
            struct.pack_into(f"<{count}Q", data, at, *[base + place for place in places])
            at += 8 * count
        rows: list[int] = []
        pointer = (view, view.cast("i"), self.handle, self.device_frame, base, rows, *params)
        self.pointers[id(view)] = pointer
        frame = view, pointer
        return StackFrame(frame) if self.stacked else frame

    def write_stacks(self, frame: Frame, plan: StackPlan | None) -> None:
        """Let launches with ``frame``, of a kernel with adstacks, use this plan."""
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
        rows: list[int] = frame[1][5]
        rows[:] = [
            0 if given is None else max(1, given.integer_rows // task.block_dim)
            for task, given in zip(self.tasks, plan.tasks, strict=True)
        ]

    def values(self, arguments: Sequence[Any], seed: int) -> tuple[list[Any], list[int]]:
        """What `pack` and what `take` want for canonical arguments in memory of the device."""
        addresses = [value.address if isinstance(value, DeviceArray) else 0 for value in arguments]
        return params_of(self.meta, arguments, addresses, seed)

    # --- after a launch -------------------------------------------------------------------------

    def fail(self, error: Exception) -> int:
        """Keep an error for `check` in this thread."""
        self._failed[threading.get_ident()] = error
        return abi.ASSERTED

    def check(self, frame: Frame) -> None:
        """Raise what a launch of this thread has failed with."""
        error = self._failed.pop(threading.get_ident(), None)
        if error is not None:
            raise error.with_traceback(None)

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
