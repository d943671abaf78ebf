"""offload: turns the kernel into a list of tasks.

Each loop at the root that is not strictly serialized becomes a parallel task. Statements between
such loops, with everything nested in them, become serial tasks::

    <i32> $1 = external_tensor_shape_along_axis [(0, 0)]
    <i32> $2 = const 0
    $3 : range_for $2, $1 body {            $3 : offloaded {kind='range_for'} header {
      <i32> $4 = loop_index $3 [0]            <i32> $9 = const 0
      ...                                     <i32> $10 = external_tensor_shape_along_axis [(0, 0)]
    }                                         $8 : bounds $9, $10
                                            } body {
                                              <i32> $4 = loop_index $3 [0]
                                              ...
                                            }

Values that one task computes and another needs (`cross-task values`):

* constants, parameters, shapes, addresses and short chains of cheap arithmetic on them are
  computed again in each task that needs them; for bounds, in the header;
* any other value is stored to a slot of the buffer between tasks right after its computation, and
  loaded by each task that uses it;
* an array that the kernel allocates becomes a run of such slots, addressed as before, if more than
  one task or a parallel task uses it;
* a local that more than one task or a parallel task uses becomes such a slot: loads,
  stores and atomics on it become global. So ``r += i`` in a parallel loop is an atomic on a
  global temporary. The buffer is zero at each launch, as a local is, so a first store of 0 goes;
* an adstack belongs to one serial task, or to one iteration. An adstack that several would share
  is a bug in the pass that created it.

The body of a graph region is cut in the same way, so the region then holds tasks. In a
``do_while`` a variable is 0 each time its op is executed, so its slot is set to 0 there. A variable
from outside of the ``do_while`` gets a slot even if a single task uses it, because it keeps its
value from round to round.

Slots are assigned in the order of definition, so equal kernels have equal slots. Tasks without
ops vanish. Loops inside ``if`` and ``while`` and serialized loops (they are in a serial
task) do not change, nor do the bodies of loops.

The pass ends with `share_tasks` or `share_numbers` where tasks that repeat an earlier one may be
set aside.
"""

from __future__ import annotations

from itertools import chain

from ..analysis.loops import do_while_around
from ..errors import QuadrantsCompilationError, QuadrantsInternalError
from ..ir import Block, Builder, Callee, ForAttr, Func, Loc, Op, TaskAttr, base_of
from ..ir import codes as C
from ..ir.edit import walk
from ..types import DataType, PointerType, Type, i32, pointer_to, void
from .manager import PassCx
from .registry import register

_CLONE_COST = 12
_NEVER = 1 << 30


@register("offload")
def offload(func: Func, cx: PassCx) -> bool:
    """Cut the root into serial and parallel tasks, and carry values between them."""
    if isinstance(func, Callee):
        return False
    _Carrier(func, _split(func), cx).run()
    func.stage = "offloaded"
    for task in () if func.shared is None else func.shared.equal:
        task.code = C.OFFLOADED
    # What is computed again has copies as operands, one of each; what is loaded has none.
    cx.keep("alg_simp", "binary_op_simplify", "constant_fold")
    if cx.shares_from and len(func.body.ops) >= max(cx.shares_from, 2):
        # In this run: a record then has no listing of all tasks in full.
        from .share_numbers import share_alike

        share_alike(func, cx)
    return True


class _Segment:
    """A future task: a root loop, or the ops between such loops.

    block: the block of the root that it is in. again: the ``do_while`` that repeats it.
    """

    __slots__ = ("again", "block", "body", "body_map", "foreign", "header", "header_map", "loop",
                 "ops")  # fmt: skip

    def __init__(self, loop: Op | None, block: Block) -> None:
        self.loop = loop
        self.block = block
        self.again = do_while_around(block)
        self.ops: list[Op] = []  # of a serial segment
        self.header: list[Op] = []  # carried-in ops
        self.body: list[Op] = []
        self.foreign: set[Op] = set()  # what it uses of other segments, or shares with them
        self.header_map: dict[Op, Op] = {}  # op of another segment -> its stand-in here
        self.body_map: dict[Op, Op] = {}


_Items = list["_Segment | Op"]
"""The contents of a block of the root: future tasks, and graph regions."""


