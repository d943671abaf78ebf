"""The driver's error codes in words: `CUresult` -> our errors.

`table` says for the codes that users meet what happened and what to do. A code that is ``fatal``
makes the context unusable: every later call in it returns the same code, until the program ends and
the next one makes a new context (`context.context_of`).
"""

from __future__ import annotations

from typing import Any, Final

from ...errors import CudaError, CudaMemoryError
from ...named_tuple import NamedTuple

__all__ = [
    "DESTROYED", "FOREIGN", "INVALID_CONTEXT", "NO_DEVICE", "OUT_OF_MEMORY", "Trouble",
    "code_of", "error_of", "is_fatal", "refused_context", "table",
]  # fmt: skip

OUT_OF_MEMORY: Final = 2
NOT_INITIALIZED: Final = 3
NO_DEVICE: Final = 100
INVALID_CONTEXT: Final = 201
INVALID_HANDLE: Final = 400
DESTROYED: Final = 709

FOREIGN: Final = frozenset({NOT_INITIALIZED, INVALID_CONTEXT, INVALID_HANDLE, DESTROYED})
"""Codes of a call where the context of the calling thread is not the one it needs."""

_RESET: Final = (
    "the CUDA context is lost, and the arrays of this program with it: call qd.init() for a new"
    " one, or start a new process if the driver refuses that"
)
_BOUNDS: Final = (
    f"qd.init(debug=True) checks indices, and raises at the launch of the kernel; {_RESET}"
)


class Trouble(NamedTuple):
    """The meaning of a code. fatal: the context is no longer usable."""

    text: str
    hint: str | None = None
    fatal: bool = False


table: Final = {
    1: Trouble("the driver does not accept an argument"),
    OUT_OF_MEMORY: Trouble("the device has no memory left"),
    NOT_INITIALIZED: Trouble("the CUDA driver is not initialised in this process"),
    4: Trouble("the CUDA driver has been shut down", None, True),
    34: Trouble(
        "the libcuda that was found is a stub for linking",
        "remove the toolkit's stubs folder from LD_LIBRARY_PATH",
    ),
    46: Trouble("the device is busy or unavailable", "another process may use it exclusively"),
    NO_DEVICE: Trouble("there is no CUDA device", "CUDA_VISIBLE_DEVICES may hide it"),
    101: Trouble("there is no CUDA device with this index"),
    200: Trouble("the driver reports that the code is damaged"),
    INVALID_CONTEXT: Trouble("the CUDA context is not valid", _RESET),
    209: Trouble("the code targets a different device"),
    214: Trouble("the device found an error in its memory (ECC)", _RESET, True),
    218: Trouble("the driver cannot compile the PTX"),
    220: Trouble("the connection to the device failed", _RESET, True),
    221: Trouble("the driver's PTX compiler is missing", "reinstall the driver"),
    222: Trouble(
        "the driver is too old for the PTX",
        "install a driver of CUDA 12.0 or newer",
    ),
    INVALID_HANDLE: Trouble("a handle is not valid in this CUDA context", _RESET),
    500: Trouble("the driver does not find a name in the code"),
    700: Trouble("a kernel accessed memory at an illegal address", _BOUNDS, True),
    701: Trouble(
        "the kernel needs more registers or shared memory than its block can have",
        "use a smaller qd.loop_config(block_dim=...)",
    ),
    702: Trouble("a kernel ran longer than the device allows", _RESET, True),
    DESTROYED: Trouble(
        "the CUDA context was destroyed by other code of this process", _RESET, True
    ),
    710: Trouble("an assertion of the device failed", _RESET, True),
    714: Trouble("a kernel corrupted the stack of the device", _BOUNDS, True),
    715: Trouble("a kernel contained an instruction that the device does not know", _RESET, True),
    716: Trouble("a kernel used a misaligned address", _BOUNDS, True),
    717: Trouble("a kernel used an address in the wrong address space", _BOUNDS, True),
    718: Trouble("a kernel jumped to an address outside of its code", _BOUNDS, True),
    719: Trouble("a kernel crashed on the device", _BOUNDS, True),
    720: Trouble("the device has no room for a block of this kernel"),
    801: Trouble("the device or driver does not support this call"),
    802: Trouble("the system is not ready for CUDA", "check that nvidia-fabricmanager runs"),
    803: Trouble("the driver's parts have different versions", "reboot, or reinstall the driver"),
    804: Trouble(
        "the forward-compatibility driver does not work with this device",
        "remove the toolkit's compat folder from LD_LIBRARY_PATH",
    ),
    999: Trouble("the driver failed without a reason", _RESET, True),
}  # fmt: skip
"""By number; the numbers are the driver's interface and never change."""


def code_of(result: tuple[Any, ...]) -> int:
    """The number in what a function of the binding returned."""
    return int(result[0])


def is_fatal(code: int) -> bool:
    """True if the context is unusable after this code."""
    return code in table and table[code].fatal


def error_of(
    code: int, doing: str, name: str = "", said: str = "", kernel: str | None = None
) -> CudaError:
    """The error for a code. doing: what was asked for. name, said: what the driver calls it."""
    trouble = table.get(code, Trouble(said or "the driver refused"))
    kind = CudaMemoryError if code == OUT_OF_MEMORY else CudaError
    where = f" while {doing}" if doing else ""
    error = kind(f"{trouble.text}{where} ({name or code})", hint=trouble.hint, kernel=kernel)
    error.code, error.name, error.fatal = code, name, trouble.fatal
    return error


def refused_context(device: str, before: CudaError) -> CudaError:
    """The error for a process in which the driver makes no context after ``before``."""
    cause = f"an error of kernel {before.kernel}" if before.kernel else "an error of a kernel"
    error = CudaError(
        f"the CUDA driver refuses a new context on {device} to this process, after {cause}:"
        f" {before.message}",
        kernel=before.kernel,
        hint="start a new process; arch=qd.cpu works in this one",
    )
    error.code, error.name, error.fatal = before.code, before.name, True
    return error
