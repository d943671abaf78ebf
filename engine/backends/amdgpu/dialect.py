"""LLVM IR as the AMDGPU target accepts it, for the HSA runtime's conventions.

A thread's own memory is in address space 5, the device buffer and the heaps are in 1. The
language's subgroups have 32 threads: on processors with waves of 64 a wave holds two. Lanes read
each other's registers by ``ds_bpermute``, whose operand is a byte address: four times the lane.

Mathematics that the processor has good instructions for (roots, ``exp`` and ``log`` of f32) are
LLVM's intrinsics; all else is called from ROCm's device library by its names (``__ocml_sin_f32``).
No device library is linked: those calls stay unresolved, and the facts of the code say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir import codes as C
from ...types import Type, f32
from ..llvm.dialect import LIBRARY, Dialect, declared_call
from ..llvm.text import VALUE

if TYPE_CHECKING:
    from ..llvm.gpu_emitter import GpuEmitter

__all__ = ["LIBRARY_PREFIX", "AmdgpuDialect"]

LIBRARY_PREFIX: Final = "__ocml_"
_BLOCK_COUNT: Final = "@llvm.amdgcn.implicitarg.ptr"
"""The memory it points to begins with the number of blocks (code objects of version 5 or later)."""


class AmdgpuDialect(Dialect):
    """See `Dialect`. wave: lanes of a wave, 64 or 32."""

    triple = "amdgcn-amd-amdhsa"
    calling = "amdgpu_kernel"
    kernarg = "addrspace(1) "
    private = "addrspace(5) "
    device = "agent"
    block = "workgroup"
    static_shared = 64 << 10
    # Arrays are in device memory, where atomics on floats are instructions.
    real_notes = ", !amdgpu.no.fine.grained.memory !0, !amdgpu.no.remote.memory !0"

    def __init__(self, wave: int) -> None:
        self.wave = wave

    def attributes(self, threads: int, registers: int) -> str:
        text = f'"amdgpu-flat-work-group-size"="{threads},{threads}"'
        text += ' "uniform-work-group-size"="true"'
        return f'{text} "amdgpu-num-vgpr"="{registers}"' if registers else text

    def register(self, e: GpuEmitter, name: str) -> list[str]:
        if name == "laneid":
            low = declared_call(e, "@llvm.amdgcn.mbcnt.lo", "i32", "i32 -1, i32 0")
            if self.wave == 32:
                return [f"  %laneid = {low}"]
            high = declared_call(e, "@llvm.amdgcn.mbcnt.hi", "i32", "i32 -1, i32 %laneid.low")
            return [f"  %laneid.low = {low}", f"  %laneid = {high}"]
        if name == "nctaid":
            at = declared_call(e, _BLOCK_COUNT, "ptr addrspace(4)", "")
            load = "load i32, ptr addrspace(4) %nctaid.at, align 4, !invariant.load !0"
            return [f"  %nctaid.at = {at}", f"  %nctaid = {load}"]
        symbol = {"tid": "workitem", "ctaid": "workgroup"}[name]
        return [f"  %{name} = {declared_call(e, f'@llvm.amdgcn.{symbol}.id.x', 'i32', '')}"]

    def barrier(self, e: GpuEmitter) -> None:
        _between_fences(e, "workgroup", "s.barrier")

    def subgroup_barrier(self, e: GpuEmitter) -> None:
        _between_fences(e, "wavefront", "wave.barrier")

    def shuffle(self, e: GpuEmitter, value: str, lane: str) -> str:
        place = e.value(f"and i32 {lane}, 31")
        if self.wave == 64:
            half = e.value(f"and i32 {e.register('laneid')}, 32")
            place = e.value(f"or i32 {half}, {place}")
        args = f"i32 {e.value(f'shl i32 {place}, 2')}, i32 {value}"
        return e.value(declared_call(e, "@llvm.amdgcn.ds.bpermute", "i32", args))

    def ballot(self, e: GpuEmitter, value: str) -> str:
        call = declared_call(e, f"@llvm.amdgcn.ballot.i{self.wave}", f"i{self.wave}", f"i1 {value}")
        bits = e.value(call)
        if self.wave == 32:
            return bits
        half = e.value(f"and i32 {e.register('laneid')}, 32")
        own = e.value(f"lshr i64 {bits}, {e.value(f'zext nneg i32 {half} to i64')}")
        return e.value(f"trunc i64 {own} to i32")

    def library(self, e: GpuEmitter, code: int, t: Type, args: list[str]) -> str:
        ty = VALUE[t.name]
        given = ", ".join([f"{ty} {a}" for a in args])
        if t is f32 and code in (C.EXP, C.LOG):
            return e.call(LIBRARY[code], ty, given)
        symbol = f"@{LIBRARY_PREFIX}{LIBRARY[code]}_{t.name}"
        return e.value(declared_call(e, symbol, ty, given))

    def is_private(self, e: GpuEmitter, pointer: str) -> str:
        return e.value(declared_call(e, "@llvm.amdgcn.is.private", "i1", f"ptr {pointer}"))


def _between_fences(e: GpuEmitter, scope: str, name: str) -> None:
    call = declared_call(e, f"@llvm.amdgcn.{name}", "void", "")
    e.line(f'fence syncscope("{scope}") release')
    e.line(call)
    e.line(f'fence syncscope("{scope}") acquire')
