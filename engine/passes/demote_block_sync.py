"""demote_block_sync: a block of iterations becomes one iteration that runs them in phases.

For backends on which one thread runs a whole block. The body of a parallel loop is split at its
barriers; each phase runs for all iterations of the block before the next one starts::

    $2 : offloaded {block_dim=64} header {        $2 : offloaded {block_dim=64} header {
      $b : bounds $begin, $end                      ... the number of blocks
    } body {                                        $b : bounds <0>, $blocks
      <i32> $3 = loop_index $2 [0]                } body {
      <*f32> $4 = array_alloca {shared}             ... first and last iteration of the block
      <f32> $5 = mul $x, $x                         <*f32> $4 = array_alloca {private}
      ...                                           <*f32> $20 = array_alloca {count=64}
      $8 : block_sync                               $21 : range_for $first, $last body {
      <f32> $9 = add $5, $5                           <f32> $5 = mul $x, $x
      ...                                             $22 : global_store $20[t], $5
    }                                                 ...
                                                    }
                                                    $30 : range_for $first, $last body {
                                                      <f32> $31 = global_load $20[t]
                                                      <f32> $9 = add $31, $31
                                                      ...

* A value that a later phase uses is recomputed there if that is cheap. Otherwise it is kept in an
  array with one element for each iteration, and so is every local that several phases use.
* An ``if`` or a loop with a barrier inside encloses the phases. Its condition or bounds must be
  the same for all iterations of the block; the value of one of them is used. Under ``debug`` an
  assert fails if they differ.
* An iteration that ended with `continue` does not run in later phases.
* A shared array belongs to the block. The last block may have fewer iterations.

Tasks without barriers and shared arrays do not change.
"""

from __future__ import annotations

from ..analysis import block_dim, is_parallel, needs_blocks, shared_arrays
from ..errors import QuadrantsCompilationError
from ..ir import AssertAttr, Block, Builder, ForAttr, Func, Op, pointee, set_block, walk
from ..ir import codes as C
from ..ir.edit import clone
from ..types import i32, i64, normalize, u1
from .manager import PassCx
from .phases import Around, Phase, Piece, phases_of
from .registry import register

_CLONE_COST = 12
_NEVER = 1 << 30
_DIFFER = "the iterations of a block take different paths to a barrier"
_GLOBAL = {C.LOCAL_LOAD: C.GLOBAL_LOAD, C.LOCAL_STORE: C.GLOBAL_STORE}


@register("demote_block_sync", per_task=True)
def demote_block_sync(func: Func, cx: PassCx) -> bool:
    """Split loops at barriers into phases that each run for a whole block of iterations."""
    task = cx.task
    if task is None or not is_parallel(func, task) or not needs_blocks(task.regions[1]):
        return False
    splitter = _Splitter(func, task, cx.config.debug)
    splitter.run()
    cx.remark(task, f"{splitter.phases} phases for each block of {splitter.dim} iterations")
    return True


