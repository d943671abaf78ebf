"""A program's CUDA device: memory, waiting, and the errors, reports and prints that waits find.

Everything goes to the *legacy default stream*: it is torch's default as well, so that work of both
is in order without events. Streams that users create are not ordered with it (see `streams`).

Launches return at once. A kernel that can fail, report or print writes that to its device buffer,
and the launch adds its `DeviceBufferPool` to `CudaDevice.pending`; `sync`, and every copy to the
host, waits and looks at these (`_look`). With ``CUDA_LAUNCH_BLOCKING=1``, and under ``debug``,
every launch does.

Memory comes from a pool of the program's own. What is freed stays in it for later arrays up to
`device_memory_GB` (or `device_memory_fraction` of the device, which is also the most that a program
may have); beyond that it goes back to the device at the next wait.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ...config import CompileConfig
from ...errors import BackendUnavailableError, CudaError, QuadrantsRuntimeError
from ...ir.attrs import GPU_STACK
from ..array_memory import Array
from ..device_launch.device import DeviceBase, Running, size_text
from ..device_launch.device_memory import BorrowedMemory, DeviceMemory
from . import archs, errors, hardware
from .context import Context, context_of
from .driver import check, name_of
from .errors import code_of
from .stream_stall import StreamStall
from .streams import CudaStreams

if TYPE_CHECKING:
    from ..device_launch.arguments import DeviceBufferPool
    from .code import Code

__all__ = ["CudaDevice", "arch", "current", "running"]

_KERNELS: Final = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})
"""Codes that report the failure of a kernel that was launched before the call returning them."""

_programs: Final[Running[CudaDevice]] = Running("cuda")
running: Final = _programs.last
current: Final = _programs.current


class CudaDevice(DeviceBase[hardware.Hardware, Context, CudaStreams]):
    """See `DeviceBase` and the module docstring.

    code: modules by the PTX they were loaded from. ahead: modules that were loaded before a call
    needed them. doomed: modules that are no longer used, and
    spent: events likewise, until all that was launched has ended.
    """

    programs = _programs

    def __init__(self, config: CompileConfig) -> None:
        reason = hardware.unavailable()
        if reason:
            raise BackendUnavailableError("cuda", reason)
        chosen = hardware.chosen()
        blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "") == "1"
        super().__init__(config, chosen, context_of(chosen), blocking)
        self.number: Final = self.hardware.number
        self.driver: Final = self.context.driver
        self._kept: Final = self.limit or int(config.device_memory_GB * (1 << 30))
        self.code: Final[weakref.WeakValueDictionary[Any, Code]] = weakref.WeakValueDictionary()
        self._counting: Final = threading.Lock()
        self._awaited = 0
        self._needed = 0.0
        self.ahead: Final[list[Code]] = []
        self.doomed: Final[list[Any]] = []
        self.spent: Final[list[Any]] = []
        self.cc: Final = self.hardware.capability
        self.dlpack: tuple[int, int] = (2, self.number)
        self.max_threads: Final = self.hardware.processors * self.hardware.resident
        self.shared_bytes: Final = archs.ARCHS[archs.of_capability(*self.cc)].block_shared
        self.driver_version: Final = int(check(self.driver.cuDriverGetVersion()))
        self._pool: Any = None
        self._deep = False
        self._stall: StreamStall | None = None
        self._can_stall = True
        with self.context.active():
            if self.hardware.pools:
                self._pool = self._keep(self.context.pool())
            if config.cuda_stack_limit:
                limit = self.driver.CUlimit.CU_LIMIT_STACK_SIZE
                check(
                    self.driver.cuCtxSetLimit(limit, config.cuda_stack_limit),
                    f"setting cuda_stack_limit={config.cuda_stack_limit}",
                )
        self.streams = CudaStreams(self)
        self._ready()

    @contextmanager
    def awaited(self) -> Generator[None]:
        """Within it a call waits for code."""
        with self._counting:
            self._awaited += 1
        try:
            yield
        finally:
            with self._counting:
                self._awaited -= 1
            self.expects_code()

    def expects_code(self) -> None:
        """Note that a call is about to wait for code."""
        self._needed = monotonic()

    def is_quiet(self, seconds: float) -> bool:
        """True if no call has waited for code for so long."""
        return not self._awaited and monotonic() - self._needed >= seconds

    def deepen(self) -> None:
        """Set the threads' stack size for recursive functions, unless an option sets it."""
        if self.config.cuda_stack_limit or self._deep:
            return
        self._deep = True
        driver = self.driver
        with self.context.active():
            limit = driver.CUlimit.CU_LIMIT_STACK_SIZE
            check(driver.cuCtxSetLimit(limit, GPU_STACK), "making room for recursion")

    def _keep(self, pool: Any) -> Any:
        """Let a pool keep as much freed memory as this program may."""
        which = self.driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        check(self.driver.cuMemPoolSetAttribute(pool, which, self.driver.cuuint64_t(self._kept)))
        return pool

    # --- calls ----------------------------------------------------------------------------------

    def call(self, doing: str, function: str, *args: Any) -> Any:
        """Call the driver in this context. CudaError, which says ``doing``, if it refuses."""
        with self.context.active():
            result = getattr(self.driver, function)(*args)
        if code_of(result):
            raise self.failed(code_of(result), doing)
        return result[1] if len(result) == 2 else result[1:] or None

    def failed(self, code: int, doing: str, kernel: str | None = None) -> CudaError:
        """The error for a code; a fatal one also ends the context."""
        if code in errors.FOREIGN and self.context.lost is None and not self.context.still_there():
            code = errors.DESTROYED
        error = errors.error_of(code, doing, *name_of(code, self.driver), kernel=kernel)
        if error.fatal:
            self.context.lose(error)
        return error

    def context_lost(self, error: CudaError) -> None:
        """Name in an error, which ends the context, the kernel that has caused it.

        The driver reports the failure of a kernel at any later call, often the launch of another
        one: kernels that were launched before and not waited for come first.
        """
        if error.code in _KERNELS:
            kernel, note = self._suspects()
            if kernel or note:
                error.kernel = kernel
                error.message += note
        for pending in self._pending.values():
            pending.clear()

    # --- memory ---------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> DeviceMemory:
        memory = self.room(nbytes)
        if nbytes:
            self.set(memory.address, 0, 1, nbytes)
        return memory

    def room(self, nbytes: int) -> DeviceMemory:
        size = max(nbytes, 1)
        with self.lock:
            if self.ended or self.uses.stopped:
                raise QuadrantsRuntimeError("the program of this memory has ended")
            if not self._fits(size):
                raise self._out_of_memory(nbytes, "device_memory_fraction allows no more")
            address = self._take(size)
            if not address:
                # Arrays in cycles, and what the pool of this program or others keep.
                gc.collect()
                self.wait("freeing memory")
                self.trim()
                address = self._take(size)
            if not address:
                raise self._out_of_memory(nbytes, "")
            self.used += nbytes
            self.moved += 1
        return DeviceMemory(self, address, nbytes)

    @property
    def stack_budget(self) -> int:
        """Bytes that the heaps of adstacks may have together."""
        free, _ = self.call("asking for free memory", "cuMemGetInfo")
        most = int(free) if not self.limit else min(int(free), max(self.limit - self.used, 0))
        return most * 3 // 4

    def _take(self, size: int) -> int:
        driver = self.driver
        with self.context.active():
            if self._pool is None:
                result = driver.cuMemAlloc(size)
            else:
                result = driver.cuMemAllocFromPoolAsync(size, self._pool, None)
        code = code_of(result)
        if code == errors.OUT_OF_MEMORY:
            return 0
        if code:
            raise self.failed(code, f"allocating {size_text(size)}")
        return int(result[1])

    def _out_of_memory(self, nbytes: int, why: str) -> CudaError:
        free, total = self.call("asking for free memory", "cuMemGetInfo")
        error = errors.error_of(errors.OUT_OF_MEMORY, "", "CUDA_ERROR_OUT_OF_MEMORY")
        if self.limit:
            why = why or f"device_memory_fraction allows {size_text(self.limit)}"
        message = (
            f"out of memory on {self.name}: {size_text(nbytes)} asked for,"
            f" {size_text(int(free))} of {size_text(int(total))} free,"
            f" {size_text(self.used)} held by this program" + (f" ({why})" if why else "")
        )
        error.message = message
        error.hint = "use smaller arrays, or free unused ones; other processes may hold memory"
        return error

    def release(self, address: int, nbytes: int) -> None:
        self.used -= nbytes
        if self.context.lost is not None:
            return
        driver = self.driver
        with suppress(CudaError), self.context.active():  # the next wait reports errors
            self._await_streams()
            if self._pool is None:
                code = code_of(driver.cuMemFree(address))
            else:
                code = code_of(driver.cuMemFreeAsync(address, None))
            if code and not self.ended:
                self.failed(code, "freeing memory")

    def _await_streams(self) -> None:
        """Let the default stream wait for kernels on others, which may use what is now freed."""
        driver = self.driver
        for stream, pending in list(self._pending.items()):
            if stream and pending:
                event = check(driver.cuEventCreate(2), "ordering streams")
                driver.cuEventRecord(event, driver.CUstream(stream))
                driver.cuStreamWaitEvent(None, event, 0)
                driver.cuEventDestroy(event)

    def trim(self) -> None:
        """Return the unused memory of the pool to the device."""
        if self._pool is not None:
            self.call("trimming the memory pool", "cuMemPoolTrimTo", self._pool, 0)

    def fetch(self, address: int, out: Array) -> None:
        if out.nbytes:
            with self.context.active():
                code = self._staged(lambda: self.context.staging.read(address, out))
            if code:
                raise self.failed(code, f"copying {size_text(out.nbytes)} to the host")

    def write(self, address: int, data: Array) -> None:
        size = data.nbytes
        if size in (1, 2, 4) and not address % size:  # half the time of a copy
            self.set(address, int.from_bytes(data.tobytes(), "little"), size, size)
        elif size:
            self.moved += 1
            with self.context.active():
                self._staged(lambda: self.context.staging.write(address, data))

    def _staged(self, copy: Any) -> Any:
        try:
            return copy()
        except CudaError as error:
            raise self.failed(error.code, "copying") from None

    def set(self, address: int, value: int, width: int, nbytes: int) -> None:
        self.moved += 1
        function = {1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async"}[width]
        self.call("setting memory", function, address, value, nbytes // width, None)

    def repeat(self, address: int, pattern: bytes, nbytes: int) -> bool:
        narrow = pattern
        while len(narrow) > 1 and narrow[: len(narrow) // 2] * 2 == narrow:
            narrow = narrow[: len(narrow) // 2]
        width = len(narrow)
        if width not in (1, 2, 4) or address % width:
            return False
        self.set(address, int.from_bytes(narrow, "little"), width, nbytes)
        return True

    def copy(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.moved += 1
            self.call("copying on the device", "cuMemcpyDtoDAsync", to, source, nbytes, None)

    def holds(self, address: int) -> bool:
        """True if ``address`` is in memory of this device, even if another library allocated it."""
        which = self.driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        with self.context.active():
            result = self.driver.cuPointerGetAttribute(which, address)
        return not code_of(result) and int(result[1]) == self.number

    def borrow(self, address: int, nbytes: int, owner: Any) -> DeviceMemory:
        return BorrowedMemory(self, address, nbytes, owner)

    # --- waiting --------------------------------------------------------------------------------

    def wait(self, doing: str = "waiting for kernels", stream: Any = None) -> None:
        """Wait for the default stream, or the one given. Looks at no device buffer."""
        with self.context.active():
            code = code_of(self.driver.cuStreamSynchronize(stream))
        if code:
            raise self.failed(code, doing)

    def wait_for(self, stream: int) -> None:
        self.wait(stream=self.driver.CUstream(stream) if stream else None)

    def hold(self, us: float) -> bool:
        """Stall the default stream for ``us`` microseconds; see `stream_stall`.

        False, and nothing done, if the driver does not accept the code for it.
        """
        if self._stall is None and self._can_stall:
            try:
                self._stall = StreamStall(self)
            except CudaError as error:
                if error.fatal:
                    raise
                self._can_stall = False
        if self._stall is not None:
            self._stall.stall(us)
        return self._can_stall

    def stream_ends(self, stream: int) -> None:
        """A stream is about to be destroyed: what is pending on it is found by `sync`."""
        pending = self._pending.get(stream)
        if pending and self.alive:
            with self.context.active():
                self._await_streams()
            self.pending.update(pending)
            pending.clear()

    def _look(self, pools: list[DeviceBufferPool[Any]]) -> None:
        if (self.doomed or self.spent) and not any(self._pending.values()):
            self.unload()
        super()._look(pools)

    def unload(self) -> None:
        """Unload modules and free events that are no longer used; all launches have ended."""
        while self.doomed:
            self.call("unloading code", "cuModuleUnload", self.doomed.pop())
        while self.spent:
            self.call("freeing an event", "cuEventDestroy", self.spent.pop())

    def forked(self) -> None:
        super().forked()
        self.doomed.clear()

    def end(self) -> None:
        if self.ended:
            return
        super().end()
        self.ahead.clear()
        if self.context.lost is None:
            self.unload()
            self.trim()
        self.doomed.clear()

    def clock_rate(self) -> int:
        """The nominal rate of the processors, in kHz."""
        return hardware.clock_rate(self.number)


def arch() -> str:
    """The architecture of the program's device, or the one it would get, or `archs.DEFAULT`."""
    device = running()
    if device is not None:  # each compile asks: nothing is asked of the driver
        return device.hardware.arch
    return archs.DEFAULT if hardware.unavailable() else hardware.chosen().arch
