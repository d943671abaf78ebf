"""Code of the CPU backend for other processors: assembly and an object file, to be looked at.

The LLVM IR is that of the `cpu` backend. A target is a processor with the vectors that it is known
for; LLVM's scheduling model is that of the named processor, or a generic one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ...config import CompileConfig
from ...pipeline_kind import PipelineKind
from ..base import Target, find
from . import Generated, InspectionBackend

if TYPE_CHECKING:
    from ...ir import Func
    from ..llvm.toolchain import Machine

__all__ = ["BACKEND", "CrossBackend"]

# Name of the target -> triple, LLVM's name of the processor, features beyond those it implies.
_TARGETS: Final = {
    "aarch64": ("aarch64-unknown-linux-gnu", "generic", ""),
    "neoverse-v2": ("aarch64-unknown-linux-gnu", "neoverse-v2", ""),
    "riscv64": ("riscv64-unknown-linux-gnu", "generic-rv64", "+m,+a,+f,+d,+c,+v"),
    "x86-64": ("x86_64-unknown-linux-gnu", "x86-64", ""),
    "x86-64-v3": ("x86_64-unknown-linux-gnu", "x86-64-v3", ""),
    "x86-64-v4": ("x86_64-unknown-linux-gnu", "x86-64-v4", ""),
}


@cache
def _machine(target: Target, level: int) -> Machine:
    from ..llvm import toolchain

    llvm: Any = toolchain.binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return toolchain.Machine(target, level)


class CrossBackend(InspectionBackend):
    """See `InspectionBackend`."""

    name = "cross"
    title = "cross-compilation"
    reason = "code for other processors: inspection only"
    default = "aarch64"
    listing = ("asm", "asm")

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        return find("cpu").pipeline(config)

    def targets(self) -> tuple[str, ...]:
        return tuple(_TARGETS)

    def target(self, config: CompileConfig) -> Target:
        return Target(self.name, *_TARGETS[self.wanted(config)])

    def generate(self, func: Func, config: CompileConfig, target: str, level: int) -> Generated:
        """Assembly and the object file."""
        from ..llvm import toolchain
        from ..llvm.kernel import lower_kernel
        from ..llvm.lines import LaterTexts

        kernel = lower_kernel(func, config.fast_math, "", False, config.cpu_max_num_threads)
        machine = _machine(self.target(config), level)
        lines = {"llvm_ir": kernel.ids}
        later = LaterTexts(kernel.text, lines, lambda: machine, level)
        with toolchain.LOCK:
            module = machine.parse(kernel.text, verify=config.debug)
            module.optimise(level)
            code = module.object_code()
        return Generated(
            kernel.meta, {"llvm_ir": kernel.text}, code, lines,
            {"llvm_ir_optimized": later.optimised, "asm": later.assembly},
            {"symbol": kernel.symbol, "layout": kernel.layout}, later.remarks,
        )  # fmt: skip


BACKEND: Final = CrossBackend()
