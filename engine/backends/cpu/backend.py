"""The CPU backend: LLVM IR text, LLVM's pipeline for this machine, relocatable objects."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

from ...config import CompileConfig
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, HostBackend, Target
from ..injected import NO_CACHE, InjectedCache
from ..llvm import toolchain

if TYPE_CHECKING:
    from ...ir import Func
    from ..llvm.lines import LaterTexts
    from ..tiers import FirstCode
    from .code import CodeJob
    from .executable import CpuExecutable

__all__ = ["BACKEND", "CpuBackend"]


class CpuBackend(HostBackend):
    """See `base.Backend`."""

    name = "cpu"
    caps = Caps(frozenset(PRIMITIVE_TYPES))
    keeps_locations = False

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        from . import processor

        widest = config.max_vector_width
        wide = (not widest or widest >= _WIDE) and processor.has_wide_vectors()
        return PipelineKind.WIDE_CPU if wide else PipelineKind.CPU

    def available(self) -> tuple[bool, str]:
        if importlib.util.find_spec("llvmlite") is None:
            return False, "llvmlite is not installed"
        return True, ""

    def target(self, config: CompileConfig) -> Target:
        return toolchain.host_target()

    def toolchain(self) -> str:
        return toolchain.version()

    def fingerprint(self, config: CompileConfig) -> str:
        from . import processor

        return processor.fingerprint()

    def identity(self) -> str:
        return toolchain.identity()

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate machine code; optimised IR and assembly are made again when asked for."""
        from ..llvm.kernel import lower_kernel
        from ..llvm.short import pipeline
        from ..llvm.text import FAST
        from .code import CodeJob, full_code
        from .native import target as host_target

        threads = config.cpu_max_num_threads
        kernel = lower_kernel(
            func, config.fast_math, _attributes(config), config.kernel_profiler, threads
        )
        target = host_target(cache)
        level = config.external_optimization_level if config.opt_level else 0
        passes = pipeline(func, level)
        job = CodeJob(
            kernel.source, (kernel.symbol,), target, level, passes, config.debug,
            config.num_compile_threads,
        )  # fmt: skip
        first: FirstCode | None = None
        if cache.tiered and level and (config.tiered != "exact" or FAST not in kernel.source.text):
            from .first_tier import first_tier

            first = first_tier(func, kernel, job, cache)
        if first is None and cache.ahead:
            first = _begun(job)
        code = b"" if first else full_code(job)
        artifact = Artifact(
            self.name, target, kernel.meta, None, code, None,
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "asm": "asm"},
            facts={"symbol": kernel.symbol, "layout": kernel.layout,
                   "threads": threads},
        )  # fmt: skip
        if first is not None:
            artifact.first, artifact.later = first, first.pending.finish
        lines, remarks = artifact.lines, artifact.remarks
        made: list[LaterTexts] = []

        def text() -> str:
            lines["llvm_ir"] = kernel.ids
            return kernel.text

        def later() -> LaterTexts:
            if not made:
                from ..llvm.lines import LaterTexts

                machine = toolchain.machine(target, level)
                made.append(LaterTexts(text(), lines, lambda: machine, level, passes, remarks))
            return made[0]

        artifact.lazy.update(
            llvm_ir=text,
            llvm_ir_optimized=lambda: later().optimised(),
            asm=lambda: later().assembly(),
        )
        if first is None or not kernel.source.copies:  # else few look at it
            artifact.text("llvm_ir")
        return artifact

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> CpuExecutable:
        from .executable import CpuExecutable

        facts: dict[str, Any] = artifact.facts
        if artifact.first is not None and artifact.later is not None and cache.tiered:
            from .first_tier import TieredExecutable

            if artifact.first.code and not artifact.first.pending.ready:
                return TieredExecutable(artifact, facts, cache)
        artifact.machine_code()
        return CpuExecutable(artifact, facts["symbol"], facts["threads"], facts["layout"], cache)


def _begun(job: CodeJob) -> FirstCode | None:
    """Code that is begun in the background; None where that cannot be."""
    from ..tiers import LaterCode
    from . import background

    pending = background.submit(job)
    return None if pending is None else LaterCode(pending)


def _attributes(config: CompileConfig) -> str:
    """Attributes of every function that LLVM's pipeline looks at."""
    width = config.max_vector_width
    return f'"prefer-vector-width"="{32 * width}"' if width else ""


_WIDE: Final = 16
"""Lanes of 32 bits of a register of 64 bytes."""

BACKEND: Final = CpuBackend()
