"""lower_access: addresses of array elements become base plus offset.

::

    <*f32> $3 = external_ptr $0, $1, $2     <i32> $8 = external_tensor_shape_along_axis [(1, 0)]
                                            <i64> $9 = linearize $1, $2, $8 [2]
                                            <*f32> $3 = shift_ptr $0, $9

The element of an array without axes is at its base: the ``external_ptr`` goes. Locals, global
temporaries and `linearize` itself stay (`simplify` turns it into arithmetic).
"""

from __future__ import annotations

from ..ir import Block, Func, Op, replace_uses
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import i32, i64
from .manager import PassCx
from .registry import register


@register("lower_access")
def lower_access(func: Func, cx: PassCx) -> bool:
    """Turn array element addresses into a base and a linear offset."""
    repl: dict[Op, Op] = {}
    changed = False
    for block in all_blocks(func.body):
        if any(op.code == C.EXTERNAL_PTR for op in block.ops):
            _lower_block(func, block, repl)
            changed = True
    replace_uses(func.body, repl)
    before, func.stage = func.stage, "accesses"
    return changed or before != "accesses"


def _lower_block(func: Func, block: Block, repl: dict[Op, Op]) -> None:
    out: list[Op] = []
    extents: dict[tuple[int, int], Op] = {}
    for op in block.ops:
        if op.code != C.EXTERNAL_PTR:
            out.append(op)
            continue
        base, *indices = op.args
        if not indices:
            repl[op] = base
            func.origins.setdefault(base.id, op.id)
            continue
        inputs = list(indices)
        for axis in range(1, len(indices)):
            key = (axis, base.attr[0])
            extent = extents.get(key)
            if extent is None:
                extent = extents[key] = func.new_op(
                    C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, i32, (), key, op.loc, block
                )
                out.append(extent)
            inputs.append(extent)
        offset = func.new_op(C.LINEARIZE, i64, tuple(inputs), len(indices), op.loc, block)
        out.append(offset)
        op.code, op.args, op.attr = C.SHIFT_PTR, (base, offset), None
        out.append(op)
    block.ops = out
