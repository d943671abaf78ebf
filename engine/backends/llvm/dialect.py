"""The differences between families of GPUs in LLVM IR.

The GPU emitter speaks of a *kernarg*, the argument buffer, *registers* of the thread, *barriers*,
*lanes*; a `Dialect` has the words of one target for them. `Dialect` itself is the table with what
most targets share, and the package of a backend has the dialect of its own target: `cuda.dialect`,
`amdgpu.dialect`, `spirv.dialect`.

                      NVVM                    AMDGPU                   SPIR-V
    a kernel          ptx_kernel              amdgpu_kernel            spir_kernel
    threads a block   "nvvm.reqntid"          "amdgpu-flat-work-..."   !reqd_work_group_size
    kernarg, heaps    generic (0)             global (1)               global (1)
    own memory        generic (0)             private (5)              private (0)
    any memory        generic (0)             flat (0)                 generic (4)
    arrays, shared    1, 3                    1, 3                     1, 3
    lanes             warps of 32             waves of 64 or 32        none that are known
    scopes            device, block           agent, workgroup         device, workgroup
    mathematics       libdevice               instructions, ocml       OpenCL's, by intrinsics

A *space* here is the text before the name of a pointer: ``addrspace(1) `` or nothing; ``ptr`` in
front of an operand completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ...ir import codes as C
from ...types import Type
from .text import FAST, declared_call

if TYPE_CHECKING:
    from ...ir import Op
    from .emitter import Slot
    from .gpu_emitter import GpuEmitter, GpuState

__all__ = ["LIBRARY", "Dialect", "declared_call"]

LIBRARY: dict[int, str] = {
    code: C.NAME[code]
    for code in range(C.COUNT)
    if C.LIBM[code] and code not in (C.SQRT, C.FLOOR, C.CEIL, C.ROUND)
} | {C.MOD: "fmod"}
"""Mathematics that processors have no instructions for, by the names of C."""


class Dialect:
    """The words of one target.

    triple: of the module. calling: convention of a kernel. kernarg, private, generic: spaces of the
    kernarg, of memory that a thread has for itself, and of pointers that a real function accepts.
    device, block: scopes of synchronisation. static_shared: bytes of shared arrays that a block
    has by itself. graphs: kernels of a graph find their arguments in the argument buffer.
    print_parameter: a kernel gets the print buffer as its first parameter after the argument
    buffer, which does not hold its address. asserts: failing ones end a kernel; else they are
    left out. real_atomics: there are atomic sums, minima and maxima of floats. real_notes: the
    text after them. asks_space: code can ask whose memory a pointer of the generic space leads
    to (`is_private`); else a real function gets an argument with each pointer that says so.
    fast: the flags of `fast_math` for instructions on floats. fragment_ops: what emits operations
    on fragments of matrices, asynchronous copies and atomic sums of vectors, by code; empty where
    there are none.
    """

    triple: ClassVar[str]
    calling: ClassVar[str]
    kernarg: ClassVar[str] = ""
    private: ClassVar[str] = ""
    generic: ClassVar[str] = ""
    device: ClassVar[str] = "device"
    block: ClassVar[str] = "block"
    static_shared: ClassVar[int] = 48 << 10
    graphs: ClassVar[bool] = True
    print_parameter: ClassVar[bool] = False
    asserts: bool = True
    real_atomics: ClassVar[bool] = True
    real_notes: ClassVar[str] = ""
    asks_space: ClassVar[bool] = True
    fast: ClassVar[str] = FAST
    fragment_ops: ClassVar[Mapping[int, Callable[[Any, Op], None]]] = {}

    # Kernels

    def attributes(self, threads: int, registers: int) -> str:
        """The attributes after the parameters of a kernel with blocks of ``threads``.

        registers: the most that a thread may have; 0 for any number.
        """
        raise NotImplementedError

    def parameter(self, slot: Slot) -> tuple[list[str], list[str]]:
        """A slot as parameters of a kernel, and lines that make ``%name`` of them.

        A truth value is a byte there.
        """
        if slot.type == "i1":
            name = slot.name
            return [f"i8 %{name}.byte"], [f"  %{name} = trunc i8 %{name}.byte to i1"]
        return [slot.declaration], []

    def register(self, e: GpuEmitter, name: str) -> list[str]:
        """Lines that read ``%name``: tid, ctaid, nctaid, as i32."""
        raise NotImplementedError

    def check(self, state: GpuState) -> None:
        """Raise if the kernel has what the target cannot say."""

    # Threads together

    def barrier(self, e: GpuEmitter) -> None:
        """Wait for all threads of the block, and see what they have written."""
        raise NotImplementedError

    def subgroup_barrier(self, e: GpuEmitter) -> None:
        """Wait for the threads of the subgroup."""
        raise NotImplementedError

    def shuffle(self, e: GpuEmitter, value: str, lane: str) -> str:
        """The i32 of a lane of the same subgroup of 32."""
        raise NotImplementedError

    def ballot(self, e: GpuEmitter, value: str) -> str:
        """The truth values of the lanes of a subgroup of 32, as bits of an i32."""
        raise NotImplementedError

    def clock(self, e: GpuEmitter) -> str:
        """A clock of the thread's processor, as i64."""
        return e.value(declared_call(e, "@llvm.readcyclecounter", "i64", ""))

    # Mathematics

    def library(self, e: GpuEmitter, code: int, t: Type, args: list[str]) -> str:
        """A function of `LIBRARY` for floats of one type, f32 or f64."""
        raise NotImplementedError

    # Memory

    def is_private(self, e: GpuEmitter, pointer: str) -> str:
        """True if a pointer of the generic space leads to the thread's own memory, as i1."""
        raise NotImplementedError
