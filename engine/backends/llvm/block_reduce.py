"""Reductions of a parallel task on a GPU: threads add up for themselves, blocks for their threads.

An atomic update of an address that is the same in all iterations would make all threads of the
device queue for one word. Where no other op uses the word meanwhile, each thread keeps a local in
its place (`sums` finds such updates, `accumulate` makes them), and when the task ends (`finale`)::

    lanes of a warp      exchange their locals by shuffles, half as many each time
    warps of a block     leave theirs in shared memory, where the first warp adds them up
    first thread         updates the word, once a block, if there is anything to add

That is the scheme of `passes.make_thread_local` for a CPU's chunks, and the same option switches it
off. The order of a sum of floats depends on the grid and on which block comes first: results differ
in the last bits from launch to launch, as those of atomics do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ...ir import Op, walk
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION, neutral
from ...types import DataType, Type, u1
from .memory_ops import in_memory
from .scalars import combine
from .text import MEMORY, SIZE, VALUE, constant

if TYPE_CHECKING:
    from ...config import CompileConfig
    from .gpu_emitter import GpuEmitter
    from .strides import Arrays

__all__ = ["accumulate", "finale", "open_sums", "sums"]

_MOST_WARPS: Final = 32
"""Warps of the largest block."""
_PARTIALS: Final = "@qd.partials"


def sums(task: Op, state: Arrays) -> tuple[Op, ...]:
    """The atomic updates of ``task`` that threads can make for themselves first."""
    ops = walk(task.regions[1])
    if not any(op.code in ATOMIC_OPERATION for op in ops) or any(op.code == C.CALL for op in ops):
        return ()
    touching: dict[object, list[Op]] = {}
    used = {a for op in ops for a in op.args}
    for op in ops:
        if (C.READ[op.code] or C.WRITE[op.code] or C.ATOMIC[op.code]) and op.args:
            touching.setdefault(_memory(op.args[0], state), []).append(op)
    found: list[Op] = []
    for place, accesses in touching.items():
        code = accesses[0].code
        if place is None or code not in ATOMIC_OPERATION:
            continue
        if all(
            op.code == code and op not in used and _same_everywhere(op.args[0], task)
            for op in accesses
        ):
            found += accesses
    return tuple(found)


def _memory(pointer: Op, state: Arrays) -> object:
    """The key of the memory that ``pointer`` points into; pointers to different memory never meet.

    None for a thread's own memory, and for unknown memory.
    """
    while pointer.code in (C.SHIFT_PTR, C.EXTERNAL_PTR):
        pointer = pointer.args[0]
    if pointer.code == C.GLOBAL_TMP:
        return "tmp", pointer.attr
    if pointer.code != C.ARG_ADDR:
        return None
    number: int = pointer.attr[0]
    # Arrays that may overlap are one memory.
    return pointer.attr if state.apart[number] else "arrays"


def _same_everywhere(op: Op, task: Op, depth: int = 8) -> bool:
    """True if ``op`` has one value in all iterations and can be computed again after the loop."""
    if op.block is task.regions[0] or op.code == C.LOOP_INDEX:
        return False
    return (
        C.PURE[op.code] and depth > 0 and all(_same_everywhere(a, task, depth - 1) for a in op.args)
    )


def open_sums(e: GpuEmitter, found: tuple[Op, ...], config: CompileConfig) -> None:
    """Give each of the updates its local."""
    locals_: dict[tuple[int, int], str] = {}
    for op in found:
        t = op.type
        assert isinstance(t, DataType)
        key = (op.args[0].id, op.code)
        if key not in locals_:
            ty, first = VALUE[t.name], constant(neutral(op.code, t, config.fast_math), t)
            name = locals_[key] = e.local(f"%sum.{op.id}", ty, max(SIZE[t.name], 4))
            e.head.append(f"  store {ty} {first}, ptr {name}")
        e.sums[op.id] = locals_[key]


def accumulate(e: GpuEmitter, op: Op) -> None:
    """An update, made in the thread's local."""
    t, name = op.type, e.sums[op.id]
    ty = VALUE[t.name]
    old = e.value(f"load {ty}, ptr {name}")
    new = combine(e, ATOMIC_OPERATION[op.code], t, old, e.v[op.args[1].id])
    e.line(f"store {ty} {new}, ptr {name}")


def _changes(e: GpuEmitter, op: Op, t: DataType, total: str, config: CompileConfig) -> str:
    """Emit the i1 that says if an update with ``total`` would change the word.

    If no iteration of the block has reached the update, none may be made: the address may be
    invalid.
    """
    none = neutral(op.code, t, config.fast_math)
    ty = VALUE[t.name]
    if not t.is_real:
        return e.value(f"icmp ne {ty} {total}, {constant(none, t)}")
    if math.isnan(none):
        return e.value(f"fcmp ord {ty} {total}, {total}")
    return e.value(f"fcmp une {ty} {total}, {constant(none, t)}")


def finale(
    e: GpuEmitter, found: tuple[Op, ...], threads: int, config: CompileConfig
) -> None:  # fmt: skip
    """Emit the code that follows the loop: every thread of the block comes here."""
    if not found:
        return
    made: set[str] = set()
    for op in found:
        name = e.sums.pop(op.id)
        if name in made:
            continue
        e.op_id = op.id
        if made and threads > e.dialect.wave:
            e.dialect.barrier(e)  # the one before has been read
        made.add(name)
        _reduce(e, op, name, threads, config)


