"""forward_local_values: replaces loads of a local variable where only one store can reach.

Before::

    <*f32> $1 = alloca ['a']
    $2 : local_store $1, $0
    $3 : range_for $b, $e body {
      <f32> $4 = local_load $1              <f32> $9 = local_load $1
      <f32> $5 = mul $4, $4                 <f32> $5 = mul $9, $9
      $6 : local_store $1, $5               $6 : local_store $1, $5
      <f32> $7 = local_load $1
      $8 : global_store $p, $7              $8 : global_store $p, $5
    }

A load is replaced by the value stored last. Where several stores may reach (at the head of a loop
that sets the variable, after such a loop, or after an ``if`` that sets it), one load serves all
reads from there on. So variables remain only where control flow joins, and a loop uses a value
from outside if it does not change there. Then stores that nothing reads, and variables without
loads, are deleted.

An update whose old value is not used (``s += x``) stays an atomic as long as the value of the
variable is not known, because it is linear. Other atomics on locals become an operation and a
store.

It leaves alone variables that parallel iterations set, variables whose address a call uses, and
arrays.
"""

from __future__ import annotations

from ...analysis import use_counts
from ...ir import Block, Builder, Func, Op, walk
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION
from ...types import DataType, PointerType
from ..manager import PassCx
from ..registry import register
from .segments import is_parallel

__all__ = ["forward_local_values"]


@register("forward_local_values")
def forward_local_values(func: Func, cx: PassCx) -> bool:
    """Replace loads of locals by what was stored, and drop stores that nothing reads."""
    if func.autodiff != "reverse":
        return False
    own = _own_variables(func)
    if not own:
        return False
    forward = _Forward(func, own)
    forward.block(func.body)
    changed = forward.finish()
    cx.rewrote_all(forward.repl, "the value that the variable holds")
    return _Dead(func, own).run() or changed


def _own_variables(func: Func) -> set[Op]:
    """Variables that are loaded, stored and updated only, and by one parallel iteration at most."""
    own: set[Op] = set()
    other: set[Op] = set()
    for root in func.body.ops:
        parallel = is_parallel(root)
        inside: set[Op] = set()
        for op in [root, *[o for region in root.regions for o in walk(region)]]:
            code = op.code
            if code == C.ALLOCA:
                own.add(op)
                inside.add(op)
                continue
            for i, a in enumerate(op.args):
                if a.code == C.ALLOCA:
                    plain = i == 0 and (code in (C.LOCAL_LOAD, C.LOCAL_STORE) or C.ATOMIC[code])
                    if not plain or (parallel and a not in inside and code != C.LOCAL_LOAD):
                        other.add(a)
    return own - other


def _stored_in(block: Block, own: set[Op], found: dict[Op, list[Op]]) -> dict[Op, None]:
    """Variables stored to under ``block``; for each op with regions, ``found`` gets those in it."""
    here: dict[Op, None] = {}
    for op in block.ops:
        if op.regions:
            inside: dict[Op, None] = {}
            for region in op.regions:
                inside.update(_stored_in(region, own, found))
            found[op] = list(inside)
            here.update(inside)
        elif (op.code == C.LOCAL_STORE or C.ATOMIC[op.code]) and op.args[0] in own:
            here[op.args[0]] = None
    return here


