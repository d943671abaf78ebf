"""Splits a loop and its reverse into segments; only one segment at a time has stacks.

`Pair` is a loop of the forward part with the loop that reverses it: the first pushes to stacks
that only the second pops. `split` rewrites both::

    for i in b..e: body, push             for s in segments: push state; for i in segment: body
    ...                                   ...
    for i in reversed b..e: pop, reverse  for s in reversed segments:
                                              state = pop
                                              for i in segment: body, push
                                              for i in reversed segment: pop, reverse

The *state* is the memory of the kernel's own that the body reads before it sets it: variables, and
elements of arrays. The second run of the body has variables of its own, so nothing else changes.
It holds only what the pushes need. A gradient kernel writes no array that it reads, so both runs of
the body compute the same.

A value from around the loop that the reverse cannot see is computed again if it is an address or
free, else it is pushed before the loop. The result, the two loops of a segment, is a pair again.
"""

from __future__ import annotations

from typing import Final

from ...ir import Block, Builder, Func, Op, base_of, walk
from ...ir import codes as C
from ...ir.attrs import AdStackAttr
from ...named_tuple import NamedTuple
from ...types import DataType, PointerType, i32
from .names import name_of
from .needs import FREE

__all__ = ["Pair", "Replay", "Split", "count_of", "element_bytes", "replay_of", "split"]

_OWN: Final = frozenset({C.ALLOCA, C.ARRAY_ALLOCA})
_JUMPS: Final = frozenset({C.CONTINUE, C.WHILE_CONTROL, C.BREAK})


class Pair(NamedTuple):
    """A loop, its reverse, and the stacks that they share. home: the block of the stacks.

    mirrors: loops of the forward part around ``forward`` and in it -> their reverse.
    """

    forward: Op
    reverse: Op
    stacks: tuple[Op, ...]
    home: Block
    mirrors: dict[Op, Op]


class Replay(NamedTuple):
    """The second run of a loop's body.

    live: the ops that it has. state: variables and arrays to restore. outside: values from around
    the loop, the operands of addresses included, that the reverse cannot see.
    """

    live: set[Op]
    state: tuple[Op, ...]
    outside: tuple[Op, ...]

    @property
    def state_bytes(self) -> int:
        """The bytes of a checkpoint."""
        return sum(element_bytes(v) * count_of(v) for v in self.state)

    @property
    def spilled(self) -> tuple[Op, ...]:
        """Those of ``outside`` that have to be pushed before the loop."""
        return tuple([x for x in self.outside if not _is_made_again(x)])


class Split(NamedTuple):
    """The result of `split`. pair: the loops of a segment. checkpoints: the stacks of the state.

    spills: stacks with one entry for each execution of the loop. copies: op of the body -> the same
    in the second run.
    """

    pair: Pair
    checkpoints: tuple[Op, ...]
    spills: tuple[Op, ...]
    copies: dict[Op, Op]


def element_bytes(memory: Op) -> int:
    """The bytes of one value of a variable, array or stack."""
    t = memory.type
    assert isinstance(t, PointerType) and isinstance(t.elem, DataType)
    return t.elem.size


def count_of(memory: Op) -> int:
    """The number of values in a variable or array."""
    return memory.attr.count if memory.code == C.ARRAY_ALLOCA else 1


def _is_made_again(op: Op) -> bool:
    return op.type.is_ptr or op.code in FREE


# --- what the second run needs ----------------------------------------------------------------


def replay_of(pair: Pair) -> Replay | str:
    """The second run of the body; a text that says why there is none."""
    found = _Search(pair)
    found.run()
    for root in found.state:
        if root.code == C.ARRAY_ALLOCA and root.attr.space != "private":
            return f"it reads {root.attr.name!r}, which all iterations of a block share"
    outside: dict[Op, None] = {}
    for x in found.outside:
        problem = _leads(x, pair, found.state, outside)
        if problem:
            return problem
    return Replay(found.live, tuple(found.state), tuple(outside))