def _reduce(
    e: GpuEmitter, op: Op, name: str, threads: int, config: CompileConfig
) -> None:  # fmt: skip
    t = op.type
    assert isinstance(t, DataType)
    code = ATOMIC_OPERATION[op.code]
    wave = e.dialect.wave
    total = _warp(e, code, t, e.value(f"load {VALUE[t.name]}, ptr {name}"), wave)
    done = e.label("reduced")
    if threads > wave:
        total = _block(e, code, t, total, threads, done)
    update = e.label("update")
    first = e.value(f"icmp eq i32 {e.register('tid')}, 0")
    some = _changes(e, op, t, total, config)
    e.branch(e.value(f"and i1 {first}, {some}"), update, done)
    e.place(update)
    _address(e, op.args[0], set())
    e.v[op.args[1].id] = total
    e.table[op.code](e, op)
    e.jump(done)
    e.place(done)


def _block(e: GpuEmitter, code: int, t: Type, total: str, threads: int, done: str) -> str:
    """The total of the block, in its first thread; other warps go on to ``done``."""
    declared = f"{_PARTIALS} = internal addrspace(3) global [{_MOST_WARPS} x i64] undef, align 8"
    e.state.declares[_PARTIALS] = declared
    ty, wave = MEMORY[t.name], e.dialect.wave
    lane = e.value(f"and i32 {e.register('tid')}, {wave - 1}")
    warp = e.value(f"lshr i32 {e.register('tid')}, {wave.bit_length() - 1}")
    leave, left, first = e.label("leave"), e.label("left"), e.label("first")
    e.branch(e.value(f"icmp eq i32 {lane}, 0"), leave, left)
    e.place(leave)
    at = e.value(f"getelementptr inbounds i64, ptr addrspace(3) {_PARTIALS}, i32 {warp}")
    e.line(f"store {ty} {in_memory(e, total, t)}, ptr addrspace(3) {at}, align 8")
    e.jump(left)
    e.place(left)
    e.dialect.barrier(e)
    e.branch(e.value(f"icmp eq i32 {warp}, 0"), first, done)
    e.place(first)
    # Lanes beyond the number of warps read what is there, and no lane reads theirs.
    warps = threads // wave
    inside = e.call("umin", "i32", f"i32 {lane}, i32 {warps - 1}", flags=False)
    at = e.value(f"getelementptr inbounds i64, ptr addrspace(3) {_PARTIALS}, i32 {inside}")
    partial = e.value(f"load {ty}, ptr addrspace(3) {at}, align 8")
    if t is u1:
        partial = e.value(f"trunc i8 {partial} to i1")
    return _warp(e, code, t, partial, warps)


def _warp(e: GpuEmitter, code: int, t: Type, value: str, count: int) -> str:
    """The total over the first ``count`` lanes, in lane 0."""
    wave = e.dialect.wave
    distance = wave // 2
    if count < wave:
        # Only lane 0 counts, and it must not take from a lane beyond.
        distance = 1 << (count - 1).bit_length() >> 1
    while distance:
        other = _from_lane(e, t, value, distance)
        both = combine(e, code, t, value, other)
        if count & (count - 1) and count < wave:
            lane = e.value(f"and i32 {e.register('tid')}, {wave - 1}")
            there = e.value(f"icmp ult i32 {lane}, {count - distance}")
            both = e.value(f"select i1 {there}, {VALUE[t.name]} {both}, {VALUE[t.name]} {value}")
        value = both
        distance //= 2
    return value


def _from_lane(e: GpuEmitter, t: Type, value: str, distance: int) -> str:
    """The value that the lane ``distance`` further on has."""
    bits, ty = 8 * SIZE[t.name], VALUE[t.name]
    whole = value
    if t is u1:
        whole = e.value(f"zext i1 {value} to i32")
    elif t.is_real:
        whole = e.value(f"bitcast {ty} {value} to i{bits}")
    if t is not u1 and bits < 32:
        whole = e.value(f"zext i{bits} {whole} to i32")
    if bits < 64:
        got = e.dialect.shuffle_down(e, whole, distance)
    else:
        low = e.value(f"trunc i64 {whole} to i32")
        high = e.value(f"trunc i64 {e.value(f'lshr i64 {whole}, 32')} to i32")
        low = e.value(f"zext i32 {e.dialect.shuffle_down(e, low, distance)} to i64")
        high = e.value(f"zext i32 {e.dialect.shuffle_down(e, high, distance)} to i64")
        got = e.value(f"or i64 {e.value(f'shl i64 {high}, 32')}, {low}")
    if t is u1:
        return e.value(f"trunc i32 {got} to i1")
    if bits < 32:
        got = e.value(f"trunc i32 {got} to i{bits}")
    return e.value(f"bitcast i{bits} {got} to {ty}") if t.is_real else got


def _address(e: GpuEmitter, op: Op, made: set[Op]) -> None:
    """Compute an address again."""
    if op in made:
        return
    made.add(op)
    for a in op.args:
        _address(e, a, made)
    if op.id not in e.unused:
        e.table[op.code](e, op)
