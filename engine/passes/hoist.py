"""Moving pure computations out of a loop: what passes share that put something around a loop."""

from __future__ import annotations

from ..analysis import contains
from ..ir import Builder, Func, Op
from ..ir.edit import clone

__all__ = ["before_loop"]


def before_loop(
    func: Func, op: Op, loop: Op, b: Builder, mapping: dict[Op, Op] | None = None
) -> Op:
    """``op`` if it is outside of ``loop``, else a copy of it and its operands, emitted to ``b``.

    ``op`` must be invariant in the loop (`analysis.is_invariant`).
    """
    if not contains(loop, op):
        return op
    if mapping is None:
        mapping = {}
    found = mapping.get(op)
    if found is None:
        for a in op.args:
            mapping[a] = before_loop(func, a, loop, b, mapping)
        found = clone(func, op, mapping, b.block)
        func.origins[found.id] = op.id
        b.ops.append(found)
    return found
