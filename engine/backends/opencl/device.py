"""An OpenCL device as a program has it: memory, waiting, and what is found out by waiting.

Everything goes to the *default queue*, which runs its commands in order, but for what users put on
streams of their own (see `queue`). Launches return at once. A kernel that can fail, report or print
leaves that in its device buffer, and the `BufferPool` of it among `OpenclDevice.pending`;
`sync`, and every copy to the host, waits and looks at these.

With ``QD_OPENCL_BLOCKING=1``, and under ``debug``, every launch waits, so that an error comes where
its cause is.

Copies go through the queue, too: one to the host waits for what was launched before; one from the
host has taken the bytes when it returns, and waits likewise, but for a few bytes.
"""

from __future__ import annotations

import gc
import os
from typing import Any, Final

import numpy as np

from ...config import CompileConfig
from ...errors import BackendUnavailableError, OpenclError, OpenclMemoryError, QuadrantsRuntimeError
from ..array_memory import Array, ArrayMemory
from ..device_launch.device import DeviceBase, Running, size_text
from ..device_launch.device_memory import DeviceMemory
from . import capabilities, hardware
from .buffer_table import BufferTable
from .context import Context, context_of, inherit
from .errors import error_of
from .queue import OpenclStreams

__all__ = ["OpenclDevice", "current", "running"]

