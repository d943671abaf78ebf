"""LLVM IR of the operations that are otherwise on a GPU than on a CPU.

Mathematics beyond square roots is the dialect's. Loads from arrays that the task only reads go
through the read-only cache (``!invariant.load``). A print reserves room in the print buffer for a
record (`kernarg.grids.PRINTS`) and is lost where there is none. Arrays that a block shares are
globals of address space 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...analysis import shared_arrays
from ...ir import Block, Op, base_of, pointee
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION
from ...types import DataType, Type, f16, f32, u1
from ..base import PrintSite
from .control import CONTROL_OPS
from .dialect import LIBRARY
from .effects import as_slot
from .memory_ops import MEMORY_OPS, array_alloca, in_memory, note_written
from .scalars import SCALAR, combine, convert
from .schedule import shared_loop
from .subgroups import SUBGROUP_OPS
from .text import MEMORY, ORDERED, SIZE, VALUE, zero

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter

__all__ = ["GPU_OPS", "own", "zero_shared"]

# Memory


def _global_load(e: GpuEmitter, op: Op) -> None:
    t, pointer = op.type, op.args[0]
    ty = MEMORY[t.name]
    suffix = ", !invariant.load !0" if _only_read(e, pointer) else ""
    align = e.aligned.get(pointer.id, SIZE[t.name])
    got = e.value(f"load {ty}, ptr {e.v[pointer.id]}, align {align}{suffix}")
    e.v[op.id] = e.value(f"trunc i8 {got} to i1") if t is u1 else got


def _global_store(e: GpuEmitter, op: Op) -> None:
    pointer, value = op.args
    t = value.type
    text = in_memory(e, e.v[value.id], t)
    align = e.aligned.get(pointer.id, SIZE[t.name])
    e.line(f"store {MEMORY[t.name]} {text}, ptr {e.v[pointer.id]}, align {align}")
    note_written(e, pointer)


def _atomic(e: GpuEmitter, op: Op) -> None:
    at = own(op.args[0])
    if at not in ("true", "false"):
        _update_of_any(e, op)
    elif at == "true":
        e.v[op.id] = _private_update(e, op)
    else:
        MEMORY_OPS[op.code](e, op)


def own(pointer: Op) -> str:
    """True if a pointer leads to the thread's own memory, as i1.

    A name where only the caller of this function knows; see `Dialect.asks_space`.
    """
    pointer = base_of(pointer)
    if pointer.code == C.CALL_ARG:
        return f"%arg.{pointer.attr}.own"
    array = pointer.code == C.ARRAY_ALLOCA and pointer.attr.space != "shared"
    return "true" if pointer.code == C.ALLOCA or array else "false"


def _private_update(e: GpuEmitter, op: Op) -> str:
    """An update of memory of the thread's own, for which there are no atomics; the old value."""
    t, code, at = op.type, op.code, e.v[op.args[0].id]
    val = e.v[op.args[1].id]
    ty, size = MEMORY[t.name], SIZE[t.name]
    held = e.value(f"load {ty}, ptr {at}, align {size}")
    old = e.value(f"trunc i8 {held} to i1") if t is u1 else held
    new = val
    if code == C.ATOMIC_CAS:
        bits, sides = f"i{8 * size}", (held, in_memory(e, e.v[op.args[2].id], t))
        if t.is_real:
            sides = tuple([e.value(f"bitcast {ty} {side} to {bits}") for side in sides])
        same = e.value(f"icmp eq {bits} {sides[0]}, {sides[1]}")
        new = e.value(f"select i1 {same}, {VALUE[t.name]} {val}, {VALUE[t.name]} {old}")
    elif code != C.ATOMIC_XCHG:
        new = combine(e, ATOMIC_OPERATION[code], t, old, val)
    e.line(f"store {ty} {in_memory(e, new, t)}, ptr {at}, align {size}")
    return old


def _update_of_any(e: GpuEmitter, op: Op) -> None:
    """An update through an address that is an argument of a function: of any memory."""
    at = op.args[0]
    is_private = e.dialect.is_private(e, e.v[at.id]) if e.dialect.asks_space else own(at)
    mine, others, done = e.label("own"), e.label("any"), e.label("updated")
    e.branch(is_private, mine, others)
    e.place(mine)
    here = _private_update(e, op)
    after_mine = e.block
    e.jump(done)
    e.place(others)
    MEMORY_OPS[op.code](e, op)
    there = e.v[op.id]
    after_others = e.block
    e.jump(done)
    e.place(done)
    ty = VALUE[op.type.name]
    e.v[op.id] = e.value(f"phi {ty} [ {here}, %{after_mine} ], [ {there}, %{after_others} ]")


def _only_read(e: GpuEmitter, pointer: Op) -> bool:
    """True if nothing writes what ``pointer`` points to while the task runs."""
    pointer = base_of(pointer)
    if pointer.code != C.ARG_ADDR or e.calls:
        return False
    number: int = pointer.attr[0]
    return number in e.read_only and e.state.apart[number]


def _array_alloca(e: GpuEmitter, op: Op) -> None:
    if op.attr.space != "shared":
        array_alloca(e, op)
        return
    e.v[op.id] = e.shared(op)


