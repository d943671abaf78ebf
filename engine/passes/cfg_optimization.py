"""cfg_optimization: removes loads and stores that the control-flow graph shows to be unnecessary.

::

    <*f32> $1 = alloca ['t']
    $2 : local_store $1, $0
    $3 : if $9 then {                       $3 : if $9 then {
      <f32> $4 = local_load $1                $5 : global_store $8, $0
      $5 : global_store $8, $4              } else {
    } else {                                }
    }

* store-to-load forwarding: a load is replaced by the value of the last store to the same address
  in its node, if no store in between may hit that address. Otherwise it is replaced by the value
  that all stores which may reach it have in common, if that value is visible. A local holds 0
  until the first store;
* identical loads: the second of two loads of an address goes, if there is no possible store in
  between;
* identical stores: a store of the value that the address already holds goes;
* dead stores: a store goes if it is overwritten before any possible load, or never loaded. This
  applies to locals, and to global temporaries that no later task loads. Arrays are live at the end;
* dead atomics: if the destination is overwritten before any load, and no other iteration can see
  it (a local, or a node that is not parallel), the atomic becomes a load.

A load of a local without a store is reported as a remark. After `lower_access` the pass handles
only locals. `full_simplify` runs this pass after `offload`, on the graph of each task.
"""

from __future__ import annotations

from ..analysis.alias import Location, MemoryLocations
from ..analysis.cfg import Cfg, CfgNode, build_cfg
from ..analysis.dataflow import Flow, LaterLoads, Live, show_live
from ..analysis.effects import ATOMIC, FENCE, INIT, LOAD, STORE
from ..analysis.uses import use_counts
from ..ir import Block, Func, Op, drop, normalize, replace_uses
from ..ir import codes as C
from ..types import DataType
from .manager import PassCx
from .needs import has_locals, may_forward, may_forward_locals, same_value
from .registry import register

_FORWARDED = "forwarded from the store"
_UNREAD = "overwritten before it is read, or never read"


@register("cfg_optimization", optional=True, per_task=True)
def cfg_optimization(func: Func, cx: PassCx) -> bool:
    """Forward stores to loads; drop dead and repeated loads, stores and atomics."""
    locals_only = func.stage == "accesses"
    if locals_only and not cx.watched and not cx.for_tasks(has_locals):
        return False
    task, number = cx.task, cx.task_index or 0
    changed, shown = False, list[Flow]()

    def show() -> Cfg:
        if changed or not shown:
            graph = build_cfg(func, task, number)
            shown.append(show_live(func, graph, cx.for_tasks(LaterLoads).of(task)))
        return shown[-1].graph

    cx.note("cfg_before", show)

    def memory() -> MemoryLocations:
        return shown[0].memory if shown else cx.analysis("memory", MemoryLocations)

    def later() -> frozenset[int]:
        return cx.for_tasks(LaterLoads).of(task)

    scope = cx.scope()
    if may_forward_locals(scope) if locals_only else may_forward(scope, memory, later):
        graph = shown[0].graph if shown else build_cfg(func, task, number)
        known = shown and not locals_only
        flow = shown[0] if known else Flow(graph, memory(), locals_only)
        changed = _Optimizer(func, cx, flow).run()
        graph.release()
    cx.note("cfg_after", show)
    return changed


