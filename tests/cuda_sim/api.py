"""The functions of the simulated driver: devices and contexts; what all functions share.

Each takes and gives what the function of the same name of ``cuda.bindings.driver`` does, which
returns a tuple: the ``CUresult``, then the values. `api` does what they have in common: it counts
calls, lets them fail on demand, wants a driver that was initialised and a context that is current
and alive, and turns `Refused` into a result.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver as real

from .state import OK, Context, Result, state

__all__ = ["FUNCTIONS", "Refused", "api", "number"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""Every function by name."""


class Refused(Exception):
    """What a function answers in place of success."""

    def __init__(self, result: Any) -> None:
        super().__init__(result.name)
        self.result = result


INVALID = Result.CUDA_ERROR_INVALID_VALUE
HANDLE = Result.CUDA_ERROR_INVALID_HANDLE
UNSUPPORTED = Result.CUDA_ERROR_NOT_SUPPORTED


def number(handle: Any) -> int:
    """A handle or an address as a number; None is 0."""
    return 0 if handle is None else int(handle)


def api(*, context: bool = True, values: int = 0) -> Callable[[Callable[..., Any]], Any]:
    """Make a function one of the driver. context: it needs one. values: given where it fails."""

    def decorate(function: Callable[..., Any]) -> Any:
        name = function.__name__

        @functools.wraps(function)
        def called(*args: Any) -> tuple[Any, ...]:
            with state.lock:
                nothing = (None,) * values
                planned = state.planned(name)
                if planned is not None and planned is not OK:
                    return planned, *nothing
                try:
                    if not state.initialised and name != "cuInit":
                        raise Refused(Result.CUDA_ERROR_NOT_INITIALIZED)
                    if context:
                        here = state.current()
                        if here is None:
                            raise Refused(Result.CUDA_ERROR_INVALID_CONTEXT)
                        if here.dead is not None:
                            raise Refused(here.dead)
                        found = function(here, *args)
                        if here.dead is not None:
                            raise Refused(here.dead)
                    else:
                        found = function(*args)
                except Refused as error:
                    return error.result, *nothing
            if found is None:
                return (OK,)
            return (OK, *found) if isinstance(found, tuple) else (OK, found)

        FUNCTIONS[name] = called
        return called

    return decorate


# --- the driver and its devices ------------------------------------------------------------------


@api(context=False)
def cuInit(flags: int) -> None:
    if not state.configuration.devices:
        raise Refused(Result.CUDA_ERROR_NO_DEVICE)
    state.initialised = True


def cuDriverGetVersion() -> tuple[Any, int]:
    return OK, state.configuration.driver


def cuGetErrorName(error: Any) -> tuple[Any, bytes]:
    return OK, Result(error).name.encode()


def cuGetErrorString(error: Any) -> tuple[Any, bytes]:
    return OK, Result(error).name.removeprefix("CUDA_ERROR_").replace("_", " ").lower().encode()


FUNCTIONS.update(
    cuDriverGetVersion=cuDriverGetVersion, cuGetErrorName=cuGetErrorName,
    cuGetErrorString=cuGetErrorString,
)  # fmt: skip


def _device(device: Any) -> int:
    found = number(device)
    if not 0 <= found < state.configuration.devices:
        raise Refused(Result.CUDA_ERROR_INVALID_DEVICE)
    return found


@api(context=False, values=1)
def cuDeviceGetCount() -> int:
    return state.configuration.devices


@api(context=False, values=1)
def cuDeviceGet(ordinal: int) -> Any:
    return real.CUdevice(_device(ordinal))


@api(context=False, values=1)
def cuDeviceGetName(length: int, device: Any) -> bytes:
    _device(device)
    return state.configuration.name.encode()[: length - 1].ljust(length, b"\0")


@api(context=False, values=1)
def cuDeviceGetUuid(device: Any) -> Any:
    found = real.CUuuid()
    data = bytes([0x5A, _device(device)]) + bytes(range(14))
    ctypes.memmove(found.getPtr(), data, 16)
    return found


cuDeviceGetUuid_v2 = FUNCTIONS["cuDeviceGetUuid_v2"] = cuDeviceGetUuid


@api(context=False, values=1)
def cuDeviceTotalMem(device: Any) -> int:
    _device(device)
    return state.configuration.memory