class _Search:
    """Ops of a loop's body that its pushes need, and what these use from around it."""

    def __init__(self, pair: Pair) -> None:
        self.pair: Final = pair
        body = walk(pair.forward.regions[0])
        self.inside: Final = set(body)
        self.live: Final[set[Op]] = set()
        self.state: Final[dict[Op, None]] = {}
        self.outside: Final[dict[Op, None]] = {}
        self._todo: Final[list[Op]] = []
        self._writers: Final[dict[Op, list[Op]]] = {}
        self._jumps: Final[dict[Op, list[Op]]] = {}
        self._read: Final[set[Op]] = set()
        self._fixed: Final = _unchanged(pair)
        stacks = set(pair.stacks)
        for op in body:
            code = op.code
            if code == C.AD_STACK_PUSH and op.args[0] in stacks:
                self._mark(op)
            elif code == C.CALL:
                for a in op.args:
                    if a.type.is_ptr and base_of(a).code in _OWN:
                        self._writers.setdefault(base_of(a), []).append(op)
            elif C.WRITE[code] or C.ATOMIC[code]:
                root = base_of(op.args[0])
                if root.code in _OWN:
                    self._writers.setdefault(root, []).append(op)
            elif code in _JUMPS:
                self._jumps.setdefault(_loop_of(op), []).append(op)

    def run(self) -> None:
        """Mark all that the pushes need."""
        stacks = set(self.pair.stacks)
        while self._todo:
            op = self._todo.pop()
            for a in op.args:
                if a in self.inside:
                    self._mark(a)
                elif a.type.is_ptr and a in stacks:
                    continue
                elif a is not self.pair.forward:
                    self._use(a)
            if C.READ[op.code] or C.ATOMIC[op.code] or op.code == C.CALL:
                for a in op.args:
                    if a.type.is_ptr:
                        self._reads(base_of(a))
            for jump in self._jumps.pop(op, ()):
                self._mark(jump)
            owner = op.block.owner if op.block is not None else None
            if owner is not None and owner in self.inside:
                self._mark(owner)

    def _use(self, x: Op) -> None:
        if x.code not in _OWN:
            self.outside[x] = None
        elif x not in self._fixed:
            self.state[x] = None

    def _reads(self, root: Op) -> None:
        if root.code not in _OWN or root in self._read:
            return
        self._read.add(root)
        if root not in self.inside and root not in self._fixed:
            self.state[root] = None
        for writer in self._writers.get(root, ()):
            self._mark(writer)

    def _mark(self, op: Op) -> None:
        if op not in self.live:
            self.live.add(op)
            self._todo.append(op)


def _loop_of(op: Op) -> Op:
    owner = op.block.owner if op.block is not None else None
    while owner is not None and not C.LOOP[owner.code]:
        owner = owner.block.owner if owner.block is not None else None
    assert owner is not None
    return owner


def _unchanged(pair: Pair) -> set[Op]:
    """Memory that holds the same when the loop and when its reverse run.

    That is memory that only ops before the loop write, if the loop runs once.
    """
    around = _blocks(pair.forward)
    at = pair.home
    depth = around.index(at)
    if any(C.LOOP[b.owner.code] for b in around[:depth] if b.owner is not None):
        return set()
    fixed: set[Op] = set()
    seen: dict[Op, bool] = {}
    before = True
    for op in walk(at):
        before = before and op is not pair.forward
        if C.WRITE[op.code] or C.ATOMIC[op.code] or op.code == C.CALL:
            for a in op.args:
                if a.type.is_ptr and base_of(a).code in _OWN:
                    root = base_of(a)
                    seen[root] = seen.get(root, True) and before
    visible = set(_blocks(pair.reverse))
    for op in walk(at):
        for a in op.args:
            root = base_of(a) if a.type.is_ptr else a
            if root.code in _OWN and root.block in visible and seen.get(root, True):
                fixed.add(root)
    return fixed


def _blocks(op: Op) -> list[Block]:
    """The blocks around an op, the innermost first."""
    found: list[Block] = []
    block = op.block
    while block is not None:
        found.append(block)
        block = block.owner.block if block.owner is not None else None
    return found


def _leads(x: Op, pair: Pair, state: dict[Op, None], found: dict[Op, None]) -> str:
    """Add ``x`` and the operands it is made again from to ``found``; why that cannot be."""
    visible = set(_blocks(pair.reverse))
    todo = [x]
    while todo:
        op = todo.pop()
        rooted = op.type.is_ptr and base_of(op) in state
        if op in found or op in state or (op.block in visible and not rooted):
            continue
        found[op] = None
        if not _is_made_again(op):
            continue
        if op.code == C.LOOP_INDEX and op.args[0] not in pair.mirrors:
            return f"the index of the loop ${op.args[0].id} is not known in the reverse"
        if op.type.is_ptr and op.code not in (C.ARG_ADDR, C.EXTERNAL_PTR, C.SHIFT_PTR):
            return f"it uses an address that the reverse cannot have again (${op.id})"
        if op.code != C.LOOP_INDEX:
            todo += op.args
    return ""


