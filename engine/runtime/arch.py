"""Architectures: the names a program may ask for, and the backend each one means here.

``qd.cpu`` is the CPU of this machine, of any kind; ``qd.x64`` and ``qd.arm64`` are that CPU only
where it is of that kind. ``qd.gpu`` means the first GPU backend that works.
``qd.python``, under which the reference runs kernels as plain Python, is the interpreter.
"""

from __future__ import annotations

import platform
from typing import Final

from .. import logs as log
from ..backends import base
from ..config import ARCHES
from ..errors import QuadrantsRuntimeError

__all__ = ["ARCHS", "Arch", "choose", "support"]


class Arch(str):
    """The name of an architecture.

    Equal to its plain text; ``cpu`` equals the architecture of this machine, too. ``gpu`` contains
    the GPU backends.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return NotImplemented
        return str.__eq__(self, other) or _of_machine(self) == _of_machine(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_of_machine(self))

    def __contains__(self, key: str) -> bool:
        return str(key) in _GPUS if str.__eq__(self, "gpu") else str.__contains__(self, key)

    @property
    def name(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"qd.{self!s}"


ARCHS: Final = {name: Arch(name) for name in ARCHES}
_MACHINES: Final = {
    "x86_64": "x64", "amd64": "x64", "x64": "x64", "aarch64": "arm64", "arm64": "arm64",
}  # fmt: skip
_GPUS: Final = ("cuda", "amdgpu", "opencl", "metal", "vulkan")
"""The GPU backends, in the order in which ``qd.gpu`` tries them."""


def host() -> str:
    """``x64`` or ``arm64``; the machine's own name for any other."""
    machine = platform.machine().lower()
    return _MACHINES.get(machine, machine)


def _of_machine(name: str) -> str:
    """The name as plain text, with this machine's architecture for ``cpu``."""
    return host() if str.__eq__(name, "cpu") else str(name)


def support(arch: str, device: str = "") -> tuple[str, str]:
    """(backend, "") for an arch that this machine can run, else ("", the reason).

    device: the option `opencl_device`.
    """
    if arch in ("x64", "arm64"):
        if arch != host():
            return "", f"this machine is {host()}"
        arch = "cpu"
    if arch == "python":
        arch = "interp"
    if arch == "gpu":
        for name in _GPUS:
            if base.availability(name)[0] and _is_gpu(name, device):
                return name, ""
        return "", "no GPU backend works here"
    works, reason = base.availability(arch)
    return (arch, "") if works else ("", reason)


def _is_gpu(backend: str, device: str) -> bool:
    """True if an available backend runs on a GPU: OpenCL runs on CPUs, too."""
    if backend != "opencl":
        return True
    from ..backends.opencl import hardware

    return hardware.chosen(device).kind == "gpu"


def choose(wanted: tuple[str, ...], fallback: bool, device: str = "") -> tuple[str, str]:
    """The first of ``wanted`` that works, as (arch, backend); the CPU if none does.

    device: the option `opencl_device`. Without ``fallback`` an arch that does not work is a
    QuadrantsRuntimeError.
    """
    reasons: list[str] = []
    for arch in wanted:
        backend, reason = support(arch, device) if arch == "gpu" else support(arch)
        if backend:
            return (arch if arch == "python" else host() if backend == "cpu" else backend), backend
        reasons.append(f"{arch}: {reason}")
    names = ", ".join(wanted)
    shown = f"[{names}]" if len(wanted) > 1 else names
    why = "; ".join(reasons)
    if not fallback:
        raise QuadrantsRuntimeError(f"Arch={shown} is not supported ({why})")
    log.warn(f"Arch={shown} is not supported, falling back to CPU ({why})")
    backend, reason = support("cpu")
    if not backend:
        raise QuadrantsRuntimeError(f"Arch=cpu is not supported ({reason})")
    return host(), backend
