"""OpenCL C for the output of a kernel: prints and results, but not assertions.

A print reserves room in the print buffer for a record (`kernarg.grids.PRINTS`) and is lost where
there is none. Assertions stop nothing on such a device; `init` reports that if they are requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....errors import QuadrantsUnsupportedError
from ....ir import Op
from ....ir import codes as C
from ....types import DataType, Type, f16, u1
from ...base import PrintSite
from .emitter import UNARY
from .names import VALUE

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["EFFECT_OPS"]


def _slot(e: Emitter, value: Op, at: str) -> str:
    """The statement that stores a value widened to 8 bytes."""
    t: Type = value.type
    if t.is_real:
        if e.program.capabilities.fp64:
            return f"*(__global double *)({at}) = {e.whole(value)};"
        return f"*(__global ulong *)({at}) = {e.helper('f64_bits')}({e.whole(value)});"
    wide = "long" if t.is_signed else "ulong"
    return f"*(__global {wide} *)({at}) = {e.at(value, UNARY)};"


def _print(e: Emitter, op: Op) -> None:
    program = e.program
    site = len(program.prints)
    types = tuple(a.type for a in op.args if isinstance(a.type, DataType))
    program.prints.append(PrintSite(op.attr, types))
    e.prints = True
    room = e.names.fresh("room")
    call = f"{e.helper('print_room')}(prints, {8 + 8 * len(op.args)})"
    e.comment(op)
    e.open("{")
    e.line(f"__global uchar *{room} = {call};")
    e.open(f"if ({room}) {{")
    e.line(f"*(__global int2 *){room} = (int2)({site}, {len(op.args)});")
    for i, a in enumerate(op.args):
        e.line(_slot(e, a, f"{room} + {8 + 8 * i}"))
    e.close()
    e.close()


def _assert(e: Emitter, op: Op) -> None:
    """Dropped: see the module docstring."""


def _return(e: Emitter, op: Op) -> None:
    e.ended = True
    if e.callee:
        e.statement(op, f"return {e.whole(op.args[0])};" if op.args else "return;")
        return
    at = e.program.layout.results
    for i, (value, t) in enumerate(zip(op.args, e.program.func.results, strict=True)):
        text = e.whole(value)
        ctype = {"u1": "uchar", "f16": "ushort"}.get(t.name)
        if t is f16:
            text = f"{e.helper('half_bits')}({text})"
        elif t is u1:
            text = f"{e.at(value, UNARY)} != 0"
        if ctype is None:
            ctype = VALUE[t.name]
        e.statement(op, f"{e.kernarg(ctype, at + 8 * i)} = {text};")
    e.line("return;")


def _mem_fence(e: Emitter, op: Op) -> None:
    """Iterations of one block run in one work-item; others may run elsewhere."""
    if op.attr == "grid":
        e.statement(op, "mem_fence(CLK_GLOBAL_MEM_FENCE);")


def _clock(e: Emitter, op: Op) -> None:
    raise QuadrantsUnsupportedError.from_loc(
        f"in kernel {e.program.func.name}, qd.clock_counter() needs a clock, and OpenCL C has none "
        "without an extension", op.loc, feature="clock", backend="opencl",
        hint="time tasks with qd.init(kernel_profiler=True), or run the kernel on another arch",
    )  # fmt: skip


EFFECT_OPS: Final[dict[int, Callable[[Emitter, Any], None]]] = {
    C.PRINT: _print, C.ASSERT: _assert, C.RETURN: _return, C.MEM_FENCE: _mem_fence,
    C.CLOCK: _clock,
}  # fmt: skip
