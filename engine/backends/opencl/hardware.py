"""The OpenCL devices of this machine: their list, their capabilities, the choice for a program.

A device belongs to a platform, which is a driver. The loader (ICD loader) finds drivers by vendor
files; ``OCL_ICD_VENDORS`` names a folder with such files, or one file. The wheel of pyopencl brings
a loader and, with ``pyopencl[pocl]``, the driver PoCL, which runs kernels on the CPU.

Without a choice a program gets the first device of PoCL (where there are several, of the one that
came with pyopencl), else the first of all. The option
``opencl_device`` chooses::

    1:0        device 0 of platform 1
    nvidia     the first device of the first platform whose name has "nvidia" in it
    nvidia:1   the second one
    xeon       if no platform is called so: the first device whose name has this in it

Nothing of pyopencl is imported before the first use.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...config import of_environment
from ...errors import BackendUnavailableError, QuadrantsRuntimeError
from ...named_tuple import NamedTuple
from ...options import why_hidden
from . import capabilities, pocl
from .capabilities import Capabilities

if TYPE_CHECKING:
    from ...config import CompileConfig

__all__ = [
    "Hardware", "binding", "chosen", "devices", "fingerprint", "for_config", "mapping_of",
    "unavailable",
]  # fmt: skip

_NO_DRIVER: Final = (
    "no driver of OpenCL was found: install pyopencl[pocl] or the driver of a device; a library"
    " without a vendor file is found where OCL_ICD_VENDORS names a folder with one"
)
_KINDS: Final = ((2, "cpu"), (4, "gpu"), (8, "accelerator"))
"""Bits of ``CL_DEVICE_TYPE``."""
_lock: Final = threading.Lock()


class Hardware(NamedTuple):
    """A device.

    platform, number: its indices in the lists. driver_name: of the platform. kind: ``cpu``,
    ``gpu``, ``accelerator`` or ``other``. version: of OpenCL. driver: its version. units: compute
    units. memory, largest: bytes in all, and most of one allocation. group: most work-items of a
    group. local: bytes that a group has. il: kinds of intermediate code that it accepts.
    capabilities: the facts for the lowering; its mapping is the one for this kind of device.
    handle: pyopencl's ``Device``.
    """

    platform: int
    number: int
    driver_name: str
    name: str
    kind: str
    version: str
    driver: str
    units: int
    memory: int
    largest: int
    group: int
    local: int
    il: str
    extensions: frozenset[str]
    capabilities: Capabilities
    handle: Any

    @property
    def is_pocl(self) -> bool:
        """True if PoCL runs it."""
        return "pocl" in self.version.lower() or "pocl" in self.driver.lower()

    @property
    def place(self) -> str:
        """A name of the device for `opencl_device`."""
        return f"{self.platform}:{self.number}"


def binding() -> Any:
    """The module pyopencl. BackendUnavailableError if it is not there or does not load."""
    # PoCL keeps what it compiled in a folder of its own, and looks there by the source. The engine
    # keeps programs itself, and what it measures as a first compile must be one. A value from the
    # environment has precedence. PoCL reads it when the first platform is queried.
    os.environ.setdefault("POCL_KERNEL_CACHE", "0")
    found = importlib.util.find_spec("pyopencl")
    # Uninstalled, it leaves the folder with PoCL's library, which could be imported as a package.
    if found is None or found.origin is None:
        raise BackendUnavailableError(
            "opencl", "pyopencl is not installed: pip install 'pyopencl[pocl]'"
        )
    try:
        import pyopencl
    except (ImportError, OSError) as error:
        raise BackendUnavailableError("opencl", f"pyopencl does not load: {error}") from None
    return pyopencl


def _kind(bits: int) -> str:
    return next((name for bit, name in _KINDS if bits & bit), "other")


def _asked(device: Any, name: str, default: Any) -> Any:
    """A fact of a device that older ones do not know."""
    cl = binding()
    try:
        found = getattr(device, name)
    except (cl.Error, AttributeError):
        return default
    return default if found is None else found


def _capabilities(device: Any, kind: str, extensions: frozenset[str]) -> Capabilities:
    cl = binding()
    single = int(_asked(device, "single_fp_config", 0))
    known: Any = cl.device_fp_config
    return Capabilities(
        str(device.name).strip(),
        capabilities.COARSENED if kind == "cpu" else capabilities.PER_ITERATION,
        bool(int(_asked(device, "double_fp_config", 0)) or "cl_khr_fp64" in extensions),
        "cl_khr_fp16" in extensions,
        "cl_khr_int64_base_atomics" in extensions,
        "cl_khr_int64_extended_atomics" in extensions,
        int(device.local_mem_size), int(device.max_work_group_size),
        bool(_asked(device, "host_unified_memory", kind == "cpu")),
        bool(single & int(known.CORRECTLY_ROUNDED_DIVIDE_SQRT)),
        int(_asked(device, "max_parameter_size", 1024)),
        int(_asked(device, "compute_capability_major_nv", 0)),
    )  # fmt: skip


def _hardware(platform: int, number: int, driver_name: str, device: Any) -> Hardware:
    extensions = frozenset(str(device.extensions).split())
    kind = _kind(int(device.type))
    found = _capabilities(device, kind, extensions)
    version = str(device.version).strip()
    if "pocl" in version.lower():
        version = pocl.name_processor(device, version)
    return Hardware(
        platform, number, driver_name, found.name, kind, version,
        str(device.driver_version).strip(), int(device.max_compute_units),
        int(device.global_mem_size), int(device.max_mem_alloc_size), found.max_group,
        found.local_bytes, str(_asked(device, "il_version", "")).strip(), extensions, found, device,
    )  # fmt: skip


_devices: list[Hardware] = []


def devices() -> list[Hardware]:
    """Every device of every platform. BackendUnavailableError if there is none."""
    with _lock:
        if not _devices:
            _devices.extend(_found())
        return list(_devices)


def _found() -> list[Hardware]:
    cl = binding()
    try:
        platforms: Sequence[Any] = cl.get_platforms()
    except cl.Error as error:
        raise BackendUnavailableError("opencl", f"{_NO_DRIVER} ({error})") from None
    out: list[Hardware] = []
    why = "its drivers show no device" if platforms else _NO_DRIVER
    for p, platform in enumerate(platforms):
        before = pocl.threads()
        try:
            found: Sequence[Any] = platform.get_devices()
        except cl.Error:  # a driver without a device says so by an error
            continue
        name, version = str(platform.name).strip(), str(platform.version)
        if "pocl" in version.lower():
            if fault := pocl.linker_fault(version):
                why = fault
                continue
            pocl.spread(pocl.threads() - before)
            name += "" if "pocl" in name.lower() else " (PoCL)"
        out += [_hardware(p, d, name, device) for d, device in enumerate(found)]
    if not out:
        raise BackendUnavailableError("opencl", why)
    return out


def unavailable() -> str:
    """Return why OpenCL cannot be used here, in one sentence; empty if it can."""
    hidden = why_hidden("QD_ENABLE_OPENCL")
    if hidden:
        return hidden
    try:
        devices()
    except BackendUnavailableError as error:
        return error.reason
    return ""


def _listed(found: Sequence[Hardware]) -> str:
    return "; ".join(f"{one.place}: {one.name} ({one.driver_name} {one.driver})" for one in found)


def _named(wanted: str, found: Sequence[Hardware]) -> list[Hardware]:
    """The devices that a text may mean, those of one platform."""
    key, _, number = wanted.lower().rpartition(":")
    if not key or not number.isdigit():
        key, number = wanted.lower(), ""
    if key.isdigit():
        hits = [one for one in found if one.platform == int(key)]
    else:
        hits = [one for one in found if key in one.driver_name.lower()]
        hits = [one for one in hits if one.platform == hits[0].platform]
        hits = hits or [one for one in found if key in one.name.lower()]
    if number:
        hits = [one for one in hits if one.number == int(number)]
    return hits


def _usual(found: Sequence[Hardware]) -> Hardware:
    """The device of a program that names none: of several PoCLs that of pyopencl's wheel."""
    own = [one for one in found if one.is_pocl]
    if len({one.platform for one in own}) > 1:
        from importlib.metadata import PackageNotFoundError, version

        try:
            mine = version("pocl-binary-distribution")
        except PackageNotFoundError:
            mine = ""
        own = [one for one in own if mine and one.driver.startswith(mine)] or own
    return own[0] if own else found[0]


