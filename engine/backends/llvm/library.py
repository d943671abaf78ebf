"""The part of `llvmlite.binding` that compiling for this machine and for NVIDIA's GPUs needs.

Importing `llvmlite.binding` costs 23 ms, a sixth of the first kernel of a process: it loads modules
of the standard library, `llvmlite.ir` and the signatures of 300 functions. Here are the functions
and classes that `toolchain` uses, named as there, over the same library in memory. Whatever else
wants LLVM (other GPUs, libdevice, JIT linking, remarks) imports `llvmlite.binding`; a process may
use both.

Modules are in a context of their own, so that they share nothing with another user of llvmlite;
callers hold `toolchain.LOCK`. Importing this module loads LLVM.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from types import SimpleNamespace
from typing import Any, Final

from .mapping import map_library

__all__ = [
    "Target", "create_context", "create_new_module_pass_manager", "create_pass_builder",
    "create_pipeline_tuning_options", "ffi", "get_host_cpu_features", "get_host_cpu_name",
    "get_process_triple", "initialize_all_asmprinters", "initialize_all_targets",
    "initialize_native_asmprinter", "initialize_native_target", "llvm_version_info",
    "parse_assembly", "set_option",
]  # fmt: skip

_OUT: Final = POINTER(c_char_p)
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "SetCommandLine": (None, c_char_p, c_char_p),
    "GetVersionInfo": (c_uint,),
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "DisposeString": (None, c_char_p),
    "GetProcessTriple": (None, _OUT),
    "GetHostCPUFeatures": (c_int, _OUT),
    "GetHostCPUName": (None, _OUT),
    "GetTargetFromTriple": (c_void_p, c_char_p, _OUT),
    "CreateTargetMachine": (
        c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int,
        c_char_p,
    ),
    "DisposeTargetMachine": (None, c_void_p),
    "SetTargetMachineAsmVerbosity": (None, c_void_p, c_int),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, _OUT),
    "DisposeTargetData": (None, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, _OUT),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, _OUT),
    "DisposeModule": (None, c_void_p),
    "SetDataLayout": (None, c_void_p, c_char_p),
    "VerifyModule": (c_bool, c_void_p, _OUT),
    "PrintModuleToString": (None, c_void_p, _OUT),
    "CreatePipelineTuningOptions": (c_void_p,),
    "DisposePipelineTuningOptions": (None, c_void_p),
    "PTOSetLoopInterleaving": (None, c_void_p, c_bool),
    "PTOSetLoopVectorization": (None, c_void_p, c_bool),
    "PTOSetSLPVectorization": (None, c_void_p, c_bool),
    "PTOSetLoopUnrolling": (None, c_void_p, c_bool),
    "CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "DisposePassBuilder": (None, c_void_p),
    "buildPerModuleDefaultPipeline": (c_void_p, c_void_p, c_int),
    "CreateNewModulePassManager": (c_void_p,),
    "RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "DisposeNewModulePassManger": (None, c_void_p),
    "module_AddAlwaysInlinerPass": (None, c_void_p),
    "module_AddSROAPass": (None, c_void_p),
    "module_AddSimplifyCFGPass": (None, c_void_p),
    "module_AddInstCombinePass": (None, c_void_p),
    "module_AddLoopRotatePass": (None, c_void_p),
    "module_AddLoopUnrollPass": (None, c_void_p),
    "module_AddNewGVNPass": (None, c_void_p),
    "module_AddSinkingPass": (None, c_void_p),
}  # fmt: skip
"""The functions of llvmlite's C interface, without their ``LLVMPY_``: results and arguments."""

_LONG: Final = frozenset({
    "InitializeAllTargetMCs", "InitializeAllTargets", "ParseAssembly", "PrintModuleToString",
    "RunNewModulePassManager", "TargetMachineEmitToMemory", "VerifyModule",
    "buildPerModuleDefaultPipeline",
})  # fmt: skip
"""Those that take milliseconds let other threads run. To get Python's lock back from a busy thread
takes up to 5 ms, so that the others keep it."""


def _loaded() -> Any:
    path = map_library()
    long, short = ctypes.CDLL(path), ctypes.PyDLL(path)
    library = SimpleNamespace()
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(long if name in _LONG else short, f"LLVMPY_{name}")
        setattr(library, f"LLVMPY_{name}", function)
        function.restype, function.argtypes = result, arguments
    return library


