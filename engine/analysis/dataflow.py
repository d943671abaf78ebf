"""Reaching definitions and live variables on a control-flow graph, on Python ints as bit sets.

*Reaching definitions*: which stores may have set a location when control enters a node. A
definition is a store, an atomic, an alloca (it stores 0), or, for memory that is not local, what
was there before the task (``op`` is None). A definition kills those of the same location only. At a
fence others may have read and set whatever they can get at.

*Live variables*: which locations may be loaded after a node before they are stored to again. At
the end of a task arrays are live, and the global temporaries that later tasks load. A load of one
location also keeps all those alive that it may be.

An address computed in a loop is another one in the next iteration, so a store to it there does
not end the life of what an earlier iteration stored: inside of a loop every location that varies in
it is live at the end of each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..ir import Block, Func, Op, base_of, walk
from ..ir import codes as C
from .alias import Location, MemoryLocations, bit_set
from .cfg import Cfg
from .effects import ATOMIC, FENCE, INIT, KIND, LOAD, STORE
from .loops import enclosing_loops, outermost_do_while

__all__ = ["Flow", "LaterLoads", "Live", "analyze"]

_READS: Final = (LOAD, ATOMIC, FENCE)
_SHOWN: Final = 100
"""Live locations that a node names: all of them at each of many nodes would be a square."""
_FEW: Final = 8
"""Definitions of a location, or events of a node, that are looked at one by one."""
_WORD: Final = (1 << 60) - 1
_FIRST_WORDS: Final = (1 << 240) - 1


class Flow:
    """Both analyses of one graph.

    events: by node id, (kind, op, location) of what touches memory, in order. reach_in /
    live_out: by node id; bits are numbers of definitions / of locations. definitions: the op of
    each, None for what was there before the task. of_location: their numbers, by location.
    locations: those in the events. locals_only: leave all other memory out.

    There may be thousands of locations, and as many events in one node: there a set of bits for
    each would be a square. Only elements of arrays, which may be other elements, need one.
    """

    def __init__(self, graph: Cfg, memory: MemoryLocations, locals_only: bool = False) -> None:
        self.graph = graph
        self.memory = memory
        self.events: list[list[tuple[int, Op, Location]]] = []
        self.definitions: list[Op | None] = []
        self.of_location: dict[Location, list[int]] = {}
        self.reach_in: list[int] = [0] * len(graph.nodes)
        self.live_out: list[int] = [0] * len(graph.nodes)
        self._may_define: dict[Location, int] = {}
        self._defined: dict[Location, int] = {}
        self._entered = -1, b""
        self._outer: dict[Block | None, Op | None] = {}
        kinds, location, known = KIND, memory.location, memory.by_ptr
        fences: dict[int, list[tuple[Op, int]]] = {}  # with the number of events before them
        for node in graph.nodes:
            found: list[tuple[int, Op, Location]] = []
            for op in node.ops:
                kind = kinds[op.code]
                if kind == FENCE:
                    fences.setdefault(node.id, []).append((op, len(found)))
                elif kind:
                    ptr = op if kind == INIT else op.args[0]
                    if not locals_only or ptr.code == C.ALLOCA:
                        found.append((kind, op, known.get(ptr) or location(ptr)))
            self.events.append(found)
        self.locations: list[Location] = memory.locations
        if fences:
            self._add_fences(fences)

    def _add_fences(self, fences: dict[int, list[tuple[Op, int]]]) -> None:
        """Add an event of each fence for every location that others can reach."""
        touched = {event[2]: None for events in self.events for event in events}
        shared = [location for location in touched if not location.own]
        owned = [location for location in touched if location.own]
        for number, found in fences.items():
            events = self.events[number]
            for op, at in reversed(found):
                reached = shared
                if op.args:
                    bases = [base_of(a) for a in op.args]
                    reached = shared + [x for x in owned if base_of(x.ptr) in bases]
                events[at:at] = [(FENCE, op, location) for location in reached]

    def leave_out_idle(self) -> None:
        """Remove the arrays whose elements are all touched at one place only.

        Nothing is known of such an element when it is loaded, and it is live when it is stored.
        """
        counts: dict[Location, int] = {}
        for events in self.events:
            for _, _, location in events:
                counts[location] = counts.get(location, 0) + 1
        arrays = {x.space for x in counts if x.kind == "array" and not x.own}
        busy = {x.space for x, count in counts.items() if count > 1 and x.space in arrays}
        idle = set[object]() if busy and not self.memory.noalias else arrays - busy
        self.locations = [x for x in counts if x.kind != "array" or x.space not in idle]
        if idle:
            self.events = [
                [e for e in events if e[2].kind != "array" or e[2].space not in idle]
                for events in self.events
            ]

    # --- reaching definitions --------------------------------------------------------------

    def asked(self) -> set[Location]:
        """The locations whose reaching definitions matter.

        Something sets them, and in another node they are loaded or stored to before that. (In the
        node itself, what was there before the task arrives first.)
        """
        exposed, defined, several = set[Location](), set[Location](), set[Location]()
        last: dict[Location, int] = {}  # the node that touched it last
        known: dict[Location, int] = {}  # the first node that sets it, or asks what it holds
        for node, events in enumerate(self.events):
            for kind, _, location in events:
                if last.get(location) != node:
                    last[location] = node
                    if kind in (LOAD, STORE):
                        exposed.add(location)
                elif kind == LOAD:
                    continue
                if kind != LOAD:
                    defined.add(location)
                if known.setdefault(location, node) != node:
                    several.add(location)
        return exposed & defined & several

    def reach(self, asked: set[Location] | None = None) -> None:
        """Compute `definitions`, `of_location` and `reach_in`.

        asked: the locations that `reaching` will be asked for; None: all.
        """
        wanted = asked
        if asked is not None:
            others = 0
            for location in asked:
                others |= self.memory.may_alias(location)
            wanted = asked.union(self.memory.members(others))
            if not wanted:
                return
        for location in self.locations:
            if location.kind != "local" and (wanted is None or location in wanted):
                self._define(None, location)
        before = (1 << len(self.definitions)) - 1
        gen, kill = self._gen_kill(wanted)
        nodes = self.graph.nodes
        out = list(gen)
        out[0] = before
        reach_in = self.reach_in
        first, last = 1, len(nodes)
        stale = bytearray(b"\1" * last)
        while first < last:
            again = last
            for i in range(first, last):
                if not stale[i]:
                    continue
                stale[i] = 0
                node = nodes[i]
                reaching = 0
                for source in node.prev:
                    reaching |= out[source.id]
                reach_in[i] = reaching
                leaving = gen[i] | (reaching & ~kill[i]) if kill[i] else reaching
                if leaving != out[i]:
                    out[i] = leaving
                    # Later nodes are still to come in this sweep, earlier ones are not.
                    for target in node.next:
                        stale[target.id] = 1
                        if target.id <= i and target.id < again:
                            again = target.id
            first = again

    def _define(self, op: Op | None, location: Location) -> None:
        self.of_location.setdefault(location, []).append(len(self.definitions))
        self.definitions.append(op)

    def _gen_kill(self, wanted: set[Location] | None) -> tuple[list[int], list[int]]:
        gen: list[int] = []
        set_here: list[dict[Location, Op]] = []
        for events in self.events:
            # The last definition of each location; those before it do not leave the node. An
            # atomic reads what was there, but what it leaves is its own doing.
            last: dict[Location, Op] = {}
            for kind, op, location in events:
                if kind != LOAD and (wanted is None or location in wanted):
                    last[location] = op
            set_here.append(last)
            gen.append((1 << len(last)) - 1 << len(self.definitions))
            for location, op in last.items():
                self._define(op, location)
        return gen, [self._definitions(last) if last else 0 for last in set_here]

    def _definitions(self, locations: Iterable[Location]) -> int:
        """Bit set of the definitions of ``locations``."""
        bits = 0
        numbers: list[int] = []
        for location in locations:
            mine = self.of_location.get(location, [])
            if len(mine) <= _FEW:
                numbers += mine
                continue
            defined = self._defined.get(location)
            if defined is None:
                defined = self._defined[location] = bit_set(mine)
            bits |= defined
        return bits | bit_set(numbers) if numbers else bits

    def reaching(self, node: int, location: Location) -> Iterable[Op | None]:
        """The definitions that may have set ``location`` when control enters a node."""
        reaching = self.reach_in[node]
        mine = self.of_location.get(location, [])
        if len(mine) <= _FEW and location.kind != "array":
            if len(self.events[node]) > _FEW:
                if self._entered[0] != node:
                    self._entered = node, _as_bytes(reaching, len(self.definitions))
                entered = self._entered[1]
                mine = [n for n in mine if entered[n >> 3] >> (n & 7) & 1]
                return [self.definitions[number] for number in mine]
            return [self.definitions[number] for number in mine if reaching >> number & 1]
        mask = self._may_define.get(location)
        if mask is None:
            others = self.memory.may_alias(location)
            both = [x for x in self.of_location if x.bit & others] if others else []
            mask = self._may_define[location] = self._definitions([location, *both])
        return self._members(reaching & mask)

    def _members(self, reaching: int) -> Iterator[Op | None]:
        definitions = self.definitions
        while reaching:
            low = reaching & -reaching
            reaching ^= low
            yield definitions[low.bit_length() - 1]

    # --- live variables --------------------------------------------------------------------

    def live(self, later: frozenset[int]) -> None:
        """Compute `live_out`. ``later``: offsets of the global temporaries that live on."""
        nodes = self.graph.nodes
        at_end = bit_set([
            x.number for x in self.locations
            if not x.own and (x.kind == "array" or x.ptr.attr in later)
        ])  # fmt: skip
        use, kill = self._use_kill()
        masks = self._varying()
        always = [0] * len(nodes)
        if masks:
            for node in nodes:
                always[node.id] = masks.get(self._outer_loop(node.block), 0)
        live_in = list(use)
        live_out = self.live_out
        live_in[-1] = live_out[-1] = at_end
        first = len(nodes) - 2
        stale = bytearray(b"\1" * len(nodes))
        while first >= 0:
            again = -1
            for i in range(first, -1, -1):
                if not stale[i]:
                    continue
                stale[i] = 0
                node = nodes[i]
                out = always[i]
                for target in node.next:
                    out |= live_in[target.id]
                live_out[i] = out
                entering = use[i] | (out & ~kill[i])
                if entering != live_in[i]:
                    live_in[i] = entering
                    # Earlier nodes are still to come in this sweep, later ones are not.
                    for source in node.prev:
                        stale[source.id] = 1
                        if source.id >= i and source.id > again:
                            again = source.id
            first = again

    def reads(self, location: Location) -> int:
        """Bit set of the locations that a load of ``location`` may load."""
        return location.bit | self.memory.may_alias(location)

    def _use_kill(self) -> tuple[list[int], list[int]]:
        uses: list[int] = []
        kills: list[int] = []
        for events in self.events:
            use = kill = 0
            left = events
            if len(events) > _FEW:
                use, kill = _of_alone(events)
                left = [e for e in events if e[2].kind == "array"]
            for kind, _, location in left:
                if kind in _READS:
                    use |= self.reads(location) & ~kill
                else:
                    kill |= location.bit
            uses.append(use)
            kills.append(kill)
        return uses, kills

    def _outer_loop(self, block: Block | None) -> Op | None:
        """The outermost loop around ``block`` inside the task."""
        if block not in self._outer:
            task = self.graph.task
            around = (x for x in enclosing_loops(block) if x is not task)
            self._outer[block] = next(around, None)
        return self._outer[block]

    def _varying(self) -> dict[Op | None, int]:
        """For each outermost loop, the locations that vary in it or in a loop inside it."""
        masks: dict[Op | None, int] = {}
        known: dict[Op, dict[Op, bool]] = {}
        for location in self.locations:
            # An address can only vary in the loops around it.
            loop = self._outer_loop(location.ptr.block) if location.kind == "array" else None
            if loop is not None and location.varies_in(loop, known.setdefault(loop, {})):
                masks[loop] = masks.get(loop, 0) | location.bit
        return masks


def _as_bytes(bits: int, count: int) -> bytes:
    """A bit set, as what is fast to ask for thousands of members."""
    return bits.to_bytes((count >> 3) + 1, "little")


def _of_alone(events: list[tuple[int, Op, Location]]) -> tuple[int, int]:
    """Bit sets of the locations, among those that no other may be, which a node reads before it
    sets them, and which it sets."""
    first: dict[Location, bool] = {}
    killed: list[int] = []
    for kind, _, location in events:
        if location.kind != "array":
            reads = kind in _READS
            first.setdefault(location, reads)
            if not reads:
                killed.append(location.number)
    return bit_set([x.number for x, reads in first.items() if reads]), bit_set(killed)


class Live:
    """The locations that are live at a position of a node."""

    __slots__ = ("_alone", "_at_end", "_bits", "_flow")

    def __init__(self, flow: Flow) -> None:
        self._flow: Final = flow
        self._bits = 0
        self._alone: Final[dict[Location, bool]] = {}
        """Of those that no other may be."""
        self._at_end = b""

    def enter(self, node: int) -> None:
        """Begin at the end of a node."""
        flow = self._flow
        self._bits = flow.live_out[node]
        self._alone.clear()
        large = len(flow.events[node]) > _FEW
        self._at_end = _as_bytes(self._bits, len(flow.memory.locations)) if large else b""

    def __contains__(self, location: Location) -> bool:
        found = self._alone.get(location)
        if found is not None:
            return found
        if self._at_end and location.kind != "array":
            return bool(self._at_end[location.number >> 3] >> (location.number & 7) & 1)
        return bool(self._bits & location.bit)

    def read(self, location: Location) -> None:
        """Go up to before what may load a location."""
        if location.kind == "array":
            self._bits |= self._flow.reads(location)
        else:
            self._alone[location] = True

    def end(self, location: Location) -> None:
        """Go up to before what sets a location."""
        if location.kind == "array":
            self._bits &= ~location.bit
        else:
            self._alone[location] = False


def analyze(func: Func, graph: Cfg) -> Flow:
    """Run both analyses; also set `CfgNode.live_out`."""
    flow = show_live(func, graph)
    flow.reach()
    return flow


def show_live(func: Func, graph: Cfg, later: frozenset[int] | None = None) -> Flow:
    """Find the live locations; write the first into the nodes, for displays of the graph.

    later: `LaterLoads` of the task, if known.
    """
    flow = Flow(graph, MemoryLocations(func))
    flow.live(LaterLoads(func).of(graph.task) if later is None else later)
    first = _First(flow.memory.locations)
    for node in flow.graph.nodes:
        live = flow.live_out[node.id]
        node.live_out = first.of(live)
        node.live_more = live.bit_count() - len(node.live_out)
    return flow


class _First:
    """The addresses of the first `_SHOWN` locations of bit sets. Those of neighbouring nodes hardly
    differ, and sets may have thousands of bits: what was found for the first words, or for each
    word, is kept."""

    def __init__(self, locations: list[Location]) -> None:
        self._addresses: Final = [x.ptr for x in locations]
        self._known: Final[dict[int, tuple[Op, ...]]] = {}
        self._words: Final[dict[tuple[int, int], tuple[Op, ...]]] = {}

    def of(self, live: int) -> tuple[Op, ...]:
        first = live & _FIRST_WORDS
        if first.bit_count() >= _SHOWN:
            live = first
        found = self._known.get(live)
        if found is None:
            found = self._known[live] = self._find(live)
        return found

    def _find(self, live: int) -> tuple[Op, ...]:
        shown: tuple[Op, ...] = ()
        at = 0
        while live and len(shown) < _SHOWN:
            if not live & _WORD:
                zeros = (live & -live).bit_length() - 1
                skipped = zeros - zeros % _WORD.bit_length()
                live >>= skipped
                at += skipped
            shown += self._word(at, live & _WORD)
            live >>= _WORD.bit_length()
            at += _WORD.bit_length()
        return shown[:_SHOWN]

    def _word(self, at: int, word: int) -> tuple[Op, ...]:
        found = self._words.get((at, word))
        if found is None:
            some = self._addresses[at : at + word.bit_length()]
            found = tuple([ptr for i, ptr in enumerate(some) if word >> i & 1])
            self._words[at, word] = found
        return found


class LaterLoads:
    """The global temporaries that tasks read which may run after a task.

    In a ``do_while`` region the tasks before it may, and itself.
    """

    def __init__(self, func: Func) -> None:
        self._first: Final[dict[Op | None, int]] = {None: 0}
        """By task: the first one that may run after it."""
        self._last: Final[dict[int, int]] = {}
        """By the offset of a temporary: the last task that reads it."""
        around: dict[Op, int] = {}
        for number, task in enumerate(func.tasks()):
            again = outermost_do_while(task)
            first = number + 1 if again is None else around.setdefault(again, number)
            self._first[task] = first
            for region in task.regions:
                for op in walk(region):
                    if KIND[op.code] in _READS and op.args and op.args[0].code == C.GLOBAL_TMP:
                        self._last[op.args[0].attr] = number

    def stand_for(self, task: Op, *others: Op) -> None:
        """Let copies of ``task`` in another function have its answer."""
        self._first.update(dict.fromkeys(others, self._first[task]))

    def of(self, task: Op | None) -> frozenset[int]:
        """Their offsets; for None, those that any task reads."""
        first = self._first[task]
        return frozenset([at for at, last in self._last.items() if last >= first])