# --- the rewrite ------------------------------------------------------------------------------


def split(func: Func, pair: Pair, replay: Replay, length: int) -> Split:
    """Split a pair into segments of ``length`` iterations of the outermost axis."""
    return _Splitting(func, pair, replay, length).run()


class _Splitting:
    def __init__(self, func: Func, pair: Pair, replay: Replay, length: int) -> None:
        self.func: Final = func
        self.pair: Final = pair
        self.replay: Final = replay
        self.length: Final = length
        axes = pair.forward.attr.axes
        self.axis: Final[int] = 2 * (axes[0] if axes else 0)
        self.tops: Final[list[Op]] = []  # the new stacks
        self.repl: Final[dict[Op, Op]] = {}

    def run(self) -> Split:
        checkpoints = tuple([self.stack(v, _label(v)) for v in self.replay.state])
        spilled = self.replay.spilled
        spills = tuple([self.stack(x, name_of(x)) for x in spilled])
        self.forward(checkpoints, spilled, spills)
        again = self.reverse(checkpoints, spilled, spills)
        pair = self.pair
        mirrors = dict(pair.mirrors)
        for loop, copy in self.repl.items():
            if loop in mirrors and copy.code == C.RANGE_FOR:
                mirrors[copy] = mirrors[loop]
        mirrors[again] = pair.reverse
        assert again.block is not None
        made = Pair(again, pair.reverse, pair.stacks, again.block, mirrors)
        return Split(made, checkpoints, spills, self.repl)

    def stack(self, x: Op, name: str) -> Op:
        t = x.type.elem if isinstance(x.type, PointerType) else x.type
        b = Builder(self.func, self.pair.home, self.pair.forward.loc, self.tops)
        attr = AdStackAttr(name=f"checkpoint of {name}", adjoint=False)
        made = b.alloca(t, name)
        made.code, made.attr = C.AD_STACK_ALLOCA, attr
        return made

    def outer(self, b: Builder, loop: Op) -> tuple[Op, tuple[Op, ...]]:
        """The loop over segments, put to ``b``; and the bounds of one, at the start of its body."""
        begin, end = loop.args[self.axis : self.axis + 2]
        zero, length = b.const(0, i32), b.const(self.length, i32)
        trips = b.binary(C.MAX, b.binary(C.SUB, end, begin), zero)
        up = b.binary(C.ADD, trips, b.const(self.length - 1, i32))
        count = b.binary(C.FLOORDIV, up, length)
        outer = b.range_for((zero, count), loop.attr._replace(axes=None, trip=""))
        inner = Builder(self.func, outer.regions[0], loop.loc)
        skipped = inner.binary(C.MUL, inner.loop_index(outer, 0), length)
        first = inner.binary(C.ADD, begin, skipped)
        left = inner.binary(C.SUB, end, first)
        last = inner.binary(C.ADD, first, inner.binary(C.MIN, left, length))
        bounds = list(loop.args)
        bounds[self.axis : self.axis + 2] = first, last
        return outer, tuple(bounds)

    def forward(
        self, checkpoints: tuple[Op, ...], spilled: tuple[Op, ...], spills: tuple[Op, ...]
    ) -> None:
        """The first run, which pushes the state at the start of each segment."""
        loop = self.pair.forward
        block = loop.block
        assert block is not None
        b = Builder(self.func, block, loop.loc, [])
        for x, stack in zip(spilled, spills, strict=True):
            b.emit(C.AD_STACK_PUSH, (stack, x))
        if checkpoints:
            outer, bounds = self.outer(b, loop)
            inner = Builder(self.func, outer.regions[0], loop.loc)
            for v, stack in zip(self.replay.state, checkpoints, strict=True):
                self.save(inner, v, stack)
            self.move(loop, outer.regions[0], bounds)
        else:
            b.ops.append(loop)
        _replace(block, loop, b.ops)

    def save(self, b: Builder, v: Op, stack: Op) -> None:
        if v.code == C.ALLOCA:
            b.emit(C.AD_STACK_PUSH, (stack, b.load(v)))
            return
        each = b.range_for(self.elements(b, v), self.pair.forward.attr._replace(
            axes=None, trip="", reversed=False))  # fmt: skip
        with b.inside(each.regions[0]):
            b.emit(C.AD_STACK_PUSH, (stack, b.load(b.element(v, b.loop_index(each, 0)))))

    def elements(self, b: Builder, v: Op) -> tuple[Op, Op]:
        return b.const(0, i32), b.const(count_of(v), i32)

    def restore(self, b: Builder, v: Op, stack: Op) -> Op:
        """New memory with what the checkpoint of ``v`` holds."""
        t = v.type
        assert isinstance(t, PointerType)
        if v.code == C.ALLOCA:
            made = b.alloca(t.elem, v.attr)
            b.store(made, b.emit(C.AD_STACK_LOAD_TOP, (stack,)))
            b.emit(C.AD_STACK_POP, (stack,))
            return made
        made = b.emit(C.ARRAY_ALLOCA, (), v.attr, t)
        each = b.range_for(self.elements(b, v), self.pair.forward.attr._replace(
            axes=None, trip="", reversed=True))  # fmt: skip
        with b.inside(each.regions[0]):
            value = b.emit(C.AD_STACK_LOAD_TOP, (stack,))
            b.store(b.element(made, b.loop_index(each, 0)), value)
            b.emit(C.AD_STACK_POP, (stack,))
        return made

    def reverse(
        self, checkpoints: tuple[Op, ...], spilled: tuple[Op, ...], spills: tuple[Op, ...]
    ) -> Op:
        """The reverse of each segment, after the second run of it, which is returned."""
        loop = self.pair.reverse
        block = loop.block
        assert block is not None
        b = Builder(self.func, block, loop.loc, [])
        outer, bounds = self.outer(b, loop)
        region = outer.regions[0]
        inner = Builder(self.func, region, self.pair.forward.loc)
        own = set(self.pair.stacks)
        home = self.pair.home
        _replace(home, next(op for op in home.ops if op in own), [*self.tops, self.pair.stacks[0]])
        home.ops = [op for op in home.ops if op not in own]
        region.ops[:0] = self.pair.stacks
        for stack in self.pair.stacks:
            stack.block = region
        repl = self.repl
        for v, stack in zip(self.replay.state, checkpoints, strict=True):
            repl[v] = self.restore(inner, v, stack)
        for x, stack in zip(spilled, spills, strict=True):
            repl[x] = inner.emit(C.AD_STACK_LOAD_TOP, (stack,))
        for x in self.replay.outside:
            self.bring(inner, x)
        forward = self.pair.forward
        again = inner.range_for(bounds, forward.attr)
        repl[forward] = again
        self.copy(forward.regions[0].ops, again.regions[0])
        self.move(loop, region, bounds)
        for stack in reversed(spills):
            b.emit(C.AD_STACK_POP, (stack,))
        _replace(block, loop, b.ops)
        return again

    def bring(self, b: Builder, x: Op) -> Op:
        """Compute a value from around the loop again, with its operands."""
        found = self.repl.get(x)
        if found is not None:
            return found
        if x not in self.replay.outside:  # the reverse sees it
            return x
        if x.code == C.LOOP_INDEX:
            found = b.emit(x.code, (self.pair.mirrors[x.args[0]],), x.attr, x.type)
        else:
            args = tuple([self.bring(b, a) for a in x.args])
            found = b.emit(x.code, args, x.attr, x.type)
        self.func.origins[found.id] = x.id
        self.repl[x] = found
        return found

    def copy(self, ops: list[Op], target: Block) -> None:
        """Append copies of those of ``ops`` that the second run has, and end the first one's."""
        repl, live, func = self.repl, self.replay.live, self.func
        for op in ops:
            if op not in live:
                continue
            args = tuple([repl.get(a, a) for a in op.args])
            made = func.new_op(op.code, op.type, args, op.attr, op.loc, target, len(op.regions))
            func.origins[made.id] = op.id
            repl[op] = made
            target.ops.append(made)
            for source, region in zip(op.regions, made.regions, strict=True):
                self.copy(source.ops, region)
        pushed = set(self.pair.stacks)
        block = ops[0].block if ops else None
        if block is not None:
            block.ops = [op for op in ops if op.code != C.AD_STACK_PUSH or op.args[0] not in pushed]

    def move(self, loop: Op, region: Block, bounds: tuple[Op, ...]) -> None:
        loop.args = bounds
        loop.block = region
        region.ops.append(loop)


def _label(v: Op) -> str:
    return v.attr if v.code == C.ALLOCA else v.attr.name


def _replace(block: Block, old: Op, new: list[Op]) -> None:
    """Put ``new`` in the place of ``old``, which is still in the list of the block."""
    out: list[Op] = []
    for op in block.ops:
        if op is old:
            out += new
        else:
            out.append(op)
    block.ops = out
