"""The OpenCL backend: OpenCL C written from the IR, built and launched through pyopencl."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...config import CompileConfig
from ...errors import QuadrantsRuntimeError, QuadrantsUnsupportedError
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...pipeline_kind import PipelineKind
from ...types import PRIMITIVE_TYPES
from ..base import Artifact, Caps, Device, Executable, Target
from ..injected import NO_CACHE, InjectedCache
from . import capabilities
from .capabilities import Capabilities

if TYPE_CHECKING:
    from ...ir import Func
    from ..tiers import FirstCode
    from .build import Source
    from .hardware import Hardware
    from .source.kernel import OpenclText
    from .work import Work

__all__ = ["BACKEND", "OpenclBackend"]

_TARGETS: Final = {"gpu": capabilities.GENERIC_GPU, "cpu": capabilities.GENERIC_CPU}
"""The targets that source can be made for without a device."""

_EXACT: Final = frozenset({
    C.CONST, C.ARG_LOAD, C.GLOBAL_LOAD, C.LOCAL_LOAD, C.SELECT, C.CAST_VALUE, C.CAST_BITS,
    C.ATOMIC_XCHG,
})  # fmt: skip
"""Operations whose float result is the same, whatever ``fast_math`` permits."""


class _For(NamedTuple):
    """The target of code. hardware: None for no device, then there is the source alone.

    il: the device gets SPIR-V.
    """

    capabilities: Capabilities
    hardware: Hardware | None
    il: bool = False


class OpenclBackend:
    """See `base.Backend`."""

    name = "opencl"
    caps = Caps(frozenset(PRIMITIVE_TYPES), checks=False)
    keeps_locations = False
    makes_ptx = False

    def pipeline(self, config: CompileConfig) -> PipelineKind:
        where = self._for(config)
        if where.il:
            return PipelineKind.GPU_NO_SUBGROUPS
        coarsened = where.capabilities.mapping == capabilities.COARSENED
        return PipelineKind.CPU if coarsened else PipelineKind.GPU

    def available(self) -> tuple[bool, str]:
        from . import hardware

        reason = hardware.unavailable()
        return not reason, reason

    def targets(self) -> tuple[str, ...]:
        return tuple(_TARGETS)

    def with_target(self, config: CompileConfig, name: str) -> CompileConfig:
        if name and name not in _TARGETS:
            raise ValueError(
                f"'opencl:{name}': there is no such target of opencl; there are: "
                + ", ".join(_TARGETS)
            )
        return config.replace(opencl_target=name)

    def compile_only(self) -> str:
        return ""

    def _for(self, config: CompileConfig) -> _For:
        """The target that these options choose."""
        from . import hardware

        hardware_facts: Hardware | None = None
        if config.opencl_target:
            found = _TARGETS[config.opencl_target]
        elif hardware.unavailable():
            found = capabilities.GENERIC_GPU
        else:
            hardware_facts = hardware.for_config(config)
            found = hardware_facts.capabilities
        il = config.opencl_il and hardware_facts is not None
        if il and hardware_facts is not None and "SPIR-V" not in hardware_facts.il:
            raise QuadrantsUnsupportedError(
                f"{hardware_facts.name} ({hardware_facts.driver_name}) does not accept SPIR-V",
                feature="opencl_il", backend=self.name,
                hint="omit opencl_il, or choose another device with opencl_device",
            )  # fmt: skip
        if il and config.opencl_mapping == capabilities.COARSENED:
            raise QuadrantsUnsupportedError(
                "SPIR-V maps one work-item to each iteration, and opencl_mapping='chunks'"
                " requests chunks of iterations", feature="opencl_mapping", backend=self.name,
                hint="omit opencl_mapping or opencl_il",
            )  # fmt: skip
        return _For(hardware.mapping_of(config, found, il), hardware_facts, il)

    def target(self, config: CompileConfig) -> Target:
        where = self._for(config)
        features = where.capabilities.mapping
        if where.hardware is None:
            return Target(self.name, "opencl_c", where.capabilities.name, features)
        one = where.hardware
        return Target(self.name, one.version, one.name, f"{features}, driver {one.driver}")

    def toolchain(self) -> str:
        from . import hardware

        if hardware.unavailable():
            return "OpenCL C"
        try:
            one = hardware.usual()
        except (
            QuadrantsRuntimeError
        ):  # a text that means no device; a program says so when it starts
            return "OpenCL C"
        return f"{one.driver_name} {one.driver} ({one.version})"

    def fingerprint(self, config: CompileConfig) -> str:
        from . import hardware

        where = self._for(config)
        mapping = where.capabilities.mapping
        if where.hardware is None:
            return f"source for {where.capabilities.name}, {mapping}"
        found = hardware.fingerprint(where.hardware, mapping)
        if where.il:
            from ..llvm import toolchain

            return f"{found}, SPIR-V by {toolchain.identity()}"
        return found

    def identity(self) -> str:
        return f"OpenCL C, {platform.system()} {platform.machine()}"

    def open(self, config: CompileConfig) -> Device:
        from .device import OpenclDevice

        self._for(config)  # which raises what these options cannot have here
        return OpenclDevice(config)

    def lower(self, func: Func, config: CompileConfig, cache: InjectedCache = NO_CACHE) -> Artifact:
        """Write OpenCL C and, where there is a device, build it.

        Its binary is obtained later: PoCL compiles for a size of grid when a kernel is first
        launched, and a binary holds all that is compiled when it is requested, and code for any
        size besides. Requested before the launch it costs more and, in the next process, saves
        less.
        """
        from . import build
        from .source.kernel import lower_opencl

        where = self._for(config)
        if where.il:
            return self._lower_il(func, config, where)
        made = lower_opencl(func, config, where.capabilities)
        key = build.key_of(made.text, made.options)
        later: Callable[[], bytes] | None = None
        first: FirstCode | None = None
        if where.hardware is not None:
            source = build.Source(func.name, made.text, made.options, made.ids, func)
            work = _work_of_launches(func, made, config, where, cache)
            first, later = _built(source, config, where, made, work)
        facts: dict[str, Any] = {
            "layout": made.layout, "tasks": made.tasks, "clears": made.clears,
            "claims": made.claims, "options": made.options, "key": key,
        }  # fmt: skip
        return Artifact(
            self.name, self.target(config), made.meta, {"opencl_c": made.text}, b"",
            {"opencl_c": made.ids}, {"opencl_c": "c"}, {}, facts, later=later, first=first,
        )  # fmt: skip

    def _lower_il(self, func: Func, config: CompileConfig, where: _For) -> Artifact:
        """Make SPIR-V, which the device's driver compiles when it is loaded."""
        from ..spirv import code
        from . import build

        level = config.external_optimization_level if config.opt_level else 0
        made = code.lower_spirv(func, config, level, where.capabilities.local_bytes, asserts=False)
        kernel = made.kernel
        return Artifact(
            self.name, self.target(config), kernel.meta,
            {"llvm_ir": kernel.text, "spirv": made.text}, build.sealed(made.code, il=True),
            {"llvm_ir": kernel.ids},
            {"llvm_ir": "llvm", "llvm_ir_optimized": "llvm", "spirv": "spirv"},
            {"llvm_ir_optimized": lambda: code.optimised(kernel.text, level)},
            {"layout": kernel.layout, "tasks": made.tasks, "clears": kernel.clears,
             "claims": kernel.claims, "options": "", "key": build.key_of(made.text, "il")},
        )  # fmt: skip

    def load(self, artifact: Artifact, cache: InjectedCache = NO_CACHE) -> Executable:
        from .device import current
        from .executable import OpenclExecutable

        if not artifact.target.features.count("driver"):
            raise QuadrantsUnsupportedError(
                f"kernel {artifact.meta.name} was made for {artifact.target.cpu}, which no launch"
                " can use", feature="opencl_target", backend=self.name,
                hint="leave opencl_target empty",
            )  # fmt: skip
        device, first = current(), artifact.first
        if cache.tiered and artifact.later is not None and first is not None:
            from . import background
            from .tiered import TieredExecutable

            assert isinstance(first, background.OpenclFirst)
            making = first.pending
            # Another context: that was lost.
            if making.context is device.context and not making.obtained():
                tiered = TieredExecutable(device, artifact, making)
                if cache.ahead:
                    background.submit(tiered)
                return tiered
        return OpenclExecutable(device, artifact)