def _attributes() -> dict[str, int]:
    c = state.configuration
    return {
        "COMPUTE_CAPABILITY_MAJOR": c.capability[0], "COMPUTE_CAPABILITY_MINOR": c.capability[1],
        "MULTIPROCESSOR_COUNT": c.processors, "MAX_THREADS_PER_BLOCK": 1024, "WARP_SIZE": 32,
        "MAX_THREADS_PER_MULTIPROCESSOR": 2048, "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024,
        "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": (1 << 31) - 1, "MAX_GRID_DIM_Y": 65535,
        "MAX_GRID_DIM_Z": 65535, "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10, "MAX_REGISTERS_PER_BLOCK": 65536,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10, "MEMORY_POOLS_SUPPORTED": 1,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536, "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
        "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024, "L2_CACHE_SIZE": 4 << 20,
        "UNIFIED_ADDRESSING": 1, "CLOCK_RATE": 1_000_000, "MEMORY_CLOCK_RATE": 1_000_000,
        "GLOBAL_MEMORY_BUS_WIDTH": 512, "CONCURRENT_KERNELS": 1, "ASYNC_ENGINE_COUNT": 2,
        "COOPERATIVE_LAUNCH": 1, "TOTAL_CONSTANT_MEMORY": 64 << 10, "CAN_MAP_HOST_MEMORY": 1,
        "STREAM_PRIORITIES_SUPPORTED": 1, **c.attributes,
    }  # fmt: skip


@api(context=False, values=1)
def cuDeviceGetAttribute(attribute: Any, device: Any) -> int:
    _device(device)
    name = real.CUdevice_attribute(attribute).name.removeprefix("CU_DEVICE_ATTRIBUTE_")
    return _attributes().get(name, 0)


# --- contexts ------------------------------------------------------------------------------------


@api(context=False, values=1)
def cuDevicePrimaryCtxRetain(device: Any) -> Any:
    _device(device)
    if state.spoilt is not None:
        raise Refused(state.spoilt)
    if state.context is None:
        state.context = Context(state.number(), state.configuration)
    state.retained += 1
    return real.CUcontext(state.context.number)


def _destroy_context() -> None:
    """What was on it is gone; what was waiting is never done."""
    if state.context is not None and not state.configuration.recovers:
        state.spoilt = state.context.dead
    state.context = None


@api(context=False)
def cuDevicePrimaryCtxRelease(device: Any) -> None:
    _device(device)
    if not state.retained:
        raise Refused(Result.CUDA_ERROR_INVALID_CONTEXT)
    state.retained -= 1
    if not state.retained:
        if state.context is not None and state.context.dead is None:
            state.context.queue.finish()
        _destroy_context()


@api(context=False)
def cuDevicePrimaryCtxReset(device: Any) -> None:
    _device(device)
    _destroy_context()
    state.retained = 0


@api(context=False, values=2)
def cuDevicePrimaryCtxGetState(device: Any) -> tuple[int, int]:
    _device(device)
    return 0, int(state.context is not None)


def _context(handle: Any) -> Context | None:
    wanted = number(handle)
    if not wanted:
        return None
    if state.context is None or state.context.number != wanted:
        raise Refused(Result.CUDA_ERROR_INVALID_CONTEXT)
    return state.context


@api(context=False, values=1)
def cuCtxGetCurrent() -> Any:
    stack = getattr(state.local, "stack", None)
    return real.CUcontext(stack[-1].number if stack else 0)


@api(context=False)
def cuCtxSetCurrent(handle: Any) -> None:
    state.set_current(_context(handle))


@api(context=False)
def cuCtxPushCurrent(handle: Any) -> None:
    found = _context(handle)
    if found is None:
        raise Refused(Result.CUDA_ERROR_INVALID_CONTEXT)
    state.local.stack = [*getattr(state.local, "stack", ()), found]


@api(context=False, values=1)
def cuCtxPopCurrent() -> Any:
    stack = getattr(state.local, "stack", None)
    if not stack:
        raise Refused(Result.CUDA_ERROR_INVALID_CONTEXT)
    return real.CUcontext(stack.pop().number)


@api(values=1)
def cuCtxGetDevice(here: Context) -> Any:
    return real.CUdevice(0)


@api(context=False, values=1)
def cuCtxGetId(handle: Any) -> int:
    found = _context(handle) or state.current()
    if found is None:
        raise Refused(Result.CUDA_ERROR_CONTEXT_IS_DESTROYED)
    return found.number


@api()
def cuCtxSynchronize(here: Context) -> None:
    here.queue.finish()


@api()
def cuCtxSetLimit(here: Context, limit: Any, value: int) -> None:
    real.CUlimit(limit)


@api(values=1)
def cuCtxGetLimit(here: Context, limit: Any) -> int:
    return 1024