def chosen(wanted: str = "") -> Hardware:
    """The device that a program with this ``opencl_device`` gets.

    QuadrantsRuntimeError, which lists what there is, if the text means none.
    """
    found = devices()
    if not wanted.strip():
        return _usual(found)
    hits = _named(wanted.strip(), found)
    if not hits:
        raise QuadrantsRuntimeError(
            f"opencl_device={wanted!r} names no device of OpenCL. There are: {_listed(found)}",
            hint="set opencl_device or QD_OPENCL_DEVICE to the index of a platform and of a device "
            "(1:0), or to a part of a name",
        )
    return hits[0]


def usual() -> Hardware:
    """The device of a program that names none itself: the option may be set by a variable."""
    return chosen(of_environment("opencl_device"))


def mapping_of(config: CompileConfig, found: Capabilities, il: bool) -> Capabilities:
    """The capabilities of a device with the mapping that the options ask for.

    il: it gets SPIR-V, which LLVM makes as for a GPU, whatever the device is.
    """
    wanted = capabilities.PER_ITERATION if il else config.opencl_mapping
    return found if wanted == "auto" else found._replace(mapping=wanted)


def for_config(config: CompileConfig) -> Hardware:
    """The device of a program with these options."""
    return chosen(config.opencl_device)


def fingerprint(one: Hardware, mapping: str) -> str:
    """The target of a program binary, as short text."""
    return f"{one.driver_name}, {one.name}, {one.version}, driver {one.driver}, {mapping}"