def _split(func: Func) -> dict[Block, _Items]:
    """The items of each block of the root, in program order: a block comes before those in it."""
    found: dict[Block, _Items] = {}
    _split_block(func.body, found)
    return found


def _split_block(block: Block, found: dict[Block, _Items]) -> None:
    items = found[block] = []
    open_one: _Segment | None = None
    for op in block.ops:
        if op.code == C.GRAPH_REGION:
            items.append(op)
            open_one = None
        elif op.code == C.RANGE_FOR and not op.attr.strictly_serialized:
            items.append(_Segment(op, block))
            open_one = None
        else:
            if open_one is None:
                open_one = _Segment(None, block)
                items.append(open_one)
            open_one.ops.append(op)
    for item in items:
        if isinstance(item, Op):
            _split_block(item.regions[0], found)


def _in_order(block: Block, items: dict[Block, _Items]) -> list[_Segment]:
    """The segments under ``block`` in program order."""
    found: list[_Segment] = []
    for item in items[block]:
        found += [item] if isinstance(item, _Segment) else _in_order(item.regions[0], items)
    return found


def _costs(segments: list[_Segment]) -> dict[Op, int]:
    """The cost of computing each root op again, from parameters up; `_NEVER` if impossible."""
    known: dict[Op, int] = {}
    for segment in segments:
        for op in segment.ops:
            code = op.code
            if not C.PURE[code]:
                cost = _NEVER
            elif not op.args:
                cost = 0
            else:
                cost = 12 if C.MATH[code] else 1
                for a in op.args:
                    cost += known[a]
            known[op] = min(cost, _NEVER)
    return known


