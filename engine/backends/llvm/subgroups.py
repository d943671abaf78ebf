"""LLVM IR for subgroups on a GPU whose threads run in warps of 32: shuffles, ballots, barriers.

A warp is a subgroup: blocks of the grid are blocks of the loop. Values go through 32-bit shuffles,
wider ones in two parts. The mask names all lanes of the warp: those that have ended are not waited
for, and nobody reads from a lane that has no iteration.
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
    from .emitter import Emitter

__all__ = ["SUBGROUP_OPS"]

_ALL: Final = -1
_SHUFFLE: Final = "@llvm.nvvm.shfl.sync.idx.i32"
_BALLOT: Final = "@llvm.nvvm.vote.ballot.sync"
_BARRIER: Final = "@llvm.nvvm.bar.warp.sync"
_DECLARED: Final = {
    _SHUFFLE: f"declare i32 {_SHUFFLE}(i32, i32, i32, i32)",
    _BALLOT: f"declare i32 {_BALLOT}(i32, i1)",
    _BARRIER: f"declare void {_BARRIER}(i32)",
}


def _call(e: Emitter, name: str, args: str, result: str) -> str:
    e.state.declares[name] = _DECLARED[name]
    return f"call {result} {name}({args})"


def _part(e: Emitter, value: str, lane: str) -> str:
    """An i32 of another lane."""
    args = f"i32 {_ALL}, i32 {value}, i32 {lane}, i32 {SUBGROUP_SIZE - 1}"
    return e.value(_call(e, _SHUFFLE, args, "i32"))


def _shuffle(e: Emitter, op: Op) -> None:
    own, lane, place, size = (e.v[a.id] for a in op.args)
    t = op.type
    ty, bits = VALUE[t.name], 1 if t is u1 else 8 * SIZE[t.name]
    whole = own
    if t.is_real:
        whole = e.value(f"bitcast {ty} {own} to i{bits}")
    if bits == 64:
        low = e.value(f"trunc i64 {whole} to i32")
        high = e.value(f"trunc i64 {e.value(f'lshr i64 {whole}, 32')} to i32")
        low, high = (e.value(f"zext i32 {_part(e, x, lane)} to i64") for x in (low, high))
        found = e.value(f"or i64 {e.value(f'shl i64 {high}, 32')}, {low}")
    elif bits == 32:
        found = _part(e, whole, lane)
    else:
        found = _part(e, e.value(f"zext i{bits} {whole} to i32"), lane)
        found = e.value(f"trunc i32 {found} to i{bits}")
    if t.is_real:
        found = e.value(f"bitcast i{bits} {found} to {ty}")
    first = e.value(f"and i32 {place}, {-SUBGROUP_SIZE}")
    wanted = e.value(f"add i32 {first}, {lane}")
    in_group = e.value(f"icmp ult i32 {lane}, {SUBGROUP_SIZE}")
    there = e.value(f"and i1 {in_group}, {e.value(f'icmp slt i32 {wanted}, {size}')}")
    e.v[op.id] = e.value(f"select i1 {there}, {ty} {found}, {ty} {own}")


def _ballot(e: Emitter, op: Op) -> None:
    args = f"i32 {_ALL}, i1 {e.v[op.args[0].id]}"
    e.v[op.id] = e.value(_call(e, _BALLOT, args, "i32"))


def _sync(e: Emitter, op: Op) -> None:
    e.line(_call(e, _BARRIER, f"i32 {_ALL}", "void"))


SUBGROUP_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.SUBGROUP_SHUFFLE: _shuffle, C.SUBGROUP_BALLOT: _ballot, C.SUBGROUP_SYNC: _sync,
}  # fmt: skip
