"""Backends that make code to be looked at, and launch nothing.

Each module here, and each folder next to this one that has a module `backend`, is a backend: its
`BACKEND` is found by that (`base.BUILT`). A backend of this kind is an `InspectionBackend`, which
leaves three things to it: the names of its targets, what `generate` makes of a kernel, and the
language of that text. `cross` is the smallest one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...config import CompileConfig
from ...errors import BackendUnavailableError
from ...named_tuple import NamedTuple
from ...options import did_you_mean
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, Device, Executable, Target
from ..injected import NO_CACHE, InjectedCache

if TYPE_CHECKING:
    from ...ir import Func
    from ..base import KernelMeta

__all__ = ["Generated", "InspectionBackend"]


class Generated(NamedTuple):
    """The result of `InspectionBackend.generate` for a kernel.

    texts, later: the LLVM IR, ``llvm_ir``, optimised, ``llvm_ir_optimized``, and the listing of the
    code; ``later`` has those that are made on request. code: the binary. The others are those of
    `base.Artifact`.
    """

    meta: KernelMeta
    texts: dict[str, str]
    code: bytes
    lines: dict[str, tuple[int, ...]]
    later: dict[str, Callable[[], str]]
    facts: dict[str, Any]
    remarks: dict[str, tuple[tuple[str, int, str], ...]] | None = None


class InspectionBackend:
    """See `base.Backend`.

    title: of the targets, in messages. reason: why nothing is launched. default: the target where
    none is named. listing: name and language of the text of the code. option: the option that keeps
    the target's name; a backend with one of its own has its own `wanted`, too.
    """

    name: str
    title: str
    reason: str
    default: str
    listing: tuple[str, str]
    option = "_code_target"
    caps = Caps(frozenset(PRIMITIVE_TYPES))
    keeps_locations = False
    makes_ptx = False

    def generate(self, func: Func, config: CompileConfig, target: str, level: int) -> Generated:
        """Make code of a finished function. level: of LLVM's passes, 0 to 3."""
        raise NotImplementedError

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        return PipelineKind.GPU

    def available(self) -> tuple[bool, str]:
        if importlib.util.find_spec("llvmlite") is None:
            return False, "llvmlite is not installed"
        return False, self.reason

    def compile_only(self) -> str:
        return self.reason

    def targets(self) -> tuple[str, ...]:
        return (self.default,)

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        if name:
            self._known(name)
        return config.replace(**{self.option: name})

    def _known(self, name: str) -> None:
        """Raise ValueError if there is no such target."""
        known = self.targets()
        if name not in known:
            raise ValueError(
                f"there is no {self.title} target {name!r}{did_you_mean(name, known)};"
                f" known: {', '.join(known)}"
            )

    def wanted(self, config: CompileConfig) -> str:
        """The name of the target that the options ask for."""
        name = config._code_target or self.default  # pyright: ignore[reportPrivateUsage]
        self._known(name)
        return name

    def target(self, config: CompileConfig) -> Target:
        raise NotImplementedError

    def fingerprint(self, config: CompileConfig) -> str:
        return self.wanted(config)

    def toolchain(self) -> str:
        from ..llvm import toolchain

        return toolchain.version()

    def identity(self) -> str:
        from ..llvm import toolchain

        return toolchain.identity()

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Generate the listing and the binary."""
        level = config.external_optimization_level if config.opt_level else 0
        made = self.generate(func, config, self.wanted(config), level)
        text, language = self.listing
        return Artifact(
            self.name, self.target(config), made.meta, made.texts, made.code, made.lines,
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", text: language}, made.later,
            made.facts, remarks={} if made.remarks is None else made.remarks,
        )  # fmt: skip

    def open(self, config: CompileConfig) -> Device:
        raise BackendUnavailableError(self.name, self.reason)

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> Executable:
        raise BackendUnavailableError(self.name, self.reason)
