"""detect_read_only: records on each task the array parameters that it only reads.

::

    $0 : offloaded {kind='range_for'} ...     $0 : offloaded {kind='range_for' read_only=(0,)} ...

An array or field is read-only in a task if the task loads from it and neither stores to it nor
updates it atomically. If arrays may overlap (`Func.noalias` is False), a store or atomic to an
array may hit any other array or field, and one to a field any array, so a task with such
a store has no read-only arrays. Fields never overlap each other. Locals and global temporaries are
not recorded.
"""

from __future__ import annotations

from ..ir import Func, param_of, walk
from ..ir import codes as C
from .full_simplify import ROUND
from .manager import PassCx
from .registry import register


# No pass reads it, and no op changes but the task's attribute.
@register("detect_read_only", optional=True, per_task=True, keeps=(*ROUND, "cfg_optimization"))
def detect_read_only(func: Func, cx: PassCx) -> bool:
    """Record on each task which array parameters it only reads."""
    task = cx.task
    if task is None:
        return False
    read: set[int] = set()
    written: set[int] = set()
    for op in walk(task.regions[1]):
        code = op.code
        if code == C.CALL:
            cx.remark(op, "the function may write to any array: none is read only")
            return False
        if not op.args or not (C.READ[code] or C.WRITE[code] or C.ATOMIC[code]):
            continue
        number = param_of(op.args[0])
        if number is not None:
            (read if C.READ[code] else written).add(number)
    if written and not func.noalias:
        fields = {i for i in read | written if func.params[i].kind == "field"}
        read = read & fields if written <= fields else set[int]()
        cx.remark(task, "arrays may overlap and one is written: none is read only")
    found = tuple(sorted(read - written))
    if found == task.attr.read_only:
        return False
    task.attr = task.attr._replace(read_only=found)
    return True
