"""CUDA and OpenCL on this machine: drivers, their devices, programs and libraries in use.

`cuda_machine` and `opencl_machine` look at everything and never raise: they report what is missing
and how to get it. They load the drivers' libraries, so code that only compiles does not call them.
`device_record` describes the device of a launch.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from ..backends.cuda import archs, ptxas, toolkit
from ..named_tuple import NamedTuple
from ..options import why_hidden
from .record import DeviceRecord

__all__ = [
    "CudaComponent", "CudaDeviceInfo", "CudaMachine", "OpenclDeviceInfo", "OpenclMachine",
    "cuda_machine", "device_record", "lost_device", "opencl_machine",
]  # fmt: skip

VARIABLES: Final = (
    "QD_ENABLE_CUDA", "QD_VISIBLE_DEVICE", "QD_GRAPH", "QD_CUDA_ARCH", "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME", "CUDA_PATH", "CUDA_LAUNCH_BLOCKING", "CUDA_CACHE_DISABLE", "QD_LIBDEVICE",
    "QD_LIBCUDADEVRT", "QD_NVJITLINK",
)  # fmt: skip
"""Variables of the environment that steer the backend, or where its pieces are looked for."""


class CudaComponent(NamedTuple):
    """A program or library. purpose: what it is for, or what is wrong. hint: how to get it.

    path: where it is; empty if it is missing. version: if it reports one.
    """

    name: str
    purpose: str
    path: str = ""
    version: str = ""
    hint: str = ""


class CudaDeviceInfo(NamedTuple):
    """A device. chosen: the one that programs get. free: bytes, -1 if that is not known.

    arch: what code is made for it. usable: False below the oldest capability that is supported.
    """

    number: int
    name: str
    uuid: str
    capability: str
    arch: str
    processors: int
    memory: int
    chosen: bool
    free: int = -1


class CudaMachine(NamedTuple):
    """CUDA as found. problem: why CUDA cannot be used, in one sentence; empty if it can.

    driver: version that the driver supports, empty without one. variables: those that are set.
    """

    problem: str
    driver: str
    devices: tuple[CudaDeviceInfo, ...]
    components: tuple[CudaComponent, ...]
    variables: tuple[tuple[str, str], ...]


class OpenclDeviceInfo(NamedTuple):
    """A device. place: how the option `opencl_device` may call it. platform: its driver's name.

    kind: cpu, gpu, accelerator or other. lacks: what kernels cannot use there. chosen: the one that
    programs get.
    """

    place: str
    platform: str
    name: str
    kind: str
    version: str
    driver: str
    units: int
    memory: int
    lacks: tuple[str, ...]
    chosen: bool


class OpenclMachine(NamedTuple):
    """OpenCL as found. problem: why OpenCL cannot be used, in one sentence; empty if it can."""

    problem: str
    devices: tuple[OpenclDeviceInfo, ...]
    variables: tuple[tuple[str, str], ...]


OPENCL_VARIABLES: Final = (
    "QD_ENABLE_OPENCL", "QD_OPENCL_DEVICE", "QD_OPENCL_MAPPING", "OCL_ICD_VENDORS",
    "POCL_MAX_PTHREAD_COUNT",
)  # fmt: skip


def opencl_machine() -> OpenclMachine:
    """Look at everything; see the module docstring."""
    variables = tuple((n, os.environ[n]) for n in OPENCL_VARIABLES if n in os.environ)
    try:
        hardware: Any = importlib.import_module("..backends.opencl.hardware", __package__)
        problem = str(hardware.unavailable())
        if problem:
            return OpenclMachine(problem, (), variables)
        mine: Any = None
        try:
            mine = hardware.usual()
        except Exception as error:
            problem = str(error).splitlines()[0]
        infos = tuple(_opencl_info(one, mine) for one in hardware.devices())
        return OpenclMachine(problem, infos, variables)
    except Exception as error:  # any failure of a library here is reported, not raised
        return OpenclMachine(f"{type(error).__name__}: {error}".splitlines()[0], (), variables)


def _opencl_info(one: Any, chosen: Any) -> OpenclDeviceInfo:
    can = one.capabilities
    lacks = tuple(
        what
        for what, has in (
            ("f64", can.fp64), ("f16 (computed in f32)", can.fp16),
            ("64-bit atomics", can.int64_base),
        )
        if not has
    )  # fmt: skip
    mine = chosen is not None and one.place == chosen.place
    return OpenclDeviceInfo(
        one.place, one.driver_name, one.name, one.kind, one.version, one.driver, one.units,
        one.memory, lacks, mine,
    )  # fmt: skip


def cuda_machine() -> CudaMachine:
    """Look at everything; see the module docstring."""
    problem, driver, devices = _devices()
    variables = tuple((name, os.environ[name]) for name in VARIABLES if name in os.environ)
    return CudaMachine(problem, driver, devices, tuple(_components()), variables)


def _devices() -> tuple[str, str, tuple[CudaDeviceInfo, ...]]:
    try:
        hardware = _of_backend("hardware")
        problem = hardware.unavailable()
        version = ""
        if not why_hidden("QD_ENABLE_CUDA"):
            version = _driver_version()
        if problem:
            return problem, version, ()
        chosen: Any = None
        try:
            chosen = hardware.chosen()
        except Exception as error:
            problem = str(error).splitlines()[0]
        infos = tuple(_info(one, chosen) for one in hardware.devices())
        return problem, version, infos
    except Exception as error:  # any failure of a library here is reported, not raised
        return f"{type(error).__name__}: {error}".splitlines()[0], "", ()


def _of_backend(name: str) -> Any:
    """A module of the backend, which loads the driver's binding when it is used."""
    return importlib.import_module(f"..backends.cuda.{name}", __package__)