_lib: Final[Any] = _loaded()


class _Owned:
    """An object of LLVM. keep: what must live as long."""

    def __init__(self, pointer: int, dispose: Callable[[_Owned], None], *keep: Any) -> None:
        self._as_parameter_: c_void_p | None = c_void_p(pointer)
        self._dispose: Final = dispose
        self._keep: Final = keep

    def close(self) -> None:
        """Free it; a second time does nothing."""
        if self._as_parameter_ is not None:
            self._dispose(self)
            self._as_parameter_ = None

    def __del__(self, _ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _ending():
            self.close()


class _Output:
    """A text that a function of LLVM returns through its argument."""

    def __init__(self) -> None:
        self._text: Final = c_char_p()
        self._as_parameter_: Final = ctypes.byref(self._text)

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *error: object) -> None:
        _lib.LLVMPY_DisposeString(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __str__(self) -> str:
        return (self._text.value or b"").decode()


ffi: Final = SimpleNamespace(lib=_lib, OutputString=_Output)


def _text(function: Any, *arguments: Any) -> str:
    """The text that a function returns through its last argument."""
    with _Output() as out:
        function(*arguments, out)
        return str(out)


def _version() -> tuple[int, ...]:
    number: int = _lib.LLVMPY_GetVersionInfo()
    return tuple(number.to_bytes(4, "big").lstrip(b"\0"))


llvm_version_info: Final = _version()


def set_option(name: str, option: str) -> None:
    _lib.LLVMPY_SetCommandLine(name.encode(), option.encode())


def initialize_native_target() -> None:
    _lib.LLVMPY_InitializeNativeTarget()


def initialize_native_asmprinter() -> None:
    _lib.LLVMPY_InitializeNativeAsmPrinter()


def initialize_all_targets() -> None:
    _lib.LLVMPY_InitializeAllTargetInfos()
    _lib.LLVMPY_InitializeAllTargets()
    _lib.LLVMPY_InitializeAllTargetMCs()


def initialize_all_asmprinters() -> None:
    _lib.LLVMPY_InitializeAllAsmPrinters()


def get_process_triple() -> str:
    return _text(_lib.LLVMPY_GetProcessTriple)


def get_host_cpu_name() -> str:
    return _text(_lib.LLVMPY_GetHostCPUName)


class _Features(tuple[str, ...]):
    """Features of a processor, each with its sign."""

    def flatten(self) -> str:
        return ",".join(sorted(self, key=lambda feature: feature[1:]))


def get_host_cpu_features() -> _Features:
    with _Output() as out:
        known = _lib.LLVMPY_GetHostCPUFeatures(out)
        return _Features(filter(None, str(out).split(",")) if known else ())


class _Layout(_Owned):
    def __str__(self) -> str:
        return _text(_lib.LLVMPY_CopyStringRepOfTargetData, self)


class _Machine(_Owned):
    @property
    def target_data(self) -> _Layout:
        return _Layout(_lib.LLVMPY_CreateTargetMachineData(self), _lib.LLVMPY_DisposeTargetData)

    def set_asm_verbosity(self, verbose: bool) -> None:
        _lib.LLVMPY_SetTargetMachineAsmVerbosity(self, verbose)

    def emit_assembly(self, module: _Module) -> str:
        with _Output() as error:
            buffer = _lib.LLVMPY_TargetMachineEmitToMemory(self, module, 0, error)
            if not buffer:
                raise RuntimeError(str(error))
        try:
            size = _lib.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(_lib.LLVMPY_GetBufferStart(buffer), size).decode()
        finally:
            _lib.LLVMPY_DisposeMemoryBuffer(buffer)


class Target:
    """A kind of machine; LLVM owns it."""

    def __init__(self, pointer: int, triple: str) -> None:
        self._pointer: Final = pointer
        self._triple: Final = triple

    @classmethod
    def from_triple(cls, triple: str) -> Target:
        """RuntimeError if the target is not there."""
        with _Output() as error:
            pointer = _lib.LLVMPY_GetTargetFromTriple(triple.encode(), error)
            if not pointer:
                raise RuntimeError(str(error))
        return cls(pointer, triple)

    def create_target_machine(
        self, cpu: str, features: str, opt: int, reloc: str, codemodel: str
    ) -> _Machine:
        texts = [text.encode() for text in (self._triple, cpu, features, reloc, codemodel)]
        pointer = _lib.LLVMPY_CreateTargetMachine(
            self._pointer, *texts[:3], opt, *texts[3:], 0, 0, b""
        )
        if not pointer:
            raise RuntimeError("Cannot create target machine")
        return _Machine(pointer, _lib.LLVMPY_DisposeTargetMachine)


class _Module(_Owned):
    def verify(self) -> None:
        with _Output() as error:
            if _lib.LLVMPY_VerifyModule(self, error):
                raise RuntimeError(str(error))

    def __str__(self) -> str:
        return _text(_lib.LLVMPY_PrintModuleToString, self)

    def set_data_layout(self, layout: str) -> None:
        _lib.LLVMPY_SetDataLayout(self, layout.encode())

    data_layout = property(None, set_data_layout)


def create_context() -> _Owned:
    return _Owned(_lib.LLVMPY_ContextCreate(), _lib.LLVMPY_ContextDispose)


_COMMON: Final = create_context()


def parse_assembly(text: str, context: _Owned | None = None) -> _Module:
    """RuntimeError if LLVM refuses the text. context: None is the one of this module."""
    context = context or _COMMON
    with _Output() as error:
        pointer = _lib.LLVMPY_ParseAssembly(context, text.encode(), error)
        if not pointer or error:
            raise RuntimeError(f"LLVM IR parsing error\n{error}")
    return _Module(pointer, _lib.LLVMPY_DisposeModule, context)


_TUNING: Final = {
    "loop_interleaving": _lib.LLVMPY_PTOSetLoopInterleaving,
    "loop_vectorization": _lib.LLVMPY_PTOSetLoopVectorization,
    "slp_vectorization": _lib.LLVMPY_PTOSetSLPVectorization,
    "loop_unrolling": _lib.LLVMPY_PTOSetLoopUnrolling,
}


class _Tuning(_Owned):
    """Options of a pipeline; those of `_TUNING` are set as attributes."""

    def __init__(self, speed_level: int) -> None:
        pointer = _lib.LLVMPY_CreatePipelineTuningOptions()
        super().__init__(pointer, _lib.LLVMPY_DisposePipelineTuningOptions)
        self.speed_level: Final = speed_level

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _TUNING:
            _TUNING[name](self, value)
        else:
            super().__setattr__(name, value)


def create_pipeline_tuning_options(speed_level: int = 2) -> _Tuning:
    return _Tuning(speed_level)


class _Passes(_Owned):
    def add_always_inliner_pass(self) -> None:
        _lib.LLVMPY_module_AddAlwaysInlinerPass(self)

    def add_sroa_pass(self) -> None:
        _lib.LLVMPY_module_AddSROAPass(self)

    def add_simplify_cfg_pass(self) -> None:
        _lib.LLVMPY_module_AddSimplifyCFGPass(self)

    def add_instruction_combine_pass(self) -> None:
        _lib.LLVMPY_module_AddInstCombinePass(self)

    def add_loop_rotate_pass(self) -> None:
        _lib.LLVMPY_module_AddLoopRotatePass(self)

    def add_loop_unroll_pass(self) -> None:
        _lib.LLVMPY_module_AddLoopUnrollPass(self)

    def add_new_gvn_pass(self) -> None:
        _lib.LLVMPY_module_AddNewGVNPass(self)

    def add_sinking_pass(self) -> None:
        _lib.LLVMPY_module_AddSinkingPass(self)


def create_new_module_pass_manager() -> _Passes:
    return _Passes(_lib.LLVMPY_CreateNewModulePassManager(), _lib.LLVMPY_DisposeNewModulePassManger)


class _Builder(_Owned):
    def __init__(self, machine: _Machine, options: _Tuning) -> None:
        pointer = _lib.LLVMPY_CreatePassBuilder(machine, options)
        super().__init__(pointer, _lib.LLVMPY_DisposePassBuilder, machine, options)
        self._speed_level: Final = options.speed_level

    def getModulePassManager(self) -> _Passes:
        pointer = _lib.LLVMPY_buildPerModuleDefaultPipeline(self, self._speed_level)
        return _Passes(pointer, _lib.LLVMPY_DisposeNewModulePassManger)


def create_pass_builder(machine: _Machine, options: _Tuning) -> _Builder:
    return _Builder(machine, options)
