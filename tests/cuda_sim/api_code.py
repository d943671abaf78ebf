"""The functions of the simulated driver for code, launches, streams and events."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from cuda.bindings import driver as real

from .api import HANDLE, INVALID, Refused, api, number
from .api_memory import host_address, stream_of
from .code import Kernel, Module, NoKernel
from .state import Context, Result, state
from .work import Event, Stream

__all__ = ["kernel_of", "values_of"]


def _image(image: Any) -> bytes:
    if isinstance(image, int):
        return ctypes.string_at(image)
    return bytes(image)


def _log(options: Any, values: Any, text: str) -> None:
    """Write what a JIT says where the caller wants it."""
    names = [real.CUjit_option(o).name for o in options or ()]
    for kind in ("ERROR", "INFO"):
        if f"CU_JIT_{kind}_LOG_BUFFER" not in names:
            continue
        where = values[names.index(f"CU_JIT_{kind}_LOG_BUFFER")]
        size = int(values[names.index(f"CU_JIT_{kind}_LOG_BUFFER_SIZE_BYTES")])
        data = (text.encode() if kind == "ERROR" else b"")[: size - 1] + b"\0"
        address = host_address(where)
        ctypes.memmove(address, data, len(data))


def _load(here: Context, image: Any, options: Any = (), values: Any = ()) -> Any:
    data = _image(image).split(b"\0")[0]
    result, said = None, ""
    try:
        module = Module(data)
    except NoKernel as error:
        result, said = Result.CUDA_ERROR_INVALID_PTX, f"ptxas fatal   : {error}"
    else:
        major, minor = state.configuration.capability
        ours = major * 10 + minor
        version = "{}.{}".format(*module.version)
        if module.version > state.configuration.ptx:
            result = Result.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            said = f"ptxas application ptx input, line 1; fatal   : Unsupported .version {version}"
        elif module.target > ours:
            result = Result.CUDA_ERROR_NO_BINARY_FOR_GPU
            said = f"ptxas fatal   : SM version {module.target} is newer than the device's {ours}"
        for kernel in module.kernels.values():
            if kernel.entry.shared > 48 << 10:
                result = Result.CUDA_ERROR_INVALID_PTX
                said = (f"ptxas error   : Entry function '{kernel.name}' uses too much shared data "
                        f"(0x{kernel.entry.shared:x} bytes, 0xc000 max)")  # fmt: skip
    _log(options, values, said)
    if result is not None:
        raise Refused(result)
    handle = state.number()
    here.modules[handle] = module
    return real.CUmodule(handle)


@api(values=1)
def cuModuleLoadData(here: Context, image: Any) -> Any:
    return _load(here, image)


@api(values=1)
def cuModuleLoadDataEx(here: Context, image: Any, count: int, options: Any, values: Any) -> Any:
    return _load(here, image, list(options or ())[:count], list(values or ())[:count])


def _module(here: Context, module: Any) -> Module:
    found = here.modules.get(number(module))
    if found is None:
        raise Refused(HANDLE)
    return found


@api()
def cuModuleUnload(here: Context, module: Any) -> None:
    found = _module(here, module)
    here.queue.finish()
    for handle in found.handles.values():
        del here.functions[handle]
    del here.modules[number(module)]


@api(values=1)
def cuModuleGetFunction(here: Context, module: Any, name: bytes) -> Any:
    found = _module(here, module)
    text = name.decode() if isinstance(name, bytes) else str(name)
    kernel = found.kernels.get(text)
    if kernel is None:
        raise Refused(Result.CUDA_ERROR_NOT_FOUND)
    if text not in found.handles:
        found.handles[text] = state.number()
        here.functions[found.handles[text]] = kernel
    return real.CUfunction(found.handles[text])


def kernel_of(here: Context, function: Any) -> Kernel:
    found = here.functions.get(number(function))
    if found is None:
        raise Refused(HANDLE)
    return found


@api(values=1)
def cuFuncGetAttribute(here: Context, attribute: Any, function: Any) -> int:
    kernel = kernel_of(here, function)
    name = real.CUfunction_attribute(attribute).name.removeprefix("CU_FUNC_ATTRIBUTE_")
    answers = {
        "MAX_THREADS_PER_BLOCK": kernel.entry.most_threads, "NUM_REGS": 32,
        "SHARED_SIZE_BYTES": kernel.entry.shared, "LOCAL_SIZE_BYTES": 0, "CONST_SIZE_BYTES": 0,
        "PTX_VERSION": kernel.module.target, "BINARY_VERSION": kernel.module.target,
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": kernel.shared_limit - kernel.entry.shared,
    }  # fmt: skip
    return answers.get(name, 0)


@api()
def cuFuncSetAttribute(here: Context, function: Any, attribute: Any, value: int) -> None:
    kernel = kernel_of(here, function)
    name = real.CUfunction_attribute(attribute).name
    if name.endswith("MAX_DYNAMIC_SHARED_SIZE_BYTES"):
        if value + kernel.entry.shared > 227 << 10:
            raise Refused(INVALID)
        kernel.shared_limit = value + kernel.entry.shared


@api(values=1)
def cuOccupancyMaxActiveBlocksPerMultiprocessor(
    here: Context, function: Any, threads: int, shared: int
) -> int:
    kernel_of(here, function)
    return state.configuration.resident


@api(values=2)
def cuOccupancyMaxPotentialBlockSize(
    here: Context, function: Any, sizes: Any, shared: int, limit: int
) -> tuple[int, int]:
    return state.configuration.resident * state.configuration.processors, 128


# --- launches ------------------------------------------------------------------------------------


def values_of(kernel: Kernel, params: Any) -> list[bytes]:
    """The values of a kernel's parameters, read now."""
    sizes = kernel.entry.sizes
    if not sizes:
        return []
    if isinstance(params, tuple) and len(params) == 2 and isinstance(params[0], tuple):
        return [
            bytes(kind(value)) if kind is not None else number(value).to_bytes(8, "little")
            for value, kind in zip(*params, strict=True)
        ]
    address = host_address(params)
    if not address:
        raise Refused(INVALID)
    pointers = np.frombuffer(ctypes.string_at(address, 8 * len(sizes)), np.uint64)
    return [ctypes.string_at(int(p), size) for p, size in zip(pointers, sizes, strict=True)]


