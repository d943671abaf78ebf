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

An element of an array that the kernel makes (``shift_ptr`` of an `array_alloca`) is checked in the
same way: each index of its `linearize`, whose extents are constants, or the one index there is.
"""

from __future__ import annotations

import math

from ..ir import AssertAttr, Block, Builder, Func, Op
from ..ir import codes as C
from ..types import DataType, i32
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
            code = ptr.code
            if (
                (code == C.EXTERNAL_PTR and len(ptr.args) > 1 and ptr.attr != "clamp")
                or (code == C.SHIFT_PTR and not _surely_inside(ptr))
            ) and ptr.args not in checked:
                b.loc = op.loc
                if code == C.EXTERNAL_PTR:
                    _check(b, ptr, func)
                else:
                    _check_own(b, ptr, func)
                checked.add(ptr.args)
                changed = True
        b.ops.append(op)
    if changed:
        block.ops = b.ops
    return changed


def _own_indices(ptr: Op) -> tuple[tuple[Op, ...], tuple[int, ...]]:
    """Indices into an array that the kernel makes, and its shape as far as they tell it."""
    base, offset = ptr.args
    count: int = base.attr.count
    if offset.code != C.LINEARIZE:
        return (offset,), (count,)
    n: int = offset.attr
    inner = [int(extent.attr) for extent in offset.args[n:]]
    return offset.args[:n], (count // max(math.prod(inner), 1), *inner)


def _surely_inside(ptr: Op) -> bool:
    """Whether all indices are constants inside of the array."""
    indices, shape = _own_indices(ptr)
    pairs = zip(indices, shape, strict=True)
    return all(i.code == C.CONST and 0 <= i.attr < extent for i, extent in pairs)


def _check_own(b: Builder, ptr: Op, func: Func) -> None:
    """Check an element of an array that the kernel makes."""
    indices, shape = _own_indices(ptr)
    inside: Op | None = None
    for index, extent in zip(indices, shape, strict=True):
        t = index.type
        assert isinstance(t, DataType)
        low = b.binary(C.CMP_GE, index, b.const(0, t))
        both = b.binary(C.BIT_AND, low, b.binary(C.CMP_LT, index, b.const(extent, t)))
        inside = both if inside is None else b.binary(C.BIT_AND, inside, both)
    assert inside is not None
    places = ", ".join(["%d"] * len(indices))
    text = (
        f"[kernel={func.name}] Out of bound access to array {ptr.args[0].attr.name!r} with indices "
        f"[{places}] (shape {list(shape)})"
    )
    b.emit(C.ASSERT, (inside, *indices), AssertAttr("bound", text))


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
