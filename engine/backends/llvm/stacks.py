"""LLVM IR for adstacks: entries in a heap, count and top in registers.

::

    $11 : ad_stack_push $10, $2      %n = load i64, ptr %v10           (a register after LLVM)
                                     %fits = icmp ult i64 %n, %t0.s0.capacity
                                     br i1 %fits, label %fits1, label %full.0
                                   fits1:
                                     %row = getelementptr i8, ptr %t0.s0.base, i64 %row.real
                                     %at = getelementptr [2 x float], ptr %row, i64 %n
                                     store float ..., ptr %at;  store 0 after it
                                     store float ..., ptr %v10.top;  store 0 to %v10.adj
                                     store i64 %n + 1, ptr %v10

Capacity and address come from the argument buffer (`abi.StackArea`) as parameters of the task's
function, the address as `noalias`: a stack shares memory with nothing. An entry is the value,
followed by the adjoint. The heap always holds all of them; value and adjoint on top are variables
as well, so that a chain of values through a stack (``x = f(x)``, its adjoint in reverse) does not
wait for memory. A pop reads the next ones. A full stack sets the argument buffer's error and leaves
the task.

A thread has one row in each heap. `row.integer` and `row.real` are its distances from row 0 in
bytes. In a task with an adstack predicate `ad_stack_claim` finds the latter; ops on floats follow
a claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...errors import QuadrantsInternalError
from ...ir import Block, Op, pointee, walk
from ...ir import codes as C
from ...types import DataType
from ..kernarg import abi
from .memory_ops import in_memory
from .scalars import combine
from .text import MEMORY, SIZE, zero

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["OPS", "TaskStacks", "begin_rows", "reset_claims"]


class TaskStacks:
    """The stacks of the task that is emitted.

    task: its number. numbers: of each stack's op. thread: the operand that says which thread runs.
    """

    def __init__(self, number: int, task: Op, area: abi.StackArea, thread: str) -> None:
        body = walk(task.regions[1])
        stacks = [op for op in body if op.code == C.AD_STACK_ALLOCA]
        self.task: Final = number
        self.area: Final = area
        self.numbers: Final = {op.id: i for i, op in enumerate(stacks)}
        self.kinds: Final = {pointee(op).is_real for op in stacks}
        self.thread: Final = thread
        if area.claims >= 0:
            _check_claims(task.regions[1], False)


def _check_claims(block: Block, claimed: bool) -> None:
    """Raise if an op works on a real stack where its thread may have no row yet."""
    for op in block.ops:
        if op.code == C.AD_STACK_CLAIM:
            claimed = True
        elif C.STACK[op.code] and not claimed and pointee(op.args[0]).is_real:
            raise QuadrantsInternalError.from_loc(
                f"${op.id} = {op.name}is before the ad_stack_claim of its task", op.loc
            )
        for region in op.regions:
            _check_claims(region, claimed)


def _stacks(e: Emitter, op: Op) -> TaskStacks:
    if e.stacks is None:
        raise e.unsupported(op)
    return e.stacks


def _fact(e: Emitter, name: str, offset: int) -> str:
    """A number of the task's area. Serial tasks are called with what the kernel has loaded."""
    assert e.stacks is not None
    return e.param(f"t{e.stacks.task}.{name}", "i64", e.stacks.area.at + offset, "noundef")


def _fail(e: Emitter, label: str, stack: int) -> str:
    """The block that ends the task because a stack is full, or with -1 the rows are used up."""
    assert e.stacks is not None
    error = abi.stack_error(e.stacks.task, stack)
    e.asserts = True
    e.tail[label] = [
        f"  %{label}.set = cmpxchg ptr {e.kernarg}, i64 0, i64 {error}{e.scope} monotonic "
        "monotonic, align 8",
        "  br label %stop",
    ]
    return label


