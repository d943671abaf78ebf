"""LLVM IR text -> optimised module -> machine code, through llvmlite.

LLVM takes 10 ms and more to load, so that it is loaded when the first kernel is compiled, never
with the engine. One `Machine` (a target machine of LLVM) is kept for each target and level.
LLVM's objects are not safe to use from two threads; callers hold `LOCK`.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import threading
from functools import cache
from typing import Any, Final, Literal

from ...errors import QuadrantsInternalError
from ..base import Target

__all__ = ["LOCK", "Machine", "Module", "Pipeline", "binding", "host_target", "identity",
           "version"]  # fmt: skip

LOCK: Final = threading.RLock()

Pipeline = Literal["whole", "straight", "short", "device", "product"]
"""LLVM's own; the same without what changes loops; a few passes only, for processors (`short`
decides), for devices whose driver optimises the code again, and for products there."""

# Vectors that are scattered to memory cost more than LLVM thinks: AMD and older Intel processors
# store one element after the other, in microcode. A loop over 3x3 matrices takes twice the time.
_FEATURES: Final = "+prefer-no-scatter"

_OPTIONS: Final = (
    # Loop strength reduction takes a quarter of the time of code generation, and the pointers it
    # makes of every row of a stencil end up on the stack: x86 and ARM address well without it.
    "-disable-lsr",
    # Carrying a stencil's loads from one iteration to the next turns them into permutations of
    # vectors, which cost more than the loads (three times as much for bytes).
    "-enable-load-in-loop-pre=false",
    # The register allocator splits the range of a value at the best of all borders of a region. In
    # functions of thousands of blocks that takes a third of the time of code generation; with a
    # hundredth of the search the code is smaller, and as fast.
    "-grow-region-complexity-budget=100",
)
"""Of LLVM as a whole, for every kernel."""

_SHORT: Final = ("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg")
_DEVICE: Final = (*_SHORT[:2], "loop_rotate", "loop_unroll", *_SHORT[2:])
_PASSES: Final[dict[Pipeline, tuple[str, ...]]] = {
    "short": _SHORT, "device": _DEVICE, "product": (*_DEVICE, "new_gvn", "sinking"),
}  # fmt: skip
"""Of the pipelines of a few passes: locals become values, and addresses are folded. Drivers unroll
loops, too, but a sort whose loops LLVM has not unrolled is slower by a tenth."""


_loading: Final = threading.Lock()
_library: Any = None


def is_loaded() -> bool:
    """True once LLVM is loaded."""
    return _library is not None


def library() -> Any:
    """`library`, ready to generate code for this machine."""
    global _library
    if _library is None:
        with _loading:  # LLVM ends the process where an option is set twice
            if _library is None:
                _library = _loaded()
    return _library


def binding() -> Any:
    """`llvmlite.binding`, which has more than `library`, ready as that is."""
    library()
    return importlib.import_module("llvmlite.binding")


def _loaded() -> Any:
    llvm: Any = importlib.import_module(".library", __package__)
    for option in _OPTIONS:
        llvm.set_option("", option)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def version() -> str:
    """Name and version of the toolchain."""
    llvmlite: Any = importlib.import_module("llvmlite")
    numbers = ".".join(map(str, library().llvm_version_info))
    return f"LLVM {numbers} (llvmlite {llvmlite.__version__})"


@cache
def identity() -> str:
    """The key of `version` and this module's settings, without loading LLVM.

    llvmlite includes its own LLVM, so its version identifies that too.
    """
    return " ".join((f"llvmlite {_written_version() or _imported_version()}", *_OPTIONS, _FEATURES))


def _written_version() -> str:
    """llvmlite's version as written in its source; empty if that has changed its form."""
    try:
        spec = importlib.util.find_spec("llvmlite")
        if spec is None or spec.origin is None:
            return ""
        path = os.path.join(os.path.dirname(spec.origin), "_version.py")
        with open(path, encoding="utf-8") as file:
            found = [line for line in file if line.startswith("version_version = ")]
    except (OSError, ValueError):
        return ""
    version = found[0].partition("=")[2].strip().strip("'\"") if len(found) == 1 else ""
    return version if version.replace(".", "").replace("+", "").isalnum() else ""


def _imported_version() -> str:
    llvmlite: Any = importlib.import_module("llvmlite")
    return str(llvmlite.__version__)


@cache
def host_target() -> Target:
    """The CPU of this machine with all it can do."""
    llvm: Any = library()
    triple: str = llvm.get_process_triple()
    features: str = llvm.get_host_cpu_features().flatten()
    if triple.startswith("x86_64"):
        features += f",{_FEATURES}"
    return Target("cpu", triple, llvm.get_host_cpu_name(), features)


