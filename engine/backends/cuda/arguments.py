"""Frames of the CUDA backend: what a launch packs, and what it finds afterwards.

A *host frame* has the layout of `kernarg.abi`. Behind it lie, for each task, the array of pointers
that ``cuLaunchKernel`` takes: the first to the address of the device frame, the others into the
host frame. They never change, and the driver reads the values before it returns, so that a launch
writes values and nothing else, and a frame is free again when the launch is under way.

A pool belongs to one kernel and one stream, with one *device frame*: launches on a stream
follow each other.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..device_launch.arguments import DeviceBufferPool
from ..kernarg import grids
from ..kernarg.packing import StackFrame

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .replay import Runner

__all__ = ["CudaBufferPool", "Frame"]

Frame = tuple[memoryview, Any]
"""The memory, and what `enter` takes: the memory again, the same as i32, the stream, the
address of the device frame, the address of the host frame, blocks of each task that a plan for
adstacks gives, and for each task the address of its pointers."""


class CudaBufferPool(DeviceBufferPool[Frame]):
    """Makes, fills, reads and keeps frames of one kernel for one stream.

    runner: by which `enter` launches a filled frame, where it is not plain launches.
    """

    def __init__(self, executable: CudaExecutable, stream: int = 0) -> None:
        device, meta = executable.device, executable.meta
        super().__init__(executable, stream)
        self.tasks: Final = executable.tasks
        self.graph: Final = meta.graph
        self.handle: Final = device.driver.CUstream(stream) if stream else None
        self.pointers: Final[dict[int, Any]] = {}
        if meta.prints:
            address = struct.pack("<Q", device.prints().address)
            device.write(self.device_frame + grids.PRINTS, np.frombuffer(address, np.uint8))
        self.runner: Runner | None = None  # set by the executable

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

    def rows_of(self, frame: Frame) -> list[int]:
        return frame[1][5]
