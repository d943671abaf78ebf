"""demote_atomics: atomics that no other iteration can see become load, operation, store.

::

    <f32> $3 = atomic_add $1, $2          <f32> $3 = global_load $1
                                          <f32> $4 = add $3, $2
                                          $5 : global_store $1, $4

This applies to a local, a private array, everything in a serial task, and an array whose elements
are each accessed by only one iteration (`analysis.uniquely_accessed`), as ``x[i] += 1`` in
a loop over i. The load is the value of the atomic. xchg becomes load and store; cas becomes load,
comparison, select, store.

Other atomics stay: global temporaries and shared elements in parallel tasks; and everywhere an
update of an argument's element that changes nothing (``bit_or`` with 0, ``add`` of 0.0) and whose
value is used, because `volatile_load` reads with it what another thread, or the host, may have
written. Where no one uses the value, as in ``v[i] += [0, g, 0]``, nothing is read. The pass does
nothing before `offload`, because iterations may share a local there.
"""

from __future__ import annotations

from ..analysis import uniquely_accessed, use_counts
from ..analysis.alias import array_of, is_private
from ..analysis.uses import code_mask
from ..ir import Block, Builder, Func, Op
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..ir.semantics import ATOMIC_OPERATION
from .manager import PassCx
from .registry import register

__all__ = ["demote_atomics", "make_plain"]

_ATOMICS = code_mask(C.ATOMIC)


@register("demote_atomics", optional=True, per_task=True)
def demote_atomics(func: Func, cx: PassCx) -> bool:
    """Turn atomics on memory that is not shared into plain loads and stores."""
    task = cx.task
    if task is None:
        return False
    if not any(cx.task_ops().of(_ATOMICS)):
        return False
    blocks = [b for b in all_blocks(task.regions[1]) if any(C.ATOMIC[op.code] for op in b.ops)]
    if not blocks:
        return False
    serial = task.attr.kind == "serial"
    unique = frozenset[object]() if serial else uniquely_accessed(func, task)
    rereads = _rereads(task, blocks)
    changed = False
    for block in blocks:
        for op in block.ops:
            if C.ATOMIC[op.code] and op not in rereads and _alone(op, serial, unique):
                _demote_block(func, cx, block, serial, unique, rereads)
                changed = True
                break
        for op in block.ops:
            if C.ATOMIC[op.code]:
                why = (
                    "it reads again"
                    if op in rereads
                    else "other iterations may update the same element"
                )
                cx.remark(op, f"stays atomic: {why}")
    return changed


def _alone(op: Op, serial: bool, unique: frozenset[object]) -> bool:
    """True if only one iteration can access the element of the atomic ``op``."""
    return serial or _private(op.args[0], unique)


def _rereads(task: Op, blocks: list[Block]) -> set[Op]:
    """The atomics that stand for a read that must happen each time: see `volatile_load`."""
    found = {
        op for block in blocks for op in block.ops if C.ATOMIC[op.code] and _changes_nothing(op)
    }
    if not found:
        return found
    used = use_counts(task.regions[1])
    return {op for op in found if used.get(op, 0)}


def _changes_nothing(op: Op) -> bool:
    """True if the atomic leaves the element of an argument as it is."""
    value = op.args[1]
    if value.code != C.CONST or value.attr != 0:
        return False
    if op.code != C.ATOMIC_BIT_OR and (op.code != C.ATOMIC_ADD or value.type.is_int):
        return False
    array = array_of(op.args[0])
    return array is not None and array[0] >= 0


def _private(dest: Op, unique: frozenset[object]) -> bool:
    """True if only one iteration of a parallel task can access ``dest``."""
    if dest.code == C.EXTERNAL_PTR:
        return dest.args[0].attr in unique
    return dest.code == C.ALLOCA or is_private(dest)


def _demote_block(
    func: Func, cx: PassCx, block: Block, serial: bool, unique: frozenset[object], rereads: set[Op]
) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        b.ops.append(op)
        if not C.ATOMIC[op.code] or op in rereads or not _alone(op, serial, unique):
            continue
        make_plain(b, op)
        cx.rewrote(op, op, "no other iteration accesses the element: a load and a store")
    block.ops = b.ops


def make_plain(b: Builder, op: Op) -> None:
    """Turn an atomic, the last op of ``b``, into a load, and add the operation and the store."""
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
