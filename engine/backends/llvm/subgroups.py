"""LLVM IR for subgroups on a GPU: shuffles, ballots, barriers.

A subgroup has 32 threads: a warp, or half of a larger wave; blocks of the grid are blocks of the
loop. Values go through 32-bit shuffles, wider ones in two parts. No lane reads from a lane without
an iteration. The dialect defines how lanes exchange values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Op
from ...ir import codes as C
from ...ir.attrs import SUBGROUP_SIZE
from ...types import u1
from .text import SIZE, VALUE

if TYPE_CHECKING:
    from .gpu_emitter import GpuEmitter

__all__ = ["SUBGROUP_OPS"]


def _shuffle(e: GpuEmitter, op: Op) -> None:
    own, lane, place, size = (e.v[a.id] for a in op.args)
    t = op.type
    ty, bits = VALUE[t.name], 1 if t is u1 else 8 * SIZE[t.name]
    whole = own
    if t.is_real:
        whole = e.value(f"bitcast {ty} {own} to i{bits}")
    if bits == 64:
        low = e.value(f"trunc i64 {whole} to i32")
        high = e.value(f"trunc i64 {e.value(f'lshr i64 {whole}, 32')} to i32")
        low, high = (
            e.value(f"zext i32 {e.dialect.shuffle(e, x, lane)} to i64") for x in (low, high)
        )
        found = e.value(f"or i64 {e.value(f'shl i64 {high}, 32')}, {low}")
    elif bits == 32:
        found = e.dialect.shuffle(e, whole, lane)
    else:
        found = e.dialect.shuffle(e, e.value(f"zext i{bits} {whole} to i32"), lane)
        found = e.value(f"trunc i32 {found} to i{bits}")
    if t.is_real:
        found = e.value(f"bitcast i{bits} {found} to {ty}")
    first = e.value(f"and i32 {place}, {-SUBGROUP_SIZE}")
    wanted = e.value(f"add i32 {first}, {lane}")
    in_group = e.value(f"icmp ult i32 {lane}, {SUBGROUP_SIZE}")
    there = e.value(f"and i1 {in_group}, {e.value(f'icmp slt i32 {wanted}, {size}')}")
    e.v[op.id] = e.value(f"select i1 {there}, {ty} {found}, {ty} {own}")


def _ballot(e: GpuEmitter, op: Op) -> None:
    e.v[op.id] = e.dialect.ballot(e, e.v[op.args[0].id])


def _sync(e: GpuEmitter, op: Op) -> None:
    e.dialect.subgroup_barrier(e)


SUBGROUP_OPS: Final[dict[int, Callable[[GpuEmitter, Any], None]]] = {
    C.SUBGROUP_SHUFFLE: _shuffle, C.SUBGROUP_BALLOT: _ballot, C.SUBGROUP_SYNC: _sync,
}  # fmt: skip
