"""demote_subgroups: subgroups exchange values through shared arrays of the block.

For backends on which one thread runs a whole block. Each exchange is surrounded by barriers::

    <f32> $5 = subgroup_shuffle $4, $lane, $p, $n      <*f32> $9 = array_alloca {space='shared'}
                                                       <*f32> $10 = shift_ptr $9, $p
                                                       $11 : global_store $10, $4
                                                       $12 : block_sync
                                                       ... $p & -32 + $lane, or $p if not there
                                                       <f32> $5 = global_load $13
                                                       $14 : block_sync

A ballot collects the bits of each subgroup in one element with `atomic_bit_or`. A barrier of the
subgroup becomes one of the block. So all iterations of the block must reach an exchange, not
only those of its subgroup; `demote_block_sync` checks this under ``debug``.

Tasks without subgroups do not change.
"""

from __future__ import annotations

from ..analysis import SUBGROUP_OPS, block_dim, is_parallel
from ..ir import Block, Builder, Func, Op, walk
from ..ir import codes as C
from ..ir.attrs import SUBGROUP_SIZE
from ..types import DataType, i32, u1, u32
from .manager import PassCx
from .registry import register


@register("demote_subgroups", per_task=True)
def demote_subgroups(func: Func, cx: PassCx) -> bool:
    """Exchange values of subgroups through shared arrays."""
    task = cx.task
    if task is None or not is_parallel(func, task):
        return False
    ops = walk(task.regions[1])
    found = [op for op in ops if op.code in SUBGROUP_OPS]
    if not found:
        return False
    dim = block_dim(task)
    for block in dict.fromkeys(op.block for op in found):
        assert block is not None
        _rewrite(func, block, dim)
    cx.remark(task, f"{len(found)} operations of subgroups go through shared memory")
    return True


def _rewrite(func: Func, block: Block, dim: int) -> None:
    b = Builder(func, block, block.ops[0].loc, [])
    for op in block.ops:
        b.loc = op.loc
        if op.code == C.SUBGROUP_SHUFFLE:
            _shuffle(b, op, dim)
        elif op.code == C.SUBGROUP_BALLOT:
            _ballot(b, op, dim)
        else:
            if op.code == C.SUBGROUP_SYNC:
                op.code = C.BLOCK_SYNC
            b.ops.append(op)
    block.ops = b.ops


def _number(b: Builder, op: Op) -> Op:
    return op if op.type is i32 else b.cast(op, i32)


def _becomes_load(b: Builder, op: Op, pointer: Op) -> None:
    """The op keeps its identity, and with it its uses."""
    op.code, op.args = C.GLOBAL_LOAD, (pointer,)
    b.ops.append(op)
    b.emit(C.BLOCK_SYNC)


def _shuffle(b: Builder, op: Op, dim: int) -> None:
    value, lane, place, size = op.args
    lane, place, size = (_number(b, x) for x in (lane, place, size))
    values = b.array(op.type, dim, "subgroup", "shared")
    b.store(b.element(values, place), value)
    b.emit(C.BLOCK_SYNC)
    first = b.binary(C.BIT_AND, place, b.const(-SUBGROUP_SIZE, i32))
    wanted = b.binary(C.ADD, first, lane)
    above = b.binary(C.CMP_GE, lane, b.const(0, i32))
    below = b.binary(C.CMP_LT, lane, b.const(SUBGROUP_SIZE, i32))
    there = b.binary(C.BIT_AND, b.binary(C.BIT_AND, above, below), b.binary(C.CMP_LT, wanted, size))
    _becomes_load(b, op, b.element(values, b.select(there, wanted, place)))


def _ballot(b: Builder, op: Op, dim: int) -> None:
    cond, place, _ = op.args
    assert isinstance(cond.type, DataType)
    place = _number(b, place)
    masks = b.array(u32, -(-dim // SUBGROUP_SIZE), "ballot", "shared")
    bits = SUBGROUP_SIZE.bit_length() - 1
    mine = b.element(masks, b.binary(C.BIT_SAR, place, b.const(bits, i32)))
    b.store(mine, b.const(0, u32))
    b.emit(C.BLOCK_SYNC)
    lane = b.binary(C.BIT_AND, place, b.const(SUBGROUP_SIZE - 1, i32))
    bit = b.binary(C.BIT_SHL, b.const(1, u32), b.cast(lane, u32))
    holds = cond if cond.type is u1 else b.binary(C.CMP_NE, cond, b.const(0, cond.type))
    b.emit(C.ATOMIC_BIT_OR, (mine, b.select(holds, bit, b.const(0, u32))))
    b.emit(C.BLOCK_SYNC)
    _becomes_load(b, op, mine)
