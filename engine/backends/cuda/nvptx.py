"""LLVM IR -> PTX: the only module that turns kernels for NVIDIA GPUs into code for a driver."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any, Final

from ...named_tuple import NamedTuple
from ..injected import NO_CACHE, InjectedCache
from ..llvm import toolchain
from ..llvm.text import FTZ, PRODUCT
from . import libdevice
from .targets import machine, own_machine

__all__ = ["FullJob", "first_ptx", "has_first_tier", "made", "make_ptx", "optimised", "pipeline"]

_WHOLE: Final = 3
"""From this level on every kernel gets LLVM's whole pipeline."""
_NEEDS_WHOLE: Final = re.compile(
    r"alloca \["  # an array of a thread is in registers once the loops over it are unrolled
    r"|unroll\.(?:count|full)"  # copies of a body, whose accesses LLVM joins
    r"|nvvm\.mma|nvvm\.wmma|wgmma"  # all depends on their registers
    r"|@__nv_|@qd\.ipow| #2 \{$"  # functions to inline
    r"|\bt\d+\.s\d+\.base\b",  # adstacks: how they are pushed and read is simplified
    re.MULTILINE,
)
_GAINS: Final = re.compile(
    r"nvvm\.maxnreg"
    r"|= [su](?:rem|div) i\d+ %[\w.]+, %"  # quicker where LLVM sees that nothing is negative
)
_TENSORS: Final = re.compile(r"nvvm\.mma|nvvm\.wmma|wgmma")
_TILE: Final = re.compile(r"^full\d+:", re.MULTILINE)
"""A thread's neighbouring iterations, whose equal operations LLVM joins: up to a fifth of them in
stencils, whose launches on an H200 were 10 % longer without."""
_LONG: Final = 300
"""Lines of a text with tiles from which on they are worth it."""


_ARRAY: Final = "alloca ["
"""The array of a thread is in registers once the loops over it are unrolled."""
_SHORT: Final = 50
"""Lines of a text up to which a second code is not worth a millisecond."""
_HEAD: Final = ".address_size 64\n"
_ROLLED: Final = '.pragma "nounroll";\n'


def pipeline(llvm_ir: str, level: int) -> toolchain.Pipeline:
    """The pipeline of LLVM that a module gets.

    Our own passes have simplified the code, and the driver's compiler optimises it again: it moves
    code out of loops and joins equal operations. The passes left out are half of LLVM's time. Where
    the machine code is not the same but for a few instructions a kernel gets all of them.

    Products in tiles do not: their addresses as the whole pipeline leaves them take LLVM's
    generator a second, since it compares each with all others. Joined, and next to their uses, they
    make launches as quick or quicker.
    """
    product = PRODUCT in llvm_ir
    whole = (
        not 0 < level < _WHOLE
        or _NEEDS_WHOLE.search(llvm_ir) is not None
        or (not product and _GAINS.search(llvm_ir) is not None)
        or (_TILE.search(llvm_ir) is not None and llvm_ir.count("\n") > _LONG)
    )
    return "whole" if whole else "product" if product else "device"


def has_first_tier(llvm_ir: str) -> bool:
    """True for a module whose full code needs longer to be made than first-tier code. Tensor cores
    read registers, whose number full code alone keeps small."""
    return llvm_ir.count("\n") > _SHORT and _TENSORS.search(llvm_ir) is None


def _module(llvm_ir: str, arch: str, level: int, cache: InjectedCache) -> toolchain.Module:
    for_arch = machine(arch, level)
    module = for_arch.parse(llvm_ir)
    module.ref.data_layout = str(for_arch.ref.target_data)
    names = libdevice.called(llvm_ir)
    if names:
        libdevice.link(module, names, FTZ in llvm_ir, cache)
    module.optimise(level, pipeline(llvm_ir, level))
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
        return _alone(llvm_ir, arch, level, pipeline(llvm_ir, level), level)


class FullJob(NamedTuple):
    """Full code of a module that calls no libdevice; see `tiers.Job`."""

    text: str
    arch: str
    level: int

    @property
    def lines(self) -> int:
        """See `tiers.Job`."""
        return self.text.count("\n")

    def make(self) -> bytes:
        return make_ptx(*self, alone=True).encode()

    def plain(self) -> tuple[str, tuple[Any, ...]]:
        return __name__, tuple(self)

    def safer(self) -> FullJob:
        return self


def made(text: str, arch: str, level: int) -> bytes:
    """The code of a job from a program; see `FullJob.plain`."""
    return FullJob(text, arch, level).make()


def first_ptx(llvm_ir: str, arch: str) -> str:
    """PTX of the first tier, for modules that call no libdevice: a few passes, and LLVM's fastest
    code generator. The driver optimises it as it does full code, but unrolls no loop: that would be
    a third of its time.

    llvm_ir: see `gpu.GpuText.first_tier`.
    """
    if _ARRAY in llvm_ir:
        return _alone(llvm_ir, arch, 2, "device", 0)
    return _alone(llvm_ir, arch, 2, "short", 0).replace(_HEAD, _HEAD + _ROLLED, 1)


def _alone(llvm_ir: str, arch: str, level: int, passes: toolchain.Pipeline, generator: int) -> str:
    """`make_ptx` by a module that shares nothing with others. generator: level of LLVM's code
    generator."""
    for_arch = own_machine(arch, generator)
    context = for_arch.llvm.create_context()
    module = for_arch.parse(llvm_ir, context=context)
    try:
        module.ref.data_layout = str(for_arch.ref.target_data)
        module.optimise(level, passes)
        return module.assembly()
    finally:
        module.close()
        context.close()
