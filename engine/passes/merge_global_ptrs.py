"""merge_global_ptrs: merges equal addresses.

::

    <*f32> $3 = external_ptr $0, $1 ["unsafe"]     <*f32> $3 = external_ptr $0, $1 ["unsafe"]
    <f32> $4 = global_load $3                      <f32> $4 = global_load $3
    <*f32> $6 = external_ptr $0, $1 ["unsafe"]     $7 : global_store $3, $5
    $7 : global_store $6, $5

This is a common-subexpression elimination restricted to addresses and to the integers that indices
consist of. It keeps the earlier op, which is in the same block or in one around it. It leaves
alone arithmetic on floats, loads and everything with an effect.
"""

from __future__ import annotations

from ..ir import Block, Func, Op
from ..ir import codes as C
from .manager import PassCx
from .registry import register
from .rules.rewriter import keep_merged

_Key = tuple[object, ...]


@register("merge_global_ptrs", optional=True)
def merge_global_ptrs(func: Func, cx: PassCx) -> bool:
    """Merge equal addresses and index computations."""
    repl: dict[Op, Op] = {}
    users: list[Op] = []
    _merge(func.body, {}, set(), repl, users)
    if not repl:
        return False
    keep_merged(cx, [op for op in users if op not in repl])
    cx.rewrote_all(repl, "computed before")
    return True


def _merge(
    block: Block, known: dict[_Key, Op], around: set[Block | None], repl: dict[Op, Op],
    users: list[Op],
) -> None:  # fmt: skip
    """Merge the addresses of a block. Of the known ones, those in a block around it count.

    users: gets the ops whose operands have changed. A use comes after what it uses."""
    around.add(block)
    dead = False
    pure, get = C.PURE, repl.get
    for op in block.ops:
        args = op.args
        for a in args:
            if a in repl:
                args = op.args = tuple([get(x, x) for x in args])
                users.append(op)
                break
        if pure[op.code] and (op.type.is_int or op.type.is_ptr):
            key = (op.code, op.type, args, op.attr)
            found = known.setdefault(key, op)
            if found is op:
                continue
            if found.block in around:
                repl[op] = found
                dead = True
            else:
                known[key] = op
        elif op.regions:
            for region in op.regions:
                _merge(region, known, around, repl, users)
    if dead:
        block.ops = [op for op in block.ops if op not in repl]
    around.remove(block)
