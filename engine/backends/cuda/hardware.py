"""The devices of this machine: whether there is one that works, and which one a program gets.

``QD_ENABLE_CUDA=0`` hides them all. ``QD_VISIBLE_DEVICE`` chooses by number (as
``CUDA_VISIBLE_DEVICES`` leaves them) or by the beginning of a UUID; without it number 0 is taken.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, Final

from ...errors import BackendUnavailableError, QuadrantsRuntimeError
from ...named_tuple import NamedTuple
from ...options import why_hidden
from . import archs
from .driver import binding, check, name_of
from .errors import NO_DEVICE, code_of, table

__all__ = [
    "OLDEST_CAPABILITY", "OLDEST_DRIVER", "Hardware", "chosen", "clock_rate", "devices",
    "unavailable",
]  # fmt: skip

OLDEST_DRIVER: Final = 12010
"""The first driver that reads PTX 8.1, as `cuDriverGetVersion` counts: 12.1."""
OLDEST_CAPABILITY: Final = 7, 0
"""Threads of a warp that wait for each other's locks need what came with it."""


class Hardware(NamedTuple):
    """A device. number: its ordinal. capability: compute capability. processors: multiprocessors.

    memory: bytes. block: most threads of a block. resident: most threads of a multiprocessor.
    pools: it has stream-ordered allocation.
    """

    number: int
    name: str
    uuid: str
    capability: tuple[int, int]
    processors: int
    memory: int
    block: int
    resident: int
    pools: bool

    @property
    def arch(self) -> str:
        """As the toolchain names it."""
        return archs.of_capability(*self.capability)


def _uuid(data: Any) -> str:
    raw = bytes(data.bytes) if hasattr(data, "bytes") else bytes(data)
    text = raw[:16].hex()
    cuts = (0, 8, 12, 16, 20, 32)
    return "GPU-" + "-".join(text[a:b] for a, b in pairwise(cuts))


def _hardware(number: int) -> Hardware:
    driver = binding()
    handle = check(driver.cuDeviceGet(number), "looking at the devices")
    attributes: Any = driver.CUdevice_attribute

    def ask(name: str) -> int:
        which = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(check(driver.cuDeviceGetAttribute(which, handle), "looking at the devices"))

    name: Any = check(driver.cuDeviceGetName(256, handle), "looking at the devices")
    text = name.split(b"\0")[0].decode() if isinstance(name, bytes) else str(name)
    return Hardware(
        number, text, _uuid(check(driver.cuDeviceGetUuid(handle))),
        (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        ask("MULTIPROCESSOR_COUNT"), int(check(driver.cuDeviceTotalMem(handle))),
        ask("MAX_THREADS_PER_BLOCK"), ask("MAX_THREADS_PER_MULTIPROCESSOR"),
        bool(ask("MEMORY_POOLS_SUPPORTED")),
    )  # fmt: skip


def clock_rate(number: int) -> int:
    """The nominal rate of a device's processors, in kHz."""
    driver = binding()
    doing = "asking for the rate of its clock"
    handle = check(driver.cuDeviceGet(number), doing)
    which: Any = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE
    return int(check(driver.cuDeviceGetAttribute(which, handle), doing))


def devices() -> list[Hardware]:
    """Every device. The caller has checked that CUDA is not `unavailable`."""
    count = int(check(binding().cuDeviceGetCount(), "counting the devices"))
    return [_hardware(number) for number in range(count)]


def _trouble(code: int, doing: str) -> str:
    text = table[code].text if code in table else "the driver failed"
    return f"{text} ({name_of(code)[0]} while {doing})"


def unavailable() -> str:
    """The reason why CUDA cannot be used here, in one sentence; empty if it can."""
    hidden = why_hidden("QD_ENABLE_CUDA")
    if hidden:
        return hidden
    try:
        driver = binding()
        code = code_of(driver.cuInit(0))
    except BackendUnavailableError as error:
        return error.reason
    except (RuntimeError, OSError, ImportError):  # what the binding says where there is no library
        return "no driver was found (libcuda.so.1): install the NVIDIA driver"
    if code:
        return _trouble(code, "starting the driver")
    version = int(check(driver.cuDriverGetVersion(), "asking for its version"))
    if version < OLDEST_DRIVER:
        return (
            f"the driver is too old: it is one of CUDA {_version(version)},"
            f" {_version(OLDEST_DRIVER)} or newer is needed"
        )
    result = driver.cuDeviceGetCount()
    if code_of(result) == NO_DEVICE or (not code_of(result) and not int(result[1])):
        return "there is no CUDA device (CUDA_VISIBLE_DEVICES may hide it)"
    if code_of(result):
        return _trouble(code_of(result), "counting the devices")
    if all(found.capability < OLDEST_CAPABILITY for found in devices()):
        best = max(devices(), key=lambda found: found.capability)
        return _too_little(best)
    return ""


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _too_little(found: Hardware) -> str:
    have, need = ("{}.{}".format(*c) for c in (found.capability, OLDEST_CAPABILITY))
    return f"{found.name} has compute capability {have}, {need} or higher is needed"


def chosen() -> Hardware:
    """The device that a program gets. QuadrantsRuntimeError if there is none such."""
    found = devices()
    wanted = os.environ.get("QD_VISIBLE_DEVICE", "").strip()
    if not wanted:
        fit = [one for one in found if one.capability >= OLDEST_CAPABILITY]
        return fit[0]
    if wanted.lstrip("-").isdigit():
        hits = [one for one in found if one.number == int(wanted)]
    else:
        key = wanted.lower().removeprefix("gpu-")
        hits = [one for one in found if key and one.uuid.lower()[4:].startswith(key)]
    if len(hits) != 1:
        what = "names several devices" if hits else "names no device"
        there = "; ".join(f"{one.number}: {one.name} ({one.uuid})" for one in found)
        raise QuadrantsRuntimeError(
            f"QD_VISIBLE_DEVICE={wanted} {what}. There are: {there}",
            hint="set it to the index of one of them, or to the beginning of its UUID",
        )
    if hits[0].capability < OLDEST_CAPABILITY:
        raise QuadrantsRuntimeError(f"QD_VISIBLE_DEVICE={wanted}: {_too_little(hits[0])}")
    return hits[0]
