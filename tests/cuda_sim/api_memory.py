"""The functions of the simulated driver for memory: rooms, copies, fills."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import driver as real

from .api import HANDLE, INVALID, UNSUPPORTED, Refused, api, number
from .heap import Room
from .state import Context, Died, Result, state
from .work import Stream

__all__ = ["alive", "fill", "host_address", "on_device", "stream_of"]


def stream_of(here: Context, handle: Any) -> Stream:
    """The stream of a handle; 0, None and 1 are the legacy default stream."""
    found = here.streams.get({1: 0}.get(number(handle), number(handle)))
    if found is None:
        raise Refused(HANDLE)
    return found


def _allocate(here: Context, nbytes: int, pinned: bool = False) -> Room:
    if nbytes <= 0:
        raise Refused(INVALID)
    try:
        return here.heap.allocate(nbytes, pinned)
    except MemoryError:
        pass
    here.queue.finish()  # frees what was given back in the order of a stream
    try:
        return here.heap.allocate(nbytes, pinned)
    except MemoryError:
        raise Refused(Result.CUDA_ERROR_OUT_OF_MEMORY) from None


def _room(here: Context, address: Any) -> Room:
    room = here.heap.rooms.get(number(address))
    if room is None or not room.alive:
        raise Refused(INVALID)
    return room


@api(values=2)
def cuMemGetInfo(here: Context) -> tuple[int, int]:
    return here.heap.free, here.heap.total


@api(values=1)
def cuMemAlloc(here: Context, nbytes: int) -> Any:
    return real.CUdeviceptr(_allocate(here, nbytes).address)


@api()
def cuMemFree(here: Context, address: Any) -> None:
    if number(address):
        room = _room(here, address)
        here.queue.finish()
        here.heap.release(room)


@api(values=1)
def cuMemAllocAsync(here: Context, nbytes: int, stream: Any) -> Any:
    stream_of(here, stream)
    return real.CUdeviceptr(_allocate(here, nbytes).address)


@api()
def cuMemFreeAsync(here: Context, address: Any, stream: Any) -> None:
    room = _room(here, address)
    if room.pinned:
        raise Refused(INVALID)

    def free() -> None:
        if room.alive:
            here.heap.release(room)

    here.queue.put(stream_of(here, stream), free)


@api(values=1)
def cuMemHostAlloc(here: Context, nbytes: int, flags: int) -> int:
    return _allocate(here, nbytes, pinned=True).address


@api(values=1)
def cuMemAllocHost(here: Context, nbytes: int) -> int:
    return _allocate(here, nbytes, pinned=True).address


@api()
def cuMemFreeHost(here: Context, address: Any) -> None:
    room = _room(here, address)
    if not room.pinned:
        raise Refused(INVALID)
    here.queue.finish()
    here.heap.release(room)


@api(values=1)
def cuMemHostGetDevicePointer(here: Context, address: Any, flags: int) -> Any:
    return real.CUdeviceptr(_room(here, address).address)


@api(values=1)
def cuDeviceGetDefaultMemPool(here: Context, device: Any) -> Any:
    return real.CUmemoryPool(0x700)


@api(values=1)
def cuMemPoolCreate(here: Context, wanted: Any) -> Any:
    return real.CUmemoryPool(state.number())


@api()
def cuMemPoolDestroy(here: Context, pool: Any) -> None:
    pass


@api()
def cuMemPoolSetAttribute(here: Context, pool: Any, attribute: Any, value: Any) -> None:
    real.CUmemPool_attribute(attribute)


@api(values=1)
def cuMemPoolGetAttribute(here: Context, pool: Any, attribute: Any) -> Any:
    name = real.CUmemPool_attribute(attribute).name
    return real.cuuint64_t(here.heap.used if "CURRENT" in name else here.heap.peak)


@api()
def cuMemPoolTrimTo(here: Context, pool: Any, least: int) -> None:
    pass


@api(values=1)
def cuMemAllocFromPoolAsync(here: Context, nbytes: int, pool: Any, stream: Any) -> Any:
    stream_of(here, stream)
    return real.CUdeviceptr(_allocate(here, nbytes).address)


@api(values=1)
def cuPointerGetAttribute(here: Context, attribute: Any, address: Any) -> Any:
    room = here.heap.find(number(address))
    if room is None or not room.alive:
        raise Refused(INVALID)
    name = real.CUpointer_attribute(attribute).name.removeprefix("CU_POINTER_ATTRIBUTE_")
    if name == "MEMORY_TYPE":
        kinds = real.CUmemorytype
        return kinds.CU_MEMORYTYPE_HOST if room.pinned else kinds.CU_MEMORYTYPE_DEVICE
    answers = {
        "CONTEXT": real.CUcontext(here.number), "DEVICE_POINTER": real.CUdeviceptr(number(address)),
        "DEVICE_ORDINAL": 0, "RANGE_START_ADDR": real.CUdeviceptr(room.address),
        "RANGE_SIZE": room.nbytes, "IS_MANAGED": False,
    }  # fmt: skip
    if name not in answers:
        raise Refused(UNSUPPORTED)
    return answers[name]


def host_address(where: Any) -> int:
    """The address of memory of the host: a number, or what has a buffer."""
    if isinstance(where, int):
        return where
    if isinstance(where, np.ndarray):
        return where.ctypes.data
    if isinstance(where, bytes):
        return ctypes.cast(ctypes.c_char_p(where), ctypes.c_void_p).value or 0
    if where is None:
        return 0
    view = memoryview(where)
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def on_device(here: Context, address: Any, nbytes: int) -> int:
    """An address at which the device has so many bytes."""
    where = number(address)
    if nbytes and not here.heap.holds(where, nbytes):
        raise Refused(INVALID)
    return where


def alive(here: Context, *ranges: tuple[int, int]) -> None:
    """Kill the context if the device has not all of these bytes."""
    for address, nbytes in ranges:
        if nbytes and not here.heap.holds(address, nbytes):
            raise Died(Result.CUDA_ERROR_ILLEGAL_ADDRESS)


def _copy(here: Context, to: int, source: int, nbytes: int, stream: Stream, *there: int) -> None:
    """Copy when its turn comes. there: which of the addresses are the device's."""

    def run() -> None:
        if here.dead is None:
            alive(here, *[(a, nbytes) for a in there])
            ctypes.memmove(to, source, nbytes)

    here.queue.put(stream, run)


