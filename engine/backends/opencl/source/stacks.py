"""OpenCL C for adstacks: entries in a heap, count and top in variables.

::

    $11 : ad_stack_push $10, $2      if (p_count >= p_capacity) { failed(...); return; }
                                     p_row[2 * p_count] = p_top = v2;
                                     p_row[2 * p_count + 1] = p_adj = 0.0f;
                                     ++p_count;

Capacity and address come by value from the argument buffer (`abi.StackArea`). An entry is the
value, followed by the adjoint. The heap always holds all of them; value and adjoint on top are
variables as well, so that a chain of values through a stack (``x = f(x)``, its adjoint in reverse)
does not wait for memory. A pop reads the next ones. A full stack sets the error of the device
buffer, by a 32-bit atomic operation, and leaves the task; later tasks of the launch do nothing.

A work-item has one row in each heap. In a task with an adstack predicate it claims the row of the
floats at `ad_stack_claim`, once; ops on floats follow a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....ir import Op, pointee, walk
from ....ir import codes as C
from ....types import DataType
from ...kernarg import abi
from ..facts import MEMORY as BUFFER
from .emitter import GLOBAL, UNARY, Address
from .memory_ops import fetch, set_memory
from .names import MEMORY, VALUE, literal
from .scalars import combined

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["STACK_OPS", "TaskStacks", "begin_rows"]


class TaskStacks:
    """The stacks of the task that is emitted.

    task: its number. numbers: of each stack's op. names: what a stack's variables are called.
    thread: the expression that says which work-item runs.
    """

    def __init__(self, number: int, task: Op, area: abi.StackArea, thread: str) -> None:
        stacks = [op for op in walk(task.regions[1]) if op.code == C.AD_STACK_ALLOCA]
        self.task: Final = number
        self.area: Final = area
        self.numbers: Final = {op.id: i for i, op in enumerate(stacks)}
        self.names: Final[dict[int, str]] = {}
        self.kinds: Final = {pointee(op).is_real for op in stacks}
        self.thread: Final = thread


def _stacks(e: Emitter, op: Op) -> TaskStacks:
    if e.stacks is None:
        raise e.unsupported(op)
    return e.stacks


def _fact(e: Emitter, name: str, offset: int) -> str:
    """A number of the task's area."""
    assert e.stacks is not None
    return e.param(name, "q", "long", e.stacks.area.at + offset)


def _fail(e: Emitter, stack: int) -> str:
    """The statements that end the task: a stack is full, or with -1 the rows are used up."""
    assert e.stacks is not None
    high, low = divmod(abi.stack_error(e.stacks.task, stack), 1 << 32)
    e.uses_kernarg = True
    return f"{{ {e.helper('adstack_failed')}(kernarg, 0x{high:x}u, 0x{low:x}u); return; }}"


def begin_rows(e: Emitter) -> None:
    """At the start of a task: which rows this work-item has."""
    stacks = e.stacks
    assert stacks is not None
    e.line(f"const long thread = {stacks.thread};")
    for real in sorted(stacks.kinds):
        kind = "real" if real else "integer"
        rows = _fact(e, f"qd_{kind}_rows", abi.REAL_ROWS if real else abi.INTEGER_ROWS)
        stride = _fact(e, f"qd_{kind}_stride", abi.REAL_STRIDE if real else abi.INTEGER_STRIDE)
        if real and stacks.area.claims >= 0:
            e.line("long qd_real_row = -1;")
            continue
        e.line(f"if (thread >= {rows}) {_fail(e, -1)}")
        e.line(f"const long qd_{kind}_row = thread * {stride};")


def _claim(e: Emitter, op: Op) -> None:
    stacks = e.stacks
    if stacks is None or stacks.area.claims < 0 or True not in stacks.kinds:
        return  # a work-item's row is its number
    rows = _fact(e, "qd_real_rows", abi.REAL_ROWS)
    stride = _fact(e, "qd_real_stride", abi.REAL_STRIDE)
    predicated = _fact(e, "qd_predicated", abi.PREDICATED)
    e.comment(op)
    e.open("if (qd_real_row < 0) {")
    claim = f"{e.helper('claim')}(kernarg + {stacks.area.claims}, thread, {rows}, {predicated})"
    e.line(f"const long qd_row = {claim};")
    e.line(f"if (qd_row < 0) {_fail(e, -1)}")
    e.line(f"qd_real_row = qd_row * {stride};")
    e.close()