class _Carrier:
    """Finds the values that cross from one segment to another, and builds the tasks."""

    def __init__(self, func: Func, items: dict[Block, _Items], cx: PassCx) -> None:
        self.func = func
        self.items = items
        segments = self.segments = _in_order(func.body, items)
        self.cx = cx
        self.home = {op: s for s in segments for op in s.ops}
        # Operands as they were: building a task replaces them by operands that only it can see.
        self.operands = {op: op.args for s in segments for op in s.ops}
        self.costs = _costs(segments)
        # In a single task nothing crosses. An array may be in error, wherever it is used.
        self.crosses = len(segments) > 1 or C.ARRAY_ALLOCA in [op.code for op in self.home]
        # Each op comes before those in its regions.
        self.under = {s: _all_ops(s) for s in segments} if self.crosses else {}
        self.shared: set[Op] = set()  # allocas that become slots
        self.slots: dict[Op, int] = {}

    def run(self) -> None:
        if self.crosses:
            self.place_allocas()
            self.assign_slots()
        if self.shared:
            self.drop_zero_stores()
        made: dict[_Segment, Op | None] = {}
        for segment in self.segments:
            made[segment] = self.loop_task(segment) if segment.loop else self.serial_task(segment)
        for block, items in self.items.items():
            ops = [made[item] if isinstance(item, _Segment) else item for item in items]
            block.ops = [op for op in ops if op is not None]

    # --- what crosses ----------------------------------------------------------------------

    def place_allocas(self) -> None:
        """Move the locals that one serial segment uses there, and note the shared ones."""
        users: dict[Op, dict[_Segment, None]] = {}
        if _MEMORY.isdisjoint([op.code for op in self.home]):
            return
        for segment in self.segments:
            for op in self.under[segment]:
                for a in op.args:
                    if a.code in _POINTERS and (a := base_of(a)).code in _MEMORY and a in self.home:
                        users.setdefault(a, {})[segment] = None
        for var, segments in users.items():
            if var.code == C.ARRAY_ALLOCA and var.attr.space == "shared":
                raise QuadrantsCompilationError.from_loc(
                    f"shared array {var.attr.name!r} is made outside of a parallel loop: make it "
                    "inside of the loop whose blocks shall share it",
                    var.loc,
                )
            only = next(iter(segments))
            if var.code == C.AD_STACK_ALLOCA and (len(segments) > 1 or only.loop is not None):
                raise QuadrantsInternalError.from_loc(
                    f"adstack ${var.id} is shared by tasks or iterations", var.loc
                )
            lasts = only.again is not self.home[var].again
            if len(segments) > 1 or only.loop is not None or lasts:
                self.shared.add(var)
                self.cx.remark(var, "shared by tasks or iterations: becomes a global temporary")
            elif only is not self.home[var]:
                self.home[var].ops.remove(var)
                only.ops.insert(0, var)
                self.home[var] = only

    def assign_slots(self) -> None:
        """Assign buffer slots to shared locals and to values that cannot be computed again."""
        shared, need = self.shared, set(self.shared)
        home = self.home
        for segment in self.segments:
            used = set(chain.from_iterable([op.args for op in self.under[segment]]))
            segment.foreign = {
                a for a in used if a in home and (home[a] is not segment or a in shared)
            }
            for a in segment.foreign:
                self.require(a, segment, need)
        size = 0
        for segment in self.segments:
            for op in segment.ops:
                if op in need:
                    t = _stored_type(op)
                    align = max(4, t.size)
                    size = -(-size // align) * align
                    self.slots[op] = size
                    size += t.size * (op.attr.count if op.code == C.ARRAY_ALLOCA else 1)
        self.func.global_tmp_size = -(-size // 8) * 8

    def require(self, x: Op, segment: _Segment, need: set[Op]) -> None:
        home = self.home.get(x)
        if home is None or home is segment or x in need:
            return
        if x.type.is_ptr or self.costs[x] <= _CLONE_COST:
            for a in x.args:
                self.require(a, segment, need)
        else:
            need.add(x)

    def drop_zero_stores(self) -> None:
        """Remove stores of 0 to a shared local that nothing touched before: it holds 0."""
        shared = self.shared
        before: set[Op] = set()  # what the segments before this one touch
        for segment in self.segments:
            if segment.loop is not None or segment.again is not None:
                before.update(a for op in self.under[segment] for a in op.args if a in shared)
                continue
            zero: set[Op] = set()  # stored to for the first time here
            kept: list[Op] = []
            here: set[Op] = set()
            for op in segment.ops:
                if op.code == C.LOCAL_STORE and op.args[0] in shared:
                    var, value = op.args
                    first = var not in before and var not in here and var not in zero
                    zero.add(var)
                    if first and value.code == C.CONST and repr(value.attr) in _ZERO:
                        continue
                for inner in _inside(op):
                    here.update(inner.args)
                here.update(op.args)
                kept.append(op)
            before |= here
            segment.ops = kept

    # --- what a segment holds --------------------------------------------------------------

    def stand_in(self, x: Op, segment: _Segment, header: bool, block: Block) -> Op:
        """The op that has the value of ``x`` in ``segment`` (in its header or its body)."""
        home = self.home.get(x)
        if home is None or (home is segment and x not in self.shared):
            return x
        mapping = segment.header_map if header else segment.body_map
        found = mapping.get(x)
        if found is not None:
            return found
        out = segment.header if header else segment.body
        if x in self.slots:
            new = self.func.new_op(
                C.GLOBAL_TMP, pointer_to(_stored_type(x)), (), self.slots[x], x.loc, block
            )
            out.append(new)
            if x not in self.shared:
                new = self.func.new_op(C.GLOBAL_LOAD, x.type, (new,), None, x.loc, block)
                out.append(new)
        else:
            operands = self.operands[x]
            args = tuple([self.stand_in(a, segment, header, block) for a in operands])
            new = self.func.new_op(x.code, x.type, args, x.attr, x.loc, block)
            out.append(new)
        self.func.origins[new.id] = x.id
        mapping[x] = new
        return new

    def rewrite(self, ops: list[Op], segment: _Segment, block: Block) -> None:
        """Make ``ops`` (and what is nested in them) use what is visible in ``segment``."""
        foreign, shared, made = segment.foreign, self.shared, segment.body_map.get
        for op in [op for op in ops if not foreign.isdisjoint(op.args)]:
            args = op.args
            op.args = tuple([
                (made(x) or self.stand_in(x, segment, False, block)) if x in foreign else x
                for x in args
            ])  # fmt: skip
            if shared and next(a for a in args if a in foreign) in shared:
                op.code = _GLOBAL.get(op.code, op.code)

    # --- tasks -----------------------------------------------------------------------------

    def loop_task(self, segment: _Segment) -> Op:
        """The root loop itself, turned into a task in place."""
        loop = segment.loop
        assert loop is not None
        attr = loop.attr
        body = loop.regions[0]
        header = Block(loop)
        bounds = tuple([self.stand_in(a, segment, True, header) for a in loop.args])
        end = self.func.new_op(C.BOUNDS, void, bounds, None, loop.loc, header)
        header.ops = [*segment.header, end]
        if self.crosses:
            self.rewrite(self.under[segment][1:], segment, body)
        body.ops = segment.body + body.ops
        loop.code, loop.args = C.OFFLOADED, ()
        loop.regions = (header, body)
        loop.attr = TaskAttr(
            "range_for", attr.axes, attr.block_dim, attr.num_cpu_threads, attr.loop_name,
            trip=attr.trip,
        )  # fmt: skip
        return loop

    def serial_task(self, segment: _Segment) -> Op | None:
        """A task around the ops of ``segment``; None if nothing is left of them."""
        func = self.func
        task = func.new_op(C.OFFLOADED, void, (), TaskAttr("serial"), func.loc, segment.block, 2)
        header, body = task.regions
        if self.crosses:
            self.rewrite(_all_ops(segment), segment, body)
        ops: list[Op] = []
        for op in segment.ops:
            if op in self.shared:
                if segment.again is not None:
                    self.clear(op, Builder(func, body, op.loc, ops))
                continue
            ops.append(op)
            offset = self.slots.get(op)
            if offset is not None:
                tmp = func.new_op(C.GLOBAL_TMP, pointer_to(op.type), (), offset, op.loc, body)
                ops += [tmp, func.new_op(C.GLOBAL_STORE, void, (tmp, op), None, op.loc, body)]
        body.ops = _without_unused(segment.body + ops)
        if not body.ops:
            return None
        for op in body.ops:
            op.block = body
        task.loc = _first_loc(body.ops, func.loc)
        header.ops = [func.new_op(C.BOUNDS, void, (), None, task.loc, header)]
        return task

    def clear(self, var: Op, b: Builder) -> None:
        """Set the slots of a shared variable to 0."""
        t = _stored_type(var)
        assert isinstance(t, DataType)
        tmp = b.emit(C.GLOBAL_TMP, (), self.slots[var], pointer_to(t))
        zero = b.const(0, t)
        if var.code != C.ARRAY_ALLOCA:
            b.store(tmp, zero)
            return
        loop = b.range_for(
            (b.const(0, i32), b.const(var.attr.count, i32)), ForAttr(strictly_serialized=True)
        )
        with b.inside(loop.regions[0]):
            b.store(b.element(tmp, b.loop_index(loop, 0)), zero)


_MEMORY = frozenset({C.ALLOCA, C.ARRAY_ALLOCA, C.AD_STACK_ALLOCA})
_POINTERS = _MEMORY | {C.SHIFT_PTR, C.EXTERNAL_PTR}
_ZERO = frozenset({"0", "0.0", "False"})
_GLOBAL = {C.LOCAL_LOAD: C.GLOBAL_LOAD, C.LOCAL_STORE: C.GLOBAL_STORE}


def _stored_type(op: Op) -> Type:
    """The type of the slot of a shared local or a crossing value."""
    return op.type.elem if isinstance(op.type, PointerType) else op.type


def _inside(op: Op) -> list[Op]:
    return [o for region in op.regions for o in walk(region)] if op.regions else []


def _all_ops(segment: _Segment) -> list[Op]:
    if segment.loop is not None:
        return [segment.loop, *_inside(segment.loop)]
    found: list[Op] = []
    for op in segment.ops:
        found.append(op)
        if op.regions:
            found += _inside(op)
    return found


def _without_unused(ops: list[Op]) -> list[Op]:
    """``ops`` of a task's body less those whose values nothing uses any more."""
    used: set[Op] = set()
    kept: list[Op] = []
    for op in reversed(ops):
        if op in used or not C.REMOVABLE[op.code]:
            kept.append(op)
            used.update(op.args)
            if op.regions:
                used.update([a for inner in _inside(op) for a in inner.args])
    kept.reverse()
    return kept


def _first_loc(ops: list[Op], default: Loc) -> Loc:
    """The source location where a serial task begins: that of its first op with an effect."""
    for op in ops:
        if not C.REMOVABLE[op.code] and op.loc.line:
            return op.loc
    return default
