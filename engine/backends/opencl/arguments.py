"""Frames of the OpenCL backend: what a launch packs, and what it finds afterwards.

A *host frame* has the layout of `kernarg.abi`. OpenCL takes arguments of a kernel one by one and
keeps them in the kernel's object until it is launched, so that each frame has objects of its own:
threads that launch at once do not share any. A launch gives them what the host frame says; the
device frame and the buffer for prints never change.

A pool belongs to one kernel and one stream, with one *device frame*: launches on a stream
follow each other.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from ..device_launch.arguments import DeviceBufferPool
from ..kernarg.packing import StackFrame
from .facts import MEMORY, OpenclTask

if TYPE_CHECKING:
    from .executable import OpenclExecutable

__all__ = ["Frame", "OpenclBufferPool", "settle"]

Frame = tuple[memoryview, Any]
"""The memory, and what `enter` takes: the memory again, the same as i32, the queue,
groups of each task that a plan for adstacks gives, and for each task the kernel, what sets its
memories and what sets its numbers."""


class OpenclBufferPool(DeviceBufferPool[Frame]):
    """Makes, fills, reads and keeps frames of one kernel for one stream. queue: the stream."""

    def __init__(self, executable: OpenclExecutable, stream: int = 0) -> None:
        device, meta = executable.device, executable.meta
        super().__init__(executable, stream)
        self._executable: Final = executable
        self.queue: Final = device.streams.queue(stream)
        self._fixed: Final = [device.places[self.device_frame][0]]
        self._prints: Final = device.places[device.prints().address][0] if meta.prints else None

    def bare(self) -> Frame:
        view = memoryview(bytearray(self.layout.tmp))
        pointer: list[Any] = [view, view.cast("i"), self.queue, []]
        for task in self._executable.tasks:
            kernel = self._executable.kernel(task.symbol)
            kernel.set_arg(0, self._fixed[0])
            if task.prints:
                kernel.set_arg(1, self._prints)
            settle(kernel, task, self._fixed[0])
            pointer += [kernel, kernel._set_arg_multi, kernel._set_arg_buf_pack_multi]
        frame = view, tuple(pointer)
        return StackFrame(frame) if self.stacked else frame

    def rows_of(self, frame: Frame) -> list[int]:
        return frame[1][3]


_NOTHING: Final = b"\0" * 8


def settle(kernel: Any, task: OpenclTask, memory: Any) -> None:
    """Tell a kernel object which task it is. What that has no use for is ``memory`` or 0."""
    if task.number < 0:
        return
    kernel.set_arg(1 + task.prints, struct.pack("<i", task.number))
    for place, letter in task.rest:
        if letter == MEMORY:
            kernel.set_arg(place, memory)
            kernel.set_arg(place + 1, _NOTHING)
        else:
            kernel.set_arg(place, _NOTHING[: struct.calcsize("<" + letter)])
