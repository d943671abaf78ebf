"""The language and the engine: ``from qd_studio import engine as qd``.

Every public name is listed in ``__all__``. Each is imported from its module when it is first used,
so importing the engine costs little and loads no compiler back end. Submodules such as ``qd.types``
and ``qd.inspect`` are imported in the same way.

Names that Quadrants has and this version lacks raise QuadrantsUnsupportedError, which is also an
AttributeError, when they are looked up.
"""

# ruff: noqa: F403, F405  # tests compare the names with those of the modules
from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from .imports import load, use_bundle

if TYPE_CHECKING:
    from . import inspect
    from .config import CompileConfig
    from .errors import (
        AdStackOverflowError,
        BackendUnavailableError,
        IRParseError,
        IRVerificationError,
        NanError,
        NoGradientsError,
        QuadrantsAssertionError,
        QuadrantsCompilationError,
        QuadrantsIndexError,
        QuadrantsInternalError,
        QuadrantsNameError,
        QuadrantsRuntimeError,
        QuadrantsRuntimeTypeError,
        QuadrantsSyntaxError,
        QuadrantsTypeError,
        QuadrantsUnsupportedError,
    )  # fmt: skip
    from .lang import ad, algorithms, experimental, graph, profiler, simt
    from .lang.atomics import *
    from .lang.clock import clock_counter, clock_freq_hz
    from .lang.compile_ahead import compile_ahead
    from .lang.data_oriented import data_oriented
    from .lang.decompositions.eigen import eig, make_spd, sym_eig
    from .lang.decompositions.svd import polar_decompose, solve, svd
    from .lang.fields.axes import (
        Layout,
        axes,
        i,
        ij,
        ijk,
        ijkl,
        ijl,
        ik,
        ikl,
        il,
        j,
        jk,
        jkl,
        jl,
        k,
        kl,
        l,
    )  # fmt: skip
    from .lang.fields.builder import FieldsBuilder, root
    from .lang.fields.indices import rescale_index
    from .lang.fields.snode import SNode
    from .lang.functions import *
    from .lang.graph_blocks import *
    from .lang.loops import loop_config, static, static_assert, static_print
    from .lang.ndarray import MatrixNdarray, ScalarNdarray, VectorNdarray
    from .lang.perf_dispatch import perf_dispatch
    from .lang.simt.block import global_thread_idx
    from .lang.streams import Event, Stream, create_event, create_stream
    from .lang.tensor import Backend
    from .runtime.arch import Arch
    from .runtime.program import init, reset, sync
    from .typed import math, types
    from .typed.annotations import (
        NDArray,
        Template,
        f16,
        f32,
        f64,
        float16,
        float32,
        float64,
        i8,
        i16,
        i32,
        i64,
        int8,
        int16,
        int32,
        int64,
        template,
        u1,
        u8,
        u16,
        u32,
        u64,
        uint1,
        uint8,
        uint16,
        uint32,
        uint64,
    )  # fmt: skip
    from .typed.containers import (
        BufferView,
        Field,
        MatrixField,
        MatrixTensor,
        Ndarray,
        ScalarField,
        StructField,
        Tensor,
        VectorTensor,
        field,
        grouped,
        ndarray,
        ndrange,
        tensor,
        wrap,
    )  # fmt: skip
    from .typed.decorators import Kernel, func, kernel, pure, pyfunc, real_func
    from .typed.values import Matrix, Struct, Vector, dataclass
    from .types.annotations import ref

    amdgpu: Arch
    arm64: Arch
    cpu: Arch
    cuda: Arch
    gpu: Arch
    interp: Arch
    metal: Arch
    opencl: Arch
    vulkan: Arch
    x64: Arch
    CRITICAL: str
    DEBUG: str
    ERROR: str
    INFO: str
    TRACE: str
    WARN: str

