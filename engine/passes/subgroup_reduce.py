"""subgroup_reduce: an inner loop that adds up neighbouring elements runs on lanes of a subgroup.

In a product with a sparse matrix a thread of a GPU has a row. What neighbouring threads load at a
time is then a row apart, and each element of a row is loaded when its neighbours are long out of
the cache. Instead, ``2**shift`` lanes run an iteration together. Each of them runs every so many
iterations of the inner loop and adds up for itself; then lanes exchange their sums in pairs, and
the first lane runs what follows::

    $2 : offloaded {kind='range_for'} {     $2 : offloaded {... block_dim=256 unit='thread'}
      $4 : bounds <0>, $n                     $4 : bounds <0>, ($n << shift), in whole blocks
    } body {                                } body {
      <i32> $5 = loop_index $2 [0]            $30 : range_for <0>, ... {shared=True}
      <*f32> $7 = alloca ['s']                  <i32> $5 = loop_index $30 >> shift
      <i32> $8, $9 = ptr[$5], ptr[$5 + 1]       <*f32> $40 = alloca, with <-0.0>
      $12 : range_for $8, $9 body {             if $5 < $n {
        s += vals[k] * x[cols[k]]                 <i32> $8, $9 = ptr[$5], ptr[$5 + 1]
      }                                           $12 : range_for ...  4 times: $40 += ... }
      y[$5] = s                               for step in 1, 2, 4, ... below 2**shift
    }                                           $40 += subgroup_shuffle $40, lane ^ step
                                              if $5 < $n and this is lane 0
                                                y[$5] = s + $40

The length of the inner loop decides how many lanes there are, at each launch: as many as leave 4
iterations to each, up to 32. Where each iteration has bounds of its own, that is the mean, from the
extent of the array; where they are in a row of a matrix, up to 8. A lane makes its 4 iterations
together, with all of their loads under way; past the end they load the last element again, and
their sums are not taken. The 4 are neighbours: on an H100, with lanes next to each other instead,
rows of 32 made four times the requests to the level-2 cache, and ran at 844 GB/s, not 979. This is
the scheme of N. Bell and M. Garland, "Implementing sparse matrix-vector multiplication on
throughput-oriented processors" (SC 2009), with the vectors' lengths of I. Reguly and M. Giles,
"Efficient sparse matrix-vector multiplication on cache-based GPUs" (InPar 2012).

A task qualifies if it has one axis and one inner loop, which only adds to variables (also products,
minima, maxima and bits). Some of its loads must be neighbours along the inner loop, and neither
neighbours nor the same in neighbouring iterations of the task; no load may be so in the task's
iterations alone: a column's sum stays as it is. Sums of floats are added up in another order, so
``fast_math`` must be on for them.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from typing import Final

from ..analysis import needs_blocks
from ..ir import Block, Builder, ForAttr, Func, Op, replace_uses, set_block, walk
from ..ir import codes as C
from ..ir.attrs import SUBGROUP_SIZE
from ..ir.edit import clone, clone_into
from ..ir.semantics import ATOMIC_OPERATION, neutral
from ..types import i32, u1, void
from .grid import THREADS
from .inner_sums import Extent, Plan, Sum, plan_of
from .iterations import flat, number_type
from .manager import PassCx
from .map_to_grid import weight
from .registry import register

__all__ = ["subgroup_reduce"]

_EACH: Final = 4
"""Iterations of the inner loop that a lane makes together."""
_MOST_SHIFT: Final = SUBGROUP_SIZE.bit_length() - 1
"""The lanes of an iteration are at most ``2**5``."""
_GUESSED_SHIFT: Final = 3
"""The same where only the room for an iteration's elements is known: most of it may be empty."""
_MOST_THREADS: Final = 1 << 30
"""Lanes of all iterations: their number has 31 bits."""
_BUDGET: Final = 128
"""Simple operations of all copies of the inner loop's body."""


