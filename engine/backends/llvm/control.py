"""LLVM IR for control flow, and for what a kernel tells the outside: assert, print, return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...ir import Op
from ...ir import codes as C
from ...types import DataType, Type, f64, i64, u64
from ..base import AssertSite, PrintSite
from . import abi
from .memory import in_memory
from .scalars import convert
from .text import MEMORY

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["CONTROL_OPS", "nest"]


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
    head, out = e.label("while"), e.label("endwhile")
    e.jump(head)
    e.place(head)
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
    bounds = [e.v[b.id] for b in op.args]
    nest(e, op, bounds, op.attr.axes, op.attr.reversed)


def nest(
    e: Emitter, op: Op, bounds: list[str], axes: tuple[int, ...] | None, reverse: bool = False
) -> None:
    """Loops over every axis, outermost first, around the last region of ``op``."""
    order = axes or tuple(range(len(bounds) // 2))
    opened: list[_Loop] = []
    wide = [e.widened(bound) for bound in bounds]
    for axis in order:
        opened.append(_open_loop(e, op, axis, wide[2 * axis], wide[2 * axis + 1], reverse))
    e.loops.append((opened[-1].latch, opened[-1].out))
    e.run(op.regions[-1])
    e.loops.pop()
    e.op_id = op.id
    for loop in reversed(opened):
        e.jump(loop.latch)
        e.place(loop.latch)
        e.line(f"{loop.counter}.next = add nsw i64 {loop.counter}, {-1 if reverse else 1}")
        e.jump(loop.head)
        e.place(loop.out)


class _Loop(NamedTuple):
    """An open loop: its labels and its counter."""

    head: str
    latch: str
    out: str
    counter: str


def _open_loop(e: Emitter, op: Op, axis: int, begin: str, end: str, reverse: bool) -> _Loop:
    """The head of one loop: counter and test. Leaves the emitter in its body."""
    mark = e.label("")
    head, body, latch, out = (f"{part}{mark}" for part in ("for", "body", "next", "endfor"))
    counter = f"%i{op.id}.{axis}"
    start, last, test = begin, end, "slt"
    if reverse:
        start, last, test = e.value(f"sub nsw i64 {end}, 1"), begin, "sge"
    before = e.block
    e.jump(head)
    e.place(head)
    e.line(f"{counter} = phi i64 [ {start}, %{before} ], [ {counter}.next, %{latch} ]")
    inside = e.value(f"icmp {test} i64 {counter}, {last}")
    e.branch(inside, body, out)
    e.place(body)
    e.loop_values[op.id, axis] = counter
    return _Loop(head, latch, out, counter)


def _loop_index(e: Emitter, op: Op) -> None:
    wide = e.wides[op.id] = e.loop_values[op.args[0].id, op.attr]
    e.v[op.id] = e.value(f"trunc nsw i64 {wide} to i32")


# Effects


def _as_slot(e: Emitter, value: str, t: Type) -> tuple[str, str]:
    """A value widened to 8 bytes: its type and text."""
    if t.is_real:
        return "double", convert(e, value, t, f64)
    return "i64", convert(e, value, t, i64 if t.is_signed else u64)


def _assert(e: Emitter, op: Op) -> None:
    state = e.state
    site = len(state.asserts)
    values = op.args[1:]
    types = tuple([a.type for a in values if isinstance(a.type, DataType)])
    state.asserts.append(AssertSite(op.attr.kind, op.attr.text, types, op.loc))
    holds, fails = e.label("holds"), e.label("fails")
    e.branch(e.v[op.args[0].id], holds, fails)
    e.asserts = True
    e.place(fails)
    pair = e.value(f"cmpxchg ptr %frame, i64 0, i64 {site + 1} monotonic monotonic, align 8")
    if values:
        first, noted = e.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), e.label("note")
        e.branch(first, noted, "stop")
        e.place(noted)
        for i, a in enumerate(values):
            ty, text = _as_slot(e, e.v[a.id], a.type)
            at = e.value(
                f"getelementptr inbounds i8, ptr %frame, i64 {state.layout.failed + 8 * i}"
            )
            e.line(f"store {ty} {text}, ptr {at}, align 8")
    e.jump("stop")
    e.place(holds)


def _print(e: Emitter, op: Op) -> None:
    state = e.state
    site = len(state.prints)
    types = tuple(a.type for a in op.args if isinstance(a.type, DataType))
    state.prints.append(PrintSite(op.attr, types))
    slots = "null"
    if op.args:
        slots = e.name()
        e.head.append(f"  {slots} = alloca [{len(op.args)} x i64], align 8")
    for i, a in enumerate(op.args):
        ty, text = _as_slot(e, e.v[a.id], a.type)
        at = e.value(f"getelementptr inbounds i64, ptr {slots}, i64 {i}")
        e.line(f"store {ty} {text}, ptr {at}, align 8")
    callback = e.param("print", "ptr", abi.PRINT)
    handle = e.param("handle", "i64", abi.HANDLE)
    e.line(f"call void {callback}(i64 {handle}, i32 {site}, ptr {slots})")


def _return(e: Emitter, op: Op) -> None:
    at = e.state.layout.results
    for i, (value, t) in enumerate(zip(op.args, e.state.func.results, strict=True)):
        text = in_memory(e, e.v[value.id], t)
        slot = e.value(f"getelementptr inbounds i8, ptr %frame, i64 {at + 8 * i}")
        e.line(f"store {MEMORY[t.name]} {text}, ptr {slot}, align 8")
    e.jump("stop")


def _nothing(e: Emitter, op: Op) -> None:
    """`bounds` ends a header; whoever emits the header reads it."""


CONTROL_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.LOOP_INDEX: _loop_index, C.IF: _if, C.WHILE: _while, C.WHILE_CONTROL: _while_control,
    C.CONTINUE: _continue, C.RANGE_FOR: _range_for, C.ASSERT: _assert, C.PRINT: _print,
    C.RETURN: _return, C.BOUNDS: _nothing,
}  # fmt: skip
