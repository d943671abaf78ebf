"""share_loops: loops at the top that are alike are prepared for the machine once.

Before::

    $2 : range_for $1, $0 body {          $2 : range_for $1, $0 body {
      <f32> $3 = const 2.5                  <f32> $3 = const 2.5
      ...                                   ...
    }                                     }
    $7 : range_for $1, $6 body {          $7 : range_for $2 {2.5: 3.25}
      <f32> $8 = const 3.25
      ...
    }

A record of thousands of loops shows those that repeat an earlier one, or differ from it in numbers
that decide nothing, as one line each. `share_numbers` finds them among tasks; this pass does so as
soon as types are known, so that listings from there on are short, and not only those after offload.

It sets loops aside if each of them becomes one task, or none, and depends on no other. The root
then has nothing but loops and values, and at least half of the loops are like others (see
`loop_templates`). A number is not a divisor, which becomes a factor, with another text.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import QuadrantsCompilationError
from ..ir import Func
from ..ir import codes as C
from .loop_templates import alike_loops, with_values
from .registry import register
from .share_numbers import decide_nothing, named, set_alike_aside
from .task_templates import Template

if TYPE_CHECKING:
    from .manager import PassCx


@register("share_loops")
def share_loops(func: Func, cx: PassCx) -> bool:
    """Set loops aside that repeat an earlier one, with other numbers or not, before offload."""
    kinds = alike_loops(func, cx)[1] if cx.prepare is not None else []
    if cx.prepare is None or not kinds:
        return False
    found = list(map(Template, kinds))
    loops = [one.task for one in found]
    values = [op for op in with_values(func.body.ops, loops) if op.code != C.RANGE_FOR]
    with suppress(QuadrantsCompilationError):  # raised again at its place, by the pass there
        settled = decide_nothing(func, cx, found, values)
        if settled is not None:
            free = named(settled)
            # Others may be alike as tasks, which none that is repeated can be.
            found = [one for one in found if one.task in free or one.equal]
            return set_alike_aside(func, cx, found, free) and _clear(func, cx)
    return False


def _clear(func: Func, cx: PassCx) -> bool:
    """Remove the values of the root that no loop needs which is left."""
    root = func.body.ops
    func.body.ops = with_values(root, [op for op in root if op.code == C.RANGE_FOR])
    kept = set(func.body.ops)
    for op in root if cx.remarking else ():
        if op not in kept:
            cx.rewrote(op, None, "no loop that is left needs it")
    return True
