"""The CUDA driver, through ``cuda.bindings``: the only place that imports it.

`binding` returns the module whose functions are called; `install` replaces it. All functions return
a tuple whose first item is the ``CUresult``; `check` removes it or raises.

The functions that this package calls (a stand-in must have them)::

    init      cuInit  cuDriverGetVersion  cuGetErrorName  cuGetErrorString
    device    cuDeviceGetCount  cuDeviceGet  cuDeviceGetName  cuDeviceGetUuid
              cuDeviceGetAttribute  cuDeviceTotalMem
    context   cuDevicePrimaryCtxRetain  cuDevicePrimaryCtxRelease  cuDevicePrimaryCtxReset
              cuDevicePrimaryCtxGetState  cuCtxGetCurrent  cuCtxSetCurrent  cuCtxPushCurrent
              cuCtxPopCurrent  cuCtxSynchronize  cuCtxSetLimit
    memory    cuMemGetInfo  cuMemPoolCreate  cuMemPoolSetAttribute  cuMemPoolTrimTo
              cuMemAllocFromPoolAsync  cuMemFreeAsync  cuMemAlloc  cuMemFree
              cuMemHostAlloc  cuMemFreeHost  cuPointerGetAttribute
    copies    cuMemcpyHtoDAsync  cuMemcpyDtoHAsync  cuMemcpyDtoDAsync
              cuMemsetD8Async  cuMemsetD16Async  cuMemsetD32Async
    code      cuModuleLoadDataEx  cuModuleUnload  cuModuleGetFunction  cuFuncGetAttribute
              cuFuncSetAttribute               cuOccupancyMaxActiveBlocksPerMultiprocessor
    launches  cuLaunchKernel  cuStreamSynchronize  cuStreamWaitEvent
    events    cuEventCreate  cuEventRecord  cuEventSynchronize  cuEventElapsedTime
              cuEventDestroy

and the enums ``CUdevice_attribute``, ``CUfunction_attribute``, ``CUjit_option``, ``CUlimit``,
``CUmemAllocationType``, ``CUmemLocationType``, ``CUmemPool_attribute``, ``CUpointer_attribute``,
with ``CUmemPoolProps``, ``CUmemLocation`` and ``cuuint64_t``. Streams are passed as None (the
legacy default stream) or as what a stream's owner has; addresses and sizes as ints.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

from ...errors import BackendUnavailableError
from .errors import code_of, error_of

__all__ = ["binding", "check", "install", "name_of"]

_binding: Any = None


def binding() -> Any:
    """``cuda.bindings.driver``, or what was installed. BackendUnavailableError if there is none."""
    global _binding
    if _binding is None:
        try:
            driver: Any = importlib.import_module("cuda.bindings.driver")
        except ImportError as error:
            raise BackendUnavailableError(
                "cuda", f"cuda-python is not installed ({error})", hint="pip install cuda-python"
            ) from None
        _binding = driver
    return _binding


def install(module: Any) -> Any:
    """Call ``module`` from now on; None for the real one. Returns the previous module.

    Programs that run must have ended.
    """
    global _binding
    before, _binding = _binding, module
    return before


def name_of(code: int, driver: Any = None) -> tuple[str, str]:
    """Return the driver's name and description of a code. driver: other than `binding`."""
    driver = driver or binding()
    texts: list[str] = []
    for ask in (driver.cuGetErrorName, driver.cuGetErrorString):
        found: Any = None
        with suppress(ValueError):  # of a newer driver
            found = ask(driver.CUresult(code))[1]
        texts.append(found.decode() if isinstance(found, bytes) else str(found or ""))
    return texts[0] or f"CUresult {code}", texts[1]


def check(result: tuple[Any, ...], doing: str = "", kernel: str | None = None) -> Any:
    """Return the results of a call besides its code: nothing, a value, or a tuple of several.

    doing: what it was for, to complete "... while". Raises CudaError for a code that is not 0.
    """
    code = code_of(result)
    if code:
        raise error_of(code, doing, *name_of(code), kernel=kernel)
    return result[1] if len(result) == 2 else result[1:] or None
