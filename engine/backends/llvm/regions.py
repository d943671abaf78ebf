"""Graph regions in the entry function of a kernel on the host.

::

    $5 : graph_region {kind='do_while' param=1} body {      br label %again1
      ...                                                 again1:
    }                                                       ...
                                                            %f = load i32, ptr %p.flag
                                                            %g = icmp ne i32 %f, 0
                                                            br i1 %g, label %again1, label %after2
                                                          after2:

In a kernel with checkpoints the word `abi.RESUME` of the argument buffer holds 1 + the label of the
one that the launch begins at until that is met (see `backends.flow`), then 0; at the end 1 + the
label of the one that yielded. Sections follow each other.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Block, Op
from ..flow import holds
from ..kernarg import abi
from .emitter import Emitter

__all__ = ["graph_region", "no_yield"]

_AT = f"getelementptr inbounds i8, ptr %kernarg, i64 {abi.RESUME}"


def graph_region(
    e: Emitter, op: Op, resumable: bool, emit_root: Callable[[Block], None]
) -> None:  # fmt: skip
    """Emit a region. resumable: the kernel has checkpoints. emit_root: emits what one holds."""
    attr, body = op.attr, op.regions[0]
    e.op_id = op.id
    after = e.label("after")
    if resumable:
        _pass_over(e, op, after)
        if attr.kind == "checkpoint":
            _store(e, 0)
    if attr.kind == "do_while":
        again = e.label("again")
        e.jump(again)
        e.place(again)
        emit_root(body)
        e.op_id = op.id
        e.branch(_flag(e, attr.param), again, after)
    else:
        emit_root(body)
        e.op_id = op.id
        if attr.kind == "checkpoint" and attr.param >= 0:
            yields = e.label("yield")
            e.branch(_flag(e, attr.param), yields, after)
            e.place(yields)
            _store(e, attr.label + 1)
            e.line(f"ret i32 {abi.DONE}")
            e.ended = True
        e.jump(after)
    e.place(after)


def _flag(e: Emitter, param: int) -> str:
    """True, as i1, if the i32 that an array without axes holds is not 0."""
    value = e.value(f"load i32, ptr {e.array(param)}, align 4")
    return e.value(f"icmp ne i32 {value}, 0")


def _store(e: Emitter, value: int) -> None:
    at = e.value(_AT)
    e.line(f"store i64 {value}, ptr {at}, align 8")


def _pass_over(e: Emitter, op: Op, after: str) -> None:
    """Go on after the region while the checkpoint to begin at is yet to come, and not in it."""
    at = e.value(_AT)
    begin = e.value(f"load i64, ptr {at}, align 8")
    runs = e.value(f"icmp eq i64 {begin}, 0")
    for label in holds(op):
        here = e.value(f"icmp eq i64 {begin}, {label + 1}")
        runs = e.value(f"or i1 {runs}, {here}")
    enter = e.label("region")
    e.branch(runs, enter, after)
    e.place(enter)


def no_yield() -> list[str]:
    """The lines for the end of an entry function that no checkpoint has left."""
    return [f"  %resume = {_AT}", "  store i64 0, ptr %resume, align 8"]
