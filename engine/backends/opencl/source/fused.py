"""One OpenCL kernel for all tasks of a program, on devices that compile at the first launch.

PoCL makes machine code of a kernel when it is launched first, and links it: 30 ms and more for each
kernel, however small. So tasks that run in work-groups of one item are functions, and share a
kernel that calls the requested one::

    static void step_kernel_0_range_for_body(kernarg, x_mem, x_at, item, items) { ... }
    static void step_kernel_1_serial_body(kernarg, y_mem, y_at, item, items) { ... }

    __kernel void step_kernel_tasks(kernarg, int task, x_mem, x_at, y_mem, y_at)
    {
        const int item = get_group_id(0), items = get_num_groups(0);
        switch (task) {
        case 0: step_kernel_0_range_for_body(kernarg, x_mem, x_at, item, items); break;
        case 1: ...
        }
    }

Its parameters are all that any task needs; where these are more than a device accepts, or there are
many tasks, they go to several such kernels (`ends`). A kernel object belongs to one task; the
parameters that this one does not use are set once (`opencl.arguments.settle`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....named_tuple import NamedTuple
from ..facts import MEMORY, OpenclTask
from .emitter import Slot
from .names import Names

__all__ = ["ALONE", "ITEM", "ITEMS", "Body", "together"]

ALONE: Final = "__attribute__((reqd_work_group_size(1, 1, 1)))"
"""Of a kernel that runs in groups of one work-item."""
ITEM: Final = "get_group_id(0)"
ITEMS: Final = "get_num_groups(0)"
"""In such a kernel the work-item and their number: of groups, which PoCL compiles sooner."""


class Body(NamedTuple):
    """The function of a task. symbol: its name. slots: its parameters after the device buffer and,
    if it prints, the buffer for that."""

    symbol: str
    slots: tuple[Slot, ...]
    prints: bool


_TASKS: Final = 50
"""Tasks of a kernel: the time that PoCL needs grows faster than their number. With 300 tasks it
needs 2.3 times as long for one kernel as for six."""
_HEAD: Final = 24
"""Bytes of the device buffer, the buffer for prints and the task's number."""


def ends(bodies: Sequence[Body], most: int) -> list[int]:
    """The ends of kernels of several tasks: the parameters of each have at most ``most`` bytes, and
    the tasks are not many.

    A kernel of one task may have more; `ProgramSource.finish` has refused it if that is not
    possible.
    """
    found: list[int] = []
    seen: set[tuple[str, str, int]] = set()
    size, start = _HEAD, 0
    for number, body in enumerate(bodies):
        new = {_key(slot) for slot in body.slots}
        more = _size(new - seen)
        if number - start == _TASKS or (seen and size + more > most):
            found.append(number)
            seen, size, more, start = set[tuple[str, str, int]](), _HEAD, _size(new), number
        seen |= new
        size += more
    return [*found, len(bodies)]


def _size(keys: set[tuple[str, str, int]]) -> int:
    return sum(16 if kind == MEMORY else 8 for kind, _, _ in keys)


def together(
    symbol: str, bodies: Sequence[Body], tasks: Sequence[OpenclTask]
) -> tuple[list[str], list[str], list[OpenclTask]]:
    """Parameters and body of the kernel ``symbol``, and the tasks as they are launched by it."""
    prints = any(body.prints for body in bodies)
    names = Names(("task",))
    positions: dict[tuple[str, str, int], tuple[int, str]] = {}
    params = [
        "__global uchar *kernarg",
        *(["__global uchar *prints"] if prints else []),
        "int task",
    ]
    at = len(params)
    for body in bodies:
        for slot in body.slots:
            key = _key(slot)
            if key in positions:
                continue
            name = names.fresh(slot.name, ends=("_mem", "_at") if slot.kind == MEMORY else ())
            positions[key] = at, name
            if slot.kind == MEMORY:
                params.append(f"__global uchar *{name}_mem, ulong {name}_at")
            else:
                params.append(f"{'uchar' if slot.type == 'bool' else slot.type} {name}")
            at += 1 + (slot.kind == MEMORY)
    lines = [f"const int item = {ITEM}, items = {ITEMS};", "switch (task) {"]
    launched: list[OpenclTask] = []
    for number, (body, task) in enumerate(zip(bodies, tasks, strict=True)):
        passed = ["kernarg", *(["prints"] if body.prints else [])]
        mine = {_key(slot) for slot in body.slots}
        for slot in body.slots:
            name = positions[_key(slot)][1]
            passed.append(f"{name}_mem, {name}_at" if slot.kind == MEMORY else name)
        lines.append(
            f"case {number}: {body.symbol}({', '.join([*passed, 'item', 'items'])}); break;"
        )
        launched.append(task._replace(
            symbol=symbol, prints=prints, number=number,
            positions=tuple([positions[_key(slot)][0] for slot in body.slots]),
            rest=tuple([(k, key[0]) for key, (k, _) in positions.items() if key not in mine]),
        ))  # fmt: skip
    return params, [*lines, "}"], launched


def _key(slot: Slot) -> tuple[str, str, int]:
    return slot.kind, slot.type if slot.kind != MEMORY else "", slot.offset
