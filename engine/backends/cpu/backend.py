"""The CPU backend: LLVM IR text, LLVM's pipeline for this machine, ORC."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

from ...config import CompileConfig
from ...ir import Func
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, Target
from ..llvm import toolchain
from ..llvm.kernel import lower_kernel

if TYPE_CHECKING:
    from .executable import CpuExecutable

__all__ = ["BACKEND", "CpuBackend"]


class CpuBackend:
    """See `base.Backend`."""

    name = "cpu"
    caps = Caps(frozenset(PRIMITIVE_TYPES))

    def available(self) -> tuple[bool, str]:
        if importlib.util.find_spec("llvmlite") is None:
            return False, "llvmlite is not installed"
        return True, ""

    def target(self, config: CompileConfig) -> Target:
        return toolchain.host_target()

    def toolchain(self) -> str:
        return toolchain.version()

    def lower(self, func: Func, config: CompileConfig) -> Artifact:
        """Generate object code; optimised IR and assembly are made again when asked for."""
        kernel = lower_kernel(func, config.fast_math, _attributes(config))
        target = self.target(config)
        level = config.external_optimization_level if config.opt_level else 0
        machine = toolchain.machine(target, level)
        text = kernel.text

        def optimised() -> toolchain.Module:
            module = machine.parse(text)
            module.optimise(level)
            return module

        module = machine.parse(text, verify=config.debug)
        module.optimise(level)
        return Artifact(
            self.name, target, kernel.meta, {"llvm_ir": text}, module.object_code(),
            {"llvm_ir": kernel.ids},
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "asm": "asm"},
            {"llvm_ir_optimized": lambda: optimised().text(),
             "asm": lambda: optimised().assembly()},
            {"symbol": kernel.symbol, "layout": kernel.layout,
             "threads": config.cpu_max_num_threads},
        )  # fmt: skip

    def load(self, artifact: Artifact) -> CpuExecutable:
        from .executable import CpuExecutable

        facts: dict[str, Any] = artifact.facts
        return CpuExecutable(artifact, facts["symbol"], facts["threads"], facts["layout"])


def _attributes(config: CompileConfig) -> str:
    """Attributes of every function that LLVM's pipeline looks at."""
    width = config.max_vector_width
    return f'"prefer-vector-width"="{32 * width}"' if width else ""


BACKEND: Final = CpuBackend()
