"""What backends have in common whose code LLVM makes, and which launch nothing."""

from __future__ import annotations

import importlib.util

from ...config import CompileConfig
from ...errors import BackendUnavailableError
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, Device, Executable
from ..injected import NO_CACHE, InjectedCache

__all__ = ["InspectionBackend"]


class InspectionBackend:
    """See `base.Backend`. reason: why nothing is launched."""

    name: str
    reason: str
    caps = Caps(frozenset(PRIMITIVE_TYPES))
    keeps_places = False
    makes_ptx = False

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        return PipelineKind.GPU

    def available(self) -> tuple[bool, str]:
        if importlib.util.find_spec("llvmlite") is None:
            return False, "llvmlite is not installed"
        return False, self.reason

    def compile_only(self) -> str:
        return self.reason

    def toolchain(self) -> str:
        from . import toolchain

        return toolchain.version()

    def identity(self) -> str:
        from . import toolchain

        return toolchain.identity()

    def open(self, config: CompileConfig) -> Device:
        raise BackendUnavailableError(self.name, self.reason)

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> Executable:
        raise BackendUnavailableError(self.name, self.reason)