@register("subgroup_reduce", optional=True, per_task=True)
def subgroup_reduce(func: Func, cx: PassCx) -> bool:
    """Run inner loops that add up neighbouring elements on lanes of a subgroup."""
    task, config = cx.task, cx.config
    if task is None or task.attr.kind != "range_for" or task.attr.unit != "cell":
        return False
    if task.attr.block_dim or len(task.regions[0].ops[-1].args) != 2:
        return False
    threads = THREADS
    while config.max_block_dim and threads > config.max_block_dim:
        threads //= 2
    if threads < SUBGROUP_SIZE or needs_blocks(task.regions[1]):
        return False
    plan = plan_of(func, task, config.fast_math)
    if isinstance(plan, Plan):
        _Lanes(func, task, plan, threads, config.fast_math).run()
        cx.remark(
            task,
            "the inner loop of an iteration runs on up to 32 lanes of a subgroup, as many as leave "
            f"{_EACH} iterations to each",
        )
    elif plan:
        cx.remark(task, f"the inner loop stays on one thread: {plan}")
    return isinstance(plan, Plan)


def _copied(b: Builder, op: Op) -> Op:
    """A value that does not depend on the iteration, computed again."""
    args = tuple([_copied(b, arg) for arg in op.args])
    return b.emit(op.code, args, op.attr, op.type)


def _doublings(func: Func, b: Builder, extent: Extent, rows: Op) -> list[Op]:
    """For 2, 4, ... lanes of an iteration, 1 if there are to be so many and else 0.

    Arithmetic alone: the host computes it before each launch.
    """
    zero, one = b.const(0, i32), b.const(1, i32)
    length = _scaled(b, _length(func, b, extent))
    known = int(length.attr) if length.code == C.CONST and not extent.total else 0
    before = length if extent.total else b.binary(C.SUB, length, one)
    found: list[Op] = []
    guessed = extent.bounds is None and not extent.total
    for k in range(_GUESSED_SHIFT if guessed else _MOST_SHIFT):
        lanes, depth = 2 << k, _EACH.bit_length() - 1 + k
        most = _MOST_THREADS // lanes
        if known and known <= _EACH << k:
            break
        if extent.total:
            deep = b.binary(C.BIT_SAR, before, b.const(depth, i32))
            enough = b.binary(C.SUB, b.binary(C.MIN, deep, b.const(most + 1, i32)), rows)
        else:
            enough = b.binary(C.SUB, b.const(most + 1, i32), rows)
            if not known:
                deep = b.binary(C.BIT_SAR, before, b.const(depth, i32))
                enough = b.binary(C.MIN, deep, enough)
        found.append(b.binary(C.MIN, b.binary(C.MAX, enough, zero), one))
    return found


def _scaled(b: Builder, length: Op) -> Op:
    """3 / 4 of a length: lanes are doubled where that fills more than three quarters of them."""
    if length.code == C.CONST:
        return b.const(int(length.attr) - (int(length.attr) >> 2), i32)
    return b.binary(C.SUB, length, b.binary(C.BIT_SAR, length, b.const(2, i32)))


def _length(func: Func, b: Builder, extent: Extent) -> Op:
    if extent.bounds is not None:
        begin, end = [_copied(b, bound) for bound in extent.bounds]
        if begin.code == C.CONST and end.code == C.CONST:
            return b.const(int(end.attr) - int(begin.attr), i32)
        return b.binary(C.SUB, end, begin)
    axis, number = extent.shape
    layout = func.params[number].layout
    if layout is not None:
        return b.const(layout.shape[axis], i32)
    return b.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), extent.shape, i32)


def _continues(ops: list[Op]) -> bool:
    return any(op.code == C.CONTINUE for op in flat(ops))


