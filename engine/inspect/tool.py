"""The origin of a record: versions, and the machine it was made on."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import platform
from typing import Any, Final

from ..config import available_cpus
from ..version import VERSION
from .record import ToolInfo

__all__ = ["cpu_features", "cpu_name", "tool_info", "version_of"]

_VECTOR: Final = (
    "sse2", "sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "neon", "sve", "sve2",
)  # fmt: skip


@functools.cache
def version_of(package: str) -> str:
    """The installed version of a distribution; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def cpu_name() -> str:
    """The processor's name as the system reports it, or the machine type."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _llvm() -> Any:
    """llvmlite's binding, loaded now; None if it is not installed."""
    try:
        return importlib.import_module("llvmlite.binding")
    except ImportError:
        return None


def llvm_version() -> str:
    """The version of LLVM inside llvmlite, loading it; empty without llvmlite."""
    binding = _llvm()
    return "" if binding is None else ".".join(map(str, binding.llvm_version_info))


def cpu_features() -> str:
    """The processor as LLVM sees it: its model and what bears on vector code."""
    binding = _llvm()
    if binding is None:
        return ""
    has: dict[str, bool] = dict(binding.get_host_cpu_features())
    vector = [name for name in _VECTOR if has.get(name)]
    return f"{binding.get_host_cpu_name()}: {' '.join(vector) or 'no vector units known'}"


@functools.cache
def tool_info() -> ToolInfo:
    """Versions and machine. Loads llvmlite, which a process that captures needs anyway."""
    return ToolInfo(
        version=VERSION,
        python=platform.python_version(),
        platform=platform.platform(aliased=True, terse=True),
        numpy=version_of("numpy"),
        llvm=llvm_version(),
        cpu=cpu_name(),
        threads=available_cpus(),
    )
