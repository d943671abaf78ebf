"""The AMDGPU backend: ISA text and code objects by LLVM, for inspection.

There is no runtime for AMD GPUs here: kernels are compiled for a processor that is named, and never
launched. Texts: ``llvm_ir``, ``isa``, and ``llvm_ir_optimized`` when asked for; the code is the
relocatable object that ROCm's linker would take. Facts: ``resources``, for each task in order what
`code.resources` says of its kernel, ``helpers`` the same of kernels that are no tasks, by symbol,
and ``unresolved``, the functions of ROCm's device library that are called and not linked. Register
counts of a kernel that calls those are without what they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...config import CompileConfig
from ..base import Artifact, Target
from ..injected import NO_CACHE, InjectedCache
from ..llvm.inspection import InspectionBackend
from . import archs

if TYPE_CHECKING:
    from ...ir import Func

__all__ = ["BACKEND", "AmdgpuBackend"]


class AmdgpuBackend(InspectionBackend):
    """See `InspectionBackend`."""

    name = "amdgpu"
    reason = "no runtime: inspection only"

    def targets(self) -> tuple[str, ...]:
        return archs.names()

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        return config.replace(amdgpu_arch=archs.check(name).name if name else "")

    def target(self, config: CompileConfig) -> Target:
        from . import code

        return code.target(archs.of_config(config).name)

    def fingerprint(self, config: CompileConfig) -> str:
        return archs.of_config(config).name

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate ISA text and the object."""
        from ..llvm.gpu import lower_gpu
        from . import code
        from .dialect import AmdgpuDialect

        arch = archs.of_config(config)
        kernel = lower_gpu(func, config, arch.block_lds, AmdgpuDialect(arch.wave))
        level = config.external_optimization_level if config.opt_level else 0
        made = code.generate(kernel.text, arch.name, level)
        block_dims = {task.symbol: task.block_dim for task in kernel.tasks}
        block_dims |= {loop.symbol: loop.block_dim for loop in kernel.loops}
        found = code.resources(made.isa, arch.name, block_dims)
        return Artifact(
            self.name, self.target(config), kernel.meta, {"llvm_ir": kernel.text, "isa": made.isa},
            made.code, {"llvm_ir": kernel.ids},
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "isa": "gcn"},
            {"llvm_ir_optimized": lambda: code.optimised(kernel.text, arch.name, level)},
            {"layout": kernel.layout, "tasks": kernel.tasks,
             "resources": tuple(found.pop(task.symbol) for task in kernel.tasks),
             "helpers": found, "unresolved": code.unresolved(kernel.text)},
        )  # fmt: skip


BACKEND: Final = AmdgpuBackend()
