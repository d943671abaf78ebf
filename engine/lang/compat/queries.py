"""Queries about the program that runs and the machine: options, extensions, formats."""

from __future__ import annotations

import enum
from typing import Any, Final

from ...config import CPU_ARCHES
from ...runtime import arch as archs
from ...runtime import program
from ..impl import Config, current_cfg

__all__ = [
    "DeviceCapability", "Format", "dump_compile_config", "extension", "is_extension_enabled",
    "is_extension_supported", "python", "x86_64",
]  # fmt: skip

python: Final = archs.ARCHS["python"]
x86_64: Final = archs.ARCHS["x64"]


class extension(enum.Enum):
    """Parts of the language that not every backend has; see `is_extension_enabled`."""

    sparse = 0
    quant = 1
    mesh = 2
    quant_basic = 3
    data64 = 4
    adstack = 5
    bls = 6
    assertion = 7
    extfunc = 8

    def __str__(self) -> str:
        return f"Extension.{self.name}"

    __repr__ = __str__


_ABSENT: Final = frozenset({"sparse", "quant", "mesh", "quant_basic", "extfunc"})
"""Extensions that no backend of this engine has."""


def is_extension_supported(arch: Any, ext: extension) -> bool:
    """True if programs on ``arch`` can use ``ext``; see `extension`."""
    if not isinstance(ext, extension):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{ext!r} is not an extension; use one such as qd.extension.data64")
    if ext.name in _ABSENT:
        return False
    if ext is extension.bls:
        return str(arch) not in CPU_ARCHES
    return True


def is_extension_enabled(ext: extension) -> bool:
    """True if the program that runs can use ``ext``; ``adstack`` depends on its option, too.

    Without a program, the answer is that of the default options. TypeError for no extension.
    """
    config = current_cfg()
    if not is_extension_supported(config.arch, ext):
        return False
    if ext is extension.assertion:
        found = program.peek()
        return found is None or found.backend.caps.checks
    return ext is not extension.adstack or config.ad_stack_experimental_enabled


def dump_compile_config() -> None:
    """Print every option of the program that runs, as ``name=value``, sorted by name."""
    config = current_cfg()
    names = sorted([*(name for name in config.as_dict() if name[0] != "_"), "default_up"])
    print("\n".join([f"{name}={getattr(config, name)}" for name in names]))


Format = enum.Enum(
    "Format",
    "unknown r8 rg8 rgba8 rgba8srgb bgra8 bgra8srgb r8u rg8u rgba8u r8i rg8i rgba8i r16 rg16 rgb16 "
    "rgba16 r16u rg16u rgb16u rgba16u r16i rg16i rgb16i rgba16i r16f rg16f rgb16f rgba16f r32u "
    "rg32u rgb32u rgba32u r32i rg32i rgb32i rgba32i r32f rg32f rgb32f rgba32f depth16 "
    "depth24stencil8 depth32f",
    start=0,
)
Format.__doc__ = "Formats of the pixels of textures. There are no textures here; names only."


class DeviceCapability:
    """Names of the capabilities of SPIR-V devices, for programs that are compiled ahead of time.

    There is no such compilation here; each attribute is its own name.
    """


_CAPABILITIES: Final = """
    spirv_version_1_3 spirv_version_1_4 spirv_version_1_5 spirv_has_int8 spirv_has_int16
    spirv_has_int64 spirv_has_float16 spirv_has_float64 spirv_has_atomic_int64
    spirv_has_atomic_float16 spirv_has_atomic_float16_add spirv_has_atomic_float16_minmax
    spirv_has_atomic_float spirv_has_atomic_float_add spirv_has_atomic_float_minmax
    spirv_has_atomic_float64 spirv_has_atomic_float64_add spirv_has_atomic_float64_minmax
    spirv_has_variable_ptr spirv_has_physical_storage_buffer spirv_has_subgroup_basic
    spirv_has_subgroup_vote spirv_has_subgroup_arithmetic spirv_has_subgroup_ballot
    spirv_has_non_semantic_info spirv_has_no_integer_wrap_decoration
"""
for _name in _CAPABILITIES.split():
    setattr(DeviceCapability, _name, _name)


def __getattr__(name: str) -> Any:
    if name == "cfg":  # of the program that runs at the time
        found = program.peek()
        return None if found is None else Config(found.config)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
