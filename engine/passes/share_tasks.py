"""share_tasks: tasks that do the same are prepared for the machine once.

Before::

    $0 : offloaded {kind='range_for'} header {     $0 : offloaded {kind='range_for'} header {
      ...                                            ...
    }                                              }
    $9 : offloaded {kind='range_for'} header {     $9 : offloaded $0
      ...
    }

A kernel with thousands of loops at the top, which a generator or `qd.static` has written, repeats
most of them: a solver's sweeps, say. The pass sets the later ones of equal tasks aside, so that the
passes that follow do not see them: `Func.listed` has them, the body lacks them. `put_back` adds
them again at the end, with the blocks of the first one, so that the emitter writes their code once,
too. A task's place and name stay its own; values of its body have the ids and the lines of the
first one's. Blocks are then part of several tasks: of use for nothing but the generation of code.
`unshare` copies them, so that each task has blocks of its own, with the lines of its own source.

`offload` ends with it in a record of many tasks for the CPU (see `pipeline.run`): what follows
looks at each task, and a listing of all of them would cost most. There tasks that differ in numbers
are set aside, too, if these decide nothing (see `share_numbers`). Such a task names those of the
first one that it has others for, ``$30 : offloaded $0 {2.5: 3.25}``, and `put_back` makes blocks of
its own for it. `share_loops` sets loops aside that are going to be such tasks. For a program, which
only needs the code, `task_templates` and `loop_templates` do the same.
Records of few tasks, and dumps, hold each task with blocks of its own; `repeats` finds those that
have stayed equal, and the emitter writes their code once, too: it is the code that a program gets.

Equal are tasks with the same ops, constants and attributes in the same order. What is different in
each task although its ops are equal (random numbers, adstacks, sites of assertions and prints)
keeps a task on its own. Of global temporaries that such tasks store to, later tasks must load the
same: a store that none loads goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..analysis.uses import code_mask
from ..ir import Block, Func, Loc, Op, Param, walk
from ..ir import codes as C
from ..ir.edit import clone_into
from ..ir.semantics import const_key
from ..named_tuple import NamedTuple
from ..types import DataType
from .registry import register

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = [
    "ALIKE", "Field", "Numbers", "SharedTasks", "alike_fields", "equal_tasks", "finished_key",
    "hold_later_loads", "live_temporaries", "ops_of", "put_back", "repeats", "runs_of", "set_aside",
    "share_tasks", "similar", "task_key", "unshare",
]  # fmt: skip

_OWN: Final = frozenset({C.LAUNCH_SEED, C.CALL_ARG})
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
_FIELDS: Final = 16
"""Fields that are alike, from which tasks may differ in them. With few, most tasks use the same,
and need not store where each is."""
_ANY: Final = code_mask(True for _ in range(C.COUNT))


Numbers = dict[tuple[DataType, float], float]
"""By a number of a task, what another one has in its place."""


Field = tuple[int, bool]
"""The attribute of the address of a field: its number among the parameters, and False."""


class SharedTasks(NamedTuple):
    """Tasks and those among them that are set aside.

    runs: by each one that stays, in their order: it and those between it and the next one. equal:
    of each that is aside, the one that it repeats. parts: the operands and blocks that it had.
    numbers: those of it, if it has others. locs: of each that is repeated, `_locs` at that time.
    """

    runs: dict[Op, list[Op]]
    equal: dict[Op, Op]
    parts: dict[Op, tuple[tuple[Op, ...], tuple[Block, ...]]]
    numbers: dict[Op, Numbers]
    locs: dict[Op, list[Loc]]


@register("share_tasks")
def share_tasks(func: Func, cx: PassCx) -> bool:
    """Set tasks that repeat an earlier one aside: they are prepared once."""
    hold_later_loads(func, cx)
    return set_aside(func, cx, equal_tasks(func), {})


def hold_later_loads(func: Func, cx: PassCx) -> None:
    """Keep the answer to which temporaries later tasks load, from while all of them are there."""
    if func.global_tmp_size:
        from ..analysis.dataflow import LaterLoads  # kernels without temporaries do without it

        cx.held[LaterLoads] = LaterLoads(func)


def set_aside(func: Func, cx: PassCx, equal: dict[Op, Op], numbers: dict[Op, Numbers]) -> bool:
    """Set each task of ``equal`` aside, which repeats one that stays. numbers: of those that differ
    in them."""
    if not equal:
        cx.held.clear()
        return False
    order = func.listed()
    ops = {same: ops_of(same.regions) for same in set(equal.values())}
    parts = {task: (task.args, task.regions) for task in equal}
    locs = {same: _locs(same, same.args, same.regions) for same in ops}
    texts = _texts(numbers)
    if cx.remarking:
        for task, same in equal.items():
            pairs = ", ".join([f"{new} for {old}" for old, new in texts.get(task, ())])
            what = "loop" if task.code == C.RANGE_FOR else "task"
            how = f"the {what} repeats ${same.id}{' with ' if pairs else ''}{pairs}"
            cx.rewrote_all(dict(zip(ops_of(task.regions), ops[same], strict=True)), how)
    for task, same in equal.items():
        task.args, task.attr, task.regions = (same,), texts.get(task), ()
    func.body.ops = [op for op in func.body.ops if op not in equal]
    before: SharedTasks | None = func.shared
    if before is not None:
        equal, parts = before.equal | equal, before.parts | parts
        numbers, locs = before.numbers | numbers, before.locs | locs
    func.shared = SharedTasks(runs_of(order, equal), equal, parts, numbers, locs)
    return True


def runs_of(order: list[Op], aside: Collection[Op]) -> dict[Op, list[Op]]:
    """`SharedTasks.runs` of the tasks or loops among ``order``."""
    runs: dict[Op, list[Op]] = {}
    run: list[Op] = []
    for task in order:
        if task in aside:
            run.append(task)
        elif task.regions:
            run = runs[task] = [task]
    return runs


def _texts(numbers: dict[Op, Numbers]) -> dict[Op, tuple[tuple[str, str], ...]]:
    """The numbers of each task as an attribute: each of the one that is repeated, with its own."""
    if not numbers:
        return {}
    from ..ir.printer import format_const  # programs share tasks without it

    return {
        task: tuple([(format_const(a, t), format_const(b, t)) for (t, a), b in found.items()])
        for task, found in numbers.items()
    }


def put_back(func: Func) -> None:
    """Put the tasks back: each is what its equal has become, if that is left."""
    tasks: SharedTasks | None = func.shared
    assert tasks is not None
    out: list[Op] = func.listed()
    made: dict[tuple[Op, object], Op] = {}
    for task in out:
        if not task.args:
            continue
        (same,) = task.args
        if task in tasks.numbers:
            first = made.setdefault((same, task.attr), task)
            task.args, task.attr = (), same.attr
            if first is task:
                _copy(func, task, same)
                continue
            tasks.equal[task] = same = first
        task.args, task.attr, task.regions = (), same.attr, same.regions
    func.body.ops = out
    func.version += 1


def _copy(func: Func, task: Op, same: Op) -> None:
    """Make ``task`` a copy of ``same`` with numbers of its own; later ones may repeat it."""
    tasks: SharedTasks = func.shared
    _clone_blocks(func, task, same)
    numbers = tasks.numbers[task]
    for op in ops_of(task.regions):
        if op.code == C.CONST:
            op.attr = numbers.get((op.type, op.attr), op.attr)  # type: ignore[arg-type]
    func.renumbered[task] = same
    del tasks.equal[task]
    tasks.locs[task] = _locs(task, *tasks.parts[task])


def unshare(func: Func) -> None:
    """Give each task of a finished function, which `put_back` has completed, its own blocks."""
    tasks: SharedTasks | None = func.shared
    if tasks is None:
        return
    left = set(func.body.ops)
    for task, same in tasks.equal.items():
        if task in left:
            _clone_blocks(func, task, same)
            func.repeats[task] = same
    func.shared = None  # last: another thread may look whether the copies are made


def _clone_blocks(func: Func, task: Op, same: Op) -> None:
    """Give ``task`` the blocks of ``same``, with the locations of those that it had."""
    tasks: SharedTasks = func.shared
    locs = _locs(task, *tasks.parts[task])
    own = dict(zip(tasks.locs[same], locs, strict=True))
    mapping = {same: task}
    task.regions = tuple([Block(task) for _ in same.regions])
    for source, target in zip(same.regions, task.regions, strict=True):
        clone_into(func, source.ops, mapping, target)
        for op in walk(target):
            op.loc = own.get(op.loc, op.loc)


def _locs(task: Op, args: tuple[Op, ...], regions: tuple[Block, ...]) -> list[Loc]:
    """The locations of a task or loop, its operands and the ops of its blocks."""
    return [op.loc for op in (task, *args, *ops_of(regions))]


def equal_tasks(func: Func) -> dict[Op, Op]:
    """Each task that repeats an earlier one, with the first of these, in ``func`` of stage
    ``offloaded``."""
    if func.callees or any(op.code != C.OFFLOADED for op in func.body.ops):
        return {}
    first: dict[tuple[object, ...], Op] = {}
    equal: dict[Op, Op] = {}
    live = live_temporaries(func)
    for task in similar(func.body.ops):
        key = task_key(task, ops_of(task.regions), ALIKE)
        if key is not None:
            found = first.setdefault((*key, live.get(task)), task)
            if found is not task:
                equal[task] = found
    return equal


def live_temporaries(func: Func) -> dict[Op, frozenset[int]]:
    """By task with global temporaries, those that it writes and a later one reads: stores to others
    go."""
    live: dict[Op, frozenset[int]] = {}
    read: set[int] = set()
    for task in reversed(func.body.ops) if func.global_tmp_size else ():
        uses = [
            (op.code, op.args[0].attr) for op in ops_of(task.regions)
            if op.args and op.args[0].code == C.GLOBAL_TMP
        ]  # fmt: skip
        if uses:
            live[task] = frozenset([at for c, at in uses if c != C.GLOBAL_LOAD and at in read])
            read.update([at for code, at in uses if code != C.GLOBAL_STORE])
    return live


def similar(tasks: list[Op]) -> list[Op]:
    """The tasks that may be equal to another one: few kernels have any."""
    shapes = [
        tuple([bytes([op.code for op in region.ops]) for region in task.regions]) for task in tasks
    ]
    often = Counter(shapes)
    return [task for task, shape in zip(tasks, shapes, strict=True) if often[shape] > 1]


def repeats(func: Func, equal: dict[Op, Op]) -> dict[Op, Op]:
    """Those of `equal_tasks` that the finished function has, and that are still equal."""
    left = set(func.body.ops)
    keys = {task: finished_key(task) for task in left.intersection(equal.values())}
    return {
        task: same for task, same in equal.items()
        if task in left and (key := keys.get(same)) is not None and key == finished_key(task)
    }  # fmt: skip


def finished_key(task: Op) -> tuple[object, ...] | None:
    """`task_key` of a task that may hold any ops."""
    return task_key(task, ops_of(task.regions), _ANY)


def ops_of(regions: tuple[Block, ...]) -> list[Op]:
    """The ops of the regions of a task, in program order."""
    return [op for region in regions for op in walk(region)]


def task_key(
    task: Op,
    ops: list[Op],
    alike: bytes,
    numbers: Mapping[Op, float] | None = None,
    outer: Mapping[Op, int] | None = None,
    fields: Mapping[Op, tuple[Field, Param]] | None = None,
) -> tuple[object, ...] | None:
    """A key that equal tasks have in common; None for a task that stays on its own.

    ops: all that it has. alike: the opcodes that these may have. numbers: constants that equal
    tasks may differ in, with values. outer: places of values from outside of it. fields: addresses
    of fields that these may differ in, with what those have in common.
    """
    codes = bytes([op.code for op in ops])
    if 0 in codes.translate(alike):
        return None
    places: dict[Op, int] = dict(zip((task, *ops), range(len(ops) + 1), strict=True))
    attrs = [const_key(op.attr) if op.code == C.CONST else op.attr for op in ops]
    values: dict[object, int] = {}
    for op, value in numbers.items() if numbers else ():
        # Those that are the same one stay so.
        attrs[places[op] - 1] = None, values.setdefault((op.type, value), len(values))
    for op, (field, like) in fields.items() if fields else ():
        attrs[places[op] - 1] = like, values.setdefault(field, len(values))
    try:
        if outer:
            operands = [
                places[a] if a in places else outer[a] for op in (task, *ops) for a in op.args
            ]
        else:
            operands = [places[a] for op in ops for a in op.args]
        key = (
            task.attr, codes, *[op.type for op in ops], *attrs,
            *operands, *[-len(op.args) for op in ops],
            *[len(region.ops) for region in task.regions],
            *[len(region.ops) for op in ops for region in op.regions],
        )  # fmt: skip
        hash(key)
    except (KeyError, TypeError):  # a value of another task; an attribute that has no hash
        return None
    return key


def alike_fields(params: Sequence[Param]) -> list[Param | None]:
    """Of each parameter, if it is a field like many others, what these have in common."""
    fields = [p._replace(name="") if p.kind == "field" and p.grad < 0 else None for p in params]
    often = {field for field, count in Counter(fields).items() if count >= _FIELDS}
    return [field if field in often else None for field in fields]
