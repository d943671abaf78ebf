"""check_out_of_bound: every index into an array is checked before the element is touched.

::

    <f32> $4 = global_load $3       <i32> $5 = external_tensor_shape_along_axis [(0, 0)]
                                    <i32> $6 = const 0
                                    <u1> $7 = cmp_ge $1, $6
                                    <u1> $8 = cmp_lt $1, $5
                                    <u1> $9 = bit_and $7, $8
                                    $10 : assert $9, $1, $5 {kind='bound' text='...'}
                                    <f32> $4 = global_load $3

where ``$3`` is ``external_ptr $0, $1``. The check stands at the load, store or atomic and not at
the address: an address may be computed where the element is never touched. An address that was
checked before, in the same block or one around it, is not checked again; clamped addresses and
those of arrays without axes need no check.
"""

from __future__ import annotations

from ..ir import AssertAttr, Block, Builder, Func, Op
from ..ir import codes as C
from ..types import i32
from .manager import PassCx
from .registry import register

_Checked = set[tuple[Op, ...]]


@register("check_out_of_bound")
def check_out_of_bound(func: Func, cx: PassCx) -> bool:
    """Assert that indices are inside of their array before each access."""
    return _check_block(func, func.body, set())


def _check_block(func: Func, block: Block, outer: _Checked) -> bool:
    checked = set(outer)
    b = Builder(func, block, ops=[])
    changed = False
    for op in block.ops:
        if op.regions:
            for region in op.regions:
                changed |= _check_block(func, region, checked)
        elif op.args:
            ptr = op.args[0]
            if (
                ptr.code == C.EXTERNAL_PTR
                and len(ptr.args) > 1
                and ptr.attr != "clamp"
                and ptr.args not in checked
            ):
                b.loc = op.loc
                _check(b, ptr, func)
                checked.add(ptr.args)
                changed = True
        b.ops.append(op)
    if changed:
        block.ops = b.ops
    return changed


def _check(b: Builder, ptr: Op, func: Func) -> None:
    base, *indices = ptr.args
    number: int = base.attr[0]
    zero = b.const(0, i32)
    inside: Op | None = None
    extents: list[Op] = []
    for axis, index in enumerate(indices):
        extent = b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)
        extents.append(extent)
        both = b.binary(
            C.BIT_AND, b.binary(C.CMP_GE, index, zero), b.binary(C.CMP_LT, index, extent)
        )
        inside = both if inside is None else b.binary(C.BIT_AND, inside, both)
    assert inside is not None
    places = ", ".join(["%d"] * len(indices))
    text = (
        f"[kernel={func.name}] Out of bound access to ndarray at arg {number} with indices "
        f"[{places}] (parameter {func.params[number].name}, shape [{places}])"
    )
    b.emit(C.ASSERT, (inside, *indices, *extents), AssertAttr("bound", text))
