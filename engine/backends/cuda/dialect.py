"""LLVM IR in the form that the NVPTX target accepts (NVVM)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...types import Type, f32
from ..llvm.dialect import LIBRARY, Dialect, declared_call
from ..llvm.text import VALUE
from .fragments import FRAGMENT_OPS

if TYPE_CHECKING:
    from ..llvm.gpu_emitter import GpuEmitter

__all__ = ["NVVM"]

_ALL: Final = -1
_LANES: Final = 31


class _Nvvm(Dialect):
    """See `Dialect`. Mathematics is called from libdevice, by its names (``__nv_expf``).

    A mask names all lanes of the warp: those that have ended are not waited for.
    """

    triple = "nvptx64-nvidia-cuda"
    calling = "ptx_kernel"
    fragment_ops = FRAGMENT_OPS

    def attributes(self, threads: int, registers: int) -> str:
        text = f'"nvvm.reqntid"="{threads}"'
        return f'{text} "nvvm.maxnreg"="{registers}"' if registers else text

    def register(self, e: GpuEmitter, name: str) -> list[str]:
        call = declared_call(e, f"@llvm.nvvm.read.ptx.sreg.{name}.x", "i32", "")
        return [f"  %{name} = {call}"]

    def barrier(self, e: GpuEmitter) -> None:
        e.line(declared_call(e, "@llvm.nvvm.barrier.cta.sync.aligned.all", "void", "i32 0"))

    def subgroup_barrier(self, e: GpuEmitter) -> None:
        e.line(declared_call(e, "@llvm.nvvm.bar.warp.sync", "void", f"i32 {_ALL}"))

    def shuffle(self, e: GpuEmitter, value: str, lane: str) -> str:
        args = f"i32 {_ALL}, i32 {value}, i32 {lane}, i32 {_LANES}"
        return e.value(declared_call(e, "@llvm.nvvm.shfl.sync.idx.i32", "i32", args))

    def ballot(self, e: GpuEmitter, value: str) -> str:
        name = "@llvm.nvvm.vote.ballot.sync"
        return e.value(declared_call(e, name, "i32", f"i32 {_ALL}, i1 {value}"))

    def clock(self, e: GpuEmitter) -> str:
        return e.value(declared_call(e, "@llvm.nvvm.read.ptx.sreg.clock64", "i64", ""))

    def library(self, e: GpuEmitter, code: int, t: Type, args: list[str]) -> str:
        ty = VALUE[t.name]
        symbol = f"@__nv_{LIBRARY[code]}{'f' if t is f32 else ''}"
        return e.value(declared_call(e, symbol, ty, ", ".join([f"{ty} {a}" for a in args])))

    def is_private(self, e: GpuEmitter, pointer: str) -> str:
        return e.value(declared_call(e, "@llvm.nvvm.isspacep.local", "i1", f"ptr {pointer}"))


NVVM: Final = _Nvvm()