def _driver_version() -> str:
    try:
        driver = _of_backend("driver")
        number = int(driver.check(driver.binding().cuDriverGetVersion()))
    except Exception:
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"


def _info(one: Any, chosen: Any) -> CudaDeviceInfo:
    mine = chosen is not None and one.number == chosen.number
    capability = "{}.{}".format(*one.capability)
    return CudaDeviceInfo(
        one.number, one.name, one.uuid, capability, archs.of_capability(*one.capability),
        one.processors, one.memory, mine, _free() if mine else -1,
    )  # fmt: skip


def _free() -> int:
    """Bytes that are free on the device of this process, if it is at work there already."""
    try:
        return int(
            _of_backend("device").current().call("asking for free memory", "cuMemGetInfo")[0]
        )
    except Exception:
        return -1


def device_record(device: Any) -> DeviceRecord:
    """The record of a device that a kernel was launched on."""
    hardware: Any = getattr(device, "hardware", None)
    if hardware is None:
        return DeviceRecord(name=device.name)
    if not hasattr(hardware, "processors"):
        return DeviceRecord(
            name=hardware.name, driver=f"{hardware.driver_name} {hardware.driver}",
            multiprocessors=hardware.units, total_bytes=hardware.memory,
        )  # fmt: skip
    return DeviceRecord(
        name=hardware.name,
        driver=_driver_version(),
        capability="{}.{}".format(*hardware.capability),
        multiprocessors=hardware.processors,
        total_bytes=hardware.memory,
    )


# ---- components of the toolkit


def _components() -> Iterator[CudaComponent]:
    install = "python -m pip install"
    for name, purpose in (
        ("ptxas", "registers, spills and shared memory of kernels"),
        ("nvdisasm", "machine code as text"),
        ("cuobjdump", "machine code as text, where nvdisasm is missing"),
    ):
        path = _quietly(lambda name=name: ptxas.find(name))
        version = ptxas.version(path).partition(" ")[2] if path else ""
        yield CudaComponent(name, purpose, path, version, "" if path else ptxas.remedy(name))
    for name, purpose in (
        ("libdevice", "mathematical functions that PTX lacks"),
        ("libcudadevrt", "loops inside of graphs"),
        ("nvjitlink", "loops inside of graphs"),
    ):
        try:
            path, wrong = toolkit.library(name) or "", ""
        except Exception as error:
            path, wrong = "", str(error).splitlines()[0]
        hint = "" if path else f"{install} {toolkit.NAMES[name].package}"
        yield CudaComponent(name, wrong or purpose, path, "", hint)


def _quietly(find: Callable[[], str | None]) -> str:
    """The path that ``find`` returns; empty if it returns none, or raises."""
    try:
        return find() or ""
    except Exception:
        return ""


def lost_device() -> Exception | None:
    """The error after which CUDA is of no more use to this process; None while all is well.

    Some drivers give a process another context then, some do not: a new process is sure to work.
    """
    module = sys.modules.get(archs.__name__.replace(".archs", ".context"))
    return None if module is None else module.lost()
