"""The AMDGPU backend: ISA text and code objects by LLVM, for inspection.

There is no runtime for AMD GPUs here: kernels are compiled for a processor that is named, and never
launched. Texts: ``llvm_ir``, ``isa``, and ``llvm_ir_optimized`` on request; the code is the
relocatable object that is the input of ROCm's linker. Facts: ``resources``, for each task in order
what `code.resources` reports of its kernel; ``helpers``, the same of kernels that are no tasks, by
symbol; ``unresolved``, the functions of ROCm's device library that are called and not linked. The
register counts of a kernel that calls such functions do not include theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...config import CompileConfig
from ..base import Target
from ..inspection import Generated, InspectionBackend
from . import archs

if TYPE_CHECKING:
    from ...ir import Func

__all__ = ["BACKEND", "AmdgpuBackend"]


class AmdgpuBackend(InspectionBackend):
    """See `InspectionBackend`."""

    name = "amdgpu"
    title = "AMDGPU"
    reason = "no runtime: inspection only"
    default = archs.DEFAULT
    listing = ("isa", "gcn")
    option = "amdgpu_arch"

    def targets(self) -> tuple[str, ...]:
        return tuple(archs.ARCHS)

    def wanted(self, config: CompileConfig) -> str:
        return config.amdgpu_arch or self.default

    def target(self, config: CompileConfig) -> Target:
        from . import code

        return code.target(self.wanted(config))

    def generate(self, func: Func, config: CompileConfig, target: str, level: int) -> Generated:
        """ISA text and the object."""
        from ..llvm.gpu import lower_gpu
        from . import code
        from .dialect import AmdgpuDialect

        arch = archs.ARCHS[target]
        kernel = lower_gpu(func, config, arch.block_lds, AmdgpuDialect(arch.wave))
        made = code.generate(kernel.text, target, level)
        block_dims = {task.symbol: task.block_dim for task in kernel.tasks}
        block_dims |= {loop.symbol: loop.block_dim for loop in kernel.loops}
        found = code.resources(made.isa, target, block_dims)
        return Generated(
            kernel.meta, {"llvm_ir": kernel.text, "isa": made.isa}, made.code,
            {"llvm_ir": kernel.ids},
            {"llvm_ir_optimized": lambda: code.optimised(kernel.text, target, level)},
            {"layout": kernel.layout, "tasks": kernel.tasks,
             "resources": tuple(found.pop(task.symbol) for task in kernel.tasks),
             "helpers": found, "unresolved": code.unresolved(kernel.text)},
        )  # fmt: skip


BACKEND: Final = AmdgpuBackend()
