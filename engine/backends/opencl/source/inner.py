"""Loops inside of a GPU task that are worth many copies of their body, with vector access.

`passes.unroll_inner_loops` has chosen them: all work-items that run the same loop over the elements
of an array load the same element at once, and the hardware serves one such load in a step, for 4
bytes or for 16. Four neighbours are loaded together, with joined loads (`vector_access`), where the
arrays begin at multiples of 16 bytes; a second loop does the rest::

    int j = 0;
    if ((((size_t)x | (size_t)y) & 15) == 0) {
        const int last = max(n, 3) - 3;
        #pragma unroll 4
        for (; j < last; j += 4) {
            const float4 w0 = *(__global const float4 *)(x + (j));
            ... the body for j, j + 1, j + 2, j + 3
        }
    }
    for (; j < n; ++j) { ... }
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....ir import Op
from ....ir import codes as C
from ....passes.strides import WIDEST, access
from ...llvm.inner_loops import Unrolled
from .control import counter
from .emitter import Emitter
from .vector_access import Iteration, Joined, emit_copies

if TYPE_CHECKING:
    from .per_iteration import IterationEmitter

__all__ = ["range_for"]

_TOGETHER: Final = 4


def range_for(e: IterationEmitter, op: Op) -> None:
    """Emit a loop inside of a task."""
    plan = e.unrolled
    if plan is None or op.id not in plan.counts or e.vector_access is not None or _jumps(op):
        Emitter.table[op.code](e, op)
        return
    e.comment(op)
    begin, end = e.whole(op.args[0]), e.atom(op.args[1])
    name, last = counter(e), e.names.fresh("last")
    e.loop_depth += 1
    e.open("{")
    e.line(f"int {name} = {begin};")
    e.open(f"if ({_aligned(e, plan)}) {{")
    e.line(f"const int {last} = max({end}, {_TOGETHER - 1}) - {_TOGETHER - 1};")
    times = plan.counts[op.id] // _TOGETHER
    if times > 1:
        e.line(f"#pragma unroll {times}")
    e.open(f"for (; {name} < {last}; {name} += {_TOGETHER}) {{")
    _four(e, op, name)
    e.close()
    e.close()
    e.loop_values[op.id, 0] = name
    e.open(f"for (; {name} < {end}; ++{name}) {{")
    quiet, e.quiet = e.quiet, True
    e.again(op.regions[0])
    e.quiet, e.op_id = quiet, op.id
    e.close()
    e.close()
    e.loop_depth -= 1


def _jumps(op: Op) -> bool:
    return any(x.code in (C.CONTINUE, C.WHILE_CONTROL) for x in op.regions[0].ops)


def _aligned(e: IterationEmitter, plan: Unrolled) -> str:
    arrays = " | ".join([f"(size_t){e.array(number)}" for number in plan.arrays])
    return f"(({arrays}) & {WIDEST - 1}) == 0"


def _four(e: IterationEmitter, op: Op, name: str) -> None:
    """The body for four neighbours."""
    accesses = {
        x.args[0].id: seen
        for x in op.regions[0].ops
        if x.code == C.GLOBAL_LOAD and (seen := access(op, 0, x.args[0])) is not None
        and 0 < seen.step <= _TOGETHER and seen.even == () and _only_read(e, seen.base)
    }  # fmt: skip
    iterations = [Iteration({0: k}, 0, {0: k}) for k in range(_TOGETHER)]

    def body(iteration: Iteration) -> None:
        step = iteration.steps[0]
        inner = name
        if step:
            inner = counter(e)
            e.line(f"const int {inner} = {name} + {step};")
        e.loop_values[op.id, 0] = inner
        e.again(op.regions[0])
        e.op_id = op.id
        if step:
            e.names.forget(inner)

    e.loop_values[op.id, 0] = name
    emit_copies(e, Joined(e, op, iterations, {0: name}, accesses, _TOGETHER), body)


def _only_read(e: IterationEmitter, base: Op) -> bool:
    number = int(base.attr[0])
    return number in e.read_only and e.program.apart[number]
