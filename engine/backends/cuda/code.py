"""Code on the device: modules that the driver makes of PTX, shared by kernels of equal PTX."""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from ...errors import CudaError
from ..injected import NO_CACHE, InjectedCache
from .driver import check
from .errors import code_of, is_fatal

if TYPE_CHECKING:
    from .device import CudaDevice

__all__ = ["Code", "attribute", "load"]

_LOG: Final = 8192
_FIRST_LEVEL: Final = 1
"""Of the driver's optimiser, for first-tier code: within a twentieth of the instructions of its
highest level, in a twentieth less of time. At level 0 there are three times as many."""


class Code:
    """A module. module: as the driver has it. function: the kernel of a name."""

    def __init__(self, device: CudaDevice, module: Any) -> None:
        self.device: Final = device
        self.module: Final = module
        self._functions: Final[dict[str, Any]] = {}
        # Kernels of the module that still run must end before it is unloaded.
        weakref.finalize(self, device.doomed.append, module)

    def function(self, symbol: str) -> Any:
        """The kernel called ``symbol``. ValueError if the module has none."""
        found = self._functions.get(symbol)
        if found is None:
            driver = self.device.driver
            with self.device.context.active():
                result = driver.cuModuleGetFunction(self.module, symbol.encode())
            if is_fatal(code_of(result)):
                raise self.device.failed(code_of(result), "loading code")
            if code_of(result):
                raise ValueError(f"the code has no kernel {symbol}")
            found = self._functions[symbol] = result[1]
        return found


def load(
    device: CudaDevice, ptx: bytes, kernel: str, cache: InjectedCache = NO_CACHE,
    first: bool = False,
) -> Code:  # fmt: skip
    """The module made of ``ptx``. CudaError if the driver cannot compile or load it.

    kernel: its name, for errors. first: it is first-tier code. cache: provides the text for the
    driver, and receives whether the driver had to compile: its log is empty otherwise.
    """
    found = device.code.get((ptx, first))
    if found is not None:
        return found
    image = cache.submitted(ptx.decode())
    option: Any = device.driver.CUjit_option
    info, errors = bytearray(_LOG), bytearray(_LOG)
    options: dict[Any, Any] = {
        option.CU_JIT_INFO_LOG_BUFFER: info,
        option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG,
        option.CU_JIT_ERROR_LOG_BUFFER: errors,
        option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG,
        option.CU_JIT_LOG_VERBOSE: 1,
    }
    if first:
        options[option.CU_JIT_OPTIMIZATION_LEVEL] = _FIRST_LEVEL
    started = perf_counter()
    with device.context.active():
        result = device.driver.cuModuleLoadDataEx(
            image, len(options), list(options), list(options.values())
        )
    code = code_of(result)
    if code:
        raise _refused(device, code, _text(errors), kernel)
    cache.loaded(bool(_text(info)), (perf_counter() - started) * 1e3)
    found = device.code[ptx, first] = Code(device, result[1])
    return found


def _text(log: bytearray) -> str:
    return log.split(b"\0")[0].decode("utf-8", "replace").strip()


def _refused(device: CudaDevice, code: int, log: str, kernel: str) -> CudaError:
    doing = f"loading its code on {device.name}"
    error = device.failed(code, doing, kernel)
    if log:
        message = f"{error.message}: {log}"
        error.message = message
    return error


def attribute(device: CudaDevice, function: Any, name: str) -> int:
    """A fact about a kernel, such as MAX_THREADS_PER_BLOCK."""
    which = getattr(device.driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    with device.context.active():
        return int(check(device.driver.cuFuncGetAttribute(which, function), "loading code"))
