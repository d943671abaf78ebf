"""check_out_of_bound: checks every index into an array before the access to the element.

::

    <f32> $4 = global_load $3       <i32> $5 = external_tensor_shape_along_axis [(0, 0)]
                                    <i32> $6 = const 0
                                    <u1> $7 = cmp_ge $1, $6
                                    <u1> $8 = cmp_lt $1, $5
                                    <u1> $9 = bit_and $7, $8
                                    $10 : assert $9, $1, $5 {kind='bound' text='...'}
                                    <f32> $4 = global_load $3

where ``$3`` is ``external_ptr $0, $1``. The check is at the load, store or atomic and not at
the address, because an address may be computed without an access. An address that was
checked before, in the same block or one around it, is not checked again. Addresses
with ``clamp`` stay: their indices are checked once `handle_external_ptr_boundary` has clamped them,
since those into an empty array are outside all the same. Indices into a field or an element need no
check if they are certainly in range because they consist of constants and indices of loops with
constant bounds: a loop over a field needs no check of that field, nor of neighbours that its bounds
leave room for. An index of a field is compared with the begin and end of its axis. The message
shows the indices of the access, field axes first, then those of the element.

An element of an array that the kernel allocates (``shift_ptr`` of an `array_alloca`) is checked in
the same way: each index of its `linearize`, whose extents are constants, or its only index.
"""

from __future__ import annotations

import math

from ..ir import AssertAttr, Block, Builder, Func, Op, Param
from ..ir import codes as C
from ..types import DataType, i32
from .linear_form import stays_inside
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
            if (code == C.EXTERNAL_PTR or code == C.SHIFT_PTR) and ptr.args not in checked:
                b.loc = op.loc
                if code == C.EXTERNAL_PTR:
                    found = _check(b, ptr, func)
                else:
                    found = not _surely_inside(ptr)
                    if found:
                        _check_own(b, ptr, func)
                if found:
                    checked.add(ptr.args)
                    changed = True
        b.ops.append(op)
    if changed:
        block.ops = b.ops
    return changed


def _own_indices(ptr: Op) -> tuple[tuple[Op, ...], tuple[int, ...]]:
    """Indices into an array that the kernel makes, and its shape as far as they show it."""
    base, offset = ptr.args
    count: int = base.attr.count
    if offset.code != C.LINEARIZE:
        return (offset,), (count,)
    n: int = offset.attr
    inner = [int(extent.attr) for extent in offset.args[n:]]
    return offset.args[:n], (count // max(math.prod(inner), 1), *inner)


def _surely_inside(ptr: Op) -> bool:
    """True if all indices are constants inside of the array."""
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
    formats = ", ".join(["%d"] * len(indices))
    text = (
        f"[kernel={func.name}] Out of bound access to array {ptr.args[0].attr.name!r} with indices "
        f"[{formats}] (shape {list(shape)})"
    )
    b.emit(C.ASSERT, (inside, *indices), AssertAttr("bound", text))


def _check(b: Builder, ptr: Op, func: Func) -> bool:
    """Check the indices of an address; False if all are known to be good."""
    base, *indices = ptr.args
    number: int = base.attr[0]
    param = func.params[number]
    doubtful = [
        axis for axis, index in enumerate(indices)
        if ptr.attr != "clamp" and not _is_good(param, axis, index)
    ]  # fmt: skip
    if not doubtful:
        return False
    zero: Op | None = None
    inside: Op | None = None
    extents: list[Op] = []
    for axis in doubtful:
        index = indices[axis]
        box = _box(param, axis)
        if box is None:
            zero = b.const(0, i32) if zero is None else zero
            first = zero
            last = b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32)
            extents.append(last)
        else:
            first, last = b.const(box[0], i32), b.const(box[0] + box[1], i32)
        both = b.binary(
            C.BIT_AND, b.binary(C.CMP_GE, index, first), b.binary(C.CMP_LT, index, last)
        )
        inside = both if inside is None else b.binary(C.BIT_AND, inside, both)
    assert inside is not None
    text = _message(func.name, param, number, len(extents))
    b.emit(C.ASSERT, (inside, *indices, *extents), AssertAttr("bound", text))
    return True


def _box(param: Param, axis: int) -> tuple[int, int] | None:
    """First index and extent of an axis, where they are known."""
    if param.layout is not None:
        return param.layout.origin[axis], param.layout.shape[axis]
    return (0, param.element_shape[axis - param.ndim]) if axis >= param.ndim else None


def _is_good(param: Param, axis: int, index: Op) -> bool:
    box = _box(param, axis)
    return box is not None and stays_inside(index, *box)


def _message(kernel: str, param: Param, number: int, extents: int) -> str:
    """The text of the assert. Its values: all indices, then the ``extents`` that were read."""
    ndim, element = param.ndim, param.element_shape
    indices = ", ".join(["%d"] * ndim)
    part = ", ".join(["%d"] * len(element))
    held = ", ".join(map(str, element))
    if param.layout is None:
        component = f" and component [{part}]" if part else ""
        shape = f", shape [{indices}]" if extents else ""
        elements = f", elements of shape [{held}]" if held else ""
        return (
            f"[kernel={kernel}] Out of bound access to ndarray at arg {number} with indices "
            f"[{indices}]{component} (parameter {param.name}{shape}{elements})"
        )
    layout = param.layout
    offset = ", ".join(map(str, layout.origin[:ndim])) if any(layout.origin) else ""
    return (
        f"(kernel={kernel}) Accessing field ({param.name}) of size "
        f"({', '.join(map(str, layout.shape[:ndim]))}){f' offset ({offset})' if offset else ''} "
        f"with indices ({indices})"
        + (f" and component ({part}) of an element of shape ({held})" if part else "")
    )
