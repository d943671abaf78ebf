"""The SPIR-V backend: modules for OpenCL devices by LLVM, for inspection.

Texts: ``llvm_ir``, ``spirv``, and ``llvm_ir_optimized`` on request; the code is the binary
module. It launches nothing by itself: the OpenCL backend launches the same modules on devices that
accept them (option ``opencl_il``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...config import CompileConfig
from ...pipeline_kind import PipelineKind
from ..base import Target
from ..inspection import Generated, InspectionBackend

if TYPE_CHECKING:
    from ...ir import Func

__all__ = ["BACKEND", "SpirvBackend"]

_MOST_SHARED: Final = 64 << 10


class SpirvBackend(InspectionBackend):
    """See `InspectionBackend`."""

    name = "spirv"
    title = "SPIR-V"
    reason = (
        "inspection only: with opencl_il=True opencl launches such code on devices that take it"
    )
    default = "opencl"
    listing = ("spirv", "spirv")

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        return PipelineKind.GPU_NO_SUBGROUPS

    def target(self, config: CompileConfig) -> Target:
        from . import code

        return code.target()

    def fingerprint(self, config: CompileConfig) -> str:
        return "SPIR-V for OpenCL"

    def generate(self, func: Func, config: CompileConfig, target: str, level: int) -> Generated:
        """The module, as text and binary."""
        from . import code

        made = code.lower_spirv(func, config, level, _MOST_SHARED)
        kernel = made.kernel
        return Generated(
            kernel.meta, {"llvm_ir": kernel.text, "spirv": made.text}, made.code,
            {"llvm_ir": kernel.ids},
            {"llvm_ir_optimized": lambda: code.optimised(kernel.text, level)},
            {"layout": kernel.layout, "tasks": made.tasks},
        )  # fmt: skip


BACKEND: Final = SpirvBackend()
