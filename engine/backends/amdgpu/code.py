"""LLVM IR -> ISA text and code object for AMD GPUs, and what the text says of each kernel.

LLVM changes a module when it generates code from it, so the text and the object are made from two
copies of one optimised module. The text includes comments and metadata, which `resources` turns
into facts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from ...named_tuple import NamedTuple
from ..base import Target
from ..llvm import toolchain
from .archs import ARCHS, Arch, occupancy
from .dialect import LIBRARY_PREFIX, AmdgpuDialect

__all__ = ["Generated", "generate", "optimised", "resources", "target", "unresolved"]

_CALLED: Final = re.compile(rf"^declare [^@\n]*@({LIBRARY_PREFIX}\w+)\(", re.M)
_KERNEL: Final = re.compile(r"^  - ", re.M)
_FACT: Final = re.compile(r"^(?:    )?\.(\w+): +(\S+)$", re.M)
_LENGTH: Final = re.compile(r"^\t\.size\t([\w.$]+), .*?^; codeLenInByte = (\d+)", re.M | re.S)


def target(arch: str) -> Target:
    return Target("amdgpu", AmdgpuDialect.triple, arch)


@cache
def machine(arch: str, level: int) -> toolchain.Machine:
    """LLVM's code generator for one processor."""
    llvm: Any = toolchain.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    made = toolchain.Machine(target(arch), level)
    made.ref.set_asm_verbosity(True)  # comments hold the sizes of code
    return made


def _module(llvm_ir: str, arch: str, level: int) -> toolchain.Module:
    for_arch = machine(arch, level)
    module = for_arch.parse(llvm_ir)
    module.ref.data_layout = str(for_arch.ref.target_data)
    module.optimise(level)
    return module


class Generated(NamedTuple):
    """isa: the text. code: the relocatable object, ELF."""

    isa: str
    code: bytes


def generate(llvm_ir: str, arch: str, level: int, *, code: bool = True) -> Generated:
    """Both of a module. arch: as ``gfx942``. level: of LLVM's passes, 0 to 3. code: make it."""
    with toolchain.LOCK:
        module = _module(llvm_ir, arch, level)
        made = b""
        if code:
            copy: Any = module.ref.clone()
            made = bytes(machine(arch, level).ref.emit_object(copy))
        return Generated(module.assembly(), made)


def optimised(llvm_ir: str, arch: str, level: int) -> str:
    """The IR as it is before code is made of it."""
    with toolchain.LOCK:
        return _module(llvm_ir, arch, level).text()


def unresolved(llvm_ir: str) -> tuple[str, ...]:
    """The functions of the device library that a module calls, and that nothing defines."""
    return tuple(sorted(_CALLED.findall(llvm_ir)))


def resources(isa: str, arch: str, block_dims: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Return the resources that each kernel of an ISA text needs, by its symbol.

    block_dims: threads of its blocks.

    vgprs, agprs: registers of a lane; sgprs: of a wave; vgpr_spills, sgpr_spills: those kept in
    memory. scratch_bytes: of a thread; dynamic_stack: it may need an unknown amount more.
    lds_bytes: of a block. wave: lanes. occupancy: waves that a SIMD holds at a time, of
    occupancy_most; occupancy_limit: the resource that prevents more. code_bytes: of the kernel.
    """
    lengths = {name: int(length) for name, length in _LENGTH.findall(isa)}
    found: dict[str, dict[str, Any]] = {}
    kernels = isa.partition("\namdhsa.kernels:")[2].partition("\namdhsa.")[0]
    for text in _KERNEL.split(kernels)[1:]:
        facts = dict(_FACT.findall(text))
        symbol = facts["name"]
        found[symbol] = _of_kernel(facts, ARCHS[arch], block_dims.get(symbol, 1)) | {
            "code_bytes": lengths.get(symbol, 0)
        }
    return found


def _of_kernel(facts: dict[str, str], arch: Arch, block_dim: int) -> dict[str, Any]:
    vgprs, agprs, sgprs, lds = (
        int(facts.get(name, 0))
        for name in ("vgpr_count", "agpr_count", "sgpr_count", "group_segment_fixed_size")
    )
    # `vgpr_count` counts both kinds where they are one file.
    held = occupancy(arch, block_dim, vgprs, sgprs, lds)
    own = vgprs - agprs if agprs else vgprs
    return {
        "vgprs": own,
        "agprs": agprs,
        "sgprs": sgprs,
        "vgpr_spills": int(facts["vgpr_spill_count"]),
        "sgpr_spills": int(facts["sgpr_spill_count"]),
        "scratch_bytes": int(facts["private_segment_fixed_size"]),
        "dynamic_stack": facts["uses_dynamic_stack"] == "true",
        "lds_bytes": lds,
        "wave": int(facts["wavefront_size"]),
        "occupancy": held.waves,
        "occupancy_most": held.most,
        "occupancy_limit": held.limit,
    }
