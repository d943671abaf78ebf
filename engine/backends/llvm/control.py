"""LLVM IR for control flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Block, Op, base_of, walk
from ...ir import codes as C
from ...named_tuple import NamedTuple
from .hints import SCALAR
from .later import later
from .memory_ops import note_written
from .text import SIZE

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["CONTROL_OPS", "Counter", "nest"]


class Counter(NamedTuple):
    """A loop counter: as the i32 that the IR speaks of, if anything needs it, and in 64 bits."""

    narrow: str
    wide: str


def _if(e: Emitter, op: Op) -> None:
    yes, no = op.regions
    then, otherwise, end = e.label("then"), e.label("else"), e.label("endif")
    e.branch(e.v[op.args[0].id], then, otherwise if no.ops else end)
    e.place(then)
    e.run(yes)
    e.op_id = op.id
    e.jump(end)
    if no.ops:
        e.place(otherwise)
        e.run(no)
        e.op_id = op.id
        e.jump(end)
    e.place(end)


def _while(e: Emitter, op: Op) -> None:
    # A loop that may not end is an effect by itself. LLVM keeps such a loop in its function but may
    # find that the function only reads memory; its code generator for unoptimised callers
    # (FastISel), and consumers of SPIR-V's `Pure`, then drop the call. This marks the function as
    # one that does more. It emits no code, and loops are vectorised across it.
    e.state.declares["@llvm.sideeffect"] = "declare void @llvm.sideeffect()"
    e.line("call void @llvm.sideeffect()")
    head, out = e.label("while"), e.label("endwhile")
    e.jump(head)
    e.place(head)
    e.may_stop(_weight(op.regions[0]))
    e.loops.append((head, out))
    e.run(op.regions[0])
    e.loops.pop()
    e.op_id = op.id
    e.jump(head)
    e.place(out)


def _while_control(e: Emitter, op: Op) -> None:
    stay = e.label("stay")
    e.branch(e.v[op.args[0].id], stay, e.loops[-1][1])
    e.place(stay)


def _continue(e: Emitter, op: Op) -> None:
    e.jump(e.loops[-1][0])


def _range_for(e: Emitter, op: Op) -> None:
    if op.attr.move and _move(e, op):
        return
    bounds = [e.v[b.id] for b in op.args]
    nest(e, op, bounds, op.attr.axes, op.attr.reversed)


def _move(e: Emitter, op: Op) -> bool:
    """Call what moves the tile of a loop; False if its body does more than that."""
    accesses = [x for x in op.regions[0].ops if not C.PURE[x.code]]
    if [x.code for x in accesses] != [C.GLOBAL_LOAD, C.GLOBAL_STORE] or len(op.args) != 4:
        return False
    load, store = accesses
    if store.args[1] is not load:
        return False
    row, column = op.attr.axes or (0, 1)
    (to, source), down = _addresses(e, op, load, store), _addresses(e, op, load, store, row)
    transposed = op.attr.move == "transposed"
    right = _addresses(e, op, load, store, column) if transposed else down
    pitches = _distance(e, to, right[0]), _distance(e, source, down[1])
    bounds = [e.widened(e.v[bound.id]) for bound in op.args]
    counts = [e.value(f"sub nsw i64 {bounds[2 * k + 1]}, {bounds[2 * k]}") for k in (row, column)]
    size = SIZE[load.type.name]
    helper = e.helper(f"move.transposed.{size}" if transposed else "move.streamed")
    if not transposed:
        counts[1] = e.value(f"mul nsw i64 {counts[1]}, {size}")
    e.line(f"call void {helper}(ptr {to}, i64 {pitches[0]}, ptr {source}, i64 {pitches[1]}, "
           f"i64 {counts[0]}, i64 {counts[1]})")  # fmt: skip
    note_written(e, store.args[0])
    return True


def _addresses(e: Emitter, op: Op, load: Op, store: Op, further: int = -1) -> tuple[str, str]:
    """The addresses of the first iteration's store and load, or of the next one along an axis."""
    for axis in (0, 1):
        narrow = e.v[op.args[2 * axis].id]
        if axis == further:
            narrow = e.value(f"add nsw i32 {narrow}, 1")
        e.loop_values[op.id, axis] = Counter(narrow, e.widened(narrow))
    for x in op.regions[0].ops:
        if C.PURE[x.code] and x.id not in e.unused:
            e.table[x.code](e, x)
    return e.v[store.args[0].id], e.v[load.args[0].id]


def _distance(e: Emitter, one: str, other: str) -> str:
    first, second = (e.value(f"ptrtoint ptr {place} to i64") for place in (one, other))
    return e.value(f"sub i64 {second}, {first}")