def _to_device(here: Context, to: Any, source: Any, nbytes: int, stream: Stream) -> None:
    target, start = on_device(here, to, nbytes), host_address(source)
    room = here.heap.find(start)
    if room is not None and room.pinned:
        _copy(here, target, start, nbytes, stream, target)
        return
    data = ctypes.string_at(start, nbytes)  # the driver stages what is not pinned

    def run() -> None:
        if here.dead is None:
            alive(here, (target, nbytes))
            ctypes.memmove(target, data, nbytes)

    here.queue.put(stream, run)


def _to_host(here: Context, to: Any, source: Any, nbytes: int, stream: Stream) -> None:
    start, target = on_device(here, source, nbytes), host_address(to)
    _copy(here, target, start, nbytes, stream, start)
    room = here.heap.find(target)
    if room is None or not room.pinned:
        here.queue.finish(stream)


@api()
def cuMemcpyHtoD(here: Context, to: Any, source: Any, nbytes: int) -> None:
    _to_device(here, to, source, nbytes, here.queue.default)
    here.queue.finish(here.queue.default)


@api()
def cuMemcpyDtoH(here: Context, to: Any, source: Any, nbytes: int) -> None:
    _to_host(here, to, source, nbytes, here.queue.default)
    here.queue.finish(here.queue.default)


@api()
def cuMemcpyHtoDAsync(here: Context, to: Any, source: Any, nbytes: int, stream: Any) -> None:
    _to_device(here, to, source, nbytes, stream_of(here, stream))


@api()
def cuMemcpyDtoHAsync(here: Context, to: Any, source: Any, nbytes: int, stream: Any) -> None:
    _to_host(here, to, source, nbytes, stream_of(here, stream))


@api()
def cuMemcpyDtoDAsync(here: Context, to: Any, source: Any, nbytes: int, stream: Any) -> None:
    target, start = on_device(here, to, nbytes), on_device(here, source, nbytes)
    _copy(here, target, start, nbytes, stream_of(here, stream), target, start)


@api()
def cuMemcpyDtoD(here: Context, to: Any, source: Any, nbytes: int) -> None:
    target, start = on_device(here, to, nbytes), on_device(here, source, nbytes)
    _copy(here, target, start, nbytes, here.queue.default, target, start)


@api()
def cuMemcpyAsync(here: Context, to: Any, source: Any, nbytes: int, stream: Any) -> None:
    there = [number(a) for a in (to, source) if here.heap.find(number(a)) is not None]
    if here.heap.find(number(source)) is None:
        _to_device(here, to, source, nbytes, stream_of(here, stream))
    elif here.heap.find(number(to)) is None:
        _to_host(here, to, source, nbytes, stream_of(here, stream))
    else:
        _copy(here, number(to), number(source), nbytes, stream_of(here, stream), *there)


def fill(here: Context, address: int, pattern: bytes, count: int) -> None:
    """Set memory now."""
    alive(here, (address, len(pattern) * count))
    if len(set(pattern)) == 1:
        ctypes.memset(address, pattern[0], len(pattern) * count)
    else:
        ctypes.memmove(address, pattern * count, len(pattern) * count)


def _set(here: Context, to: Any, value: int, size: int, count: int, stream: Stream) -> None:
    target = on_device(here, to, size * count)
    if target % size:
        raise Refused(INVALID)
    pattern = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def run() -> None:
        if here.dead is None and count:
            fill(here, target, pattern, count)

    here.queue.put(stream, run)


@api()
def cuMemsetD8Async(here: Context, to: Any, value: int, count: int, stream: Any) -> None:
    _set(here, to, value, 1, count, stream_of(here, stream))


@api()
def cuMemsetD16Async(here: Context, to: Any, value: int, count: int, stream: Any) -> None:
    _set(here, to, value, 2, count, stream_of(here, stream))


@api()
def cuMemsetD32Async(here: Context, to: Any, value: int, count: int, stream: Any) -> None:
    _set(here, to, value, 4, count, stream_of(here, stream))


@api()
def cuMemsetD8(here: Context, to: Any, value: int, count: int) -> None:
    _set(here, to, value, 1, count, here.queue.default)


@api()
def cuMemsetD32(here: Context, to: Any, value: int, count: int) -> None:
    _set(here, to, value, 4, count, here.queue.default)