def begin_rows(e: Emitter) -> None:
    """At the start of a task: where this thread's rows are."""
    stacks = e.stacks
    assert stacks is not None
    thread = stacks.thread
    if thread != "0":
        thread = e.value(f"zext i32 {thread} to i64")
    for real in sorted(stacks.kinds):
        kind = "real" if real else "integer"
        rows = _fact(e, f"rows.{kind}", abi.REAL_ROWS if real else abi.INTEGER_ROWS)
        stride = _fact(e, f"stride.{kind}", abi.REAL_STRIDE if real else abi.INTEGER_STRIDE)
        if real and stacks.area.claims >= 0:
            e.line(f"store i64 -1, ptr {e.local('%claimed', 'i64', 8)}")
            e.line(f"%thread.wide = add i64 {thread}, 0")
            continue
        there = e.label("row")
        e.branch(e.value(f"icmp ult i64 {thread}, {rows}"), there, _fail(e, "norows", -1))
        e.place(there)
        e.line(f"%row.{kind} = mul nuw nsw i64 {thread}, {stride}")


def reset_claims(e: Emitter, area: abi.StackArea, threads: int) -> None:
    """In the entry function, before a task with an adstack predicate: no thread has a row."""
    at = e.beyond(e.kernarg, area.at + abi.PREDICATED)
    predicated = e.value(f"icmp ne i64 {e.value(f'load i64, ptr {at}, align 8')}, 0")
    reset, go_on = e.label("reset"), e.label("claims")
    e.branch(predicated, reset, go_on)
    e.place(reset)
    claims = e.beyond(e.kernarg, area.claims)
    e.line(f"store i64 0, ptr {claims}, align 8")
    e.clear(e.beyond(e.kernarg, area.claims + 8), 8, 8 * threads, -1)
    e.jump(go_on)
    e.place(go_on)


def _claim(e: Emitter, op: Op) -> None:
    stacks = e.stacks
    if stacks is None or stacks.area.claims < 0 or True not in stacks.kinds:
        return  # a thread's row is its number
    claim, claimed, go_on = e.label("claim"), e.label("claimed"), e.label("row")
    had = e.value(f"load i64, ptr {e.private}%claimed")
    e.branch(e.value(f"icmp sge i64 {had}, 0"), go_on, claim)
    e.place(claim)
    claims = e.beyond(e.kernarg, stacks.area.claims)
    rows = _fact(e, "rows.real", abi.REAL_ROWS)
    row = e.claim(claims, rows)
    e.branch(e.value(f"icmp sge i64 {row}, 0"), claimed, _fail(e, "norows", -1))
    e.place(claimed)
    stride = _fact(e, "stride.real", abi.REAL_STRIDE)
    start = e.value(f"mul nuw nsw i64 {row}, {stride}")
    e.line(f"store i64 {start}, ptr {e.private}%claimed")
    e.jump(go_on)
    e.place(go_on)


def _alloca(e: Emitter, op: Op) -> None:
    _stacks(e, op)
    t = pointee(op)
    name = e.name()
    e.v[op.id] = e.local(name, "i64", 8)
    e.line(f"store i64 0, ptr {e.v[op.id]}")
    for part in _tops(op):
        place = e.local(f"{name}{part}", MEMORY[t.name], max(SIZE[t.name], 4))
        e.line(f"store {MEMORY[t.name]} {zero(t)}, ptr {place}")


def _tops(stack: Op) -> tuple[str, ...]:
    """The variables that hold the top, next to its entry in the heap."""
    return (".top", ".adj") if stack.attr.adjoint else (".top",)


