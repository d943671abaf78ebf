"""LLVM IR -> PTX: the only module that turns kernels for NVIDIA GPUs into code for a driver."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..injected import NO_CACHE, InjectedCache
from ..llvm import toolchain
from ..llvm.text import FTZ
from . import libdevice
from .targets import machine, target

__all__ = ["make_ptx", "optimised"]


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


def make_ptx(
    llvm_ir: str, arch: str, level: int, cache: InjectedCache = NO_CACHE, alone: bool = False
) -> str:
    """PTX of a module. arch: as ``sm_90``. level: of LLVM's passes, 0 to 3.

    alone: other threads may make PTX meanwhile; only for modules that call no libdevice.
    """
    with nullcontext() if alone else toolchain.LOCK:
        if libdevice.called(llvm_ir):
            return _module(llvm_ir, arch, level, cache).assembly()
        return _alone(llvm_ir, arch, level)


def _alone(llvm_ir: str, arch: str, level: int) -> str:
    """`make_ptx` by a module that shares nothing with others."""
    llvm: Any = machine(arch, level).llvm
    context = llvm.create_context()
    for_arch = toolchain.Machine(target(arch), level)
    module = for_arch.parse(llvm_ir, context=context)
    try:
        module.ref.data_layout = str(for_arch.ref.target_data)
        module.optimise(level)
        return module.assembly()
    finally:
        module.close()
        context.close()