class _Lanes:
    """Makes the new body of one task.

    copies: iterations of the inner loop that a lane makes together. update_of: the variable of each
    store of an update, and its other ops. thread: of the block. shift: the lanes of an iteration
    are ``2**shift``. row: the task's index. exists: there is such an iteration. partials: the sum
    of a lane for each variable.
    """

    def __init__(self, func: Func, task: Op, plan: Plan, threads: int, fast_math: bool) -> None:
        self.func: Final = func
        self.task: Final = task
        self.plan: Final = plan
        self.threads: Final = threads
        self.fast_math: Final = fast_math
        self.b: Final = Builder(func, Block(), task.loc)
        work = sum(weight(op) for op in walk(plan.loop.regions[0]))
        self.copies = _EACH
        while self.copies > 1 and self.copies * work > _BUDGET:
            self.copies //= 2
        self.update_of: Final = {
            store: (one, chain) for one in plan.sums for store, chain in one.updates.items()
        }
        self.parts: Final = {op for _, chain in self.update_of.values() for op in chain}
        self.partials: Final[dict[Op, Op]] = {}

    def run(self) -> None:
        b, task, func = self.b, self.task, self.func
        body = task.regions[1]
        *header, last = task.regions[0].ops
        ends = last.args
        self.header(header, last)
        self.thread = b.loop_index(task, 0)
        mapping: dict[Op, Op] = {}
        clone_into(func, header, mapping, b.block)
        begin, end = [mapping[op] for op in ends]
        zero = b.const(0, i32)
        rows = b.binary(C.MAX, b.binary(C.SUB, end, begin), zero)
        self.shift = zero
        doublings = _doublings(func, b, self.plan.extent, rows)
        self.most_shift = len(doublings)
        for one in doublings:
            self.shift = b.binary(C.ADD, self.shift, one)
        lanes = b.binary(C.BIT_SHL, b.const(1, i32), self.shift)
        self.lane = b.binary(C.BIT_AND, self.thread, b.binary(C.SUB, lanes, b.const(1, i32)))
        self.is_first = b.binary(C.CMP_EQ, self.lane, zero)
        total = self.whole(b, b.binary(C.MUL, rows, lanes))
        loop = b.range_for((zero, total), ForAttr(shared=True))
        with b.inside(loop.regions[0]):
            place = b.binary(C.BIT_SAR, b.loop_index(loop, 0), self.shift)
            self.row = b.binary(C.ADD, begin, place)
            self.exists = b.binary(C.CMP_LT, place, rows)
            self.iteration(body)
        task.attr = task.attr._replace(unit="thread", block_dim=self.threads, axes=None)
        body.ops = b.block.ops
        set_block(body.ops, body)

    def header(self, header: list[Op], last: Op) -> None:
        """The bounds of the task become those of all lanes."""
        block = self.task.regions[0]
        begin, end = last.args
        block.ops = header[:]
        b = Builder(self.func, block, self.task.loc)
        zero, one = b.const(0, i32), b.const(1, i32)
        rows = total = b.binary(C.MAX, b.binary(C.SUB, end, begin), zero)
        for longer in _doublings(self.func, b, self.plan.extent, rows):
            total = b.binary(C.MUL, total, b.binary(C.ADD, longer, one))
        last.args = (zero, self.whole(b, total))
        block.ops.append(last)

    def whole(self, b: Builder, lanes: Op) -> Op:
        """The number of lanes in whole blocks."""
        bits = b.const(self.threads.bit_length() - 1, i32)
        more = b.binary(C.ADD, lanes, b.const(self.threads - 1, i32))
        return b.binary(C.BIT_SHL, b.binary(C.BIT_SAR, more, bits), bits)

    # An iteration of the task

    def iteration(self, body: Block) -> None:
        b, plan = self.b, self.plan
        blocks = [body, *[op.regions[0] for op in plan.path]]
        inner = blocks[-1]
        inner.ops = inner.ops[: inner.ops.index(plan.loop)]
        before = [op for block in blocks for op in block.ops]
        everything = (*flat(body.ops), *flat(plan.after), *walk(plan.loop.regions[0]))
        indices = [op for op in everything if op.code == C.LOOP_INDEX and op.args[0] is self.task]
        uses = dict.fromkeys(indices, self.row)
        for block in blocks:
            variables = [op for op in block.ops if op.code == C.ALLOCA]
            b.ops += variables
            set_block(variables, b.block)
            block.ops = [op for op in block.ops if op not in uses and op.code != C.ALLOCA]
        for one in plan.sums:
            self.partials[one.local] = self.variable(one)
        ends = bool(plan.path) or _continues(before)
        reached = b.alloca(u1, "reached") if ends else None
        for block in blocks:
            self.once(block)
        first = self.guarded(self.exists, before)
        first.ops += body.ops
        set_block(first.ops, first)
        if inner is body:
            inner = first
        with b.inside(inner):
            self.share(uses)
            if reached is not None:
                b.store(reached, b.const(1, u1))
        replace_uses(first, uses)
        self.combine()
        self.finish(reached, uses, {op for op in before if op.code != C.ALLOCA and op not in uses})

    def variable(self, one: Sum) -> Op:
        b, t = self.b, number_type(one.local)
        local = b.alloca(t, "partial sum")
        b.store(local, b.const(neutral(one.code, t, self.fast_math), t))
        return local

    def once(self, block: Block) -> None:
        """Stores of before the inner loop are for the first lane alone, which also makes later ones
        to the same elements."""
        ops, block.ops = block.ops, []
        with self.b.inside(block):
            for op in ops:
                if op.code == C.GLOBAL_STORE:
                    region = self.b.if_(self.is_first).regions[0]
                    region.ops.append(op)
                    op.block = region
                    continue
                block.ops.append(op)
                if op.code == C.IF and op not in self.plan.path:
                    for region in op.regions:
                        self.once(region)

    def guarded(self, cond: Op, ops: list[Op]) -> Block:
        """The block of a condition; of a loop that runs once, if `continue` is to leave it."""
        b = self.b
        if not _continues(ops):
            return b.if_(cond).regions[0]
        trips = b.select(cond, b.const(1, i32), b.const(0, i32))
        return b.range_for((b.const(0, i32), trips), ForAttr()).regions[0]

    def combine(self) -> None:
        """Lanes exchange their sums in pairs."""
        b = self.b
        own = b.binary(C.BIT_AND, self.thread, b.const(SUBGROUP_SIZE - 1, i32))
        size = b.const(self.threads, i32)
        with ExitStack() as stack:
            for k in range(self.most_shift):
                some = b.if_(b.binary(C.CMP_GT, self.shift, b.const(k, i32)))
                stack.enter_context(b.inside(some.regions[0]))
                other = b.binary(C.BIT_XOR, own, b.const(1 << k, i32))
                for one in self.plan.sums:
                    local = self.partials[one.local]
                    value = b.load(local)
                    args = (value, other, self.thread, size)
                    found = b.emit(C.SUBGROUP_SHUFFLE, args, None, value.type)
                    b.store(local, b.binary(ATOMIC_OPERATION[one.code], value, found))

    def finish(self, reached: Op | None, uses: dict[Op, Op], before: set[Op]) -> None:
        """The first lane runs what follows the inner loop."""
        b, plan = self.b, self.plan
        top = b.block
        cond = b.binary(
            C.BIT_AND, self.is_first, self.exists if reached is None else b.load(reached)
        )
        region = self.guarded(cond, plan.after)
        with b.inside(region):
            for one in plan.sums:
                total = b.load(self.partials[one.local])
                total = b.binary(ATOMIC_OPERATION[one.code], b.load(one.local), total)
                b.store(one.local, total)
            for op in flat(plan.after):
                for arg in op.args:
                    self.carry(arg, uses, before, top)
        region.ops += [op for op in plan.after if op not in uses]
        set_block(region.ops, region)
        replace_uses(region, uses)

    def carry(self, op: Op, uses: dict[Op, Op], before: set[Op], top: Block) -> Op:
        """A value of before the inner loop for after it, which is in another block.

        uses: such values. top: the block around both.
        """
        if op in uses or op not in before:
            return uses.get(op, op)
        b = self.b
        if op.type.is_ptr or (C.PURE[op.code] and not op.args):
            args = tuple([self.carry(arg, uses, before, top) for arg in op.args])
            uses[op] = b.emit(op.code, args, op.attr, op.type)
            return uses[op]
        block = op.block
        assert block is not None
        with b.inside(top):
            local = b.alloca(op.type, "carried")
        top.ops.insert(0, top.ops.pop())
        store = self.func.new_op(C.LOCAL_STORE, void, (local, op), None, op.loc, block)
        block.ops.insert(block.ops.index(op) + 1, store)
        uses[op] = b.load(local)
        return uses[op]

    # The inner loop

    def share(self, uses: dict[Op, Op]) -> None:
        """The iterations of the inner loop of one lane."""
        b, loop = self.b, self.plan.loop
        b.loc = loop.loc
        begin, end = loop.args
        zero, one = b.const(0, i32), b.const(1, i32)
        last = b.binary(C.SUB, b.binary(C.SUB, end, begin), one)
        together = b.const(self.copies.bit_length() - 1, i32)
        depth = b.binary(C.ADD, self.shift, together)
        # Neighbours of a lane, so that the first load of all lanes is of whole lines of the cache;
        # where a subgroup has whole lines in any case, of all lanes.
        wide = b.binary(C.CMP_EQ, self.shift, b.const(_MOST_SHIFT, i32))
        spread = b.select(wide, self.shift, zero)
        own = b.binary(C.BIT_SHL, self.lane, b.select(wide, zero, together))
        left = b.binary(C.SUB, last, own)
        trips = b.binary(C.ADD, b.binary(C.BIT_SAR, left, depth), one)
        trips = b.select(b.binary(C.CMP_GE, left, zero), trips, zero)
        steps = [b.binary(C.BIT_SHL, b.const(n, i32), spread) for n in range(1, self.copies)]
        new = b.range_for((zero, trips), ForAttr(cold=loop.attr.cold))
        with b.inside(new.regions[0]):
            past = b.binary(C.BIT_SHL, b.loop_index(new, 0), depth)
            first = b.binary(C.ADD, own, past)
            room = b.binary(C.SUB, last, first)
            at = [b.binary(C.ADD, begin, first)]
            exist: list[Op | None] = [None]
            for step in steps:
                near = b.binary(C.ADD, first, b.binary(C.MIN, step, room))
                at.append(b.binary(C.ADD, begin, near))
                exist.append(b.binary(C.CMP_LE, step, room))
            self.copy(at, exist, uses)
        b.loc = self.task.loc

    def copy(self, at: list[Op], exist: list[Op | None], uses: dict[Op, Op]) -> None:
        """Copies of the inner loop's body for indices ``at``.

        exist: which of them are real; the others are the last one again. Until the first condition
        each op is made for all of them, so that their loads are under way together.
        """
        ops = self.plan.loop.regions[0].ops
        indices = [op for op in ops if op.code == C.LOOP_INDEX and op.args[0] is self.plan.loop]
        mappings = [uses | dict.fromkeys(indices, k) for k in at]
        split = next((k for k, op in enumerate(ops) if op.regions), len(ops))
        varying = set(indices)
        for op in ops[:split]:
            if op in uses or op in indices:
                continue
            if C.PURE[op.code] and not any(arg in varying for arg in op.args):
                self.one(op, mappings[0])
                for mapping in mappings[1:]:
                    mapping[op] = mappings[0][op]
                continue
            varying.add(op)
            for mapping, there in zip(mappings, exist, strict=True):
                self.one(op, mapping, there)
        rest = ops[split:]
        for mapping, there in zip(mappings, exist, strict=True):
            if there is None and not _continues(rest):
                self.several(rest, mapping)
            elif rest:
                cond = there or self.b.const(1, u1)
                with self.b.inside(self.guarded(cond, rest)):
                    self.several(rest, mapping)

    def several(self, ops: list[Op], mapping: dict[Op, Op]) -> None:
        for op in ops:
            if op.code == C.IF:
                new = self.b.if_(mapping.get(op.args[0], op.args[0]))
                for source, target in zip(op.regions, new.regions, strict=True):
                    with self.b.inside(target):
                        self.several(source.ops, mapping)
            elif op not in mapping:
                self.one(op, mapping)

    def one(self, op: Op, mapping: dict[Op, Op], there: Op | None = None) -> None:
        """A copy of one op. there: its update counts."""
        b = self.b
        if op in self.parts:  # comes with its store
            return
        found = self.update_of.get(op)
        if found is None:
            mapping[op] = new = clone(self.func, op, mapping, b.block)
            self.func.origins[new.id] = op.id
            b.ops.append(new)
            return
        one, chain = found
        local = self.partials[one.local]
        old = new = b.load(local)
        for last, part in pairwise(chain):
            args = tuple([new if arg is last else mapping.get(arg, arg) for arg in part.args])
            new = b.emit(part.code, args, part.attr, part.type)
            self.func.origins[new.id] = part.id
        b.store(local, new if there is None else b.select(there, new, old))
