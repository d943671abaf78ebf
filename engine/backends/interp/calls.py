"""Real functions as Python functions inside of the kernel's, which see its arrays as it does.

::

    <i32> $2 = call $0, $1 ['inc']        v2 = c_inc(v0, a1, 0)
    function inc(d: i32, x: *i32) {       def c_inc(q0, q1m, q1i):

An address is passed as what it indexes and the index. A local variable whose address is passed is
a list of one element, so that the function can set it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Callee, Func, Op, all_ops
from ...ir import codes as C
from ...types import DataType

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["arguments", "boxed_variables", "call", "call_arg", "function"]


def boxed_variables(func: Func) -> set[Op]:
    """The local variables that calls get the addresses of."""
    return {a for op in all_ops(func) if op.code == C.CALL for a in op.args if a.code == C.ALLOCA}


def _name(e: Emitter, name: str) -> str:
    """The Python name of a function; names of the language may hold anything."""
    return f"c{list(e.func.callees).index(name)}"


def function(e: Emitter, callee: Callee) -> None:
    """Emit a real function."""
    names: list[str] = []
    for k, arg in enumerate(callee.args):
        names += [f"q{k}m", f"q{k}i"] if arg.type.is_ptr else [f"q{k}"]
    e.line(f"def {_name(e, callee.name)}({', '.join(names)}):  # {callee.name!r}")
    saved = e.begin_body(None)
    e.callee = callee
    if e.counted:
        e.line("cx.steps -= 1")
        e.line("if cx.steps < 0: cx.too_long()")
    e.block(callee.body)
    result = callee.results
    e.line("return 0.0" if result and result[0].is_real else "return 0")
    e.callee = None
    e.end_body(saved)


def arguments(e: Emitter, op: Op) -> list[str]:
    """The arguments of a call as Python text; a pointer is two, its memory and its index."""
    args: list[str] = []
    for arg, want in zip(op.args, e.func.callees[op.attr].args, strict=True):
        if not arg.type.is_ptr:
            args.append(e.cast(e.values[arg], arg.type, want.type))
        elif arg.code == C.ALLOCA:
            args += [e.memory(arg), "0"]
        else:
            args += [e.memory(arg), e.values[arg]]
    return args


def call(e: Emitter, op: Op) -> None:
    """Call a real function."""
    text = f"{_name(e, op.attr)}({', '.join(arguments(e, op))})"
    if isinstance(op.type, DataType):
        e.value(op, text)
    else:
        e.line(text)


def call_arg(e: Emitter, op: Op) -> None:
    """A name of the function's own parameters."""
    e.values[op] = f"q{op.attr}i" if op.type.is_ptr else f"q{op.attr}"
