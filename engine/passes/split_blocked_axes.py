"""split_blocked_axes: makes a loop over a field of nested blocks visit one block after the other.

For ``field x: f32[64] layout(0/8*8, 0%8*1)``, and likewise for several axes::

    $0 : offloaded {kind='range_for'} header {     $0 : offloaded {kind='range_for'} header {
      $3 : bounds <0>, <64>                          $3 : bounds <0>, <8>, <0>, <8>
    } body {                                       } body {
      <i32> $4 = loop_index $0 [0]                   <i32> $7 = loop_index $0 [0]
      <*f32> $6 = external_ptr $5, $4                <i32> $8 = mul $7, <8>
                                                     <i32> $9 = loop_index $0 [1]
                                                     <i32> $10 = add $8, $9
                                                     <*f32> $6 = external_ptr $5, $10

The new axes are the digits of the field's layout, in the order of memory. `lower_access` recognises
the digits of such a sum, so the innermost axis runs along contiguous memory without shifts or
masks. The field is the first one that the task accesses with exactly its loop indices.

It leaves alone tasks whose bounds are not those of such a field, or not constant, fields whose
blocks do not fill their axes evenly, and loops inside of tasks.
"""

from __future__ import annotations

from ..analysis import is_index
from ..ir import Block, Builder, Func, Op, Param, drop, replace_uses, walk
from ..ir import codes as C
from ..named_tuple import NamedTuple
from ..types import ElementLayout, i32
from .manager import PassCx
from .needs import is_blocked
from .registry import register


class _Digit(NamedTuple):
    """A new axis: ``extent`` values of an old one, ``step`` indices apart."""

    axis: int
    step: int
    extent: int


@register("split_blocked_axes", optional=True, per_task=True)
def split_blocked_axes(func: Func, cx: PassCx) -> bool:
    """Nest the loop of a task in the memory order of the blocks of the field that it visits."""
    task = cx.task
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    bounds = task.regions[0].ops[-1]
    if not cx.for_tasks(_has_blocked) or any(bound.code != C.CONST for bound in bounds.args):
        return False
    box = [
        (int(a.attr), int(b.attr)) for a, b in zip(bounds.args[::2], bounds.args[1::2], strict=True)
    ]
    digits = _find(func, task, box)
    if digits is None:
        return False
    cx.remark(
        task, f"nested as the field is stored in memory: {len(digits)} axes instead of {len(box)}"
    )
    _split(func, cx, task, box, digits)
    return True


def _has_blocked(func: Func) -> bool:
    return any(is_blocked(p.layout) for p in func.params)


def _find(func: Func, task: Op, box: list[tuple[int, int]]) -> list[_Digit] | None:
    """The digits of the first field that the loop goes over."""
    for op in walk(task.regions[1]):
        if op.code == C.EXTERNAL_PTR and len(op.args) > 1:
            number: int = op.args[0].attr[0]
            param = func.params[number]
            if param.layout is not None and is_blocked(param.layout):
                axes = op.args[1 : param.ndim + 1]
                if len(axes) == len(box) and all(is_index(a, task, k) for k, a in enumerate(axes)):
                    return _digits(param, param.layout, box)
    return None


def _digits(param: Param, layout: ElementLayout, box: list[tuple[int, int]]) -> list[_Digit] | None:
    """The digits of the field's own axes, outermost first; None if they do not fill the box."""
    found: list[_Digit] = []
    covered = [1] * param.ndim
    for axis, div, mod, _ in sorted(layout.terms, key=_stride, reverse=True):
        if axis < param.ndim:
            extent = layout.shape[axis]
            count = mod or extent // div
            covered[axis] *= count
            if mod == 0 and extent % div:
                return None
            if count > 1:
                found.append(_Digit(axis, div, count))
    for axis, (begin, end) in enumerate(box):
        first, extent = layout.origin[axis], layout.shape[axis]
        if (begin, end) != (first, first + extent) or covered[axis] != extent:
            return None
    return found


def _stride(term: tuple[int, int, int, int]) -> int:
    return term[3]


def _split(
    func: Func, cx: PassCx, task: Op, box: list[tuple[int, int]], digits: list[_Digit]
) -> None:
    header, body = task.regions
    indices = _indices(func, task, body, box, digits)
    repl: dict[Op, Op] = {}
    for op in walk(body):
        if op.code == C.LOOP_INDEX and op.args[0] is task and op not in indices.made:
            axis: int = op.attr
            repl[op] = indices.of_axis[axis]
            func.origins.setdefault(repl[op].id, op.id)
    drop(repl)
    body.ops = [*indices.ops, *body.ops]
    replace_uses(body, repl)
    cx.rewrote_all(repl, "computed from the parts of its axis")
    h = Builder(func, header, task.loc, header.ops[:-1])
    zero = h.const(0, i32)
    end = header.ops[-1]
    end.args = tuple([bound for digit in digits for bound in (zero, h.const(digit.extent, i32))])
    header.ops = [*h.ops, end]
    task.attr = task.attr._replace(axes=None)


class _Indices(NamedTuple):
    """The user's indices. ops: what computes them. made: the new `loop_index` ops among these."""

    ops: list[Op]
    of_axis: list[Op]
    made: set[Op]


def _indices(
    func: Func, task: Op, body: Block, box: list[tuple[int, int]], digits: list[_Digit]
) -> _Indices:
    b = Builder(func, body, task.loc, [])
    sums: list[Op | None] = [None] * len(box)
    made: set[Op] = set()
    for number, (axis, step, _) in enumerate(digits):
        part = b.loop_index(task, number)
        made.add(part)
        if step != 1:
            part = b.binary(C.MUL, part, b.const(step, i32))
        before = sums[axis]
        sums[axis] = part if before is None else b.binary(C.ADD, before, part)
    of_axis: list[Op] = []
    for (begin, _), total in zip(box, sums, strict=True):
        if total is None:
            of_axis.append(b.const(begin, i32))
        elif begin:
            of_axis.append(b.binary(C.ADD, total, b.const(begin, i32)))
        else:
            of_axis.append(total)
    return _Indices(b.ops, of_axis, made)
