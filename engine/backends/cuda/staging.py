"""Pinned memory through which copies between host and device go.

The device reads and writes pinned memory at the full rate of the bus and concurrently with other
work; copies of other host memory go through a buffer of the driver, one part at a time. Two chunks
alternate: while the device uses one, the host uses the other. Where no memory can be pinned, copies
are left to the driver.

A small read, such as the results of a kernel, goes through a smaller chunk of its own: a copy by
the driver is a third slower, and three times as slow where the host's caches hold other data.
A small write is left to the driver, which puts the bytes into the command itself.

One thread uses the chunks at a time. A thread that finds them in use leaves its copy to the driver
and does not wait: it might wait for kernels that another thread's copy waits for, or for itself,
where a signal handler or a finalizer that runs within a copy makes a copy, too.

A write is complete for the caller when its bytes are in a chunk: the device reads them in the order
of the stream. A read is complete when the bytes are in ``out``.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Final

import numpy as np

from .driver import check
from .errors import code_of

__all__ = ["CHUNK", "Staging"]

Array = np.ndarray[Any, Any]

CHUNK: Final = 4 << 20
"""Bytes of a chunk."""
SMALL: Final = 64 << 10
"""Size in bytes up to which writes are left to the driver, and reads use one small chunk."""
_NO_TIMING: Final = 2


class _Chunk:
    """address: of the pinned memory. data: as an array. event: after its last copy."""

    def __init__(self, driver: Any, nbytes: int) -> None:
        self.address: Final = int(check(driver.cuMemHostAlloc(nbytes, 1), "pinning host memory"))
        raw: Any = (ctypes.c_uint8 * nbytes).from_address(self.address)
        self.data: Final[Array] = np.frombuffer(raw, np.uint8)
        self.event: Final = check(driver.cuEventCreate(_NO_TIMING))
        self.busy = False

    def wait(self, driver: Any) -> None:
        if self.busy:
            self.busy = False
            check(driver.cuEventSynchronize(self.event), "waiting for a copy")

    def used(self, driver: Any) -> None:
        check(driver.cuEventRecord(self.event, None), "copying")
        self.busy = True


class Staging:
    """See the module docstring. Its callers have made the context current."""

    def __init__(self, driver: Any) -> None:
        self.driver: Final = driver
        self._made: Final[dict[int, list[_Chunk]]] = {}
        self._lock: Final = threading.Lock()

    def _chunks(self, count: int, nbytes: int) -> list[_Chunk]:
        """``count`` chunks of a size, made at the first call; empty if no memory may be pinned."""
        found = self._made.get(nbytes)
        if found is None:
            from ...errors import CudaError

            try:
                found = [_Chunk(self.driver, nbytes) for _ in range(count)]
            except CudaError as error:
                if error.fatal:
                    raise
                found = []
            self._made[nbytes] = found
        return found

    def write(self, address: int, data: Array) -> None:
        """Copy the bytes of ``data``, flat ``u8``, to the device."""
        driver, size = self.driver, data.nbytes
        if size > SMALL and self._lock.acquire(blocking=False):
            try:
                if self._write(address, data):
                    return
            finally:
                self._lock.release()
        # From memory that is not pinned the driver has taken the bytes when this returns.
        result = driver.cuMemcpyHtoDAsync(address, data.ctypes.data, size, None)
        check(result, f"copying {size} bytes to the device")

    def _write(self, address: int, data: Array) -> bool:
        """Copy through the chunks; False, and nothing done, if there are none."""
        driver, chunks = self.driver, self._chunks(2, CHUNK)
        if not chunks:
            return False
        for k, at in enumerate(range(0, data.nbytes, CHUNK)):
            chunk, part = chunks[k % 2], data[at : at + CHUNK]
            chunk.wait(driver)
            chunk.data[: part.nbytes] = part
            result = driver.cuMemcpyHtoDAsync(address + at, chunk.address, part.nbytes, None)
            check(result, f"copying {data.nbytes} bytes to the device")
            chunk.used(driver)
        return True

    def read(self, address: int, out: Array) -> int:
        """Copy bytes of the device to ``out``, flat ``u8``. The code of the driver, 0 for success.

        The first wait returns the code of a kernel that has failed; the caller interprets it.
        """
        size = out.nbytes
        if self._lock.acquire(blocking=False):
            try:
                if size <= SMALL:
                    for chunk in self._chunks(1, SMALL):
                        code = self._arrives(chunk.address, address, size)
                        if not code:
                            out[...] = chunk.data[:size]
                        return code
                elif chunks := self._chunks(2, CHUNK):
                    return self._read(chunks, address, out)
            finally:
                self._lock.release()
        return self._arrives(out.ctypes.data, address, size)

    def _arrives(self, to: int, address: int, size: int) -> int:
        """Copy to an address of the host, and wait for that."""
        code = code_of(self.driver.cuMemcpyDtoHAsync(to, address, size, None))
        return code or code_of(self.driver.cuStreamSynchronize(None))

    def _read(self, chunks: list[_Chunk], address: int, out: Array) -> int:
        driver = self.driver
        waiting: list[tuple[_Chunk, Array]] = []
        for k, at in enumerate(range(0, out.nbytes, CHUNK)):
            chunk, part = chunks[k % 2], out[at : at + CHUNK]
            if len(waiting) == 2:
                code = self._arrived(*waiting.pop(0))
                if code:
                    return code
            chunk.wait(driver)
            code = code_of(driver.cuMemcpyDtoHAsync(chunk.address, address + at, part.nbytes, None))
            if code:
                return code
            chunk.used(driver)
            waiting.append((chunk, part))
        for chunk, part in waiting:
            code = self._arrived(chunk, part)
            if code:
                return code
        return 0

    def _arrived(self, chunk: _Chunk, part: Array) -> int:
        chunk.busy = False
        code = code_of(self.driver.cuEventSynchronize(chunk.event))
        if not code:
            part[...] = chunk.data[: part.nbytes]
        return code
