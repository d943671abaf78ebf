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

from ..ir import Block, Func, Op, replace_uses
from ..ir import codes as C
from .manager import PassCx
from .registry import register
from .rules.rewriter import keep_merged

_Key = tuple[object, ...]


@register("merge_global_ptrs", optional=True)
def merge_global_ptrs(func: Func, cx: PassCx) -> bool:
    """Merge equal addresses and index computations."""
    repl: dict[Op, Op] = {}
    _merge(func.body, {}, set(), repl)
    if not repl:
        return False
    keep_merged(cx, replace_uses(func.body, repl))
    cx.rewrote_all(repl, "computed before")
    return True


def _merge(
    block: Block, known: dict[_Key, Op], around: set[Block | None], repl: dict[Op, Op]
) -> None:
    """Merge the addresses of a block. Of the known ones, those in a block around it count."""
    around.add(block)
    dead = False
    pure, get = C.PURE, repl.get
    for op in block.ops:
        if pure[op.code] and (op.type.is_int or op.type.is_ptr):
            key = (op.code, op.type, tuple([get(a, a) for a in op.args]), op.attr)
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
                _merge(region, known, around, repl)
    if dead:
        block.ops = [op for op in block.ops if op not in repl]
    around.remove(block)
