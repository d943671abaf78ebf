"""The output of a kernel as Python statements: assert, print, return; the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir import Op

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["assert_", "clock", "print_", "return_"]


def assert_(e: Emitter, op: Op) -> None:
    if op.attr.kind == "breakpoint" or (op.attr.kind == "user" and not e.debug):
        return
    name = f"op{op.id}"
    e.names[name] = op
    act = "noted" if op.attr.kind == "overflow" else "failed"
    values = "".join(f"{e.values[a]}, " for a in op.args[1:])
    e.line(f"if not {e.values[op.args[0]]}: cx.{act}({name}, ({values}))")


def clock(e: Emitter, op: Op) -> None:
    e.value(op, "cx.clock()")


def print_(e: Emitter, op: Op) -> None:
    name = f"op{op.id}"
    e.names[name] = op
    e.line(f"cx.print({name}, ({''.join(f'{e.values[a]}, ' for a in op.args)}))")


def return_(e: Emitter, op: Op) -> None:
    if e.callee is not None:
        result = e.callee.results
        e.line(f"return {e.arg(op, 0, result[0]) if result else 0}")
        return
    values = [e.arg(op, i, t) for i, t in enumerate(e.func.results)]
    e.line(f"cx.results = ({''.join(f'{v}, ' for v in values)})")