def nest(
    e: Emitter, op: Op, bounds: list[str], axes: tuple[int, ...] | None, reverse: bool = False
) -> None:
    """Loops over every axis, outermost first, around the last region of ``op``."""
    order = axes or tuple(range(len(bounds) // 2))
    counted = _counted(e, op)
    opened: list[_Loop] = []
    owner = op.block.owner if op.block is not None and op.code == C.RANGE_FOR else None
    counted_outside = owner is not None and C.LOOP[owner.code] and _short(op)
    for axis in order:
        ends = bounds[2 * axis : 2 * axis + 2]
        opened.append(_open_loop(e, op, axis, ends, axis in counted, reverse))
        if not counted_outside:
            e.may_stop(_weight(op.regions[-1]))
    e.loops.append((opened[-1].latch, opened[-1].out))
    begin = len(e.lines)
    e.run(op.regions[-1])
    e.loops.pop()
    e.op_id = op.id
    inner = order[-1]
    hint = e.loop_hint(op, inner, bounds[2 * inner : 2 * inner + 2], len(order))
    if op.code == C.RANGE_FOR and op.attr.independent and hint != SCALAR:
        hint = _independent(e, op, begin)
    for loop in reversed(opened):
        e.jump(loop.latch)
        e.place(loop.latch)
        step = -1 if reverse else 1
        e.line(f"{loop.counter}.next = add nsw {loop.type} {loop.counter}, {step}")
        e.line(f"br label %{loop.head}{e.state.loop_property(hint)}")
        hint = ""
        e.place(loop.out)


_SHORT: Final = 256
"""Operations of a loop that first-tier code counts at once: a hundredth of what it runs between two
looks at the clock."""


def _short(loop: Op) -> int:
    """The operations of all iterations of a loop, if these are few; else 0."""
    if any(bound.code != C.CONST for bound in loop.args):
        return 0
    ends = [bound.attr for bound in loop.args]
    trips = math.prod(max(end - begin, 0) for begin, end in zip(ends[::2], ends[1::2], strict=True))
    if trips > _SHORT:
        return 0
    body = walk(loop.regions[-1])
    steps = trips * (len(body) + 1)
    return 0 if steps > _SHORT or any(C.LOOP[op.code] for op in body) else steps


def _weight(body: Block) -> int:
    """The operations of one iteration of a loop, for its deadline."""
    ops = body.ops
    return 1 + len(ops) + sum([_short(op) for op in ops if op.code == C.RANGE_FOR])


def _counted(e: Emitter, loop: Op) -> set[int]:
    """The axes of ``loop`` whose index is wanted as a number, not for addresses alone."""
    counted = e.counted
    if loop not in counted:  # one walk for all loops inside of it: a walk each is depth times that
        ops = walk(loop.regions[-1])
        counted[loop] = set()
        counted.update((op, set()) for op in ops if op.code == C.RANGE_FOR)
        for op in ops:
            if op.code == C.LOOP_INDEX and op.id not in e.unused:
                counted.setdefault(op.args[0], set()).add(op.attr)
    return counted[loop]


def _independent(e: Emitter, op: Op, begin: int) -> str:
    """The property of a loop whose accesses to arrays do not depend on each other, with a group of
    these accesses. Those to variables have none: LLVM looks at what depends on them."""
    ids = {
        x.id for x in walk(op.regions[-1])
        if x.code in (C.GLOBAL_LOAD, C.GLOBAL_STORE) and base_of(x.args[0]).code == C.ARG_ADDR
    }  # fmt: skip
    group = e.state.access_group()
    for i in range(begin, len(e.lines)):
        text = e.lines[i]
        if e.ids[i] in ids and (" = load " in text or text.lstrip().startswith("store ")):
            e.lines[i] = f"{text}, !llvm.access.group !{group}"
    return f'!{{!"llvm.loop.parallel_accesses", !{group}}}'


class _Loop(NamedTuple):
    """An open loop: its labels, its counter and that one's type."""

    head: str
    latch: str
    out: str
    counter: str
    type: str


def _open_loop(
    e: Emitter, op: Op, axis: int, ends: list[str], counted: bool, reverse: bool
) -> _Loop:
    """The head of one loop: counter and test. Leaves the emitter in its body.

    counted: the index is wanted as a number, not for addresses alone.
    """
    mark = e.label("")
    head, body, latch, out = (f"{part}{mark}" for part in ("for", "body", "next", "endfor"))
    counter = f"%i{op.id}.{axis}"
    # Backwards the counter passes the least i32 where the loop begins there.
    ty = "i32" if counted and not reverse else "i64"
    begin, end = ends if ty == "i32" else (e.widened(text) for text in ends)
    start, last, test = begin, end, "slt"
    if reverse:
        start, last, test = e.value(f"sub nsw i64 {end}, 1"), begin, "sge"
    before = e.block
    e.jump(head)
    e.place(head)
    e.line(f"{counter} = phi {ty} [ {start}, %{before} ], [ {counter}.next, %{latch} ]")
    inside = e.value(f"icmp {test} {ty} {counter}, {last}")
    e.branch(inside, body, out)
    e.place(body)
    if ty == "i32":
        e.loop_values[op.id, axis] = Counter(counter, e.value(f"sext i32 {counter} to i64"))
    else:
        narrow = e.value(f"trunc nsw i64 {counter} to i32") if counted else ""
        e.loop_values[op.id, axis] = Counter(narrow, counter)
    return _Loop(head, latch, out, counter, ty)


def _loop_index(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.loop_values[op.args[0].id, op.attr].narrow


def _nothing(e: Emitter, op: Op) -> None:
    """`bounds` ends a header; the code that emits the header reads it."""


CONTROL_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.LOOP_INDEX: _loop_index, C.IF: _if, C.WHILE: _while, C.WHILE_CONTROL: _while_control,
    C.CONTINUE: _continue, C.RANGE_FOR: _range_for, C.BOUNDS: _nothing,
    **later("effects", (
        C.ASSERT, C.PRINT, C.RETURN, C.MEM_FENCE, C.CALL, C.CALL_ARG, C.CLOCK,
    )),
}  # fmt: skip
