"""LLVM IR -> PTX: the only module that turns kernels for NVIDIA GPUs into code for a driver."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from ..base import Target
from ..injected import NO_CACHE, InjectedCache
from ..llvm import toolchain
from ..llvm.text import FTZ
from . import libdevice

__all__ = ["TRIPLE", "features", "make_ptx", "optimised", "target"]

TRIPLE: Final = "nvptx64-nvidia-cuda"

_PTX_OF: Final = ((100, 86), (90, 80), (0, 75))
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
    """LLVM's code generator for one architecture."""
    llvm: Any = toolchain.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return toolchain.Machine(target(arch), level)


def _module(llvm_ir: str, arch: str, level: int, cache: InjectedCache) -> toolchain.Module:
    for_arch = machine(arch, level)
    module = for_arch.parse(llvm_ir)
    module.ref.data_layout = str(for_arch.ref.target_data)
    names = libdevice.called(llvm_ir)
    if names:
        libdevice.link(module, names, FTZ in llvm_ir, cache)
    module.optimise(level)
    return module


def optimised(llvm_ir: str, arch: str, level: int) -> str:
    """The IR as it is before PTX is made of it."""
    with toolchain.LOCK:
        return _module(llvm_ir, arch, level, NO_CACHE).text()


def make_ptx(llvm_ir: str, arch: str, level: int, cache: InjectedCache = NO_CACHE) -> str:
    """PTX of a module. arch: as ``sm_90``. level: of LLVM's passes, 0 to 3."""
    with toolchain.LOCK:
        return _module(llvm_ir, arch, level, cache).assembly()