_PATTERNS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Bytes that a fill of OpenCL can repeat."""
LARGE: Final = 1 << 20
"""Bytes from which on a buffer of a CPU is in memory of NumPy's, which requests huge pages: loops
over large arrays take half the time."""
_LINE: Final = 128
_MOST_ASIDE: Final = 256 << 20
"""Bytes of such memory that wait, freed, for kernels to end."""
_RESIDENT: Final = 2048
"""Work-items that a compute unit of a GPU holds at once, about."""
_PER_PROCESSOR: Final = 1
"""Work-items for each processor of a CPU: loops have as many chunks as there are threads, and with
more groups PoCL assigns several neighbouring ones to one thread, while the others wait."""


_programs: Final[Running[OpenclDevice]] = Running("opencl")
running: Final = _programs.last
current: Final = _programs.current


class OpenclDevice(DeviceBase[hardware.Hardware, Context, OpenclStreams]):
    """See `DeviceBase` and the module docstring.

    capabilities: what it can do, with the mapping of the program. buffers: the buffers by number.
    """

    programs = _programs
    dlpack: tuple[int, int] = (4, 0)

    def __init__(self, config: CompileConfig) -> None:
        reason = hardware.unavailable()
        if reason:
            raise BackendUnavailableError("opencl", reason)
        chosen = hardware.for_config(config)
        il = config.opencl_il
        self.capabilities: Final = hardware.mapping_of(config, chosen.capabilities, il)
        blocking = os.environ.get("QD_OPENCL_BLOCKING", "") == "1"
        super().__init__(config, chosen, context_of(chosen), blocking)
        self.cl: Final = self.context.cl
        self.queue: Final = self.new_queue()
        self.buffers: Final = BufferTable()
        self._aside: Final[list[tuple[Any, int]]] = []
        self.streams = OpenclStreams(self)
        self._ready()

    def new_queue(self) -> Any:
        """A queue that runs its commands in order."""
        return self.call("making a queue", self.context.queue)

    @property
    def max_threads(self) -> int:
        units = self.hardware.units
        coarsened = self.capabilities.mapping == capabilities.COARSENED
        return units * (_PER_PROCESSOR if coarsened else _RESIDENT)

    @property
    def shared_bytes(self) -> int:
        coarsened = self.capabilities.mapping == capabilities.COARSENED
        return 0 if coarsened else self.capabilities.local_bytes

    def groups(self, size: int) -> int:
        """Groups of ``size`` work-items that the device can hold at once."""
        return max(1, self.max_threads // size)

    # --- calls ----------------------------------------------------------------------------------

    def call(self, doing: str, function: Any, *args: Any, waits: bool = False, **named: Any) -> Any:
        """Call pyopencl. OpenclError, which says ``doing``, if it refuses.

        waits: it waits for kernels, and finds out what they failed with.
        """
        if self.context.lost is not None:
            raise self.context.lost.with_traceback(None)
        try:
            return function(*args, **named)
        except self.cl.Error as error:
            raise self.failed(error, doing, waited=waits) from None

    def failed(
        self, error: Any, doing: str, kernel: str | None = None, waited: bool = False
    ) -> OpenclError:
        """Our error for one of pyopencl, and the end of the context if it is such a one."""
        found = error_of(error, doing, kernel, waited)
        if waited and kernel is None and found.fatal:
            found.kernel, note = self._suspects()
            if note:
                found.message += note
        if found.fatal:
            self.context.lost = found
            self.pending.clear()
        return found

    # --- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> DeviceMemory:
        memory = self.room(nbytes)
        try:
            self.set(memory.address, 0, 1, max(nbytes, 1))
        except OpenclMemoryError:  # there are drivers that take memory when it is first used
            memory.free()
            raise self._out_of_memory(nbytes, "") from None
        return memory

    def room(self, nbytes: int) -> DeviceMemory:
        size = -(-max(nbytes, 1) // 16) * 16
        with self.lock:
            if self.ended or self.uses.stopped:
                raise QuadrantsRuntimeError("the program of this memory has ended")
            if size > self.hardware.largest:
                most = size_text(self.hardware.largest)
                raise self._out_of_memory(nbytes, f"it allows {most} for one array")
            if not self._fits(size):
                raise self._out_of_memory(nbytes, "device_memory_fraction allows no more")
            buffer = self._buffer(size)
            if buffer is None:  # arrays in cycles, and what kernels still use
                gc.collect()
                self.wait()
                buffer = self._buffer(size)
            if buffer is None:
                raise self._out_of_memory(nbytes, "")
            address = self.buffers.add(buffer, size)
            self.used += nbytes
            self.moved += 1
        return DeviceMemory(self, address, nbytes)

    def _buffer(self, size: int) -> Any:
        cl = self.cl
        doing, flags = f"allocating {size_text(size)}", cl.mem_flags.READ_WRITE
        try:
            if size >= LARGE and self.hardware.kind == "cpu":
                data = np.empty(size + _LINE, np.uint8)
                start = -data.ctypes.data % _LINE
                flags |= cl.mem_flags.USE_HOST_PTR
                data = data[start : start + size]
                return self.call(doing, cl.Buffer, self.context.handle, flags, hostbuf=data)
            return self.call(doing, cl.Buffer, self.context.handle, flags, size)
        except MemoryError:  # among them OpenclMemoryError
            return None

    def _out_of_memory(self, nbytes: int, why: str) -> OpenclMemoryError:
        error = OpenclMemoryError(
            f"out of memory on {self.name}: {size_text(nbytes)} asked for, of"
            f" {size_text(self.hardware.memory)} in all, {size_text(self.used)} held by this"
            " program" + (f" ({why})" if why else ""),
            hint="use smaller arrays, or free unused ones; other processes may hold memory",
        )
        error.code, error.name = -4, "MEM_OBJECT_ALLOCATION_FAILURE"
        return error

    @property
    def stack_budget(self) -> int:
        """Bytes that the heaps of adstacks may have together."""
        most = max((self.limit or self.hardware.memory) - self.used, 0)
        return min(most // 2, self.hardware.largest)

    def release(self, address: int, nbytes: int) -> None:
        self.used -= nbytes
        if nbytes >= LARGE and self.hardware.kind == "cpu" and self.alive:
            # OpenCL keeps a buffer that kernels use, but not NumPy's memory that it is in.
            self._aside.append((self.buffers.get(address), nbytes))
            self.buffers.remove(address)
            if sum(size for _, size in self._aside) > _MOST_ASIDE:
                self.wait()
            return
        self.buffers.remove(address)

    def _place(self, address: int) -> tuple[Any, int]:
        try:
            return self.buffers[address]
        except KeyError:
            raise ValueError("the memory was freed") from None

    def fetch(self, address: int, out: Array) -> None:
        if out.nbytes:
            buffer, at = self._place(address)
            doing = f"copying {size_text(out.nbytes)} to the host"
            copy = self.cl.enqueue_copy
            self.call(doing, copy, self.queue, out, buffer, src_offset=at, waits=True)

    def write(self, address: int, data: Array) -> None:
        size = data.nbytes
        if not size:
            return
        if size in _PATTERNS and self.repeat(address, data.tobytes(), size):
            return  # there is nothing to wait for
        self.moved += 1
        buffer, at = self._place(address)
        self.call(
            f"copying {size_text(size)} to the device", self.cl.enqueue_copy, self.queue, buffer,
            np.ascontiguousarray(data), dst_offset=at, waits=True,
        )  # fmt: skip

    def set(self, address: int, value: int, width: int, nbytes: int) -> None:
        self.repeat(address, value.to_bytes(width, "little"), nbytes)

    def repeat(self, address: int, pattern: bytes, nbytes: int) -> bool:
        if address % len(pattern):
            return False
        self.moved += 1
        buffer, at = self._place(address)
        if not nbytes % 16 and not at % 16 and len(pattern) < 16:  # drivers are fast at this size
            pattern *= 16 // len(pattern)
        self.call("setting memory", self.fill, self.queue, buffer, pattern, at, nbytes)
        return True

    @property
    def fill(self) -> Any:
        """The function that fills a buffer on a queue."""
        return self.cl.enqueue_fill_buffer

    def copy(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.moved += 1
            if to == source:
                return
            (target, at), (origin, begin) = self._place(to), self._place(source)
            if target is origin and abs(to - source) < nbytes:  # which OpenCL refuses
                aside = self.room(nbytes)
                self.copy(aside.address, source, nbytes)
                self.copy(to, aside.address, nbytes)
                return
            self.call(
                "copying on the device", self.cl.enqueue_copy, self.queue, target, origin,
                byte_count=nbytes, src_offset=begin, dst_offset=at,
            )  # fmt: skip

    def holds(self, address: int) -> bool:
        return False

    def borrow(self, address: int, nbytes: int, owner: Any) -> ArrayMemory:
        raise ValueError("memory of OpenCL has no address by which others could share it")

    # --- waiting --------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait for the default queue. Looks at no device buffer."""
        self.wait_for(0)

    def wait_for(self, stream: int) -> None:
        aside = 0 if stream else len(self._aside)
        queues = self.streams.queues() if aside else [self.streams.queue(stream)]
        for queue in queues:
            self.call("waiting for kernels", queue.finish, waits=True)
        del self._aside[:aside]

    def stream_ends(self, stream: int) -> None:
        """A stream is about to be released: `sync` finds what is pending on it."""
        pending = self._pending.pop(stream, None)
        if pending and self.alive:
            self.wait_for(stream)
            self.pending.update(pending)

    def forked(self) -> None:
        super().forked()
        inherit((self.queue, dict(self.buffers), self.streams))
