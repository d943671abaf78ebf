"""The tasks of a finished function and their structure, as `KernelMeta` describes them.

::

    $5 : graph_region {kind='do_while' param=1} body {    flow = (0, Flow("do_while", (1, 2), 1), 3)
      $8 : offloaded ...    task 1
      $9 : offloaded ...    task 2
    }

The rules for a launch that begins at a checkpoint (``resume`` = 1 + its label), on every backend:
the flow is walked in order, and until that checkpoint is met

* a task that is outside of checkpoints runs: it makes values that later ones need;
* a checkpoint, also one without a label, is passed over;
* a ``do_while`` or ``parallel`` without the checkpoint is passed over as a whole;
* a ``do_while`` with the checkpoint is entered: these rules hold for its first round only.

From the checkpoint on everything runs as usual.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Block, Func, Op, walk
from ..ir import codes as C
from .base import Flow, KernelMeta, StackMeta, TaskMeta

__all__ = ["flow_of", "flow_text", "holds", "labels_of", "repeats", "task_meta"]


def task_meta(name: str, task: Op, ops: list[Op] | None = None) -> TaskMeta:
    """Return the facts about an ``offloaded`` op whose entry point is called ``name``. ops: of its
    body, from `walk`."""
    attr = task.attr
    axes = 0 if attr.kind == "serial" else len(task.regions[0].ops[-1].args) // 2
    if ops is None:
        ops = walk(task.regions[1])
    stacks: tuple[StackMeta, ...] = ()
    if C.AD_STACK_ALLOCA in [op.code for op in ops]:
        from .stacks import stack_metas

        stacks = stack_metas(ops)
    return TaskMeta(
        name, attr.kind, attr.unit, attr.loop_name, axes, task.loc, len(ops), stacks, attr.trip,
        attr.predicate,
    )  # fmt: skip


def flow_of(func: Func) -> tuple[int | Flow, ...]:
    """The flow of a function, whose root holds tasks after `offload`; empty for all tasks one after
    the other."""
    if all(op.code != C.GRAPH_REGION for op in func.body.ops):
        return ()
    return _items(func.body, {task: number for number, task in enumerate(func.tasks())})


def _items(block: Block, numbers: dict[Op, int]) -> tuple[int | Flow, ...]:
    return tuple(
        [
            numbers[op]
            if op.code == C.OFFLOADED
            else Flow(op.attr.kind, _items(op.regions[0], numbers), op.attr.param, op.attr.label)
            for op in block.ops
            if op.code in (C.OFFLOADED, C.GRAPH_REGION)
        ]
    )


def _checkpoints(func: Func) -> list[Op]:
    """The checkpoints with a label, in the order of the labels."""
    found = [op for block in func.roots() for op in block.ops if op.code == C.GRAPH_REGION]
    named = [op for op in found if op.attr.label >= 0]
    return sorted(named, key=lambda op: op.attr.label)


def labels_of(func: Func) -> tuple[int, ...]:
    """Return the name that the user has given to each checkpoint, by label."""
    return tuple([op.attr.name for op in _checkpoints(func)])


def repeats(func: Func) -> bool:
    """True if a launch may run a task more than once, or not at all."""
    return any(
        op.code == C.GRAPH_REGION and op.attr.kind in ("do_while", "checkpoint")
        for block in func.roots()
        for op in block.ops
    )


def holds(region: Op) -> list[int]:
    """The labels of the checkpoints in a graph region, its own among them."""
    found = [region.attr.label] if region.attr.label >= 0 else []
    for op in region.regions[0].ops:
        if op.code == C.GRAPH_REGION:
            found += holds(op)
    return found


def flow_text(meta: KernelMeta) -> str:
    """The flow for people, a line for each task and part::

    0 init
    do_while flag
      1 step
    2 finish
    """
    lines: list[str] = []
    _lines(meta, meta.flow or tuple(range(len(meta.tasks))), "", lines)
    return "\n".join(lines)


def _lines(meta: KernelMeta, items: Sequence[int | Flow], pad: str, lines: list[str]) -> None:
    for item in items:
        if isinstance(item, int):
            task = meta.tasks[item]
            lines.append(f"{pad}{item} {task.loop_name or task.name}")
            continue
        text = item.kind
        if item.kind == "checkpoint":
            text += f" {meta.labels[item.label]}" if item.label >= 0 else " (implicit)"
        if item.param >= 0:
            yields = "yield_on " if item.kind == "checkpoint" else ""
            text += f" {yields}{meta.params[item.param].name}"
        lines.append(pad + text)
        _lines(meta, item.items, pad + "  ", lines)