class _Optimizer:
    """One run on one graph. Values of locations are ops; an alloca stands for the 0 it holds."""

    def __init__(self, func: Func, cx: PassCx, flow: Flow) -> None:
        self.func = func
        self.cx = cx
        self.flow = flow
        self.memory = flow.memory
        self.scope = cx.scope()
        self.repl: dict[Op, Op] = {}
        self.dead: set[Op] = set()
        self.constant: set[Op] = set()  # loads that became constants in place
        self.asked: set[Location] = set()  # those whose reaching stores are known
        self.changed = False
        self._order: dict[Block, dict[Op, int]] = {}
        self._counts: dict[Op, int] | None = None

    def run(self) -> bool:
        flow = self.flow
        flow.leave_out_idle()
        if not any(flow.events):
            return False
        self.asked = flow.asked()
        flow.reach(self.asked)
        for node in flow.graph.nodes:
            if node.prev and flow.events[node.id]:
                self.forward(node)
        gone = self.dead | self.constant if self.constant else self.dead
        if gone:
            flow.events = [[e for e in events if e[1] not in gone] for events in flow.events]
        replace_uses(self.scope, self.repl)
        with_tmp = any(location.kind == "tmp" for location in flow.locations)
        later = self.cx.for_tasks(LaterLoads).of(flow.graph.task) if with_tmp else frozenset[int]()
        flow.live(later)
        live = Live(flow)
        for node in flow.graph.nodes:
            if flow.events[node.id]:
                self.drop_dead(node, live)
        drop(self.dead)
        return self.changed or bool(self.dead or self.constant)

    # --- forwarding ------------------------------------------------------------------------

    def forward(self, node: CfgNode) -> None:
        """Walk a node downwards, with the value each location is known to hold."""
        memory = self.memory
        # None: something in this node may have set it. Elements of arrays have bits for that, since
        # what sets one may set thousands.
        known: dict[Location, Op | None] = {}
        killed: dict[Location, Op] = {}  # the last op that may have changed it, for remarks
        remarking = self.cx.remarking
        valid = 0  # the elements whose entry in `known` holds
        touched = 0  # the elements that something in this node may have set
        for kind, op, location in self.flow.events[node.id]:
            alone = location.kind != "array"
            bit = 0 if alone else location.bit
            others = 0 if alone or kind in (INIT, LOAD) else memory.may_alias(location)
            if kind in (ATOMIC, FENCE):
                if remarking:
                    killed.update(dict.fromkeys(memory.members(valid & (bit | others)), op))
                valid &= ~(bit | others)
                touched |= bit | others
                if alone:
                    if known.get(location) is not None:
                        killed[location] = op
                    known[location] = None
                continue
            if kind == INIT:
                value: Op | None = op
                touched |= bit
            else:
                if (alone and location in known) or valid & bit:
                    value = known[location]
                elif touched & bit or location not in self.asked:
                    value = None
                else:
                    value = self.reaching(node, location, op)
                if kind == STORE:
                    stored = self.resolve(op.args[1])
                    if value is not None and same_value(value, stored):
                        self.dead.add(op)
                        self.cx.rewrote(op, None, "the address holds this value already")
                    else:
                        if remarking:
                            killed.update(dict.fromkeys(memory.members(valid & others), op))
                        valid &= ~others
                        touched |= bit | others
                    value = stored
                elif value is None:
                    if location in killed:
                        self.blame(op, killed[location])
                    value = op  # what is loaded here is what the next load would find
                else:
                    self.substitute(op, value)
            known[location] = value
            valid |= bit

    def blame(self, load: Op, writer: Op) -> None:
        """Remark that a value is not forwarded to ``load``."""
        line = writer.loc.root.line
        where = f" at line {line}" if line else ""
        self.cx.remark(
            load, f"${load.id} is not forwarded: ${writer.id}{where} may hit the same element"
        )

    def reaching(self, node: CfgNode, location: Location, at: Op) -> Op | None:
        """The value that all definitions reaching ``node`` agree on, if it is visible at ``at``."""
        value: Op | None = None
        for op in self.flow.reaching(node.id, location):
            if op is None or C.ATOMIC[op.code] or C.FENCE[op.code]:
                return None
            given = op if op.code == C.ALLOCA else self.resolve(op.args[1])
            if value is None:
                value = given
            elif not same_value(value, given):
                return None
        if value is None:
            return None
        return value if value.code in (C.CONST, C.ALLOCA) or self.visible(value, at) else None

    def visible(self, value: Op, at: Op) -> bool:
        """True if ``value`` is made before ``at`` in its block or in one around it."""
        block = value.block
        while at.block is not block:
            owner = at.block.owner if at.block is not None else None
            if owner is None:
                return False
            at = owner
        if block is None:
            return False
        order = self._order.get(block)
        if order is None:
            order = self._order[block] = dict(zip(block.ops, range(len(block.ops)), strict=True))
        return order[value] < order[at]

    def resolve(self, value: Op) -> Op:
        """The op that currently stands for ``value``."""
        repl = self.repl
        while value in repl:
            value = repl[value]
        return value

    def substitute(self, load: Op, value: Op) -> None:
        """Let ``load`` be ``value``: in place if that is a constant, so that it keeps its id."""
        if value.code == C.CONST:
            load.code, load.args, load.attr = C.CONST, (), value.attr
            self.constant.add(load)
            self.cx.rewrote(load, load, _FORWARDED)
        elif value.code == C.ALLOCA:
            name = repr(value.attr) if value.attr else f"${value.id}"
            self.cx.remark(load, f"loads variable {name} before anything is stored to it")
            assert isinstance(load.type, DataType)
            load.code, load.args, load.attr = C.CONST, (), normalize(0, load.type)
            self.constant.add(load)
            self.cx.rewrote(load, load, "nothing was stored before: it holds 0")
        else:
            self.repl[load] = value
            self.dead.add(load)
            loaded = value.code in (C.LOCAL_LOAD, C.GLOBAL_LOAD)
            self.cx.rewrote(load, value, "loaded before" if loaded else _FORWARDED)

    # --- dead stores -----------------------------------------------------------------------

    def drop_dead(self, node: CfgNode, live: Live) -> None:
        """Walk a node upwards, with the locations that are live."""
        live.enter(node.id)
        for kind, op, location in reversed(self.flow.events[node.id]):
            if kind in (LOAD, FENCE):
                live.read(location)
            elif kind == INIT:
                live.end(location)
            elif kind == STORE:
                if location in live:
                    live.end(location)
                else:
                    self.dead.add(op)
                    self.cx.rewrote(op, None, _UNREAD)
            elif location in live or (node.parallel and not location.own):
                live.read(location)
            elif not self.used(op):
                self.dead.add(op)
                self.cx.rewrote(op, None, _UNREAD)
            else:
                self.cx.rewrote(op, op, _UNREAD)
                op.code = C.LOCAL_LOAD if location.kind == "local" else C.GLOBAL_LOAD
                op.args = op.args[:1]
                live.read(location)
                self.changed = True

    def used(self, op: Op) -> bool:
        """True if any op uses the value of an atomic."""
        if self._counts is None:
            self._counts = use_counts(self.scope)
        return op in self._counts
