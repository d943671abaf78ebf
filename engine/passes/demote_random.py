"""demote_random: random numbers become 64-bit arithmetic on a state of the iteration.

::

    <f32> $3 = rand        at the top of the body:
                             <*u64> $9 = alloca ['random state']
                             $10 : local_store $9, mix(launch_seed, task, indices)
                           in its place:
                             state = local_load $9 + GOLDEN; local_store $9, state
                             z = scramble(state)
                             <f32> $3 = mul <cast z >> 40>, <2 ** -24>

The generator is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
2014). The state starts from the launch seed, the index of the task and the indices of the
iteration, so results depend neither on threads nor on the backend. Floats are multiples of 2**-11,
2**-24, 2**-53 (f16, f32, f64) in [0, 1); integers are the low bits. Tasks without ``rand`` do not
change.

In a ``do_while`` region each round draws different numbers: the state also depends on a counter, a
global temporary that a serial task at the end of the region increments.

A real function that contains ``rand``, or calls such a function, receives the address of the state
as its last argument. So all numbers of an iteration form one sequence.
"""

from __future__ import annotations

from ..analysis.loops import do_while_around
from ..analysis.uses import code_mask
from ..ir import Arg, Block, Builder, Callee, Func, Op, TaskAttr, walk
from ..ir import codes as C
from ..ir.edit import all_blocks
from ..types import DataType, f16, f32, f64, pointer_to, u64, void
from .manager import PassCx
from .registry import register

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)
_BITS = {f16: 11, f32: 24, f64: 53}
_RAND = code_mask(code == C.RAND for code in range(C.COUNT))


@register("demote_random", per_task=True)
def demote_random(func: Func, cx: PassCx) -> bool:
    """Replace rand by a counter-based generator, seeded by task and iteration."""
    task = cx.task
    if task is None:
        return False
    if not func.callees:
        if not any(cx.task_ops().of(_RAND)):
            return False
        return _demote_task(func, task, cx.task_index or 0, set())
    # All at once: calls and functions must agree on the arguments.
    drawing = _drawing(func)
    for name, callee in func.callees.items():
        if name in drawing:
            _demote_callee(callee, drawing)
    changed = [_demote_task(func, t, k, drawing) for k, t in enumerate(func.tasks())]
    return any(changed)


def _drawing(func: Func) -> set[str]:
    """The real functions that draw numbers, themselves or through others."""
    bodies = {name: walk(callee.body) for name, callee in func.callees.items()}
    found = {name for name, ops in bodies.items() if any(op.code == C.RAND for op in ops)}
    more = True
    while more:
        callers = {
            name
            for name, ops in bodies.items()
            if any(op.code == C.CALL and op.attr in found for op in ops)
        }
        more = not callers <= found
        found |= callers
    return found


def _demote_callee(callee: Callee, drawing: set[str]) -> None:
    """Give a real function the state as an argument."""
    number = len(callee.args)
    callee.args = (*callee.args, Arg("random state", pointer_to(u64)))
    callee.noalias = False
    body = callee.body
    top = Builder(callee, body, callee.loc, [])
    state = top.emit(C.CALL_ARG, (), number, pointer_to(u64))
    for block in all_blocks(body):
        _replace(callee, block, state, drawing)
    body.ops = top.ops + body.ops


def _demote_task(func: Func, task: Op, number: int, drawing: set[str]) -> bool:
    """Give a task that draws numbers a state."""
    body = task.regions[1]
    blocks = [b for b in all_blocks(body) if any(_draws(op, drawing) for op in b.ops)]
    if not blocks:
        return False
    top = Builder(func, body, task.loc, [])
    state = _seed(top, task, number)
    for block in blocks:
        _replace(func, block, state, drawing)
    body.ops = top.ops + body.ops
    return True


def _draws(op: Op, drawing: set[str]) -> bool:
    return op.code == C.RAND or (op.code == C.CALL and op.attr in drawing)


def _scramble(b: Builder, z: Op) -> Op:
    """The output function of splitmix64."""
    first, mul1, second, mul2, third = _MIX
    for shift, factor in ((first, mul1), (second, mul2), (third, 0)):
        z = b.binary(C.BIT_XOR, z, b.binary(C.BIT_SAR, z, b.const(shift, u64)))
        if factor:
            z = b.binary(C.MUL, z, b.const(factor, u64))
    return z


def _seed(b: Builder, task: Op, number: int) -> Op:
    """The state's alloca, set to a mix of launch seed, task and iteration."""
    state = b.alloca(u64, "random state")
    seed = b.emit(C.LAUNCH_SEED, (), None, u64)
    seed = b.binary(C.ADD, seed, b.const(number * _GOLDEN, u64))
    for axis in range(len(task.regions[0].ops[-1].args) // 2):
        index = b.cast(b.loop_index(task, axis), u64)
        seed = b.binary(C.ADD, _scramble(b, seed), index)
    again = do_while_around(task.block)
    if again is not None:
        rounds = b.load(b.emit(C.GLOBAL_TMP, (), _rounds(b.func, again), pointer_to(u64)))
        seed = b.binary(C.ADD, _scramble(b, seed), rounds)
    b.store(state, _scramble(b, seed))
    return state


_ROUNDS = "rounds"


def _rounds(func: Func, region: Op) -> int:
    """The offset of the temporary that counts the rounds of a ``do_while`` in this launch."""
    block = region.regions[0]
    last = block.ops[-1]
    if last.code == C.OFFLOADED and last.attr.loop_name == _ROUNDS:
        return last.regions[1].ops[0].attr
    offset = -(-func.global_tmp_size // 8) * 8
    func.global_tmp_size = offset + 8
    task = func.new_op(
        C.OFFLOADED, void, (), TaskAttr("serial", loop_name=_ROUNDS), region.loc, block, 2
    )
    block.ops = [*block.ops, task]
    Builder(func, task.regions[0], region.loc).emit(C.BOUNDS, (), None, void)
    b = Builder(func, task.regions[1], region.loc)
    count = b.emit(C.GLOBAL_TMP, (), offset, pointer_to(u64))
    b.store(count, b.binary(C.ADD, b.load(count), b.const(1, u64)))
    return offset


def _replace(func: Func, block: Block, state: Op, drawing: set[str]) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        if op.code == C.CALL and op.attr in drawing:
            op.args = (*op.args, state)
        if op.code == C.RAND:
            b.loc = op.loc
            step = b.binary(C.ADD, b.load(state), b.const(_GOLDEN, u64))
            b.store(state, step)
            _finish(b, op, _scramble(b, step))
        b.ops.append(op)
    block.ops = b.ops


def _finish(b: Builder, op: Op, z: Op) -> None:
    """Turn ``op`` into the last step from 64 random bits to its type."""
    t = op.type
    assert isinstance(t, DataType)
    if t.is_real:
        bits = _BITS[t]
        high = b.binary(C.BIT_SAR, z, b.const(64 - bits, u64))
        op.code, op.args = C.MUL, (b.cast(high, t), b.const(2.0**-bits, t))
    elif t.bits == 1:
        one = b.const(1, u64)
        op.code, op.args = C.CMP_EQ, (b.binary(C.BIT_AND, z, one), one)
    elif t is u64:
        op.code, op.args = C.ADD, (z, b.const(0, u64))
    else:
        op.code, op.args = C.CAST_VALUE, (z,)