def _alloca(e: Emitter, op: Op) -> None:
    stacks = _stacks(e, op)
    t = pointee(op)
    name = e.names.fresh(f"{op.attr.name or 'stack'}_stack", ends=("_count", "_top", "_adj"))
    stacks.names[op.id] = name
    e.statement(op, f"long {name}_count = 0;")
    for part in _tops(op):
        e.line(f"{VALUE[t.name]} {name}{part} = {literal(0, t)};")


def _tops(stack: Op) -> tuple[str, ...]:
    """The variables that hold the top, next to its entry in the heap."""
    return ("_top", "_adj") if stack.attr.adjoint else ("_top",)


def _name(e: Emitter, stack: Op) -> str:
    return _stacks(e, stack).names[stack.id]


def _entry(e: Emitter, stack: Op, index: str, adjoint: bool = False) -> Address:
    """The value, or the adjoint, of an entry in the heap."""
    stacks = _stacks(e, stack)
    number, t = stacks.numbers[stack.id], pointee(stack)
    offset = stacks.area.stack(number) + 8
    alone = bool(e.program.restrict)
    base = e.param(f"qd_heap{number}", BUFFER, "uchar", offset, alone=alone)
    kind = "real" if t.is_real else "integer"
    pointer = f"((__global {MEMORY[t.name]} *)({base} + qd_{kind}_row))"
    if stack.attr.adjoint:
        index = f"2 * {index} + 1" if adjoint else f"2 * {index}"
    return Address(pointer, index, t, GLOBAL)


def _push(e: Emitter, op: Op) -> None:
    stack, value = op.args
    stacks, t = _stacks(e, op), pointee(stack)
    number, name = stacks.numbers[stack.id], _name(e, stack)
    capacity = e.param(f"qd_capacity{number}", "q", "long", stacks.area.stack(number))
    e.statement(op, f"if ({name}_count >= {capacity}) {_fail(e, number)}")
    for adjoint, (text, part) in enumerate(
        zip((e.whole(value), literal(0, t)), _tops(stack), strict=False)
    ):
        e.line(f"{name}{part} = {text};")
        e.line(set_memory(e, _entry(e, stack, f"{name}_count", bool(adjoint)), f"{name}{part}"))
    e.line(f"++{name}_count;")


def _pop(e: Emitter, op: Op) -> None:
    stack = op.args[0]
    name = _name(e, stack)
    e.statement(op, f"--{name}_count;")
    # Of an empty stack the place of the first entry is read, and never used.
    top = e.names.fresh(f"{name}_below")
    e.line(f"const long {top} = {name}_count > 0 ? {name}_count - 1 : 0;")
    for adjoint, part in enumerate(_tops(stack)):
        e.line(f"{name}{part} = {fetch(e, _entry(e, stack, top, bool(adjoint)))};")


def _load(e: Emitter, op: Op) -> None:
    part = "_adj" if op.code == C.AD_STACK_LOAD_TOP_ADJ else "_top"
    e.put(op, _name(e, op.args[0]) + part)


def _acc_adjoint(e: Emitter, op: Op) -> None:
    stack, value = op.args
    t: DataType = pointee(stack)
    name = _name(e, stack)
    e.statement(op, f"{name}_adj = {combined(e, C.ADD, t, f'{name}_adj', e.at(value, UNARY))};")
    e.line(set_memory(e, _entry(e, stack, f"({name}_count - 1)", True), f"{name}_adj"))


STACK_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.AD_STACK_ALLOCA: _alloca, C.AD_STACK_PUSH: _push, C.AD_STACK_POP: _pop,
    C.AD_STACK_LOAD_TOP: _load, C.AD_STACK_LOAD_TOP_ADJ: _load,
    C.AD_STACK_ACC_ADJOINT: _acc_adjoint, C.AD_STACK_CLAIM: _claim,
}  # fmt: skip
