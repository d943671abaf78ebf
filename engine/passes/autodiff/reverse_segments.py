"""reverse_segments: the parallel loops at the root, and the runs of ops between them, swap places.

::

    <f32> $1 = mul $0, $0                 <f32> $1 = mul $0, $0
    $2 : range_for $b, $e body {          $8 : range_for $b, $e body {
      ...                                   ...
    }                                     }
    $8 : range_for $b, $e body {          $2 : range_for $b, $e body {
      ...                                   ...
    }                                     }

Values without derivatives that segments share stand in front of all.

It leaves alone a root of one segment.
"""

from __future__ import annotations

from ...ir import Func, Op
from ..manager import PassCx
from ..registry import register
from .activity import Activity
from .independent_blocks import is_parallel, segments

__all__ = ["reverse_segments"]


@register("reverse_segments")
def reverse_segments(func: Func, cx: PassCx) -> bool:
    """Bring the segments of the root into the order in which the reverse visits them."""
    if func.autodiff != "reverse":
        return False
    found = segments(func)
    if len(found) < 2:
        return False
    activity = Activity(func)
    effects = activity.effects
    front: list[Op] = []
    rest: list[Op] = []
    for ops in reversed(found):
        if is_parallel(ops[0]):
            rest += ops
        else:
            rest += [op for op in ops if op in effects or op in activity.active]
    taken = set(rest)
    front = [op for op in func.body.ops if op not in taken]
    before = func.body.ops
    func.body.ops = front + rest
    return func.body.ops != before