_NAMES: Final = {
    "config": "CompileConfig",
    "errors": "AdStackOverflowError BackendUnavailableError IRParseError IRVerificationError "
    "NanError NoGradientsError QuadrantsAssertionError QuadrantsCompilationError "
    "QuadrantsIndexError QuadrantsInternalError QuadrantsNameError QuadrantsRuntimeError "
    "QuadrantsRuntimeTypeError QuadrantsSyntaxError QuadrantsTypeError "
    "QuadrantsUnsupportedError",
    "lang.atomics": "atomic_add atomic_and atomic_cas atomic_exchange atomic_max atomic_min "
    "atomic_mul atomic_or atomic_sub atomic_xor volatile_load",
    "lang.clock": "clock_counter clock_freq_hz",
    "lang.compile_ahead": "compile_ahead",
    "lang.fields.axes": "Layout axes i ij ijk ijkl ijl ik ikl il j jk jkl jl k kl l",
    "lang.fields.builder": "FieldsBuilder root",
    "lang.data_oriented": "data_oriented",
    "lang.fields.field": "field",
    "lang.fields.make": "MatrixField ScalarField",
    "lang.decompositions.eigen": "eig make_spd sym_eig",
    "lang.func": "func pyfunc real_func",
    "lang.functions": "abs acos asin atan2 bit_cast bit_shr cast ceil clz cos exp ffs floor "
    "frexp log max min one popcnt pow randn random raw_div raw_mod round rsqrt select sin sqrt "
    "stop_grad tan tanh zero",
    "lang.fields.indices": "rescale_index",
    "lang.graph_blocks": "GraphStatus checkpoint graph_do_while graph_parallel "
    "graph_parallel_context stream_parallel",
    "lang.kernel": "Kernel kernel pure",
    "lang.streams": "Event Stream create_event create_stream",
    "lang.loops": "grouped loop_config ndrange static static_assert static_print",
    "lang.values.matrix": "Matrix Vector",
    "lang.ndarray": "MatrixNdarray Ndarray ScalarNdarray VectorNdarray ndarray",
    "lang.simt.block": "global_thread_idx",
    "lang.perf_dispatch": "perf_dispatch",
    "lang.fields.placed": "Field",
    "lang.fields.snode": "SNode",
    "lang.values.struct": "Struct dataclass",
    "lang.decompositions.svd": "polar_decompose solve svd",
    "lang.fields.struct_field": "StructField",
    "lang.tensor": "Backend MatrixTensor Tensor VectorTensor tensor wrap",
    "runtime.program": "init reset sync",
    "types.buffer_view": "BufferView",
    "types": "NDArray Template ref template f16 f32 f64 i8 i16 i32 i64 u1 u8 u16 u32 u64",
}
_MODULE_OF: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULE_OF.update({
    "float16": "types", "float32": "types", "float64": "types", "int16": "types", "int32": "types",
    "int64": "types", "int8": "types", "uint1": "types", "uint16": "types", "uint32": "types",
    "uint64": "types", "uint8": "types",
})  # fmt: skip
_TYPE_ALIASES: Final = {
    name: name.replace("uint", "u").replace("int", "i").replace("float", "f")
    for name, module in _MODULE_OF.items()
    if module == "types" and name.startswith(("float", "int", "uint"))
}
_LEVELS: Final = ("CRITICAL", "DEBUG", "ERROR", "INFO", "TRACE", "WARN")
_MODULES: Final = {
    "ad": "lang.ad", "algorithms": "lang.algorithms", "experimental": "lang.experimental",
    "graph": "lang.graph", "inspect": "inspect",
    "math": "lang.math", "profiler": "lang.profiler", "simt": "lang.simt",
    "types": "lang.public_types",
}  # fmt: skip

