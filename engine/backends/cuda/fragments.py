"""Fragments of matrices, asynchronous copies (from sm_80 on), atomic sums of vectors (sm_90) and
products of warpgroups (sm_90a) in LLVM IR for NVIDIA GPUs.

An iteration's part of a fragment is an array of its own; all its places are constants, so that
LLVM keeps it in registers. ``ldmatrix`` loads four matrices of 8 by 8: each lane names a row of 16
bytes of one of them, and gets two neighbours of each. Copies to shared memory are ordered before
products of warpgroups, which see it in another way, where the thread waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Op, base_of, pointee, walk
from ...ir import codes as C
from ...ir.attrs import SUBGROUP_SIZE, FragmentAttr, WarpgroupAttr
from ..llvm.dialect import declared_call
from ..llvm.memory_ops import note_written
from ..llvm.text import MEMORY

if TYPE_CHECKING:
    from ..llvm.gpu_emitter import GpuEmitter

__all__ = ["FRAGMENT_OPS"]

_GLOBAL: Final = "addrspace(1)"
_PAIR: Final = "<2 x half>"
_MATRICES: Final = "{ i32, i32, i32, i32 }"
_SUMS: Final = "{ float, float, float, float }"
_MMA: Final = "@llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
_LDMATRIX: Final = "@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{}.b16.p3"
_COPY: Final = "@llvm.nvvm.cp.async.cg.shared.global.16"


def _beyond(e: GpuEmitter, pointer: str, ty: str, count: int | str) -> str:
    """The address ``count`` elements after one. count: a number, or an operand with its type."""
    if count == 0:
        return pointer
    space, gap, _ = pointer.rpartition(" ")
    offset = count if isinstance(count, str) else f"i32 {count}"
    at = e.value(f"getelementptr inbounds {ty}, ptr {pointer}, {offset}")
    return f"{space}{gap}{at}"


def _load(e: GpuEmitter, op: Op) -> None:
    attr: FragmentAttr = op.attr
    to, source, place = (e.v[a.id] for a in op.args)
    of_a = attr.part == "a"
    lane = e.value(f"and i32 {place}, {SUBGROUP_SIZE - 1}")
    if of_a == attr.inward:  # matrices below each other first
        row = e.value(f"and i32 {lane}, 15")
        right = e.value(f"and i32 {e.value(f'lshr i32 {lane}, 1')}, 8")
    else:
        low = e.value(f"and i32 {e.value(f'lshr i32 {lane}, 1')}, 8")
        row = e.value(f"or i32 {e.value(f'and i32 {lane}, 7')}, {low}")
        right = e.value(f"and i32 {lane}, 8")
    offset = e.value(f"add i32 {e.value(f'mul i32 {row}, {attr.pitch}')}, {right}")
    first = _beyond(e, source, "half", f"i32 {offset}")
    name = _LDMATRIX.format("" if attr.inward else ".trans")
    step = 16 * attr.pitch if attr.inward else 16
    for n in range(attr.rows if of_a else attr.columns // 2):
        at = _beyond(e, first, "half", n * step)
        found = e.value(declared_call(e, name, _MATRICES, f"ptr {at}"))
        for k in range(4):
            pair = e.value(f"extractvalue {_MATRICES} {found}, {k}")
            e.line(f"store i32 {pair}, ptr {_beyond(e, to, 'half', 8 * n + 2 * k)}, align 4")


def _pairs(e: GpuEmitter, array: str, count: int) -> list[str]:
    return [
        f"{_PAIR} " + e.value(f"load {_PAIR}, ptr {_beyond(e, array, 'half', 2 * k)}, align 4")
        for k in range(count)
    ]


def _multiply(e: GpuEmitter, op: Op) -> None:
    attr: FragmentAttr = op.attr
    sums, a, b = (e.v[x.id] for x in op.args)
    of_a, of_b = _pairs(e, a, 4 * attr.rows), _pairs(e, b, 2 * attr.columns)
    for m in range(attr.rows):
        for n in range(attr.columns):
            first = 4 * (m * attr.columns + n)
            places = [_beyond(e, sums, "float", first + k) for k in range(4)]
            old = ["float " + e.value(f"load float, ptr {at}, align 4") for at in places]
            parts = ", ".join([*of_a[4 * m : 4 * m + 4], *of_b[2 * n : 2 * n + 2], *old])
            new = e.value(declared_call(e, _MMA, _SUMS, parts))
            for k, at in enumerate(places):
                part = e.value(f"extractvalue {_SUMS} {new}, {k}")
                e.line(f"store float {part}, ptr {at}, align 4")


def _store(e: GpuEmitter, op: Op) -> None:
    attr: FragmentAttr = op.attr
    to, source, place = (e.v[a.id] for a in op.args)
    lane = e.value(f"and i32 {place}, {SUBGROUP_SIZE - 1}")
    row = e.value(f"lshr i32 {lane}, 2")
    column = e.value(f"and i32 {e.value(f'shl i32 {lane}, 1')}, 6")
    offset = e.value(f"add i32 {e.value(f'mul i32 {row}, {attr.pitch}')}, {column}")
    first = _beyond(e, to, "float", f"i32 {offset}")
    for n in range(attr.columns):
        for low in (0, 1):
            pair = "poison"
            for k in (0, 1):
                at = _beyond(e, source, "float", 4 * n + 2 * low + k)
                part = e.value(f"load float, ptr {at}, align 4")
                pair = e.value(f"insertelement <2 x float> {pair}, float {part}, i32 {k}")
            at = _beyond(e, first, "float", 8 * n + 8 * low * attr.pitch)
            e.line(f"store <2 x float> {pair}, ptr {at}, align 8")


def _copy(e: GpuEmitter, op: Op) -> None:
    to, source, skip = (e.v[a.id] for a in op.args)
    source = _beyond(e, source, MEMORY[pointee(op.args[1]).name], f"i64 {skip}")
    e.line(declared_call(e, _COPY, "void", f"ptr {to}, ptr {source}"))


def _group(e: GpuEmitter, op: Op) -> None:
    e.line(declared_call(e, "@llvm.nvvm.cp.async.commit.group", "void", ""))


def _wait(e: GpuEmitter, op: Op) -> None:
    e.line(declared_call(e, "@llvm.nvvm.cp.async.wait.group", "void", f"i32 {op.attr}"))
    if _feeds_warpgroups(op):
        e.line(f"call void {e.helper('warpgroup_fence')}()")


def _feeds_warpgroups(op: Op) -> bool:
    """True if matrices of warpgroups are in the task's shared memory."""
    while op.code != C.OFFLOADED:
        assert op.block is not None and op.block.owner is not None
        op = op.block.owner
    return any(other.code == C.WARPGROUP_MMA for other in walk(op.regions[1]))