def check_shape(kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    threads = block[0] * block[1] * block[2]
    if min(*grid, *block) < 1 or grid[0] >= 1 << 31 or threads > 1024 or max(grid[1:]) > 65535:
        raise Refused(INVALID)
    if threads > kernel.entry.most_threads:
        raise Refused(INVALID)
    if grid[1:] != (1, 1) or block[1:] != (1, 1):
        raise NotImplementedError("the simulator runs grids of one dimension")
    if shared + kernel.entry.shared > kernel.shared_limit:
        raise Refused(INVALID)


@api()
def cuLaunchKernel(
    here: Context, function: Any, gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
    shared: int, stream: Any, params: Any, extra: Any,
) -> None:  # fmt: skip
    kernel = kernel_of(here, function)
    check_shape(kernel, (gx, gy, gz), (bx, by, bz), shared)
    run = state.prepare(here, kernel, gx, bx, values_of(kernel, params))
    here.queue.put(stream_of(here, stream), run)


# --- streams and events --------------------------------------------------------------------------


@api(values=1)
def cuStreamCreate(here: Context, flags: int) -> Any:
    stream = Stream(state.number(), bool(flags & 1))
    here.streams[stream.number] = stream
    return real.CUstream(stream.number)


@api(values=1)
def cuStreamCreateWithPriority(here: Context, flags: int, priority: int) -> Any:
    stream = Stream(state.number(), bool(flags & 1), priority)
    here.streams[stream.number] = stream
    return real.CUstream(stream.number)


@api(values=2)
def cuCtxGetStreamPriorityRange(here: Context) -> tuple[int, int]:
    return 0, -5


@api()
def cuStreamDestroy(here: Context, stream: Any) -> None:
    found = stream_of(here, stream)
    if found is here.queue.default:
        raise Refused(HANDLE)
    here.queue.finish(found)
    del here.streams[found.number]


@api()
def cuStreamSynchronize(here: Context, stream: Any) -> None:
    here.queue.finish(stream_of(here, stream))


@api()
def cuStreamQuery(here: Context, stream: Any) -> None:
    if not here.queue.step(stream_of(here, stream).last):
        raise Refused(Result.CUDA_ERROR_NOT_READY)


@api()
def cuStreamWaitEvent(here: Context, stream: Any, event: Any, flags: int) -> None:
    here.queue.wait_in(stream_of(here, stream), _event(here, event))


@api(values=1)
def cuStreamGetFlags(here: Context, stream: Any) -> int:
    return int(stream_of(here, stream).independent)


@api(values=1)
def cuStreamGetPriority(here: Context, stream: Any) -> int:
    return stream_of(here, stream).priority


@api(values=1)
def cuStreamGetCtx(here: Context, stream: Any) -> Any:
    stream_of(here, stream)
    return real.CUcontext(here.number)


def _event(here: Context, event: Any) -> Event:
    found = here.events.get(number(event))
    if found is None:
        raise Refused(HANDLE)
    return found


@api(values=1)
def cuEventCreate(here: Context, flags: int) -> Any:
    handle = state.number()
    here.events[handle] = Event(timing=not int(flags) & 2)
    return real.CUevent(handle)


@api()
def cuEventRecord(here: Context, event: Any, stream: Any) -> None:
    here.queue.record(_event(here, event), stream_of(here, stream))


@api()
def cuEventSynchronize(here: Context, event: Any) -> None:
    here.queue.do(_event(here, event).work)


@api()
def cuEventQuery(here: Context, event: Any) -> None:
    if not here.queue.step(_event(here, event).work):
        raise Refused(Result.CUDA_ERROR_NOT_READY)


@api(values=1)
def cuEventElapsedTime(here: Context, start: Any, end: Any) -> float:
    first, last = _event(here, start), _event(here, end)
    if not first.timing or not last.timing or first.work is None or last.work is None:
        raise Refused(HANDLE)
    if not first.work.done or not last.work.done:
        raise Refused(Result.CUDA_ERROR_NOT_READY)
    return (last.at - first.at) / 1e6


@api()
def cuEventDestroy(here: Context, event: Any) -> None:
    _event(here, event)
    del here.events[number(event)]
