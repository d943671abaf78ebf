"""The emitter of functions for GPUs: what differs from `emitter` for every op alike.

Arrays are pointers to address space 1, registers of the thread are read once at the head of a
function, arrays that a block shares are globals of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...ir import Func, Op, pointee
from ...types import Type
from ..kernarg import abi
from .dialect import Dialect
from .emitter import Emitter, ModuleState, Slot
from .gpu_ops import GPU_OPS, own
from .text import MEMORY, SIZE

if TYPE_CHECKING:
    from .schedule import Schedule

__all__ = ["PASSED", "Cut", "GpuEmitter", "GpuState", "Position", "shared_bytes"]

Position = tuple[int, str]
"""Of a place in the code of a function: the number of lines before it, and its block."""
Cut = tuple[int, int, list[str]]
"""Lines of a text, by the numbers of the first and of the one after the last, and those that are
there in their place in the first tier."""

PASSED: Final = "@passed"
"""Stands for the arguments of a call until all functions are emitted."""
_MATRIX: Final = 1024
_DYNAMIC: Final = "@shared_memory"
"""Shared memory that the launch allocates for each block."""


def shared_bytes(array: Op) -> int:
    """The bytes of an array that a block shares."""
    return (array.attr.count * SIZE[pointee(array).name] + 15) & -16


class GpuState(ModuleState):
    """The state that the functions of a module for a GPU share.

    passed: the values of the argument buffer that real functions use; each function gets all of
    them, after the argument buffer. shared: definitions of the arrays that blocks share. dialect:
    the words of the target.
    """

    def __init__(self, func: Func, fast_math: bool, dialect: Dialect) -> None:
        super().__init__(func, fast_math, threads=0, fast=dialect.fast)
        self.dialect: Final = dialect
        self.passed: Final[dict[str, Slot]] = {}
        self.shared: Final[list[str]] = []


class GpuEmitter(Emitter):
    """Emits a function for a GPU.

    aligned: alignment of addresses, by op id, where it is more than that of an element. schedule:
    that of the task's iterations. unrolls: how often LLVM shall
    unroll a loop, by op id.
    arrays: names of the arrays that the task's blocks share, by op. shared_bytes: their size.
    matrices: those of them that warpgroups multiply, see `WarpgroupAttr`.
    dynamic: they are in memory that the launch allocates, not in globals of their own.
    cuts: of `lines`, in their order.
    """

    table: ClassVar[list[Callable[[Any, Any], None]]] = [
        GPU_OPS.get(code, emit) for code, emit in enumerate(Emitter.table)
    ]
    own_exp = False
    vectors = False
    most_stack = 1 << 18
    array_align = 16
    far = "addrspace(1) "

    def __init__(self, state: GpuState, **facts: Any) -> None:
        super().__init__(state, **facts)
        self.gpu: Final = state
        dialect = self.dialect = state.dialect
        self.scope = f' syncscope("{dialect.device}")'
        self.space, self.private = dialect.kernarg, dialect.private
        self.real_atomics, self.real_notes = dialect.real_atomics, dialect.real_notes
        self.arrays: Final[dict[int, str]] = {}
        self.shared_bytes = 0
        self.matrices: set[Op] = set()
        self.dynamic = False
        self.max_registers = 0
        self.aligned: dict[int, int] = {}
        self.schedule: Schedule | None = None
        self.unrolls: dict[int, int] = {}
        self.cuts: Final[list[Cut]] = []

    @property
    def here(self) -> Position:
        return len(self.lines), self.block

    @contextmanager
    def in_first_tier(self, start: Position) -> Generator[None]:
        """Emit the lines that are there in the first tier in place of those from ``start`` on. Both
        end in the same block, and define what the code after them uses."""
        end, state = len(self.lines), (self.block, self.ended)
        first, self.block = start
        self.ended = False
        yield
        self.cuts.append((first, end, self.lines[end:]))
        del self.lines[end:], self.ids[end:]
        self.block, self.ended = state

    def rolled(self) -> str:
        """The metadata of the branch back of a loop that LLVM must not unroll."""
        return self.state.loop_property('!{!"llvm.loop.unroll.disable"}')

    def loop_hint(self, loop: Op, axis: int, bounds: list[str], axes: int) -> str:
        if loop.attr.straight:
            return '!{!"llvm.loop.unroll.full"}'
        count = self.unrolls.get(loop.id)
        return f'!{{!"llvm.loop.unroll.count", i32 {count}}}' if count else ""

    def hidden(self, ty: str, result: str) -> str:
        return result  # nothing becomes vectors

    def register(self, name: str) -> str:
        """A special register: tid, ctaid, nctaid; of some dialects laneid."""
        value = f"%{name}"
        if name not in self.loaded:
            self.loaded[name] = value
            self.head += self.dialect.register(self, name)
        return value

    def shared(self, op: Op) -> str:
        """The array that an op makes for its block."""
        found = self.arrays.get(op.id)
        if found is None:
            align = _MATRIX if op in self.matrices else 16
            if self.dynamic:
                declared = f"{_DYNAMIC} = external addrspace(3) global [0 x i8], align {_MATRIX}"
                self.state.declares[_DYNAMIC] = declared
                name, at = f"%shared.{len(self.arrays)}", self.shared_bytes
                at = self.shared_bytes = (at + align - 1) & -align
                place = f"getelementptr i8, ptr addrspace(3) {_DYNAMIC}, i32 {at}"
                self.head.append(f"  {name} = {place}")
            else:
                name, defined = f"@shared.{len(self.gpu.shared)}", self.gpu.shared
                of = f"[{op.attr.count} x {MEMORY[pointee(op).name]}]"
                where = f"internal addrspace(3) global {of} undef, align {align}"
                defined.append(f"{name} = {where}")
            found = self.arrays[op.id] = f"addrspace(3) {name}"
            self.shared_bytes += shared_bytes(op)
        return found

    def passed(self) -> list[str]:
        if self.callee is not None:
            return [PASSED]
        slots = list(self.gpu.passed.values())
        for slot in slots:
            self.param(*slot)
        return [f"{s.type} %{s.name}" for s in slots]

    def claim(self, claims: str, rows: str) -> str:
        stacks = self.stacks
        assert stacks is not None
        at = stacks.area.at + abi.PREDICATED
        predicated = self.param(f"t{stacks.task}.predicated", "i64", at, "noundef")
        args = f"ptr {claims}, i64 %thread.wide, i64 {rows}, i64 {predicated}"
        return self.value(f"call i64 {self.helper('claim_gpu')}({args})")

    def reference(self, pointer: Op) -> str:
        space, value = self.dialect.generic, self.v[pointer.id]
        if value.rpartition("%")[0] != space:
            value = space + self.value(f"addrspacecast ptr {value} to ptr {space}".rstrip())
        return f"ptr {value}" if self.dialect.asks_space else f"ptr {value}, i1 {own(pointer)}"

    def incoming(self, number: int, t: Type) -> str:
        return f"{self.dialect.generic if t.is_ptr else ''}%arg.{number}"
