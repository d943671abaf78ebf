"""simplify: reuses loads, merges ifs, removes empty ifs and loops, and trivial addresses.

Before::

    <f32> $4 = global_load $3
    $5 : if $2 then {
      $6 : local_store $1, $4
    }
    $7 : if $2 then {
      <f32> $8 = global_load $3
      $9 : local_store $0, $8
    } else {
    }
    <f32> $10 = global_load $3
    $11 : range_for $a, $b body {
    }

After (``$10`` became ``$4``)::

    <f32> $4 = global_load $3
    $5 : if $2 then {
      $6 : local_store $1, $4
      <f32> $8 = global_load $3
      $9 : local_store $0, $8
    } else {
    }

What it does:

* an earlier load of the same address in the same block replaces a global load, if nothing in
  between may write there;
* two ``if`` ops on the same condition with only pure ops in between become one;
* an ``if``, ``range_for`` or task goes in which nothing has an effect;
* ``abs`` of an unsigned integer becomes the integer; an address shifted by 0 becomes the address;
* under ``flatten_if``, a small ``if`` that only computes and sets locals becomes selects.

It leaves alone loads of locals (`cfg_optimization` forwards stored values), an empty ``while`` or
``do_while`` (it may never end), and a loop over several axes where some have one iteration.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING

from ..analysis.alias import DIFFERENT, Location, MemoryLocations, array_of
from ..analysis.uses import code_mask
from ..ir import Block, Func, Op, set_block, walk
from ..ir import codes as C
from .first_look import (
    LOADS,
    MOVABLE,
    any_empty,
    any_trivial,
    is_trivial,
    is_unsigned,
    loaded_again,
    may_join,
)
from .registry import register
from .rules.rewriter import keep_merged

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["simplify"]

_FLAT_OPS = 12
"""Most ops, in both branches together, of an if that `flatten_if` turns into selects."""

_SAME_VALUE = "its operand has the same value"

_FEW = 8
"""So many locations are compared with a store one by one; bit sets of all cost more."""

_INTERESTING = [
    C.CONTROL[code]
    or C.ATOMIC[code]
    or C.FENCE[code]
    or code in (C.GLOBAL_LOAD, C.GLOBAL_STORE, C.ABS, C.SHIFT_PTR)
    for code in range(C.COUNT)
]
_WRITES = [
    C.ATOMIC[code] or C.FENCE[code] or code == C.GLOBAL_STORE for code in range(C.COUNT)
]  # fmt: skip
_WRITING = code_mask(C.ATOMIC[code] or code == C.GLOBAL_STORE for code in range(C.COUNT))


@register("simplify", optional=True)
def simplify(func: Func, cx: PassCx) -> bool:
    """Reuse loads, merge ifs, delete empty ifs, loops and tasks, drop trivial addresses."""
    joins = may_join(cx)
    trivial = any_trivial(cx)
    reused = loaded_again(cx, joins, trivial)
    again = None if cx.remarking and (joins or _may_hit(cx)) else reused
    some = joins or trivial or again is None or cx.config.flatten_if or any_empty(cx)
    if not (some or again):
        return False
    sweep = _Sweep(func, cx, again, joins)
    sweep.reused = reused
    if not some:
        assert again is not None
        sweep.around = _blocks_around(cx, again)
    sweep.block(func.body)
    if not sweep.others:
        keep_merged(cx, sweep.users)
    return sweep.changed


def _may_hit(cx: PassCx) -> bool:
    """False if no write may hit an element that was loaded through another address: there is
    nothing to remark then."""
    if not cx.func.noalias:
        return True
    held: dict[tuple[Block | None, object], Op] = {}
    for op in cx.ops().of(LOADS):
        ptr = op.args[0]
        if held.setdefault((op.block, array_of(ptr)), ptr) is not ptr:
            held[op.block, array_of(ptr)] = op  # several: no address
    for op in cx.ops().of(_WRITING):
        ptr, block = op.args[0], op.block
        array = array_of(ptr)
        while block is not None:
            if held.get((block, array), ptr) is not ptr:
                return True
            block = block.owner.block if block.owner is not None else None
    return False


def _blocks_around(cx: PassCx, again: set[Op]) -> set[Block]:
    """The blocks with a load of one of these addresses in them, at any depth."""
    found: set[Block] = set()
    for op in cx.ops().of(LOADS):
        block = op.block if op.args[0] in again else None
        while block is not None and block not in found:
            found.add(block)
            block = block.owner.block if block.owner is not None else None
    return found


class _Loads:
    """The loads of a block that a later one may reuse.

    by_ptr: by address. new: addresses, by array, that no store had to be compared with yet, which
    costs more than most blocks need; at: the others, by location; held: bit set of the locations.
    """

    __slots__ = ("at", "by_ptr", "held", "new")

    def __init__(self) -> None:
        self.by_ptr: dict[Op, Op] = {}
        self.new: dict[object, list[Op]] = {}
        self.at: dict[Location, list[Op]] = {}
        self.held = 0

    def add(self, ptr: Op, load: Op) -> None:
        """Keep a load."""
        self.by_ptr[ptr] = load
        array = array_of(ptr)
        if array in self.new:
            self.new[array].append(ptr)
        else:
            self.new[array] = [ptr]

    def clear(self) -> None:
        """Forget all of them."""
        self.by_ptr.clear()
        self.new.clear()
        self.at.clear()
        self.held = 0

    def hit(self, memory: MemoryLocations, ptr: Op) -> list[Op]:
        """Remove and return the addresses that may be the same location as ``ptr``."""
        at = self.at
        for array in (array_of(ptr),) if memory.noalias else tuple(self.new):
            for other in self.new.pop(array, ()):
                place = memory.location(other)
                at.setdefault(place, []).append(other)
                self.held |= place.bit
        if not at:
            return []
        written = memory.location(ptr)
        if len(at) <= _FEW:
            hit = [place for place in at if memory.relation(written, place) != DIFFERENT]
        else:
            bits = self.held & (memory.may_alias(written) | written.bit)
            hit = memory.members(bits)
        gone: list[Op] = []
        for place in hit:
            self.held ^= place.bit
            gone += at.pop(place)
        return gone


class _Sweep:
    __slots__ = ("again", "around", "changed", "cx", "flatten", "func", "holding", "joins",
                 "memory", "others", "repl", "reused", "users")  # fmt: skip

    def __init__(self, func: Func, cx: PassCx, again: set[Op] | None, joins: bool) -> None:
        self.again = again
        """The addresses whose loads are worth keeping; None for all, for remarks."""
        self.reused: set[Op] = set()
        """The same, once there are enough remarks."""
        self.joins = joins
        self.around: set[Block] | None = None
        """The blocks with something to do in them; None for all."""
        self.holding = 0
        """The number of blocks around the current one that hold loads, which it may change."""
        self.func = func
        self.cx = cx
        self.flatten = cx.config.flatten_if
        self.changed = False
        self.memory: MemoryLocations | None = None
        self.others = False
        """True if something else has changed than that loads were replaced."""
        self.repl: dict[Op, Op] = {}
        self.users: list[Op] = []
        """The ops with a new operand."""

    def block(self, block: Block) -> list[Op]:
        """Simplify ``block``; return the global addresses that it may write to, and its fences.

        These may be missing if no block around it holds loads.
        """
        interesting = _INTERESTING
        repl = self.repl
        if self.around is not None and block not in self.around:
            return self.passed(block)
        get = repl.get
        loads = _Loads()
        written: list[Op] = []
        out: list[Op] | None = None
        ops = self.merged(block)
        for index, op in enumerate(ops):
            if repl:
                args = op.args
                for a in args:
                    if a in repl:
                        op.args = tuple([get(x, x) for x in args])
                        self.users.append(op)
                        break
            code = op.code
            if interesting[code]:
                if C.CONTROL[code]:
                    writes: list[Op] = []
                    holds = bool(loads.by_ptr)
                    self.holding += holds
                    kept = self.control(op, writes)
                    self.holding -= holds
                    for ptr in writes:
                        self.forget(loads, ptr, op)
                    written += writes
                    if len(kept) != 1 or kept[0] is not op:
                        self.others = True
                        if out is None:
                            out = ops[:index]
                    if out is not None:
                        set_block(kept, block)
                        out += kept
                    continue
                same = self.value(op, loads, written)
                if same is not None:
                    repl[op] = same
                    loaded = code == C.GLOBAL_LOAD
                    self.others |= not loaded
                    self.cx.rewrote(op, same, "loaded before" if loaded else _SAME_VALUE)
                    if out is None:
                        out = ops[:index]
                    continue
            if out is not None:
                out.append(op)
        if out is not None:
            block.ops = out
            self.changed = True
        return written

    def passed(self, block: Block) -> list[Op]:
        """The result of `block` for one without anything to do but to use other values."""
        repl = self.repl
        if not (repl or self.holding):
            return []
        ops = walk(block)
        for op in ops if repl else ():
            for a in op.args:
                if a in repl:
                    op.args = tuple([repl.get(x, x) for x in op.args])
                    self.users.append(op)
                    break
        written = [op if C.FENCE[op.code] else op.args[0] for op in ops if _WRITES[op.code]]
        return [ptr for ptr in written if ptr.code != C.ALLOCA]

    def value(self, op: Op, loads: _Loads, written: list[Op]) -> Op | None:
        """The value that ``op`` is known to have, if that value comes before it."""
        code = op.code
        if C.FENCE[code]:
            self.forget(loads, op, op)
            written.append(op)
            return None
        ptr = op.args[0]
        if code == C.GLOBAL_LOAD:
            first = loads.by_ptr.get(ptr)
            if first is None:
                if self.again is None or ptr in self.again:
                    loads.add(ptr, op)
                return None
            return None if first.type is not op.type else first
        if code == C.ABS:
            return ptr if is_unsigned(ptr) else None
        if code == C.SHIFT_PTR:
            return ptr if is_trivial(op) else None
        if ptr.code != C.ALLOCA:
            self.forget(loads, ptr, op)
            written.append(ptr)
        return None

    def forget(self, loads: _Loads, ptr: Op, writer: Op) -> None:
        """Drop the loads that a write to ``ptr``, in ``writer``, may change; all at a fence."""
        by_ptr = loads.by_ptr
        if not by_ptr:
            return
        if C.FENCE[ptr.code]:
            loads.clear()
            return
        if self.memory is None:
            self.memory = self.cx.analysis("memory", MemoryLocations)
        gone = loads.hit(self.memory, ptr)
        if self.cx.remarks_left and len(gone) > 1:
            places = {other: place for place, other in enumerate(by_ptr)}
            gone.sort(key=places.__getitem__)
        for other in gone:
            load = by_ptr.pop(other)
            if self.cx.remarks_left and ptr is not other:
                line = writer.loc.root.line
                where = f" at line {line}" if line else f" by ${writer.id}"
                why = f"the write through ${ptr.id}{where} may hit the same element"
                self.cx.remark(load, f"${load.id} is not reused after it: {why}")
                if not self.cx.remarks_left:
                    self.again = self.reused

    def control(self, op: Op, written: list[Op]) -> list[Op]:
        """The ops that replace a control op; adds the addresses it may write to."""
        code = op.code
        empty = True
        for region in op.regions:
            written += self.block(region)
            if not (code == C.OFFLOADED and region is op.regions[0]) and not _is_idle(region):
                empty = False
        if empty and code != C.WHILE and not (code == C.GRAPH_REGION and _matters(op)):
            self.cx.rewrote(op, None, "empty")
            return []
        if code == C.IF and self.flatten and _is_flat(op):
            return _selects(self.func, op)
        return [op]

    def merged(self, block: Block) -> list[Op]:
        """The block's ops after ifs on the same condition have become one."""
        ops = block.ops
        if not self.joins:
            return ops
        conditions = [op.args[0] for op in ops if op.code == C.IF]
        if not any(map(is_, conditions, conditions[1:])):
            return ops  # only ifs that follow each other can become one
        movable = MOVABLE
        out: list[Op] | None = None
        last: Op | None = None  # an if that the next one may join
        at = 0  # its place in the new list
        for index, op in enumerate(ops):
            if op.code == C.IF:
                if last is not None and op.args[0] is last.args[0]:
                    if out is None:
                        out = ops[:index]
                    _join(last, op)
                    self.cx.rewrote(op, last, "an if on the same condition")
                    # The ops between cannot depend on the first if.
                    between = out[at + 1 :]
                    out[at:] = [*between, last]
                    at += len(between)
                    continue
                last, at = op, index if out is None else len(out)
            elif last is not None and not movable[op.code]:
                last = None
            if out is not None:
                out.append(op)
        if out is not None:
            block.ops = out
            self.changed = self.others = True
        return block.ops


