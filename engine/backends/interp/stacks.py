"""Adstacks as Python lists.

::

    <*f32> $5 = ad_stack_alloca {...}        w5, d5, n5 = [], [], cx.capacities[0]
    $8 : ad_stack_push $5, $7                if len(w5) >= n5: cx.full(0)
                                             w5.append(v7); d5.append(0.0)
    <f32> $9 = ad_stack_load_top $5          v9 = w5[-1]

``w`` holds the values, ``d`` the adjoints, ``n`` is the capacity: the launch's, or else that of the
op, or else none. Reading or popping an empty stack is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...ir import Op, pointee
from ...ir import codes as C
from ...ir.semantics import binary_fn

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["STACK_OPS"]


def _alloca(e: Emitter, op: Op) -> None:
    number = e.stacks[op]
    e.line(f"w{op.id}, d{op.id}, n{op.id} = [], [], cx.capacities[{number}]")


def _push(e: Emitter, op: Op) -> None:
    stack = op.args[0]
    e.line(f"if len(w{stack.id}) >= n{stack.id}: cx.full({e.stacks[stack]})")
    e.line(f"w{stack.id}.append({e.arg(op, 1)})")
    if stack.attr.adjoint:
        e.line(f"d{stack.id}.append(0.0)")


def _pop(e: Emitter, op: Op) -> None:
    stack = op.args[0]
    e.line(f"w{stack.id}.pop()")
    if stack.attr.adjoint:
        e.line(f"d{stack.id}.pop()")


def _load(e: Emitter, op: Op) -> None:
    e.value(op, f"{'w' if op.code == C.AD_STACK_LOAD_TOP else 'd'}{op.args[0].id}[-1]")


def _acc_adjoint(e: Emitter, op: Op) -> None:
    place, t = f"d{op.args[0].id}[-1]", pointee(op.args[0])
    e.line(f"{place} = {e.function(binary_fn(C.ADD, t, t, t))}({place}, {e.arg(op, 1)})")


def _claim(e: Emitter, op: Op) -> None:
    e.line("cx.claims += 1")


STACK_OPS: Final[dict[int, Callable[[Emitter, Op], None]]] = {
    C.AD_STACK_ALLOCA: _alloca, C.AD_STACK_PUSH: _push, C.AD_STACK_POP: _pop,
    C.AD_STACK_LOAD_TOP: _load, C.AD_STACK_LOAD_TOP_ADJ: _load,
    C.AD_STACK_ACC_ADJOINT: _acc_adjoint, C.AD_STACK_CLAIM: _claim,
}  # fmt: skip
