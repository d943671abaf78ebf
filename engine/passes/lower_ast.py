"""lower_ast: removes ``break``.

A ``break`` in a ``while`` becomes a ``while_control`` that always leaves. A ``range_for`` with a
``break`` becomes a ``while`` with counters, which is never parallel. After this pass only a
``while`` can be left early::

    $2 : range_for $0, $1 body {          <*i32> $5 = alloca ["i"]
      <i32> $3 = loop_index $2 [0]        $6 : local_store $5, $0
      ...                                 $2 : while body {
      $4 : break                            <i32> $7 = local_load $5
    }                                       <u1> $8 = cmp_lt $7, $1
                                            $9 : while_control $8
                                            $11 : local_store $5, <$7 + 1>
                                            ...                    ($3 is $7 now)
                                            $4 : while_control <false>
                                          }

The counter is incremented before the body runs, so ``continue`` needs no special treatment. Several
axes count like an odometer, the innermost axis fastest; ``break`` leaves all of them. Loops without
a ``break`` do not change.
"""

from __future__ import annotations

from ..ir import Block, Builder, ForAttr, Func, Op, set_block
from ..ir import codes as C
from ..ir.edit import all_blocks, replace_uses
from ..types import i32, u1
from .manager import PassCx
from .registry import register


@register("lower_ast")
def lower_ast(func: Func, cx: PassCx) -> bool:
    """Turn break into while_control, and loops that are left early into while loops."""
    left_early: dict[Op, None] = {}  # a dict for its order: new ids must not vary
    changed = False
    for block in all_blocks(func.body):
        if block.ops and block.ops[-1].code == C.BREAK:
            loop = _innermost_loop(block)
            if loop.code == C.RANGE_FOR:
                left_early[loop] = None
            b = Builder(func, block, block.ops[-1].loc, [])
            op = block.ops.pop()
            op.code, op.args = C.WHILE_CONTROL, (b.const(False, u1),)
            block.ops += [*b.ops, op]
            changed = True
    if left_early:
        repl: dict[Op, Op] = {}
        for block in dict.fromkeys(loop.block for loop in left_early):
            assert block is not None
            _lower_loops(func, block, left_early, repl)
        replace_uses(func.body, repl)
        cx.rewrote_all(repl, "the counter of the loop")
    before, func.stage = func.stage, "lowered"
    return changed or before != "lowered"


def _innermost_loop(block: Block) -> Op:
    op = block.owner
    while op is not None and not C.LOOP[op.code]:
        assert op.block is not None
        op = op.block.owner
    assert op is not None, "break outside of a loop"
    return op


def _lower_loops(func: Func, block: Block, loops: dict[Op, None], repl: dict[Op, Op]) -> None:
    """Rewrite the loops of ``block`` that are in ``loops``."""
    out: list[Op] = []
    for op in block.ops:
        if op in loops:
            _lower_loop(func, op, Builder(func, block, op.loc, out), repl)
        out.append(op)
    block.ops = out


def _lower_loop(func: Func, loop: Op, outer: Builder, repl: dict[Op, Op]) -> None:
    """Make ``loop`` a while loop in place; its set-up goes to ``outer``.

    A counter holds the next index of its axis; in a reversed loop one more than that, so that
    neither direction can step over the ends of i32.
    """
    attr: ForAttr = loop.attr
    begins = [outer.cast(x, i32) for x in loop.args[0::2]]
    ends = [outer.cast(x, i32) for x in loop.args[1::2]]
    nest = attr.axes or tuple(range(len(begins)))
    starts = ends if attr.reversed else begins
    counters = {axis: outer.alloca(i32, "counter") for axis in nest}
    for axis in nest:
        outer.store(counters[axis], starts[axis])
    inner_nonempty = [outer.binary(C.CMP_LT, begins[a], ends[a]) for a in nest[1:]]
    runs = None
    for check in inner_nonempty:
        runs = check if runs is None else outer.binary(C.BIT_AND, runs, check)

    body = loop.regions[0]
    loop.code, loop.args, loop.attr = C.WHILE, (), None
    b = Builder(func, body, loop.loc, [])
    values = {axis: b.load(counters[axis]) for axis in nest}
    first = nest[0]
    if attr.reversed:
        more = b.binary(C.CMP_GT, values[first], begins[first])
    else:
        more = b.binary(C.CMP_LT, values[first], ends[first])
    b.emit(C.WHILE_CONTROL, (more if runs is None else b.binary(C.BIT_AND, more, runs),))
    one = b.const(1, i32)
    indices = {a: b.binary(C.SUB, v, one) if attr.reversed else v for a, v in values.items()}
    step = C.SUB if attr.reversed else C.ADD
    carry: Op | None = None  # whether the axis inside this one starts over
    for axis in reversed(nest):
        moved = b.binary(step, values[axis], one)
        if carry is not None:
            moved = b.select(carry, moved, values[axis])
        if axis != first:
            at_end = b.binary(
                C.CMP_LE if attr.reversed else C.CMP_GE,
                moved,
                begins[axis] if attr.reversed else ends[axis],
            )
            b.store(counters[axis], b.select(at_end, starts[axis], moved))
            carry = at_end
        else:
            b.store(counters[axis], moved)
    body.ops = b.ops + body.ops
    set_block(b.ops, body)
    _replace_indices(func, body, loop, indices, repl)


def _replace_indices(
    func: Func, body: Block, loop: Op, indices: dict[int, Op], repl: dict[Op, Op]
) -> None:
    """Put the loop's counters in the place of its loop_index ops, anywhere in its body."""
    for block in all_blocks(body):
        mine = [op for op in block.ops if op.code == C.LOOP_INDEX and op.args[0] is loop]
        if mine:
            for op in mine:
                repl[op] = indices[op.attr]
                func.origins.setdefault(indices[op.attr].id, op.id)
            dead = set(mine)
            block.ops = [op for op in block.ops if op not in dead]
