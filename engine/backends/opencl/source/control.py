"""OpenCL C for control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ....ir import Op
from ....ir import codes as C
from ....types import f16
from .emitter import UNARY

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["CONTROL_OPS", "nest"]

_COUNTERS: Final = "ijklmnpq"


_CHEAP: Final = frozenset({
    C.CONST, C.LOCAL_LOAD, C.LOCAL_STORE, C.ALLOCA, C.ADD, C.SUB, C.MUL, C.BIT_AND, C.BIT_OR,
    C.BIT_XOR, C.BIT_SHL, C.BIT_SHR, C.BIT_SAR, C.CMP_EQ, C.CMP_GE, C.CMP_GT, C.CMP_LE, C.CMP_LT,
    C.CMP_NE, C.SELECT, C.NEG, C.LOGIC_NOT, C.BIT_NOT, C.MAX, C.MIN, C.CAST_VALUE, C.CAST_BITS,
    C.LOOP_INDEX, C.ARG_LOAD, C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS,
})  # fmt: skip
_FREE: Final = frozenset({C.CONST, C.ALLOCA, C.LOCAL_LOAD, C.LOOP_INDEX, C.ARG_LOAD})
_FEW: Final = 8
"""Cheap operations that cost less than a branch which is not foreseen."""


def _if(e: Emitter, op: Op) -> None:
    yes, no = op.regions
    if _cost(e, op) <= _FEW:
        flattened(e, op)
        return
    if e.guard:
        raise e.unsupported(op)
    e.comment(op)
    e.open(f"if ({e.whole(op.args[0])}) {{")
    e.run(yes)
    _leave(e, op)
    if no.ops:
        e.otherwise()
        e.run(no)
        _leave(e, op)
    e.close()


def _cost(e: Emitter, op: Op) -> int:
    """The number of operations in the branches of an `if`, a large one if one is not cheap."""
    total = 0
    passed = e.plan.addressed
    for x in (x for region in op.regions for x in region.ops):
        code = x.code
        if code == C.IF:
            total += 1 + _cost(e, x)
        elif (
            code not in _CHEAP
            or x.type is f16
            or x.id in passed
            or (code == C.LOCAL_STORE and x.args[0].id in passed)
        ):
            return _FEW + 1
        else:
            total += code not in _FREE
    return total


def flattened(e: Emitter, op: Op) -> None:
    """An `if` without a branch: all is computed, and the stores depend on the condition.

    LLVM does so where it sees the whole; but a load that only one branch needs is moved there
    first, and then may not be executed always.
    """
    outer = e.guard
    cond = e.atom(op.args[0])
    for region, test in zip(op.regions, (cond, f"!{cond}"), strict=True):
        if not region.ops:
            continue
        e.guard = test
        if outer:
            e.guard = e.names.fresh("both")
            e.line(f"const bool {e.guard} = {outer} & {test};")
        e.run(region)
        _leave(e, op)
    e.guard = outer


def _leave(e: Emitter, op: Op) -> None:
    """After a block: the code that follows can be reached again, and is of ``op``."""
    e.ended = False
    e.op_id = op.id


def _while(e: Emitter, op: Op) -> None:
    e.comment(op)
    e.open("for (;;) {")
    e.loop_depth += 1
    e.run(op.regions[0])
    e.loop_depth -= 1
    _leave(e, op)
    e.close()


def _while_control(e: Emitter, op: Op) -> None:
    e.statement(op, f"if (!{e.at(op.args[0], UNARY)}) break;")


def _continue(e: Emitter, op: Op) -> None:
    e.statement(op, "continue;" if e.loop_depth else "return;")
    e.ended = True


def _range_for(e: Emitter, op: Op) -> None:
    if op.attr.straight:
        e.line(f"#pragma clang loop vectorize_width({op.args[1].attr}) interleave_count(1)")
    nest(e, op, op.args, op.attr.axes, op.attr.reversed, op.attr.cold)


def nest(
    e: Emitter, op: Op, bounds: Sequence[Op], axes: tuple[int, ...] | None, reverse: bool = False,
    cold: bool = False,
) -> None:  # fmt: skip
    """Loops over every axis, outermost first, around the last region of ``op``."""
    order = axes or tuple(range(len(bounds) // 2))
    e.comment(op)
    # Only the outermost begin is read but once.
    begins = [e.whole(bounds[2 * order[0]]), *(e.atom(bounds[2 * axis]) for axis in order[1:])]
    ends = [
        (begin, e.atom(bounds[2 * axis + 1])) for begin, axis in zip(begins, order, strict=True)
    ]
    for axis, (begin, end) in zip(order, ends, strict=True):
        name = counter(e)
        e.loop_values[op.id, axis] = name
        if cold:  # neither is worth its time
            e.line("#pragma clang loop vectorize(disable) unroll(disable)")
        if reverse:
            e.open(f"for (int {name} = {end}; {name} > {e.atom(bounds[2 * axis])};) {{")
            e.line(f"--{name};")
        else:
            e.open(f"for (int {name} = {begin}; {name} < {end}; ++{name}) {{")
    e.loop_depth += 1
    e.run(op.regions[-1])
    e.loop_depth -= 1
    _leave(e, op)
    for axis in order:
        e.close()
        e.names.forget(e.loop_values[op.id, axis])


def counter(e: Emitter) -> str:
    """A name for a loop's counter."""
    for name in _COUNTERS:
        found = e.names.fresh(name)
        if found == name:
            return name
        e.names.forget(found)
    return e.names.fresh("i")


def _loop_index(e: Emitter, op: Op) -> None:
    e.v[op.id] = e.loop_values[op.args[0].id, op.attr]


def _nothing(e: Emitter, op: Op) -> None:
    """`bounds` ends a header; the code that emits the header reads it."""


CONTROL_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.LOOP_INDEX: _loop_index, C.IF: _if, C.WHILE: _while, C.WHILE_CONTROL: _while_control,
    C.CONTINUE: _continue, C.RANGE_FOR: _range_for, C.BOUNDS: _nothing,
}  # fmt: skip