__all__ = [
    "CRITICAL", "DEBUG", "ERROR", "INFO", "TRACE", "WARN", "AdStackOverflowError", "Backend",
    "BackendUnavailableError", "BufferView", "CompileConfig", "Event", "Field", "FieldsBuilder",
    "GraphStatus", "IRParseError", "IRVerificationError", "Kernel", "Layout", "Matrix",
    "MatrixField", "MatrixNdarray", "MatrixTensor", "NDArray", "NanError", "Ndarray",
    "NoGradientsError",
    "QuadrantsAssertionError", "QuadrantsCompilationError", "QuadrantsIndexError",
    "QuadrantsInternalError", "QuadrantsNameError", "QuadrantsRuntimeError",
    "QuadrantsRuntimeTypeError", "QuadrantsSyntaxError", "QuadrantsTypeError",
    "QuadrantsUnsupportedError", "SNode", "ScalarField", "ScalarNdarray", "Stream", "Struct",
    "StructField", "Template", "Tensor", "Vector", "VectorNdarray", "VectorTensor", "abs", "acos",
    "ad", "algorithms", "amdgpu", "arm64", "asin", "atan2", "atomic_add", "atomic_and",
    "atomic_cas", "atomic_exchange", "atomic_max", "atomic_min", "atomic_mul", "atomic_or",
    "atomic_sub", "atomic_xor", "axes", "bit_cast", "bit_shr", "cast", "ceil", "checkpoint",
    "clock_counter", "clock_freq_hz", "clz", "compile_ahead", "cos", "cpu", "create_event",
    "create_stream", "cuda",
    "data_oriented", "dataclass", "eig", "exp", "experimental", "f16", "f32", "f64", "ffs", "field",
    "float16", "float32", "float64", "floor", "frexp", "func", "global_thread_idx", "gpu", "graph",
    "graph_do_while", "graph_parallel", "graph_parallel_context", "grouped", "i", "i8", "i16",
    "i32", "i64", "ij", "ijk", "ijkl", "ijl", "ik", "ikl", "il", "init", "inspect", "int8", "int16",
    "int32", "int64", "interp", "j", "jk", "jkl", "jl", "k", "kernel", "kl", "l", "log",
    "loop_config", "make_spd", "math", "max", "metal", "min", "ndarray", "ndrange", "one", "opencl",
    "perf_dispatch", "polar_decompose", "popcnt", "pow", "profiler", "pure", "pyfunc", "randn",
    "random", "raw_div", "raw_mod", "real_func", "ref", "rescale_index", "reset", "root", "round",
    "rsqrt", "select", "simt", "sin", "solve", "sqrt", "static", "static_assert", "static_print",
    "stop_grad", "stream_parallel", "svd", "sym_eig", "sync", "tan", "tanh", "template", "tensor",
    "types", "u1", "u8", "u16", "u32", "u64", "uint1", "uint8", "uint16", "uint32", "uint64",
    "volatile_load", "vulkan", "wrap", "x64", "zero",
]  # fmt: skip


def _found(name: str) -> Any:
    """The object a public name stands for."""
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name in _LEVELS:
        return name.lower()
    if name not in _MODULE_OF:
        return importlib.import_module(".runtime.arch", __name__).ARCHS[name]
    module = load(f".{_MODULE_OF[name]}", __name__)
    return getattr(module, _TYPE_ALIASES.get(name, name))


REFERENCE_NAMES: Final = frozenset((
    "BitpackedFields", "DeviceCapability", "Format", "Mesh", "MeshInstance", "_lib", "activate",
    "append", "assume_in_range", "block_local", "cache_read_only", "cfg", "deactivate",
    "deactivate_all_snodes", "dump_compile_config", "extension", "get_addr", "interop", "is_active",
    "is_extension_enabled", "is_logging_effective", "length", "linalg", "mesh_local",
    "mesh_patch_idx", "no_activate", "python", "set_logging_level", "sparse",
    "sparse_matrix_builder", "tools", "x86_64",
))  # fmt: skip
"""Names of the reference that are here for programs that use them; `lang.compat` has them.

They are no part of ``__all__``, which lists the documented language.
"""
_INTERNAL: Final = frozenset({"_logging", "lang", "logs"})
"""Submodules with names of the reference that programs use although they are not public; and
`logs`, for which other modules ask here."""


def __getattr__(name: str) -> Any:
    if name in _INTERNAL:
        return importlib.import_module(f".{name}", __name__)
    if name in __all__:
        value = globals()[name] = _found(name)
        return value
    if name == "__version__":  # that of the language; the package's own is in `version`
        return importlib.import_module(".config", __name__).LANGUAGE_VERSION
    if name in REFERENCE_NAMES:
        value = importlib.import_module(".lang.compat", __name__).find(name)
        if name != "cfg":  # the options of the program that runs at the time
            globals()[name] = value
        return value
    return _taichis(name)


def _taichis(name: str) -> Any:
    """The object that a name of Taichi stands for, if the language has it under another name."""
    names = importlib.import_module(".types.taichi_names", __name__)
    if names.equal(name) in __all__:
        return _found(names.equal(name))
    if name in importlib.import_module(".config", __name__).TAICHI_ARCHES:
        return importlib.import_module(".runtime.arch", __name__).Arch(name)
    if name in names.COLOURS:
        return getattr(importlib.import_module(".windows", __name__), name)
    raise importlib.import_module(".types.later", __name__).unsupported("qd", name)


class _Engine(ModuleType):
    """This module: its ``types`` is the public one.

    The import system would bind the name to the package `types`; the public module has more names.
    """

    @property
    def types(self) -> ModuleType:
        return _found("types")

    @types.setter
    def types(self, module: ModuleType) -> None:
        """Ignore the module that the import system binds."""


sys.modules[__name__].__class__ = _Engine
use_bundle(__spec__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *REFERENCE_NAMES})
