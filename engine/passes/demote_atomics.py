"""demote_atomics: atomics that no other iteration can see become load, operation, store.

::

    <f32> $3 = atomic_add $1, $2          <f32> $3 = global_load $1
                                          <f32> $4 = add $3, $2
                                          $5 : global_store $1, $4

That is so for a local, for a private array, for everything in a serial task, and for an array of
whose elements no two iterations touch the same (`analysis.uniquely_accessed`), as ``x[i] += 1`` in
a loop over i. The value of the atomic is the load. xchg becomes load and store, cas load,
comparison, select, store.

Others stay atomic: global temporaries and shared elements in parallel tasks. The whole function
before offload is left alone, for there a local may be shared by iterations.
"""

from __future__ import annotations

from ..analysis import uniquely_accessed
from ..analysis.alias import is_private
from ..ir import Block, Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..ir.semantics import ATOMIC_OPERATION
from .manager import PassCx
from .registry import register


@register("demote_atomics", optional=True, per_task=True)
def demote_atomics(func: Func, cx: PassCx) -> bool:
    """Turn atomics on memory that is not shared into plain loads and stores."""
    task = cx.task
    if task is None:
        return False
    blocks = [b for b in all_blocks(task.regions[1]) if any(C.ATOMIC[op.code] for op in b.ops)]
    if not blocks:
        return False
    serial = task.attr.kind == "serial"
    unique = frozenset[object]() if serial else uniquely_accessed(func, task)
    changed = False
    for block in blocks:
        for op in block.ops:
            if C.ATOMIC[op.code] and (serial or _private(op.args[0], unique)):
                _demote_block(func, block, serial, unique)
                changed = True
                break
        for op in block.ops:
            if C.ATOMIC[op.code]:
                cx.remark(op, "stays atomic: other iterations may update the same element")
    return changed


def _private(dest: Op, unique: frozenset[object]) -> bool:
    """Whether only one iteration of a parallel task can get at ``dest``."""
    if dest.code == C.EXTERNAL_PTR:
        return dest.args[0].attr in unique
    return dest.code == C.ALLOCA or is_private(dest)


def _demote_block(func: Func, block: Block, serial: bool, unique: frozenset[object]) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        b.ops.append(op)
        if not C.ATOMIC[op.code] or not (serial or _private(op.args[0], unique)):
            continue
        b.loc = op.loc
        code, dest, value = op.code, op.args[0], op.args[1]
        if code == C.ATOMIC_CAS:
            new = b.select(b.binary(C.CMP_EQ, op, op.args[2]), value, op)
        elif code == C.ATOMIC_XCHG:
            new = value
        else:
            new = b.binary(ATOMIC_OPERATION[code], op, value)
        b.store(dest, new)
        op.code = C.LOCAL_LOAD if dest.code == C.ALLOCA else C.GLOBAL_LOAD
        op.args = (dest,)
    block.ops = b.ops