def _built(
    source: Source, config: CompileConfig, where: _For, made: OpenclText, work: Work | None
) -> tuple[FirstCode | None, Callable[[], bytes]]:
    """Code in the making, and what returns its binary. It is built now where there is no ``work``.

    PoCL needs as long for a binary as for the rest, so a helper process makes that where it can.
    Without tiers caches have all code when the program has ended.
    """
    one = where.hardware
    assert one is not None
    from ..cpu import background as helping
    from . import background, build, full
    from .context import context_of

    context = context_of(one)
    job = full.job_of(source, config, one, made.layout.size, made.tasks)
    later = config.tiered != "off" and _launches_idly(where)
    pending = helping.prepare(job) if later else None
    with background.awaited():
        if pending is None:
            return None, partial(build.binary_of, context, build.build(context, source, config))
        making = background.Making(context, source, config, work, pending)
        if work is None:
            making.program()
        return background.OpenclFirst(making), making.finish


def _work_of_launches(
    func: Func, made: OpenclText, config: CompileConfig, where: _For, cache: InjectedCache
) -> Work | None:
    """The work of the launches of a kernel that may have two tiers; None for any other."""
    meta = made.meta
    special = meta.flow or meta.graph or meta.has_stacks or meta.timed or meta.prints
    if not cache.tiered or func.callees or special or not _launches_idly(where):
        return None
    if config.tiered == "exact" and config.fast_math and _computes(func):
        return None
    from .work import work_of

    return work_of(func, made.layout)


def _launches_idly(where: _For) -> bool:
    """True if kernels are for PoCL, and `full.compile_launches` may launch them."""
    pocl = where.hardware is not None and where.hardware.is_pocl
    return pocl and where.capabilities.mapping == capabilities.COARSENED


def _computes(func: Func) -> bool:
    """True if ``fast_math`` permits a compiler to change results of a kernel."""
    from ...ir import all_ops

    return any(op.type.is_real and op.code not in _EXACT for op in all_ops(func))


BACKEND: Final = OpenclBackend()
