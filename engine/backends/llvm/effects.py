"""LLVM IR for the output of a kernel, assert, print and return; for calls, fences, the clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...ir import Op
from ...ir import codes as C
from ...types import DataType, Type, f64, i64, u64, void
from ..base import AssertSite, PrintSite
from ..kernarg import abi
from .memory_ops import in_memory, note_written
from .scalars import convert
from .text import MEMORY, ORDERED, VALUE, declared_call

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["OPS", "as_slot"]


def as_slot(e: Emitter, value: str, t: Type) -> tuple[str, str]:
    """A value widened to 8 bytes: its type and text."""
    if t.is_real:
        return "double", convert(e, value, t, f64)
    return "i64", convert(e, value, t, i64 if t.is_signed else u64)


def _assert(e: Emitter, op: Op) -> None:
    state = e.state
    values = op.args[1:]
    types = tuple([a.type for a in values if isinstance(a.type, DataType)])
    place = AssertSite(op.attr.kind, op.attr.text, types, op.loc)
    if op.attr.kind == "overflow":
        _report(e, op, place)
        return
    site = len(state.asserts)
    state.asserts.append(place)
    holds, fails = e.label("holds"), e.label("fails")
    e.branch(e.v[op.args[0].id], holds, fails)
    e.asserts = True
    e.place(fails)
    ask = f"i64 0, i64 {site + 1}{e.scope} monotonic monotonic"
    pair = e.value(f"cmpxchg ptr {e.kernarg}, {ask}, align 8")
    if values:
        first, noted = e.value(f"extractvalue {{ i64, i1 }} {pair}, 1"), e.label("note")
        e.branch(first, noted, e.stop)
        e.place(noted)
        _note(e, values, state.layout.failed)
    e.jump(e.stop)
    e.place(holds)


def _note(e: Emitter, values: tuple[Op, ...], offset: int) -> None:
    """Store values into the argument buffer, for a message."""
    for i, a in enumerate(values):
        ty, text = as_slot(e, e.v[a.id], a.type)
        at = e.beyond(e.kernarg, offset + 8 * i)
        e.line(f"store {ty} {text}, ptr {at}, align 8")


def _report(e: Emitter, op: Op, place: AssertSite) -> None:
    """Count a failure, note the values of the first one, and go on."""
    state = e.state
    offset = state.layout.reports + abi.REPORT * len(state.reports)
    state.reports.append(place)
    holds, fails, noted = e.label("holds"), e.label("fails"), e.label("note")
    e.branch(e.v[op.args[0].id], holds, fails)
    e.place(fails)
    at = e.beyond(e.kernarg, offset)
    before = e.value(f"atomicrmw add ptr {at}, i64 1{e.scope} monotonic, align 8")
    e.branch(e.value(f"icmp eq i64 {before}, 0"), noted, holds)
    e.place(noted)
    _note(e, op.args[1:], offset + 8)
    e.jump(holds)
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
        ty, text = as_slot(e, e.v[a.id], a.type)
        at = e.value(f"getelementptr inbounds i64, ptr {slots}, i64 {i}")
        e.line(f"store {ty} {text}, ptr {at}, align 8")
    callback = e.param("print", "ptr", abi.PRINT)
    handle = e.param("handle", "i64", abi.HANDLE)
    e.line(f"call void {callback}(i64 {handle}, i32 {site}, ptr {slots})")


def _return(e: Emitter, op: Op) -> None:
    if e.callee is not None:
        value = op.args[0] if op.args else None
        e.line(f"ret {VALUE[value.type.name]} {e.v[value.id]}" if value else "ret void")
        e.ended = True
        return
    at = e.state.layout.results
    for i, (value, t) in enumerate(zip(op.args, e.state.func.results, strict=True)):
        text = in_memory(e, e.v[value.id], t)
        slot = e.beyond(e.kernarg, at + 8 * i)
        e.line(f"store {MEMORY[t.name]} {text}, ptr {slot}, align 8")
    e.jump("stop")


def _mem_fence(e: Emitter, op: Op) -> None:
    """Iterations of one block run on one thread; others may run on other threads."""
    if op.attr == "grid":
        e.line("fence acq_rel")


def _clock(e: Emitter, op: Op) -> None:
    e.line(ORDERED)  # to LLVM the clock is no memory, which it moves across
    e.v[op.id] = e.value(declared_call(e, "@llvm.readcyclecounter", "i64", ""))
    e.line(ORDERED)


def _call(e: Emitter, op: Op) -> None:
    args = [f"ptr {e.kernarg}", *e.passed()]
    for a in op.args:
        if a.type.is_ptr:
            args.append(e.reference(a))
            note_written(e, a)
        else:
            args.append(f"{VALUE[a.type.name]} {e.v[a.id]}")
    text = f"{e.state.functions[op.attr]}({', '.join(args)})"
    if op.type.is_ptr or op.type is void:
        e.line(f"call void {text}")
    else:
        e.v[op.id] = e.value(f"call {VALUE[op.type.name]} {text}")
    if e.state.calls_fail:
        e.asserts = True
        error = e.value(f"load i64, ptr {e.kernarg}, align 8")
        go_on = e.label("returned")
        e.branch(e.value(f"icmp eq i64 {error}, 0"), go_on, e.stop)
        e.place(go_on)


def _call_arg(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.incoming(op.attr, op.type)


OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.ASSERT: _assert, C.PRINT: _print, C.RETURN: _return, C.MEM_FENCE: _mem_fence, C.CALL: _call,
    C.CALL_ARG: _call_arg, C.CLOCK: _clock,
}  # fmt: skip
