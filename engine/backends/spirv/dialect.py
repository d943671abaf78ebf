"""LLVM IR as the SPIR-V target accepts it, in the OpenCL flavour.

Pointers into the device buffer, the heaps and arrays are of the global space 1, a thread's own
memory is space 0, and pointers that a real function accepts are of the generic space 4. A kernel
gets each memory as two parameters, a buffer and a byte offset in it, as the OpenCL backend launches
it (`opencl.facts.OpenclTask`). Work-items and barriers are OpenCL's functions by their mangled
names, which LLVM knows; mathematics is LLVM's intrinsics, which become OpenCL's extended
instructions.

Plain SPIR-V cannot express some operations, so the code does without them: atomic sums, minima and
maxima of floats (compare and exchange, in a loop), and reductions over lanes, since a subgroup may
have any size. Sums in any order would have to be marked "fast", which asserts that nothing is
infinite. Some devices report that every generic pointer is to a thread's own memory, so the
caller of a function passes that as an argument.
Refused, with the user's line: subgroups, atomics on elements below 32 bits, recursion; and barriers
in code that is launched, since work-items without an iteration end before they reach one, which
OpenCL does not allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...analysis import recursive
from ...errors import QuadrantsUnsupportedError
from ...ir import Op, all_ops, base_of, walk
from ...ir import codes as C
from ...types import PointerType, Type
from ..llvm.dialect import LIBRARY, Dialect
from ..llvm.text import VALUE

if TYPE_CHECKING:
    from ..llvm.emitter import Slot
    from ..llvm.gpu_emitter import GpuEmitter, GpuState

__all__ = ["SPIRV", "SpirvDialect"]

_SUBGROUP: Final = frozenset({C.SUBGROUP_SHUFFLE, C.SUBGROUP_BALLOT, C.SUBGROUP_SYNC})
_REGISTERS: Final = {
    "tid": "_Z12get_local_idj", "ctaid": "_Z12get_group_idj", "nctaid": "_Z14get_num_groupsj",
}  # fmt: skip
_FENCES: Final = 3
"""Of barriers: local and global memory."""


class SpirvDialect(Dialect):
    """See `Dialect`. asserts: see there; a launch through OpenCL does not look for failures."""

    triple = "spirv64v1.2-unknown-unknown"
    calling = "spir_kernel"
    kernarg = "addrspace(1) "
    generic = "addrspace(4) "
    device = "device"
    block = "workgroup"
    static_shared = 1 << 40
    real_atomics = False
    graphs = False
    print_parameter = True
    asks_space = False
    fast = "nsz arcp "

    def __init__(self, asserts: bool = True) -> None:
        self.asserts = asserts

    def attributes(self, threads: int, registers: int) -> str:
        return f"!reqd_work_group_size !{{i32 {threads}, i32 1, i32 1}}"

    def parameter(self, slot: Slot) -> tuple[list[str], list[str]]:
        if not slot.type.startswith("ptr") or slot.offset < 0:
            return super().parameter(slot)
        name = slot.name
        alias = "noalias " if "noalias" in slot.attributes else ""
        memory = f"ptr addrspace(1) {alias}%{name}.mem"
        at = f"getelementptr inbounds i8, ptr addrspace(1) %{name}.mem, i64 %{name}.off"
        return [memory, f"i64 %{name}.off"], [f"  %{name} = {at}"]

    def register(self, e: GpuEmitter, name: str) -> list[str]:
        symbol, own = f"@{_REGISTERS[name]}", f"@qd.{name}"
        e.state.declares[symbol] = f"declare spir_func i64 {symbol}(i32) nounwind memory(none)"
        # A function: LLVM would shift before it makes the number shorter, and then forget to.
        e.state.declares[own] = (
            f"define internal i32 {own}() noinline nounwind memory(none) {{ "
            f"%size = call spir_func i64 {symbol}(i32 0) "
            "%short = trunc i64 %size to i32 ret i32 %short }"
        )
        return [f"  %{name} = call i32 {own}()"]

    def check(self, state: GpuState) -> None:
        func = state.func
        for callee in func.callees.values():
            for op in walk(callee.body):
                _check(op)
        for op in all_ops(func):
            _check(op)
        for task in func.tasks():
            if self.asserts or task.attr.unit == "thread":  # all threads come to its barriers
                continue
            for op in walk(task.regions[1]):
                if op.code == C.BLOCK_SYNC:
                    what = "barrier that iterations need not come to"
                    raise _refused(what, op.loc, "launch it without opencl_il")
        if func.callees and recursive(func):
            raise _refused("functions that call themselves", func.loc, "write a loop")

    def barrier(self, e: GpuEmitter) -> None:
        name = "@_Z7barrierj"
        e.state.declares[name] = f"declare spir_func void {name}(i32) convergent nounwind"
        e.line(f"call spir_func void {name}(i32 {_FENCES}) convergent")

    def library(self, e: GpuEmitter, code: int, t: Type, args: list[str]) -> str:
        ty = VALUE[t.name]
        if code == C.MOD:
            return e.value(f"frem {e.fast}{ty} {', '.join(args)}")
        return e.call(LIBRARY[code], ty, ", ".join([f"{ty} {a}" for a in args]))


def _check(op: Op) -> None:
    if op.code in _SUBGROUP:
        raise _refused(
            "subgroups of 32", op.loc, "use shared arrays of the block and qd.simt.block.sync()"
        )
    if op.code == C.CLOCK:
        raise _refused("clock", op.loc, "time tasks with qd.init(kernel_profiler=True)")
    if C.ATOMIC[op.code] and op.type.bits < 32 and not _own(op.args[0]):
        what = f"atomic updates of {op.type.name}"
        raise _refused(what, op.loc, "use elements of 32 or 64 bits")


def _own(pointer: Op) -> bool:
    """True if an address is certainly of the thread's own memory, which needs no atomics."""
    pointer = base_of(pointer)
    assert isinstance(pointer.type, PointerType)
    shared = pointer.code == C.ARRAY_ALLOCA and pointer.attr.space == "shared"
    return pointer.code in (C.ALLOCA, C.ARRAY_ALLOCA) and not shared


def _refused(what: str, loc: Any, hint: str) -> QuadrantsUnsupportedError:
    return QuadrantsUnsupportedError.from_loc(
        f"SPIR-V by LLVM has no {what}: {hint}", loc, feature=what, backend="spirv"
    )


SPIRV: Final = SpirvDialect()
