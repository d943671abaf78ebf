"""What made a record: versions, and the machine it was made on."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

from ..config import available_cpus
from .record import ToolInfo

__all__ = ["cpu_name", "tool_info", "version_of"]


def version_of(package: str) -> str:
    """The installed version of a distribution; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def cpu_name() -> str:
    """The processor's name as the system tells it, or the machine type."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return " ".join(line.split(":", 1)[1].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def llvm_version() -> str:
    """The version of LLVM inside llvmlite, loading it; empty without llvmlite."""
    try:
        from llvmlite import binding
    except ImportError:
        return ""
    return ".".join(map(str, binding.llvm_version_info))


@functools.cache
def tool_info() -> ToolInfo:
    """Versions and machine. Loads llvmlite, which a process that captures needs anyway."""
    return ToolInfo(
        version=version_of("qd-studio"),
        python=platform.python_version(),
        platform=platform.platform(aliased=True, terse=True),
        numpy=version_of("numpy"),
        llvm=llvm_version(),
        cpu=cpu_name(),
        threads=available_cpus(),
    )
