"""The SPIR-V backend: modules for OpenCL devices by LLVM, for inspection.

Texts: ``llvm_ir``, ``spirv``, and ``llvm_ir_optimized`` when asked for; the code is the binary
module. It launches nothing by itself: the OpenCL backend takes the same modules to devices that
accept them (option ``opencl_il``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...config import CompileConfig
from ..base import Artifact, Target
from ..injected import NO_CACHE, InjectedCache
from ..llvm.inspection import InspectionBackend

if TYPE_CHECKING:
    from ...ir import Func

__all__ = ["BACKEND", "SpirvBackend"]

_TARGET: Final = "opencl"
_MOST_SHARED: Final = 64 << 10


class SpirvBackend(InspectionBackend):
    """See `InspectionBackend`."""

    name = "spirv"
    reason = (
        "inspection only: with opencl_il=True opencl launches such code on devices that take it"
    )

    def targets(self) -> tuple[str, ...]:
        return (_TARGET,)

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        if name not in ("", _TARGET):
            raise ValueError(f"there is no SPIR-V target {name!r}; known: {_TARGET}")
        return config

    def target(self, config: CompileConfig) -> Target:
        from . import code

        return code.target()

    def fingerprint(self, config: CompileConfig) -> str:
        return "SPIR-V for OpenCL"

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate the module, as text and binary."""
        from . import code

        level = config.external_optimization_level if config.opt_level else 0
        made = code.lower_spirv(func, config, level, _MOST_SHARED)
        kernel = made.kernel
        return Artifact(
            self.name, self.target(config), kernel.meta,
            {"llvm_ir": kernel.text, "spirv": made.text}, made.code, {"llvm_ir": kernel.ids},
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "spirv": "spirv"},
            {"llvm_ir_optimized": lambda: code.optimised(kernel.text, level)},
            {"layout": kernel.layout, "tasks": made.tasks},
        )  # fmt: skip


BACKEND: Final = SpirvBackend()
