"""Blocks of a loop on a GPU: shared arrays, barriers, exchanges between iterations.

A work-group is a block, each of its items one iteration. OpenCL requires every item of a group to
reach every barrier; but the last block may be short, and an iteration may end with `continue`
before others wait. So every item runs to the end, and code between barriers is only for those that
live::

    bool live = iteration < iterations;
    if (live) { row[t] = x[i]; }                             a phase
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (live) { y[i] = row[7 - t]; }                         the next one

* Later phases may use the names of a phase: such names are declared at the head of the function.
* Values that are the same for all items are computed outside of phases, where all have them.
* An ``if`` or a loop with a barrier inside goes around phases. Where its condition or bounds are
  not known to be the same for all, one that lives shares it with the others (`_agree`); in a whole
  block, where no item can have ended, each has it already.
* ``continue`` of the task leaves the phase, and ``live`` becomes false.

No OpenCL device has to have subgroups: their exchanges go through memory of the group, between
barriers, so all iterations of a block have to come to an exchange, as on a CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....analysis import SUBGROUP_OPS, shared_arrays
from ....ir import Block, Op, pointee, walk
from ....ir import codes as C
from ....ir.attrs import SUBGROUP_SIZE
from ....types import f16, u1
from .emitter import LOCAL, UNARY, Address, Emitter
from .names import MEMORY, VALUE

if TYPE_CHECKING:
    from .per_iteration import IterationEmitter

__all__ = ["GROUP_OPS", "begin_group", "phases"]

_BARRIER: Final = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
_WAITS: Final = frozenset({C.BLOCK_SYNC, *SUBGROUP_OPS})
_ITEM: Final = "get_local_id(0)"
_DECLARATION: Final = re.compile(r"( *)(?:const )?(\w+) (\w+) = (.*);")
_ALLOCA: Final = frozenset({C.ALLOCA, C.AD_STACK_ALLOCA})


class _Group:
    """The emitter's state for a task whose blocks wait or share memory.

    size: items of a group. ends: iterations may end before others wait. around: ops that go around
    phases. uniform: ops whose value all items have. live, full: names of the variables that say
    whether this item lives, and whether all of them do for good. flat: the depth of the phase that
    is emitted, -1 outside.
    """

    def __init__(self, task: Op, size: int) -> None:
        body = task.regions[1]
        self.task: Final = task
        self.size: Final = size
        self.live = self.full = "true" if task.attr.unit == "thread" else ""
        self.flat = -1
        self.ends = False
        self.shared: dict[str, str] = {}
        self.waiting: Final[set[Block]] = set()
        self.around: Final[set[Op]] = set()
        self.uniform: Final[set[Op]] = set()
        self._look(body, None)
        for op in walk(body):
            if op.code == C.LOOP_INDEX:
                if op.args[0] in self.around:
                    self.uniform.add(op)
            elif C.PURE[op.code] and all(self.known(a) for a in op.args):
                self.uniform.add(op)

    def _look(self, block: Block, loop: Op | None) -> None:
        """Find what goes around phases; loop: the innermost such loop."""
        self.waiting.add(block)
        for op in block.ops:
            jumps = self.jumps(op)
            if any(_waits(region) for region in op.regions) or (loop is not None and jumps):
                self.around.add(op)
                for region in op.regions:
                    self._look(region, op if C.LOOP[op.code] else loop)
            elif jumps:
                self.ends = True

    def jumps(self, op: Op) -> bool:
        """True if ``op`` leaves the loop that it is in, or goes on with it."""
        if op.code == C.IF:
            return any(self.jumps(o) for region in op.regions for o in region.ops)
        return op.code in (C.WHILE_CONTROL, C.CONTINUE)

    def known(self, op: Op) -> bool:
        """True if all items have the value of ``op``."""
        return op in self.uniform or op.block is self.task.regions[0] or op is self.task

    def splits(self, block: Block) -> bool:
        return block in self.waiting and self.flat < 0

    def hoisted(self, e: IterationEmitter, text: str) -> str:
        """``text``, without its declaration if it names something in the open of a phase."""
        if e.depth != self.flat:
            return text
        found = _DECLARATION.fullmatch(text)
        if found is None:
            return text
        blanks, ctype, name, value = found.groups()
        e.head.append(f"{ctype} {name};")
        return f"{blanks}{name} = {value};"

    def iterations(self, e: IterationEmitter, ty: str, iteration: str, iterations: str) -> None:
        """Begin the one iteration of this item."""
        self.live, self.full = e.names.fresh("live"), e.names.fresh("whole")
        e.line(f"const {ty} {iteration} = get_global_id(0);")
        e.line(f"{'' if self.ends else 'const '}bool {self.live} = {iteration} < {iterations};")
        if self.around and not self.ends:
            last = f"(get_group_id(0) + 1) * {self.size}"
            e.line(f"const bool {self.full} = {last} <= {iterations};")


def _waits(block: Block) -> bool:
    return any(op.code in _WAITS for op in walk(block))


def begin_group(e: IterationEmitter, task: Op, size: int) -> None:
    """At the start of a task: its shared arrays are 0."""
    group = e.group = _Group(task, size)
    arrays = shared_arrays(task.regions[1])
    for array in arrays:
        t = pointee(array)
        name, count = e.names.fresh(array.attr.name, "shared"), array.attr.count
        kept = name
        if t is f16:  # arrays of halves there are none, but memory for them
            kept = f"{name}_bits"
            e.head.append(f"__local ushort {kept}[{count}];")
            e.head.append(f"__local half *{name} = (__local half *){kept};")
        else:
            e.head.append(f"__local {MEMORY[t.name]} {name}[{count}];")
        e.op_id = array.id
        e.line(f"for (uint k = {_ITEM}; k < {count}; k += {group.size}) {kept}[k] = 0;")
        e.addresses[array.id] = Address(name, "", t, LOCAL)
    if arrays:
        e.line(_BARRIER)


# Phases


def phases(e: IterationEmitter, block: Block) -> None:
    """Emit a block that items wait in."""
    group = e.group
    phase: list[Op] = []
    for op in block.ops:
        if op.id in e.unused:
            continue
        if op in group.around or op.code in _WAITS:
            _phase(e, phase)
            phase = []
            e.op_id = op.id
            if op.code in SUBGROUP_OPS:
                _EXCHANGES[op.code](e, op)
            else:
                if op in group.around:
                    _agree(e, op)
                e.table[op.code](e, op)
            if e.ended:
                return
        else:
            phase.append(op)
    _phase(e, phase)


def _phase(e: IterationEmitter, ops: list[Op]) -> None:
    """Ops between barriers: what all items have, then what those that live do."""
    group = e.group
    mine: list[Op] = []
    for op in ops:
        if op in group.uniform or op.code in _ALLOCA or op.code == C.ARRAY_ALLOCA:
            e.op_id = op.id
            e.table[op.code](e, op)
        else:
            mine.append(op)
    leaves = e.loop_depth == 0 and any(group.jumps(op) for op in mine)
    e.open(f"if ({group.live}) {'do ' * leaves}{{")
    group.flat = e.depth
    before = len(e.lines)
    _emit(e, mine)
    group.flat = -1
    e.ended = False
    if len(e.lines) > before:
        e.close("} while (0);" if leaves else "}")
    else:  # all of it goes where it is used
        e.close()
        del e.lines[-2:], e.ids[-2:]


def _emit(e: IterationEmitter, ops: list[Op]) -> None:
    for op in ops:
        if e.ended:
            return
        e.op_id = op.id
        e.table[op.code](e, op)


def _continue(e: IterationEmitter, op: Op) -> None:
    if e.group is None or e.loop_depth:
        Emitter.table[op.code](e, op)
        return
    e.statement(op, f"{e.group.live} = false;")
    e.line("break;")
    e.ended = True


def _agree(e: IterationEmitter, op: Op) -> None:
    """All items get the operands of ``op``, which goes around phases."""
    group = e.group
    for arg in op.args:
        if group.known(arg) or arg.code == C.CONST:
            continue
        ctype = VALUE[arg.type.name]
        name = e.names.fresh(f"v{arg.id}_")
        value = e.whole(arg)
        place = _room(e, "agreed", f"__local {'int' if arg.type is u1 else ctype} {{}};", ctype)
        e.line(f"{ctype} {name};")
        if group.ends:
            e.line(f"if ({_ITEM} == 0) {place} = 0;")
            e.line(_BARRIER)
            e.line(f"if ({group.live}) {place} = {value};")
        else:  # the first item of a group lives as long as any does
            e.line(f"if ({group.full}) {name} = {value};")
            e.open("else {")
            e.line(f"if ({_ITEM} == 0) {place} = {group.live} ? {value} : 0;")
        e.line(_BARRIER)
        e.line(f"{name} = {place};")
        e.line(_BARRIER)
        if not group.ends:
            e.close()
        e.v[arg.id] = name
        e.low.pop(arg.id, None)
        e.raw.pop(arg.id, None)


def _room(e: IterationEmitter, name: str, declaration: str, kind: str = "") -> str:
    """Memory of the group for exchanges, declared once a function."""
    group = e.group
    key = name + kind
    if key not in group.shared:
        found = group.shared[key] = e.names.fresh(name)
        e.head.append(declaration.format(found))
    return group.shared[key]


# Exchanges between the iterations of a subgroup


def _shuffle(e: IterationEmitter, op: Op) -> None:
    own, lane, place, size = op.args
    group, t = e.group, op.type
    ctype = VALUE[t.name]
    held = "uchar" if t is u1 else ctype
    room = _room(e, "exchange", f"__local {held} {{}}[{group.size}];", held)
    name, lane_, at = f"v{op.id}", e.names.fresh("lane"), e.names.fresh("at")
    e.comment(op)
    e.line(f"{ctype} {name} = 0;")
    e.line(f"if ({group.live}) {room}[{e.whole(place)}] = {e.whole(own)};")
    e.line(_BARRIER)
    e.open(f"if ({group.live}) {{")
    e.line(f"const int {lane_} = {e.whole(lane)};")
    e.line(f"const int {at} = ({e.at(place, UNARY)} & {-SUBGROUP_SIZE}) + {lane_};")
    there = f"{lane_} >= 0 && {lane_} < {SUBGROUP_SIZE} && {at} < {e.at(size, UNARY)}"
    e.line(f"{name} = {room}[{there} ? {at} : {e.at(place, UNARY)}];")
    e.close()
    e.line(_BARRIER)
    e.v[op.id] = name


def _ballot(e: IterationEmitter, op: Op) -> None:
    group = e.group
    cond = op.args[0]
    room = _room(e, "votes", f"__local uint {{}}[{-(-group.size // SUBGROUP_SIZE)}];")
    ctype, name, mine = VALUE[op.type.name], f"v{op.id}", f"{room}[{_ITEM} / {SUBGROUP_SIZE}]"
    e.comment(op)
    e.line(f"if ({_ITEM} % {SUBGROUP_SIZE} == 0) {mine} = 0;")
    e.line(_BARRIER)
    bit = f"1u << ({_ITEM} % {SUBGROUP_SIZE})"
    e.line(f"if ({group.live} && {e.at(cond, UNARY)}) atomic_or(&{mine}, {bit});")
    e.line(_BARRIER)
    e.line(f"const {ctype} {name} = {mine};")
    e.line(_BARRIER)
    e.v[op.id] = name


def _sync(e: IterationEmitter, op: Op) -> None:
    e.statement(op, _BARRIER)


def _mem_fence(e: IterationEmitter, op: Op) -> None:
    e.statement(op, "mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")


def _array_alloca(e: IterationEmitter, op: Op) -> None:
    if op.attr.space != "shared":
        Emitter.table[op.code](e, op)


_EXCHANGES: Final[dict[int, Callable[[Any, Op], None]]] = {
    C.SUBGROUP_SHUFFLE: _shuffle, C.SUBGROUP_BALLOT: _ballot, C.SUBGROUP_SYNC: _sync,
}  # fmt: skip
GROUP_OPS: Final[dict[int, Callable[[Any, Any], None]]] = {
    **_EXCHANGES, C.BLOCK_SYNC: _sync, C.MEM_FENCE: _mem_fence, C.CONTINUE: _continue,
    C.ARRAY_ALLOCA: _array_alloca,
}  # fmt: skip