class _Forward:
    """One walk; ``env`` holds the value of each variable at the current place."""

    def __init__(self, func: Func, own: set[Op]) -> None:
        self.func = func
        self.own = own
        self.env: dict[Op, Op] = {}
        self.trail: list[tuple[Op, Op | None]] = []
        self.repl: dict[Op, Op] = {}
        self.waiting: set[Op] = set()  # loads and zeros put where one might be needed
        self.put = 0  # their number so far
        self.made: set[Op] = set()  # those loads
        self.places: list[Block] = []  # the blocks that hold them
        self.stored: dict[Op, list[Op]] = {}
        self.counts = use_counts(func.body)
        self.changed = False
        _stored_in(func.body, own, self.stored)

    def set(self, var: Op, value: Op) -> None:
        self.trail.append((var, self.env.get(var)))
        self.env[var] = value

    def undo(self, mark: int) -> None:
        """Forget what was learnt since the trail was ``mark`` long."""
        trail, env = self.trail, self.env
        while len(trail) > mark:
            var, old = trail.pop()
            if old is None:
                env.pop(var, None)
            else:
                env[var] = old

    def wait(self, b: Builder, var: Op) -> None:
        """Put a load of ``var`` here in case one is wanted, now the value of the variable."""
        load = b.emit(C.LOCAL_LOAD, (var,))
        self.waiting.add(load)
        self.made.add(load)
        self.put += 1
        self.set(var, load)

    def block(self, block: Block, head: list[Op] | None = None) -> None:
        """Rewrite a block. head: variables that may hold anything when it begins."""
        b = Builder(self.func, block, ops=[])
        before = self.put
        if head:
            b.loc = block.owner.loc if block.owner is not None else b.loc
            for var in head:
                self.wait(b, var)
        repl, own = self.repl, self.own
        for op in block.ops:
            if repl:
                args = op.args
                for a in args:
                    if a in repl:
                        op.args = tuple([repl.get(x, x) for x in args])
                        break
            code = op.code
            b.loc = op.loc
            if op.regions:
                self.control(op, b)
            elif code == C.ALLOCA and op in own:
                b.ops.append(op)
                assert isinstance(op.type, PointerType)
                zero = b.const(0, _scalar(op.type))
                self.waiting.add(zero)
                self.put += 1
                self.set(op, zero)
            elif code == C.LOCAL_LOAD and op.args[0] in own:
                found = self.repl[op] = self.value(op.args[0])
                if found in self.made:
                    self.func.origins.setdefault(found.id, op.id)
                self.changed = True
            elif code == C.LOCAL_STORE and op.args[0] in own:
                b.ops.append(op)
                self.set(op.args[0], op.args[1])
            elif C.ATOMIC[code] and op.args[0] in own:
                self.update(op, b)
            else:
                b.ops.append(op)
        block.ops = b.ops
        if self.put != before:
            self.places.append(block)

    def value(self, var: Op) -> Op:
        """The value of a variable, for use."""
        found = self.env[var]
        self.waiting.discard(found)
        return found

    def update(self, op: Op, b: Builder) -> None:
        """An atomic on a local."""
        var, operand = op.args[0], op.args[1]
        plain = op.code == C.ATOMIC_ADD and not self.counts.get(op)
        before = self.env[var]
        if plain and before in self.waiting and before.code == C.LOCAL_LOAD:
            b.ops.append(op)
            self.wait(b, var)
            return
        self.changed = True
        old = self.value(var)
        if op.code in ATOMIC_OPERATION:
            new = b.binary(ATOMIC_OPERATION[op.code], old, operand)
        elif op.code == C.ATOMIC_XCHG:
            new = operand
        else:
            new = b.select(b.binary(C.CMP_EQ, old, op.args[2]), operand, old)
        b.store(var, new)
        self.func.origins[new.id] = op.id
        self.repl[op] = old
        self.set(var, new)

    def control(self, op: Op, b: Builder) -> None:
        env = self.env
        stored = [var for var in self.stored[op] if var in env]
        loop = C.LOOP[op.code]
        for region in op.regions:
            mark = len(self.trail)
            self.block(region, stored if loop else None)
            self.undo(mark)
        b.ops.append(op)
        for var in stored:
            self.wait(b, var)

    def finish(self) -> bool:
        """Delete the loads that no op uses."""
        waiting = self.waiting
        if waiting:
            for block in self.places:
                block.ops = [op for op in block.ops if op not in waiting]
        return self.changed


class _Dead:
    """Deletes stores that no load reads, walking backwards."""

    def __init__(self, func: Func, own: set[Op]) -> None:
        self.func = func
        self.own = own
        self.loads: dict[Op, set[Op]] = {}  # loop -> variables read in it
        self.changed = False
        self.read = self.collect(func.body)
        self.counts = use_counts(func.body)

    def collect(self, block: Block) -> set[Op]:
        """Variables read under ``block``."""
        found: set[Op] = set()
        for op in block.ops:
            if op.regions:
                inside: set[Op] = set()
                for region in op.regions:
                    inside |= self.collect(region)
                if C.LOOP[op.code]:
                    self.loads[op] = inside
                found |= inside
            elif (op.code == C.LOCAL_LOAD or C.ATOMIC[op.code]) and op.args[0] in self.own:
                found.add(op.args[0])
        return found

    def run(self) -> bool:
        self.block(self.func.body, set(), set())
        return self.changed

    def block(self, block: Block, live: set[Op], end: set[Op]) -> None:
        """Walk one block. live: read after it; becomes what is read from its start on.

        end: what is read when the innermost loop goes on, or is over.
        """
        own = self.own
        out: list[Op] = []
        for op in reversed(block.ops):
            code = op.code
            if op.regions:
                if C.LOOP[code]:
                    around = live | self.loads[op]
                    inner = set(around)
                    self.block(op.regions[0], inner, around)
                    live |= inner
                else:
                    after = set(live)
                    live.clear()
                    for region in op.regions:
                        way = set(after)
                        self.block(region, way, end)
                        live |= way
            elif code in (C.CONTINUE, C.WHILE_CONTROL):
                live |= end
            elif code == C.ALLOCA and op in own:
                live.discard(op)
                if op not in self.read:
                    self.changed = True
                    continue
            elif op.args and op.args[0] in own:
                var = op.args[0]
                if code == C.LOCAL_LOAD:
                    live.add(var)
                elif var not in self.read or (var not in live and not self.counts.get(op)):
                    self.changed = True
                    continue
                elif code == C.LOCAL_STORE:
                    live.discard(var)
            out.append(op)
        out.reverse()
        block.ops = out


def _scalar(t: PointerType) -> DataType:
    assert isinstance(t.elem, DataType)
    return t.elem