def zero_shared(e: GpuEmitter, body: Block, threads: int) -> None:
    """At the start of a block: its shared arrays are 0, if they are to be cleared."""
    arrays = [array for array in shared_arrays(body) if array.attr.clear]
    before = e.shared_bytes
    places = [e.shared(array) for array in arrays]
    if e.dynamic and arrays:  # they are neighbours, each of a multiple of 16 bytes
        size = (e.shared_bytes - before) // 16
        _zero(e, arrays[0].id, places[0], ("<4 x i32>", "zeroinitializer", 16), size, threads)
    elif arrays:
        for array, place in zip(arrays, places, strict=True):
            t = pointee(array)
            what = MEMORY[t.name], zero(t), SIZE[t.name]
            _zero(e, array.id, place, what, array.attr.count, threads)
    if arrays:
        e.dialect.barrier(e)


def _zero(
    e: GpuEmitter, name: int, place: str, what: tuple[str, str, int], count: int, threads: int
) -> None:
    """A loop of a block that stores so many zeros. what: their type, text and alignment."""
    e.op_id = name
    ty, nothing, align = what
    again, store, done = e.label("zero"), e.label("store"), e.label("zeroed")
    before = e.block
    e.jump(again)
    e.place(again)
    at = f"%zero.{name}"
    e.line(f"{at} = phi i32 [ {e.register('tid')}, %{before} ], [ {at}.next, %{store} ]")
    e.branch(e.value(f"icmp ult i32 {at}, {count}"), store, done)
    e.place(store)
    where = e.value(f"getelementptr inbounds {ty}, ptr {place}, i32 {at}")
    e.line(f"store {ty} {nothing}, ptr addrspace(3) {where}, align {align}")
    e.line(f"{at}.next = add nuw i32 {at}, {threads}")
    e.jump(again)
    e.place(done)


# Mathematics


def library_call(e: GpuEmitter, code: int, t: Type, args: list[str]) -> str:
    """Call a function of mathematics; f16 is computed in f32 and rounded once."""
    if t is f16:
        args = [convert(e, a, f16, f32) for a in args]
        return convert(e, library_call(e, code, f32, args), f32, f16)
    return e.dialect.library(e, code, t, args)


def _library(e: GpuEmitter, op: Op) -> None:
    t = op.type
    if op.code in (C.POW, C.MOD) and not t.is_real:
        SCALAR[op.code](e, op)
        return
    args = [convert(e, e.v[a.id], a.type, t) for a in op.args]
    e.v[op.id] = library_call(e, op.code, t, args)


# Effects


def _print(e: GpuEmitter, op: Op) -> None:
    state = e.state
    site = len(state.prints)
    types = tuple(a.type for a in op.args if isinstance(a.type, DataType))
    state.prints.append(PrintSite(op.attr, types))
    size = 8 + 8 * len(op.args)
    helper, given = e.helper("print_room"), e.kernarg
    if e.dialect.print_parameter:
        helper = e.helper("print_room_given")
        given = e.heap("prints", -1, "noundef align 8")
    room = e.space + e.value(f"call ptr {e.space}{helper}(ptr {given}, i64 {size})")
    some, done = e.label("room"), e.label("printed")
    e.branch(e.value(f"icmp ne ptr {room}, null"), some, done)
    e.place(some)
    e.line(f"store i32 {site}, ptr {room}, align 8")
    count = e.beyond(room, 4)
    e.line(f"store i32 {len(op.args)}, ptr {count}, align 4")
    for i, a in enumerate(op.args):
        ty, text = as_slot(e, e.v[a.id], a.type)
        at = e.beyond(room, 8 + 8 * i)
        e.line(f"store {ty} {text}, ptr {at}, align 8")
    e.jump(done)
    e.place(done)


def _assert(e: GpuEmitter, op: Op) -> None:
    if e.dialect.asserts:
        CONTROL_OPS[C.ASSERT](e, op)


def _range_for(e: GpuEmitter, op: Op) -> None:
    if op.attr.shared:
        shared_loop(e, op)
    else:
        CONTROL_OPS[op.code](e, op)


def _block_sync(e: GpuEmitter, op: Op) -> None:
    e.dialect.barrier(e)


def _mem_fence(e: GpuEmitter, op: Op) -> None:
    scope = e.dialect.block if op.attr == "block" else e.dialect.device
    e.line(f'fence syncscope("{scope}") acq_rel')


def _of_dialect(e: GpuEmitter, op: Op) -> None:
    emit = e.dialect.fragment_ops.get(op.code)
    if emit is None:
        raise e.unsupported(op)
    emit(e, op)


def _clock(e: GpuEmitter, op: Op) -> None:
    e.line(ORDERED)
    e.v[op.id] = e.dialect.clock(e)
    e.line(ORDERED)


GPU_OPS: Final[dict[int, Callable[[Any, Any], None]]] = {
    **dict.fromkeys([code for code in range(C.COUNT) if C.ATOMIC[code]], _atomic),
    **SUBGROUP_OPS,
    C.GLOBAL_LOAD: _global_load, C.GLOBAL_STORE: _global_store, C.ARRAY_ALLOCA: _array_alloca,
    C.PRINT: _print, C.ASSERT: _assert,
    C.RANGE_FOR: _range_for, C.BLOCK_SYNC: _block_sync, C.MEM_FENCE: _mem_fence, C.CLOCK: _clock,
    **dict.fromkeys(LIBRARY, _library),
    **dict.fromkeys((C.FRAGMENT_LOAD, C.FRAGMENT_MMA, C.FRAGMENT_STORE), _of_dialect),
    **dict.fromkeys((C.ASYNC_COPY, C.ASYNC_GROUP, C.ASYNC_WAIT), _of_dialect),
    **dict.fromkeys((C.WARPGROUP_MMA, C.WARPGROUP_WAIT, C.ATOMIC_ADD_VECTOR), _of_dialect),
}  # fmt: skip
