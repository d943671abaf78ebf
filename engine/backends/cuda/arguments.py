"""Argument buffers of the CUDA backend: what a launch packs, and what it finds afterwards.

A buffer has the layout of `kernarg.abi`. After it comes, for each task, the array of pointers that
``cuLaunchKernel`` needs: the first to the address of the device buffer, the others into the buffer.
The pointers never change, and the driver reads the values before it returns, so that a launch
writes only values, and a buffer is free again once the launch is under way.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..device_launch.arguments import DeviceArguments, DeviceBufferPool
from ..kernarg import grids

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .flow_runner import FlowRunner
    from .replay import AutoRunner

__all__ = ["CudaArguments", "CudaBufferPool"]


class CudaArguments(DeviceArguments):
    """See `DeviceArguments`. host: address of the buffer. params: of each task's pointers."""

    __slots__ = ("host", "params")

    def __init__(
        self, view: memoryview, stream: Any, device_buffer: int, host: int, params: tuple[int, ...]
    ) -> None:
        super().__init__(view, stream, device_buffer)
        self.host: Final = host
        self.params: Final = params


class CudaBufferPool(DeviceBufferPool[CudaArguments]):
    """The argument buffers of one kernel for one stream.

    runner: by which `enter` launches a buffer, where that is not plain launches.
    """

    def __init__(self, executable: CudaExecutable, stream: int = 0) -> None:
        device, meta = executable.device, executable.meta
        super().__init__(executable, stream)
        self.tasks: Final = executable.tasks
        self.handle: Final = device.driver.CUstream(stream) if stream else None
        if meta.prints:
            address = struct.pack("<Q", device.prints().address)
            device.write(self.device_buffer + grids.PRINTS, np.frombuffer(address, np.uint8))
        self.runner: AutoRunner | FlowRunner | None = None  # set by the executable

    def bare(self) -> CudaArguments:
        size = self.layout.tmp
        # A `graph` kernel finds its arguments in the device buffer.
        slots = [() if self.meta.graph else task.slots for task in self.tasks]
        raw = (ctypes.c_char * (size + 8 + 8 * sum(1 + len(s) for s in slots) + 64))()
        base = ctypes.addressof(raw)
        pad = -base % 64
        base += pad
        data = memoryview(raw).cast("B")[pad:]
        struct.pack_into("<Q", data, size, self.device_buffer)
        at = size + 8
        params: list[int] = []
        for offsets in slots:
            params.append(base + at)
            count = 1 + len(offsets)
            struct.pack_into(f"<{count}Q", data, at, base + size, *[base + o for o in offsets])
            at += 8 * count
        return CudaArguments(data[:size], self.handle, self.device_buffer, base, tuple(params))