def _slot(e: Emitter, stack: Op, index: str, adjoint: bool = False) -> str:
    """The address of the value, or the adjoint, of an entry."""
    stacks = _stacks(e, stack)
    number, t = stacks.numbers[stack.id], pointee(stack)
    offset = stacks.area.stack(number) + 8
    name = f"t{stacks.task}.s{number}.base"
    base = e.heap(name, offset, f"noalias noundef align {SIZE[t.name]}")
    kind = "real" if t.is_real else "integer"
    row = f"%row.{kind}"
    if t.is_real and stacks.area.claims >= 0:
        row = e.value(f"load i64, ptr {e.private}%claimed")
    start = e.beyond(base, row)
    ty = MEMORY[t.name]
    entry = f"[2 x {ty}]" if stack.attr.adjoint else f"[1 x {ty}]"
    at = f"i64 {index}, i64 {int(adjoint)}"
    return e.space + e.value(f"getelementptr inbounds {entry}, ptr {start}, {at}")


def _count(e: Emitter, stack: Op) -> str:
    return e.value(f"load i64, ptr {e.v[stack.id]}")


def _push(e: Emitter, op: Op) -> None:
    stack, value = op.args
    stacks, t = _stacks(e, op), pointee(stack)
    number = stacks.numbers[stack.id]
    offset = stacks.area.stack(number)
    capacity = e.param(f"t{stacks.task}.s{number}.capacity", "i64", offset, "noundef")
    count = _count(e, stack)
    fits = e.label("fits")
    full = _fail(e, f"full.{number}", number)
    e.branch(e.value(f"icmp ult i64 {count}, {capacity}"), fits, full, likely=True)
    e.place(fits)
    parts = (in_memory(e, e.v[value.id], t), zero(t))
    for adjoint, (text, part) in enumerate(zip(parts, _tops(stack), strict=False)):
        _put(e, text, t, _slot(e, stack, count, bool(adjoint)))
        _put(e, text, t, e.v[stack.id] + part)
    e.line(f"store i64 {e.value(f'add nuw nsw i64 {count}, 1')}, ptr {e.v[stack.id]}")


def _put(e: Emitter, value: str, t: DataType, at: str) -> None:
    e.line(f"store {MEMORY[t.name]} {value}, ptr {at}, align {SIZE[t.name]}")


def _get(e: Emitter, t: DataType, at: str) -> str:
    return e.value(f"load {MEMORY[t.name]}, ptr {at}, align {SIZE[t.name]}")


def _pop(e: Emitter, op: Op) -> None:
    stack = op.args[0]
    t = pointee(stack)
    count = e.value(f"add nsw i64 {_count(e, stack)}, -1")
    e.line(f"store i64 {count}, ptr {e.v[stack.id]}")
    # Of an empty stack the place of the first entry is read, and never used.
    top = e.call("smax", "i64", f"i64 {e.value(f'add nsw i64 {count}, -1')}, i64 0", flags=False)
    for adjoint, part in enumerate(_tops(stack)):
        _put(e, _get(e, t, _slot(e, stack, top, bool(adjoint))), t, e.v[stack.id] + part)


def _load(e: Emitter, op: Op) -> None:
    stack = op.args[0]
    t = pointee(stack)
    part = ".adj" if op.code == C.AD_STACK_LOAD_TOP_ADJ else ".top"
    got = _get(e, t, e.v[stack.id] + part)
    e.v[op.id] = e.value(f"trunc i8 {got} to i1") if t.bits == 1 else got


def _acc_adjoint(e: Emitter, op: Op) -> None:
    stack, value = op.args
    t = pointee(stack)
    top = e.v[stack.id] + ".adj"
    total = combine(e, C.ADD, t, _get(e, t, top), e.v[value.id])
    _put(e, total, t, top)
    index = e.value(f"add nsw i64 {_count(e, stack)}, -1")
    _put(e, total, t, _slot(e, stack, index, adjoint=True))


OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.AD_STACK_ALLOCA: _alloca, C.AD_STACK_PUSH: _push, C.AD_STACK_POP: _pop,
    C.AD_STACK_LOAD_TOP: _load, C.AD_STACK_LOAD_TOP_ADJ: _load,
    C.AD_STACK_ACC_ADJOINT: _acc_adjoint, C.AD_STACK_CLAIM: _claim,
}  # fmt: skip
