"""NVIDIA GPUs as LLVM knows them: the version of PTX for each, and LLVM's code generators."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final

from ..base import Target
from ..llvm import toolchain

__all__ = ["TRIPLE", "features", "library", "machine", "own_machine", "target"]

TRIPLE: Final = "nvptx64-nvidia-cuda"

_own: Final = threading.local()
_PTX_OF: Final = ((100, 86), (90, 81), (0, 75))
"""From this architecture on, the version of PTX: as old as will do, for old drivers."""


def features(arch: str) -> str:
    """LLVM's name for the version of PTX that ``arch`` (``sm_90``) gets."""
    number = int("".join([c for c in arch if c.isdigit()]))
    version = next(ptx for least, ptx in _PTX_OF if number >= least)
    return f"+ptx{version}"


def target(arch: str) -> Target:
    return Target("cuda", TRIPLE, arch, features(arch))


@cache
def machine(arch: str, level: int) -> toolchain.Machine:
    """LLVM's code generator for one architecture, for modules that share a context."""
    llvm: Any = toolchain.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return toolchain.Machine(target(arch), level)


def own_machine(arch: str, level: int) -> toolchain.Machine:
    """One for modules of this thread, which shares nothing with other threads."""
    found: toolchain.Machine | None = getattr(_own, f"{arch} {level}", None)
    if found is None:
        found = toolchain.Machine(target(arch), level, library())
        setattr(_own, f"{arch} {level}", found)
    return found


@cache
def library() -> Any:
    """`toolchain.library`, ready to generate PTX."""
    llvm: Any = toolchain.library()
    with toolchain.LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm
