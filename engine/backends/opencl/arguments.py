"""Argument buffers of the OpenCL backend: what a launch packs, and what it finds afterwards.

A buffer has the layout of `kernarg.abi`. OpenCL accepts the arguments of a kernel one by one and
keeps them in the kernel's object until it is launched, so each buffer has objects of its own:
threads that launch at once do not share any. A launch sets their arguments to the buffer's values;
the device buffer and the buffer for prints never change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ..device_launch.arguments import DeviceArguments, DeviceBufferPool
from .facts import MEMORY, OpenclTask

if TYPE_CHECKING:
    from .executable import OpenclExecutable

__all__ = ["OpenclArguments", "OpenclBufferPool", "settle", "settle_idle"]


class OpenclArguments(DeviceArguments):
    """See `DeviceArguments`; a stream is a queue.

    kernels: for each task the kernel, what sets its memories, and what sets its numbers.
    """

    __slots__ = ("kernels",)

    def __init__(
        self, view: memoryview, queue: Any, device_buffer: int, kernels: list[tuple[Any, Any, Any]]
    ) -> None:
        super().__init__(view, queue, device_buffer)
        self.kernels: Final = kernels


class OpenclBufferPool(DeviceBufferPool[OpenclArguments]):
    """The argument buffers of one kernel for one stream. queue: the stream."""

    def __init__(self, executable: OpenclExecutable, stream: int = 0) -> None:
        device, meta = executable.device, executable.meta
        super().__init__(executable, stream)
        self._executable: Final = executable
        self.queue: Final = device.streams.queue(stream)
        self._memory: Final = device.buffers[self.device_buffer][0]
        self._prints: Final = device.buffers[device.prints().address][0] if meta.prints else None

    def bare(self) -> OpenclArguments:
        return self.with_kernels(self.kernels())

    def with_kernels(self, kernels: list[tuple[Any, Any, Any]]) -> OpenclArguments:
        """A fresh buffer with kernels of its own."""
        view = memoryview(bytearray(self.layout.tmp))
        return OpenclArguments(view, self.queue, self.device_buffer, kernels)

    def kernels(self) -> list[tuple[Any, Any, Any]]:
        """Kernels of the executable's program for one buffer; see `OpenclArguments`."""
        kernels: list[tuple[Any, Any, Any]] = []
        for task in self._executable.tasks:
            kernel = self._executable.kernel(task.symbol)
            kernel.set_arg(0, self._memory)
            if task.prints:
                kernel.set_arg(1, self._prints)
            settle(kernel, task, self._memory)
            kernels.append((kernel, kernel._set_arg_multi, kernel._set_arg_buf_pack_multi))
        return kernels


_NOTHING: Final = b"\0" * 8
_NO_TASK: Final = 0x7FFFFFFF


def settle(kernel: Any, task: OpenclTask, memory: Any) -> None:
    """Set the task of a kernel object. Arguments that the task does not use are ``memory`` or 0."""
    if task.number < 0:
        return
    kernel.set_arg(1 + task.prints, struct.pack("<i", task.number))
    _unused(kernel, task.rest, memory)


def settle_idle(kernel: Any, task: OpenclTask, memory: Any) -> None:
    """Set all arguments of a kernel object, but the first, so that no task of it is chosen."""
    if task.prints:
        kernel.set_arg(1, memory)
    places, at = iter(task.positions), 1 + task.prints
    given: list[tuple[int, str]] = []
    for letter, _ in task.args:
        at = next(places, at)
        given.append((at, letter))
        at += 1 + (letter == MEMORY)
    _unused(kernel, given, memory)
    settle(kernel, task._replace(number=_NO_TASK if task.number >= 0 else -1), memory)


def _unused(kernel: Any, places: Iterable[tuple[int, str]], memory: Any) -> None:
    """Set arguments that are not used to ``memory`` or 0."""
    for place, letter in places:
        if letter == MEMORY:
            kernel.set_arg(place, memory)
            kernel.set_arg(place + 1, _NOTHING)
        else:
            kernel.set_arg(place, _NOTHING[: struct.calcsize("<" + letter)])
