"""The sum of products that a task for `tensor_products` makes, and where their elements are."""

from __future__ import annotations

from ..ir import Func, Op
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import f16, f32, row_major
from .linear_form import form_of
from .product_nest import INNER
from .product_task import ProductTask

__all__ = ["ProductSum", "RowLayout", "product_sum", "row_layout"]


class ProductSum(NamedTuple):
    """variable: of the sum. code: add, or sub. loads: of the two elements, by axis."""

    variable: Op
    code: int
    loads: tuple[Op, Op]


def product_sum(plan: ProductTask) -> ProductSum | str:
    """The sum that the inner loop makes, or why it is none of products of f16."""
    inner = plan.loop.regions[0].ops
    if any(len(found) != 1 for found in plan.staged):
        return "it multiplies more than two arrays"
    (store, *others) = [op for op in inner if C.WRITE[op.code]]
    pointer, value = store.args
    if others or pointer.code != C.ALLOCA:
        return "it has several sums"
    old, product = value.args if value.code in (C.ADD, C.SUB) else (value, value)
    if value.code == C.ADD and product.code == C.LOCAL_LOAD:
        old, product = product, old
    if old.code != C.LOCAL_LOAD or old.args[0] is not pointer:
        return "it does more than add products"
    if value.type is not f32:
        return f"its sum is of {value.type}, not of f32"
    if product.code == C.CAST_VALUE and product.args[0].type is f16:
        return "its products are of f16: convert the elements to f32 first"
    code = value.code
    if product.code == C.NEG:
        product, code = product.args[0], C.SUB if code == C.ADD else C.ADD
    if product.code != C.MUL:
        return "it does more than add products"
    casts = product.args
    if any(x.code != C.CAST_VALUE or x.args[0].type is not f16 for x in casts):
        return "it does more than add products of elements"
    loads = tuple([found[0] for found in plan.staged])
    if {x.args[0] for x in casts} != set(loads):
        return "it does more than add products of elements"
    return ProductSum(pointer, code, (loads[0], loads[1]))


class RowLayout(NamedTuple):
    """The elements of a load in memory.

    inward: neighbours are those along the inner loop, else those along the load's axis. axis: of
    the array, along which the inner loop runs. factor: elements of that axis for each value of k.
    """

    inward: bool
    axis: int
    factor: int


def row_layout(func: Func, plan: ProductTask, load: Op, axis: int) -> RowLayout | None:
    """The layout of a load; None if no elements are neighbours, or for other layouts than rows."""
    pointer = load.args[0]
    number, grad = pointer.args[0].attr
    p = func.params[int(number)]
    if grad or p.element_shape or p.ndim < 1 or p.axes is not None:
        return None
    if p.layout is not None and p.layout != row_major(p.layout.shape, p.layout.origin):
        return None
    depends = plan.depends
    indices = pointer.args[1:]
    deep = [n for n, index in enumerate(indices) if INNER in depends.get(index, ())]
    wide = [n for n, index in enumerate(indices) if axis in depends.get(index, ())]
    last = len(indices) - 1
    if len(deep) != 1 or (deep == [last]) == (last in wide):
        return None
    factor = _factor(depends, indices[deep[0]], INNER)
    inward = deep == [last]
    step = factor if inward else _factor(depends, indices[last], axis)
    if not factor or step != 1 or (not inward and wide != [last]):
        return None
    return RowLayout(inward, deep[0], factor)


def _factor(depends: dict[Op, frozenset[int]], index: Op, along: int) -> int:
    """The steps of an index for one of the loop ``along``; 0 if that is not known."""
    steps = [(op, factor) for op, factor in form_of(index).terms.items() if depends.get(op)]
    if (
        len(steps) != 1
        or steps[0][0].code != C.LOOP_INDEX
        or depends[steps[0][0]] != frozenset({along})
    ):
        return 0
    return steps[0][1]