class _Splitter:
    def __init__(self, func: Func, task: Op, debug: bool) -> None:
        self.func = func
        self.task = task
        self.debug = debug
        self.dim = block_dim(task)
        self.phases = 0
        ops = walk(task.regions[1])
        # Loops and ifs with a barrier inside, which go around phases.
        self.around = {op for op in ops if any(_has_barrier(region) for region in op.regions)}
        self.enders = {op for op in ops if op.code == C.CONTINUE and self.ends(op)}
        self.operands = {op: op.args for op in ops}
        self.costs, self.uniform_ops = self.judge(ops)
        self.shared = dict.fromkeys(shared_arrays(task.regions[1]))  # in order: ids must not vary
        self.home: dict[Op, Phase] = {}
        self.slots: dict[Op, Op] = {}
        """The array of each value or variable that several phases use."""
        self.crossing: dict[Op, None] = {}
        self.flags: Op | None = None
        """The array of flags that mark the iterations that have ended."""
        self.top = Builder(func, task.regions[1], task.loc, [])
        self.bounds: tuple[Op, Op] = (task, task)

    def run(self) -> None:
        task, body = self.task, self.task.regions[1]
        pieces = self.split(body.ops, None)
        phases = phases_of(pieces)
        for phase in phases:
            for op in phase.all_ops():
                if op not in self.shared:
                    self.home[op] = phase
        self.share_operands(pieces, [])
        for phase in phases_of(pieces):
            self.find_crossing(phase)
        for array in self.shared:
            array.attr = array.attr._replace(space="private")
            array.block = body
            self.top.ops.append(array)
        self.first_of_block()
        for x in self.crossing:
            self.slots[x] = self.context_array(x)
        if self.enders:
            self.flags = self.top.array(u1, self.dim, "ended")
        out = Builder(self.func, body, task.loc, self.top.ops)
        self.emit(pieces, out)
        body.ops = out.ops
        task.attr = task.attr._replace(axes=None)

    # --- which phases there are --------------------------------------------------------------

    def split(self, ops: list[Op], loop: Op | None) -> list[Piece]:
        """The phases of some ops, which are in ``loop`` around phases (None: in the task)."""
        pieces: list[Piece] = []
        current = Phase()
        for op in ops:
            if op.code == C.BLOCK_SYNC:
                pieces.append(current)
                current = Phase()
            elif op in self.around or self.jumps(op, loop):
                inner = loop if op.code == C.IF else op
                regions = [self.split(region.ops, inner) for region in op.regions]
                pieces += [current, Around(op, regions)]
                current = Phase()
            elif op not in self.shared and not self.is_index(op):
                current.ops.append(op)
        pieces.append(current)
        return [p for p in pieces if isinstance(p, Around) or p.ops]

    def is_index(self, op: Op) -> bool:
        """True if ``op`` is an index of the iteration."""
        return op.code == C.LOOP_INDEX and op.args[0] is self.task

    def judge(self, ops: list[Op]) -> tuple[dict[Op, int], set[Op]]:
        """Return the cost of computing each op again, and the ops to compute once for a block.

        The cost is `_NEVER` for an op that cannot be computed again.
        """
        costs: dict[Op, int] = {}
        uniform: set[Op] = set()
        for op in ops:
            code = op.code
            if code == C.LOOP_INDEX:
                costs[op] = 0
                if op.args[0] in self.around:
                    uniform.add(op)
            elif not C.PURE[code]:
                costs[op] = _NEVER
            else:
                own = 12 if C.MATH[code] else int(bool(op.args))
                costs[op] = min(own + sum([costs[a] for a in op.args]), _NEVER)
                if all(a in uniform for a in op.args):
                    uniform.add(op)
        return costs, uniform

    def jumps(self, op: Op, loop: Op | None) -> bool:
        """True if ``op`` leaves, or continues, a loop around phases."""
        if loop is None:
            return False
        if op.code == C.IF:
            return any(self.jumps(o, loop) for region in op.regions for o in region.ops)
        return op.code in (C.WHILE_CONTROL, C.CONTINUE)

    def ends(self, op: Op) -> bool:
        """True if the jump ``op`` ends an iteration of the task."""
        block = op.block
        while block is not None and block.owner is not None:
            if C.LOOP[block.owner.code]:
                return block.owner is self.task
            block = block.owner.block
        return False

    # --- what goes from one phase to another ---------------------------------------------------

    def share_operands(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Find where the operands of what goes around phases come from; adds phases if need be."""
        for piece in pieces:
            if isinstance(piece, Phase):
                out.append(piece)
                continue
            for x in piece.op.args:
                known = x in self.uniform_ops
                piece.values.append(None if known else self.shared_value(x, out))
            out.append(piece)
            for i, region in enumerate(piece.regions):
                inner: list[Piece] = []
                self.share_operands(region, inner)
                piece.regions[i] = inner
        pieces[:] = out

    def shared_value(self, x: Op, before: list[Piece]) -> Op:
        """A variable of the block that the last phase of ``before`` sets to ``x``."""
        last = before[-1] if before else None
        if not isinstance(last, Phase) or last.checks:
            last = Phase()
            before.append(last)
        var = self.top.alloca(x.type, "of the block")
        last.exports.append((var, x))
        if self.debug:
            check = Phase()
            check.checks.append((var, x))
            before.append(check)
        return var

    def find_crossing(self, phase: Phase) -> None:
        for op in phase.all_ops():
            for a in op.args:
                if self.home.get(a) is not phase:
                    self.require(a)
        for _, x in (*phase.exports, *phase.checks):
            if self.home.get(x) is not phase:
                self.require(x)

    def require(self, x: Op) -> None:
        """Note the values to be kept so that ``x`` is available in other phases than its own."""
        if x in self.crossing or x not in self.home or self.is_index(x):
            return
        if C.PURE[x.code] and (x.type.is_ptr or self.costs[x] <= _CLONE_COST):
            for a in x.args:
                self.require(a)
        else:
            self.crossing[x] = None

    def context_array(self, x: Op) -> Op:
        """An array with room for ``x`` for each iteration of the block."""
        if x.code == C.AD_STACK_ALLOCA:
            raise QuadrantsCompilationError.from_loc(
                f"{x.attr.name or 'a value'!r} would have to be kept for the reverse pass across a "
                "barrier of the block",
                x.loc,
                hint="remove the barriers from the differentiated kernel, or split it into one "
                "kernel for each part between two barriers",
            )
        if x.code == C.ARRAY_ALLOCA:
            return self.top.array(pointee(x), self.dim * x.attr.count, x.attr.name)
        if x.code == C.ALLOCA:
            return self.top.array(pointee(x), self.dim, x.attr)
        return self.top.array(x.type, self.dim, "kept")

    # --- the block -----------------------------------------------------------------------------

    def first_of_block(self) -> None:
        """Make the task count blocks, and compute in its body where a block begins and ends."""
        func, task = self.func, self.task
        header, body = task.regions
        end = header.ops[-1]
        mapping: dict[Op, Op] = {}
        top = self.top
        for op in header.ops[:-1]:
            top.ops.append(clone(func, op, mapping, body))
        self.ends_of_axes = [mapping[a] for a in end.args]
        total = self.total(top, tuple(self.ends_of_axes))
        size = top.const(self.dim, i64)
        self.flat = top.binary(C.MUL, top.cast(top.loop_index(task, 0), i64), size)
        last = top.binary(C.MIN, top.binary(C.ADD, self.flat, size), total)
        if len(end.args) == 2:
            begin = top.cast(self.ends_of_axes[0], i64)
            self.first = top.binary(C.ADD, begin, self.flat)
            stop = top.cast(top.binary(C.ADD, begin, last), i32)
            self.bounds = top.cast(self.first, i32), stop
        else:
            self.first = top.const(0, i64)
            count = top.cast(top.binary(C.SUB, last, self.flat), i32)
            self.bounds = top.const(0, i32), count
        h = Builder(func, header, task.loc, header.ops[:-1])
        total = self.total(h, end.args)
        rounded = h.binary(C.ADD, total, h.const(self.dim - 1, i64))
        blocks = h.binary(C.DIV, rounded, h.const(self.dim, i64))
        end.args = (h.const(0, i32), h.cast(blocks, i32))
        header.ops = [*h.ops, end]

    def total(self, b: Builder, bounds: tuple[Op, ...]) -> Op:
        """Iterations of the whole loop, i64."""
        total: Op | None = None
        for axis in range(len(bounds) // 2):
            length = self.extent(b, bounds, axis)
            total = length if total is None else b.binary(C.MUL, total, length)
        assert total is not None
        return total

    def extent(self, b: Builder, bounds: tuple[Op, ...], axis: int) -> Op:
        begin, end = (b.cast(x, i64) for x in bounds[2 * axis : 2 * axis + 2])
        return b.binary(C.MAX, b.binary(C.SUB, end, begin), b.const(0, i64))

    # --- writing the phases --------------------------------------------------------------------

    def emit(self, pieces: list[Piece], out: Builder) -> None:
        for piece in pieces:
            if isinstance(piece, Phase):
                self.reset_exports(piece, out)
                self.emit_phase(piece, out)
                continue
            op = piece.op
            out.loc = op.loc
            args: list[Op] = []
            for x, var in zip(self.operands[op], piece.values, strict=True):
                args.append(self.uniform(x, out) if var is None else out.load(var))
            op.args = tuple(args)
            for region, inner in zip(op.regions, piece.regions, strict=True):
                region.ops = []
                self.emit(inner, Builder(self.func, region, op.loc))
            op.block = out.block
            out.ops.append(op)

    def reset_exports(self, phase: Phase, out: Builder) -> None:
        """A variable of the block is 0 if no iteration is left to set it."""
        for var, _ in phase.exports:
            if self.flags is not None:
                out.store(var, out.const(0, pointee(var)))

    def uniform(self, x: Op, out: Builder) -> Op:
        """A value that is the same for the whole block, computed in ``out``."""
        if x not in self.home:
            return x
        args = x.args if x.code == C.LOOP_INDEX else self.operands[x]
        new = [a if C.LOOP[a.code] else self.uniform(a, out) for a in args]
        return out.emit(x.code, tuple(new), x.attr, x.type)

    def emit_phase(self, phase: Phase, out: Builder) -> None:
        self.phases += 1
        first = phase.ops[0].loc if phase.ops else out.loc
        out.loc = first
        loop = phase.loop = out.range_for(self.bounds, ForAttr())
        block = loop.regions[0]
        head = phase.head = Builder(self.func, block, first, [])
        self.place_of(phase, head)
        if self.flags is not None:
            assert phase.place is not None
            ended = head.load(head.element(self.flags, phase.place))
            with head.inside(head.if_(ended).regions[0]):
                head.emit(C.CONTINUE)
        tail = Builder(self.func, block, first, self.rewrite(phase.ops, phase, block))
        for var, x in phase.checks:
            same = tail.binary(C.CMP_EQ, self.stand_in(x, phase), tail.load(var))
            tail.emit(C.ASSERT, (same,), AssertAttr("check", _DIFFER))
        for var, x in phase.exports:
            tail.store(var, self.stand_in(x, phase))
        block.ops = head.ops + tail.ops

    def place_of(self, phase: Phase, head: Builder) -> None:
        """The place of the iteration in its block, and its indices."""
        assert phase.loop is not None
        counter = head.loop_index(phase.loop, 0)
        place = phase.place = head.binary(C.SUB, head.cast(counter, i64), self.first)
        bounds = self.ends_of_axes
        if len(bounds) == 2:
            phase.indices = [counter]
            return
        axes = len(bounds) // 2
        order = self.task.attr.axes or tuple(range(axes))
        left = head.binary(C.ADD, self.flat, place)
        found: dict[int, Op] = {}
        for axis in reversed(order):
            extent = self.extent(head, tuple(bounds), axis)
            index = left
            if axis != order[0]:
                index = head.binary(C.MOD, left, extent)
                left = head.binary(C.DIV, left, extent)
            found[axis] = head.binary(C.ADD, bounds[2 * axis], head.cast(index, i32))
        phase.indices = [found[axis] for axis in range(axes)]

    def stand_in(self, x: Op, phase: Phase) -> Op:
        """The op that has the value of ``x`` in ``phase``."""
        head = phase.head
        assert head is not None
        if self.is_index(x):
            axis: int = x.attr
            return phase.indices[axis]
        home = self.home.get(x)
        if home is None or (home is phase and x not in self.slots):
            return x
        if home is phase and x.code not in (C.ALLOCA, C.ARRAY_ALLOCA):
            return x
        found = phase.here.get(x)
        if found is None:
            head.loc = x.loc
            slot = self.slots.get(x)
            if slot is None:
                args = [a if C.LOOP[a.code] else self.stand_in(a, phase)
                        for a in self.operands[x]]  # fmt: skip
                found = self.copy(x, tuple(args), head)
            elif x.code == C.ARRAY_ALLOCA:
                found = slot  # `shifted` adds the place
            else:
                assert phase.place is not None
                found = head.element(slot, phase.place)
                if x.code != C.ALLOCA:
                    found = head.load(found)
            self.func.origins[found.id] = x.id
            phase.here[x] = found
        return found

    def copy(self, x: Op, args: tuple[Op, ...], head: Builder) -> Op:
        if x.code == C.SHIFT_PTR and self.operands[x][0] in self.slots:
            return self.shifted(self.operands[x][0], args, head)
        return head.emit(x.code, args, x.attr, x.type)

    def shifted(self, array: Op, args: tuple[Op, ...], b: Builder) -> Op:
        """An element of a private array that is kept for each iteration."""
        return b.emit(C.SHIFT_PTR, (args[0], self.offset(array, args[1], b)), None, array.type)

    def offset(self, array: Op, index: Op, b: Builder) -> Op:
        place = self.current.place
        assert place is not None
        start = b.binary(C.MUL, place, b.const(array.attr.count, i64))
        return b.binary(C.ADD, start, b.cast(index, i64))

    def rewrite(self, ops: list[Op], phase: Phase, block: Block) -> list[Op]:
        """Ops of ``phase`` with operands that are visible there; what crosses is kept."""
        self.current = phase
        b = Builder(self.func, block, ops=[])
        for op in ops:
            b.loc = op.loc
            if op.code in (C.ALLOCA, C.ARRAY_ALLOCA) and op in self.slots:
                self.clear(op, phase, b)
                continue
            if op in self.shared:
                continue
            if self.flags is not None and op in self.enders:
                assert phase.place is not None
                b.store(b.element(self.flags, phase.place), b.const(True, u1))
            base: Op | None = op.args[0] if op.args else None
            if op.code != C.LOOP_INDEX:
                op.args = tuple([self.stand_in(a, phase) for a in op.args])
            if base is not None and base in self.slots:
                if op.code == C.SHIFT_PTR:
                    op.args = op.args[0], self.offset(base, op.args[1], b)
                elif base.code == C.ALLOCA:
                    op.code = _GLOBAL.get(op.code, op.code)
            for region in op.regions:
                region.ops = self.rewrite(region.ops, phase, region)
            op.block = block
            b.ops.append(op)
            if op in self.slots:
                assert phase.place is not None
                b.store(b.element(self.slots[op], phase.place), op)
        set_block(b.ops, block)
        return b.ops

    def clear(self, var: Op, phase: Phase, b: Builder) -> None:
        """Set a variable to 0, as its own op did."""
        t = pointee(var)
        zero = normalize(0, t)
        if var.code == C.ALLOCA:
            b.store(self.stand_in(var, phase), b.const(zero, t))
            return
        base = self.stand_in(var, phase)
        loop = b.range_for((b.const(0, i32), b.const(var.attr.count, i32)), ForAttr())
        with b.inside(loop.regions[0]):
            index = self.offset(var, b.loop_index(loop, 0), b)
            b.store(b.element(base, index), b.const(zero, t))


def _has_barrier(block: Block) -> bool:
    """True if there is a barrier under ``block``."""
    return any(op.code == C.BLOCK_SYNC for op in walk(block))