def _multiply_shared(e: GpuEmitter, op: Op) -> None:
    attr: WarpgroupAttr = op.attr
    sums, a, b = (e.v[x.id] for x in op.args[:3])
    across = "".join([str(int(not inward)) for inward in attr.inward])
    name = f"warpgroup_mma.{attr.columns}.{across}"
    _on_sums(e, sums, 4 * attr.columns, name, [f"ptr {a}", f"ptr {b}"])


def _wait_for_products(e: GpuEmitter, op: Op) -> None:
    if op.attr:
        e.line(f"call void {e.helper(f'warpgroup_wait.{op.attr}')}()")
    else:
        count = base_of(op.args[0]).attr.count
        _on_sums(e, e.v[op.args[0].id], count, f"warpgroup_done.{count}", [])


def _on_sums(e: GpuEmitter, array: str, count: int, name: str, args: list[str]) -> None:
    """Let a helper compute new values of the elements of an array of floats."""
    places = [_beyond(e, array, "float", k) for k in range(count)]
    old = ["float " + e.value(f"load float, ptr {at}, align 4") for at in places]
    result = f"[{count} x float]"
    new = e.value(f"call {result} {e.helper(name)}({', '.join([*args, *old])})")
    for k, at in enumerate(places):
        part = e.value(f"extractvalue {result} {new}, {k}")
        e.line(f"store float {part}, ptr {at}, align 4")


def _add_vector(e: GpuEmitter, op: Op) -> None:
    pointer, *values = (e.v[a.id] for a in op.args)
    note_written(e, op.args[0])
    name = e.helper(f"add_vector.{len(values)}")
    if not pointer.startswith(_GLOBAL):
        pointer = f"{_GLOBAL} " + e.value(f"addrspacecast ptr {pointer} to ptr {_GLOBAL}")
    e.line(f"call void {name}(ptr {pointer}, {', '.join([f'float {v}' for v in values])})")


FRAGMENT_OPS: Final[dict[int, Callable[[Any, Op], None]]] = {
    C.FRAGMENT_LOAD: _load, C.FRAGMENT_MMA: _multiply, C.FRAGMENT_STORE: _store,
    C.ASYNC_COPY: _copy, C.ASYNC_GROUP: _group, C.ASYNC_WAIT: _wait,
    C.WARPGROUP_MMA: _multiply_shared, C.WARPGROUP_WAIT: _wait_for_products,
    C.ATOMIC_ADD_VECTOR: _add_vector,
}  # fmt: skip
