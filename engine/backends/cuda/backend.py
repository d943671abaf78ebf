"""The CUDA backend: LLVM IR text, PTX by LLVM, the driver for the rest."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ...config import CompileConfig
from ...errors import CudaError
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, Device, Executable, Target
from ..injected import NO_CACHE, InjectedCache, PtxJob
from . import archs

if TYPE_CHECKING:
    from ...ir import Func
    from ..llvm.gpu import GpuText

__all__ = ["BACKEND", "CudaBackend"]


class CudaBackend:
    """See `base.Backend`."""

    name = "cuda"
    caps = Caps(frozenset(PRIMITIVE_TYPES))
    keeps_locations = False
    makes_ptx = True

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        arch = archs.check(self.arch(config))
        if arch.multiplies_shared:
            return PipelineKind.WARPGROUP_GPU
        if arch.adds_vectors:
            return PipelineKind.VECTOR_ATOMICS_GPU
        return PipelineKind.TENSOR_GPU if arch.multiplies_fragments else PipelineKind.GPU

    def available(self) -> tuple[bool, str]:
        if importlib.util.find_spec("llvmlite") is None:
            return False, "llvmlite is not installed"
        from . import hardware

        reason = hardware.unavailable()
        return not reason, reason

    def targets(self) -> tuple[str, ...]:
        return archs.names()

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        return config.replace(cuda_arch=archs.check(name).name if name else "")

    def compile_only(self) -> str:
        return ""

    def arch(self, config: CompileConfig) -> str:
        """The target architecture of the code: the one that the options name, or the device's."""
        wanted = archs.wanted(config)
        if wanted:
            return wanted
        from .device import arch

        return arch()

    def target(self, config: CompileConfig) -> Target:
        from . import targets

        return targets.target(self.arch(config))

    def toolchain(self) -> str:
        from ..llvm import toolchain

        return toolchain.version()

    def fingerprint(self, config: CompileConfig) -> str:
        from . import targets

        arch = self.arch(config)
        return f"{arch}, {targets.features(arch)}"

    def identity(self) -> str:
        from ..llvm import toolchain

        return toolchain.identity()

    def open(self, config: CompileConfig) -> Device:
        from .device import CudaDevice

        return CudaDevice(config)

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate PTX; other texts are made when asked for."""
        from ...analysis import recursive
        from ..llvm.gpu import lower_gpu
        from . import dialect, libdevice, nvptx, targets

        arch = self.arch(config)
        kernel = lower_gpu(func, config, archs.check(arch).block_shared, dialect.NVVM)
        level = config.external_optimization_level if config.opt_level else 0
        settings = [("features", targets.features(arch))]
        if libdevice.called(kernel.text):
            settings.append(("libdevice", libdevice.identity()))
        job = PtxJob(
            arch, self.identity(), kernel.text, tuple(settings),
            partial(nvptx.make_ptx, kernel.text, arch, level, cache, alone=len(settings) == 1),
        )  # fmt: skip
        artifact = Artifact(
            self.name, self.target(config), kernel.meta, {"llvm_ir": kernel.text}, b"",
            {"llvm_ir": kernel.ids},
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "ptx": "ptx"},
            {"llvm_ir_optimized": lambda: nvptx.optimised(kernel.text, arch, level)},
            {"layout": kernel.layout, "tasks": kernel.tasks, "clears": kernel.clears,
             "claims": kernel.claims, "loops": kernel.loops,
             "recursive": bool(func.callees) and recursive(func)},
        )  # fmt: skip
        ahead = cache.ahead and len(settings) == 1
        later = ahead or _has_tiers(kernel, settings, config, cache)
        if not (later and _begun(artifact, job, kernel, level, cache)):
            artifact.texts["ptx"] = ptx = cache.ptx(job)
            artifact.code = ptx.encode()
        return artifact

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> Executable:
        from .device import current
        from .executable import CudaExecutable

        device = current()

        def loaded() -> CudaExecutable:
            artifact.machine_code()
            return CudaExecutable(device, artifact, cache)

        if cache.ahead and artifact.later is not None:
            from .background import LaterExecutable, load_ahead

            load_ahead(device, artifact, cache)
            return LaterExecutable(artifact, loaded)
        with device.awaited():
            first = artifact.first
            if cache.tiered and artifact.later is not None and first is not None and first.code:
                from .background import CudaFirst, completed

                assert isinstance(first, CudaFirst)
                if not first.pending.ready:
                    with suppress(CudaError):  # full code may fit, or says what is wrong
                        found = CudaExecutable(device, artifact, cache, first.code)
                        completed(found, first.pending)
                        return found
            return loaded()


def _has_tiers(
    kernel: GpuText, settings: Sequence[object], config: CompileConfig, cache: InjectedCache
) -> bool:
    """True for a kernel whose first launches may be of first-tier code."""
    from ..llvm.text import FAST
    from . import nvptx
    from .device import running

    device = running()
    if not cache.tiered or not config.opt_level or len(settings) > 1 or device is None:
        return False
    device.expects_code()
    if config.tiered == "exact" and FAST in kernel.text:
        return False
    meta = kernel.meta
    simple = not (meta.flow or meta.graph or meta.has_stacks or meta.timed or kernel.loops)
    return simple and nvptx.has_first_tier(kernel.text)


def _begun(
    artifact: Artifact, job: PtxJob, kernel: GpuText, level: int, cache: InjectedCache
) -> bool:
    """Give the artifact full code that is begun, with first-tier code unless no call waits yet, or
    full code if a cache has it. False if there is neither."""
    from ..cpu import background as helping
    from ..tiers import LaterCode
    from . import nvptx
    from .background import CudaFirst, begin_ahead

    try:
        artifact.texts["ptx"] = ptx = cache.ptx(job._replace(make=_missing))
    except _MissingError:
        pass
    else:
        artifact.code = ptx.encode()
        return True
    full = nvptx.FullJob(job.llvm_ir, job.arch, level)
    if cache.ahead:
        pending = begin_ahead(full)
        artifact.first = LaterCode(pending)
    else:
        first = nvptx.first_ptx(kernel.first_tier(), job.arch).encode()
        pending = helping.submit(full)
        if pending is None:
            return False
        artifact.first = CudaFirst(first, pending)
    cache.begun, artifact.later = True, pending.finish
    pending.then(lambda: _keep(cache, job, pending.finish()))
    artifact.lazy["ptx"] = lambda: pending.finish().decode()
    return True


def _keep(cache: InjectedCache, job: PtxJob, ptx: bytes) -> None:
    cache.ptx(job._replace(make=ptx.decode))


class _MissingError(Exception):
    """No cache has the PTX."""


def _missing() -> str:
    raise _MissingError


BACKEND: Final = CudaBackend()
