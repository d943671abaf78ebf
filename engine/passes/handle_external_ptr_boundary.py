"""handle_external_ptr_boundary: clamps indices into arrays declared with ``boundary="clamp"``.

::

    <*f32> $3 = external_ptr $0, $1 ["clamp"]   <i32> $5 = external_tensor_shape_along_axis [(0, 0)]
                                                <i32> $6 = const 1
                                                <i32> $7 = sub $5, $6
                                                <i32> $8 = min $1, $7
                                                <i32> $9 = const 0
                                                <i32> $10 = max $8, $9
                                                <*f32> $3 = external_ptr $0, $10 ["unsafe"]

Indices inside of an element (a component of a vector or matrix) are clamped to its shape, too:
an index out of range would access a neighbouring element, or memory outside of the array. An
array without elements has no valid index, and accessing it is the caller's error, which
`check_out_of_bound` finds. Pointers marked ``unsafe``, which include those of fields, do not
change.
"""

from __future__ import annotations

from ..ir import Block, Builder, Func
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import i32
from .manager import PassCx
from .registry import register


@register("handle_external_ptr_boundary")
def handle_external_ptr_boundary(func: Func, cx: PassCx) -> bool:
    """Clamp the indices of arrays that ask for it."""
    if all(p.boundary == "unsafe" for p in func.params):
        return False
    changed = False
    for block in all_blocks(func.body):
        if any(op.code == C.EXTERNAL_PTR and op.attr == "clamp" for op in block.ops):
            _clamp_block(func, block)
            changed = True
    return changed


def _clamp_block(func: Func, block: Block) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        if op.code == C.EXTERNAL_PTR and op.attr == "clamp":
            b.loc = op.loc
            base, *indices = op.args
            number: int = base.attr[0]
            param = func.params[number]
            clamped = [base]
            for axis, index in enumerate(indices):
                inner = axis - param.ndim
                if inner < 0:
                    extent = b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)
                    last = b.binary(C.SUB, extent, b.const(1, i32))
                else:
                    size = param.element_shape[inner]
                    if index.code == C.CONST and 0 <= index.attr < size:
                        clamped.append(index)
                        continue
                    last = b.const(size - 1, i32)
                clamped.append(b.binary(C.MAX, b.binary(C.MIN, index, last), b.const(0, i32)))
            op.args, op.attr = tuple(clamped), "unsafe"
        b.ops.append(op)
    block.ops = b.ops
