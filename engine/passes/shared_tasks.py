"""Tasks that do the same are prepared for the machine once.

A kernel with thousands of loops at the top, which a generator or `qd.static` has written, repeats
most of them: a solver's sweeps, say. `set_aside` removes the later ones of equal tasks from a
function before the passes that fit tasks to the machine. `put_back` adds them again afterwards,
with the blocks of the first one, so that the emitter writes their code once, too. A task's place
and name stay its own; values of its body have the ids and the lines of the first one's.

Blocks are then part of several tasks: of use for nothing but the generation of code. So only the
launch of a kernel whose IR no one looks at asks for it (see `pipeline.run`). Records and dumps hold
each task with blocks of its own; `repeats` finds those that have stayed equal, and the emitter
writes their code once, too: it is the code that a program gets.

Equal are tasks with the same ops, constants and attributes in the same order. What is different in
each task although its ops are equal (random numbers, adstacks, sites of assertions and prints), or
shared with another one (global temporaries), keeps a task on its own.
"""

from __future__ import annotations

from typing import Final

from ..analysis.uses import code_mask
from ..ir import Func, Op, walk
from ..ir import codes as C
from ..ir.semantics import const_key
from ..named_tuple import NamedTuple

__all__ = ["ALIKE", "SharedTasks", "equal_tasks", "put_back", "repeats", "set_aside"]

_OWN: Final = frozenset({C.GLOBAL_TMP, C.LAUNCH_SEED, C.CALL_ARG})
_PLAIN: Final = frozenset({
    C.ALLOCA, C.ARRAY_ALLOCA, C.LOCAL_LOAD, C.LOCAL_STORE, C.GLOBAL_LOAD, C.GLOBAL_STORE, C.IF,
    C.RANGE_FOR, C.WHILE, C.WHILE_CONTROL, C.BREAK, C.CONTINUE, C.BOUNDS,
})  # fmt: skip
ALIKE: Final = code_mask(
    (C.PURE[code] and code not in _OWN)
    or code in _PLAIN
    or (C.ATOMIC[code] and code != C.ATOMIC_ADD_VECTOR)
    for code in range(C.COUNT)
)
_ANY: Final = code_mask(True for _ in range(C.COUNT))


class SharedTasks(NamedTuple):
    """The tasks of a function in their order, and for each that was set aside its equal."""

    order: list[Op]
    equal: dict[Op, Op]


def equal_tasks(func: Func) -> dict[Op, Op]:
    """Each task that repeats an earlier one, with the first of these, in ``func`` of stage
    ``offloaded``."""
    if func.callees or any(op.code != C.OFFLOADED for op in func.body.ops):
        return {}
    first: dict[tuple[object, ...], Op] = {}
    equal: dict[Op, Op] = {}
    for task in func.body.ops:
        key = _key(task, ALIKE)
        if key is not None and (found := first.setdefault(key, task)) is not task:
            equal[task] = found
    return equal


def repeats(func: Func, equal: dict[Op, Op]) -> dict[Op, Op]:
    """Those of `equal_tasks` that the finished function has, and that are still equal."""
    left = set(func.body.ops)
    keys = {task: _key(task, _ANY) for task in left.intersection(equal.values())}
    return {
        task: same for task, same in equal.items()
        if task in left and (key := keys.get(same)) is not None and key == _key(task, _ANY)
    }  # fmt: skip


def set_aside(func: Func) -> SharedTasks | None:
    """Take tasks that repeat an earlier one out of ``func``, of stage ``offloaded``; None if there
    are none."""
    order, equal = func.body.ops, equal_tasks(func)
    if not equal:
        return None
    func.body.ops = [task for task in order if task not in equal]
    func.version += 1
    return SharedTasks(order, equal)


def put_back(func: Func, tasks: SharedTasks) -> None:
    """Put the tasks of `set_aside` back: each is what its equal has become, if that is left."""
    left = set(func.body.ops)
    assert left.issuperset(func.body.ops) and left.issubset(tasks.order)
    out: list[Op] = []
    for task in tasks.order:
        same = tasks.equal.get(task, task)
        if same in left:
            task.attr, task.regions = same.attr, same.regions
            out.append(task)
    func.body.ops = out
    func.version += 1


def _key(task: Op, alike: bytes) -> tuple[object, ...] | None:
    """A key that equal tasks have in common; None for a task that stays on its own. alike: the
    opcodes that it may have."""
    numbers = {task: -1}
    key: list[object] = [task.attr]
    for region in task.regions:
        key.append(len(region.ops))
        for op in walk(region):
            code = op.code
            if not alike[code]:
                return None
            attr = const_key(op.attr) if code == C.CONST else op.attr
            key += code, op.type, attr, len(op.args)
            for a in op.args:
                if a not in numbers:
                    return None
                key.append(numbers[a])
            key += [len(inner.ops) for inner in op.regions]
            numbers[op] = len(numbers)
    found = tuple(key)
    try:
        hash(found)
    except TypeError:
        return None
    return found