def _is_idle(region: Block) -> bool:
    """True if nothing in a region has an effect: what it computes is used in it alone.

    Without it, a chain of ``elif`` would lose one link a round: the condition of an if that is gone
    keeps the branch that it was in until `die`.
    """
    removable = C.REMOVABLE
    ops = region.ops
    return not ops or (removable[ops[-1].code] and all(removable[op.code] for op in ops))


def _matters(region: Op) -> bool:
    """True if a graph region has an effect although it is empty: its condition is read."""
    return region.attr.param >= 0 or region.attr.label >= 0


def _join(first: Op, second: Op) -> None:
    """Append the branches of an if to those of another on the same condition."""
    for mine, theirs in zip(first.regions, second.regions, strict=True):
        # After a jump the other branch is not reached.
        if not (mine.ops and C.END[mine.ops[-1].code]):
            set_block(theirs.ops, mine)
            mine.ops.extend(theirs.ops)


def _is_flat(op: Op) -> bool:
    """True if an if is small and does nothing but compute and set locals."""
    then, other = op.regions
    if len(then.ops) + len(other.ops) > _FLAT_OPS:
        return False
    return all(
        C.PURE[o.code] or o.code in (C.LOCAL_LOAD, C.LOCAL_STORE)
        for region in op.regions
        for o in region.ops
    )


def _selects(func: Func, op: Op) -> list[Op]:
    """The ops of both branches of an if, with stores that keep the old value on the other path."""
    out: list[Op] = []
    cond = op.args[0]
    for taken, region in zip((True, False), op.regions, strict=True):
        for o in region.ops:
            if o.code == C.LOCAL_STORE:
                ptr, new = o.args
                old = func.new_op(C.LOCAL_LOAD, new.type, (ptr,), None, o.loc)
                args = (cond, new, old) if taken else (cond, old, new)
                chosen = func.new_op(C.SELECT, new.type, args, None, o.loc)
                func.origins[old.id] = func.origins[chosen.id] = o.id
                o.args = (ptr, chosen)
                out += [old, chosen]
            out.append(o)
    return out
