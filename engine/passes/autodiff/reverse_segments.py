"""reverse_segments: reverses the order of root loops and of the runs of ops between them.

::

    <f32> $1 = mul $0, $0                 <f32> $1 = mul $0, $0
    $2 : range_for $b, $e body {          $8 : range_for $b, $e body {
      ...                                   ...
    }                                     }
    $8 : range_for $b, $e body {          $2 : range_for $b, $e body {
      ...                                   ...
    }                                     }

Each such loop or run of ops is a *segment*. Shared values without derivatives move to the front. If
other values or variables cross from one segment to another, each version of them gets a *cell*: a
variable at the front that one segment sets and the others read. In that case the forward part,
which fills the cells, comes first, and a ``mem_fence`` separates it from the segments in their new
order::

    <*f32> $3 = alloca ['s']              <*f32> $3 = alloca ['s']
    $4 : range_for $b, $e body {          $20 : range_for $b, $e body { the same as $4 }
      <f32> $6 = atomic_add $3, $5        $30 : mem_fence ['reverse']
    }                                     <f32> $7 = local_load $3
    <f32> $7 = local_load $3              $8 : global_store $y, $7
    $8 : global_store $y, $7              $4 : range_for $b, $e body { ... }

`make_adjoint` adds an adjoint to each cell, and drops updates of cells after the fence.

A ``return`` goes. A root with a single segment does not change.
"""

from __future__ import annotations

from ...ir import Func, Op
from ...ir import codes as C
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .cells import Cells
from .segments import is_parallel, segments

__all__ = ["reverse_segments"]


@register("reverse_segments")
def reverse_segments(func: Func, cx: PassCx) -> bool:
    """Order the segments of the root as the reverse visits them."""
    if func.autodiff != "reverse":
        return False
    before = func.body.ops
    func.body.ops = [op for op in before if op.code != C.RETURN]
    found = segments(func.body.ops)
    if len(found) < 2:
        return func.body.ops != before
    front = _front(func, cx.analysis("activity", Activity))
    taken = set(front)
    rest = [[op for op in ops if op not in taken] for ops in found]
    cells = Cells(func, [ops for ops in rest if ops])
    first = cells.run()
    if cx.remarking:
        for cell in cells.front:
            cx.remark(cell, f"carries {cell.attr!r} from one segment of the root to another")
    func.body.ops = [*front, *cells.front, *first]
    for ops in reversed(cells.segments):
        func.body.ops += ops
    return func.body.ops != before


def _front(func: Func, activity: Activity) -> list[Op]:
    """Root ops without derivatives, made of arguments and elements, that any segment may use."""
    taken: set[Op] = set()
    front: list[Op] = []
    for op in func.body.ops:
        if is_parallel(op):
            continue
        plain = C.PURE[op.code] or (op.code == C.GLOBAL_LOAD and op.args[0].code == C.EXTERNAL_PTR)
        if plain and op not in activity.active and all(a in taken for a in op.args):
            taken.add(op)
            front.append(op)
    return front