class Module:
    """A parsed module. `optimise` changes it in place."""

    def __init__(self, machine: Machine, text: str, verify: bool, context: Any = None) -> None:
        self._machine: Final = machine
        self._context: Final = context
        llvm: Any = machine.llvm
        try:
            self.ref: Any = llvm.parse_assembly(text, context)
            if verify:
                self.ref.verify()
        except RuntimeError as error:
            raise QuadrantsInternalError(f"LLVM refuses the generated code: {error}") from None

    def optimise(self, level: int, pipeline: Pipeline = "whole") -> None:
        """Run LLVM's pipeline of this level (0 to 3), or a shorter one.

        Loops are vectorised from level 2 on. Straight-line code is not: on kernels that costs a
        tenth of the pipeline's time and produces slower code more often than faster.
        """
        if pipeline in _PASSES:
            self._optimise_shortly(_PASSES[pipeline])
            return
        llvm: Any = self._machine.llvm
        loops = level > 1 and pipeline == "whole"
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.slp_vectorization = False
        options.loop_vectorization = options.loop_interleaving = loops
        options.loop_unrolling = loops
        builder = llvm.create_pass_builder(self._machine.ref, options)
        passes = builder.getModulePassManager()
        self._function("LLVMPY_RunNewModulePassManager")(passes, self.ref, builder)
        if pipeline == "straight":
            self._cut()

    def _optimise_shortly(self, names: tuple[str, ...]) -> None:
        llvm: Any = self._machine.llvm
        builder = llvm.create_pass_builder(self._machine.ref, llvm.create_pipeline_tuning_options())
        # Of the module, not of each function: that costs 0.1 ms a function, with the same result.
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        self._function("LLVMPY_RunNewModulePassManager")(passes, self.ref, builder)
        self._cut()

    def _cut(self) -> None:
        """Replace the module by one without long blocks, if it has any."""
        from .cuts import cut

        whole = self.text()
        text = cut(whole)
        if text is not whole:
            self.ref.close()
            self.ref = self._machine.llvm.parse_assembly(text, self._context)

    def link(self, other: Any) -> None:
        """Take in what another module (of llvmlite, used up) defines."""
        self.ref.link_in(other)

    def text(self) -> str:
        return str(self.ref)

    def assembly(self) -> str:
        return self._emitted(0).decode()

    def object_code(self) -> bytes:
        return self._emitted(1)

    def _emitted(self, form: int) -> bytes:
        """The code that LLVM generates. form: 0 for assembly, 1 for object code."""
        llvm: Any = self._machine.llvm
        library = llvm.ffi.lib
        emit = self._function("LLVMPY_TargetMachineEmitToMemory")
        with llvm.ffi.OutputString() as error:
            buffer = emit(self._machine.ref, self.ref, form, error)
            if not buffer:
                raise QuadrantsInternalError(f"LLVM generates no code: {error}")
        try:
            size = library.LLVMPY_GetBufferSize(buffer)
            return bytes(ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), size))
        finally:
            library.LLVMPY_DisposeMemoryBuffer(buffer)

    def close(self) -> None:
        """Free the module."""
        self.ref.close()

    def _function(self, name: str) -> Any:
        """A function of LLVM that may take long.

        llvmlite serialises all calls with a lock. What has a context of its own shares nothing, so
        that it is called without the lock; a llvmlite without this wrapper is called as it is.
        """
        function: Any = getattr(self._machine.llvm.ffi.lib, name)
        return function if self._context is None else getattr(function, "_cfn", function)


class Machine:
    """A target machine of LLVM.

    llvm: `llvmlite.binding`, or `library` for the CPU of this machine unless it is given.
    """

    def __init__(self, target: Target, level: int, llvm: Any = None) -> None:
        host = target.kind == "cpu" and target.arch == host_target().arch
        self.llvm: Final[Any] = llvm or (library() if host else binding())
        description = self.llvm.Target.from_triple(target.arch)
        self.ref: Final[Any] = description.create_target_machine(
            cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
        )
        self.ref.set_asm_verbosity(False)

    def parse(self, text: str, verify: bool = False, context: Any = None) -> Module:
        """The module that ``text`` describes. QuadrantsInternalError if LLVM refuses it.

        context: LLVM's, for a module that another thread does not share; None is the common one.
        """
        return Module(self, text, verify, context)


@cache
def machine(target: Target, level: int) -> Machine:
    """The target machine for a target and an optimisation level (0 to 3)."""
    return Machine(target, level)
