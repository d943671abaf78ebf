"""How the tasks of a kernel get to the device when it is more than one launch after the other.

`runner` gives what launches a filled host frame (a pointer of `frame.Frame`), or None where plain
launches are right. There are two kinds:

`FlowRunner`, for ``graph`` kernels and those with a flow. The flow is cut into *steps*, which the
host walks: segments of tasks, loops on the host, checkpoints. A segment of a ``graph`` kernel with
more than one task is a `graphs.Graph`, and it is as long as possible: loops that the device can run
by itself are within it. Mostly the kernel is one segment, and a launch is then

1. a look whether the bytes of the parameters are those of the last launch,
2. if not, one small copy to the device frame, and other grids where they change,
3. one ``cuGraphLaunch``.

`AutoRunner`, for ordinary kernels of several tasks: after some plain launches they become a graph,
which costs about as much to launch as one task. Its nodes hold the arguments; those of tasks whose
arguments have changed get new ones first.

Without what loops on the device need (see `conditional`), with ``QD_GRAPH=0``, and where the driver
refuses a graph, the host does the same: plain launches, and after each round of a loop a read of
its flag. One line of the log says why.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from ... import logs as log
from ...errors import CudaError
from ..base import Flow, KernelMeta
from . import conditional
from .errors import FOREIGN
from .graphs import Graph, tasks_of
from .streams import Branches

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .frame import FramePool

__all__ = ["AutoRunner", "FlowRunner", "Run", "runner"]

Item = int | Flow
Run = Callable[[Any], None]
"""Launches what a pointer of `frame.Frame` stands for."""

_BUFFER, _INTS, _STREAM, _FRAME, _HOST = range(5)
"""Where `frame.Frame` has these."""
_AFTER: Final = 8
"""Plain launches of a kernel before a graph is made of it: one that is used once never pays."""
_RESUME: Final = 48
"""Where the host frame says at which checkpoint to begin, and afterwards which one yielded."""


def runner(executable: CudaExecutable, pool: FramePool) -> Runner | None:
    """What launches the frames of ``pool``; None if plain launches, one by one, are right."""
    meta, config = executable.meta, executable.device.config
    if meta.flow or meta.graph:
        return FlowRunner(executable, pool)
    plain = meta.timed or meta.prints or meta.has_stacks or len(meta.tasks) < 2
    if plain or pool.stream or not getattr(config, "graph", True):
        return None
    if any(not task.blocks and task.header for task in executable.tasks):
        return None
    return AutoRunner(executable, pool)


class Runner(Protocol):
    """run: launches a filled frame. facts: what `graph_facts` of an executable tells."""

    @property
    def run(self) -> Run: ...

    def facts(self) -> dict[str, Any] | None: ...


class _Parameters:
    """The part of a host frame that a launch fills.

    start, end: where it lies. changes(pointer): whether a number that grids depend on is another
    one than at the last call.
    """

    def __init__(self, executable: CudaExecutable, pool: FramePool) -> None:
        self.start: Final = pool.start
        self.end: Final = executable.layout.results
        self._reads: Final = sorted({at // 4 for task in executable.tasks for at in task.reads})
        self._last: list[int] | None = None

    def changes(self, pointer: Any) -> bool:
        ints = pointer[_INTS]
        now = [ints[at] for at in self._reads]
        last, self._last = self._last, now
        return now != last


class _Counts:
    """How often a kernel was launched, its nodes were changed, its graph was built anew."""

    __slots__ = ("rebuilds", "replays", "updates")

    def __init__(self) -> None:
        self.replays = self.updates = self.rebuilds = 0


class _Replayed:
    """A graph of some items, built when it is first needed and again where it has to be."""

    def __init__(
        self, executable: CudaExecutable, items: Sequence[Item], clear: bool, counts: _Counts
    ) -> None:
        self.executable: Final = executable
        self.items: Final = items
        self.graph: Graph | None = None
        self._clear: Final = clear
        self._counts: Final = counts
        self._launch: Final = executable.device.driver.cuGraphLaunch

    def ready(self, pointer: Any, grids: Sequence[int] | None) -> None:
        """Make it right for a frame. grids: of all tasks, None where they are the last ones."""
        graph = self.graph
        if graph is not None and grids is None:
            return
        now: Sequence[int] = self.executable.control.grids(pointer) if grids is None else grids
        if graph is not None:
            changed = graph.adapt(now, pointer)
            if changed >= 0:
                self._counts.updates += changed
                return
            self._counts.rebuilds += 1
            graph.destroy()
        self.graph = None
        self.graph = Graph(self.executable, self.items, pointer, now, self._clear)

    def launch(self, pointer: Any) -> None:
        """Launch it on the stream of the frame."""
        graph = self.graph
        assert graph is not None
        code = self._launch(graph.handle, pointer[_STREAM])[0]
        if code:
            self.again(int(code), pointer)

    def again(self, code: int, pointer: Any) -> None:
        """The driver has refused: try once more where another context was current."""
        device, graph = self.executable.device, self.graph
        primary = device.primary
        assert graph is not None
        if primary.lost is None and code in FOREIGN and not primary.is_current():
            device.call("launching a graph", "cuGraphLaunch", graph.handle, pointer[_STREAM])
            return
        if primary.lost is not None:
            raise primary.lost.with_traceback(None)
        raise device.failed(code, "launching its graph", self.executable.meta.name)

    def destroy(self) -> None:
        graph, self.graph = self.graph, None
        if graph is not None:
            graph.destroy()


class _Walk:
    """One launch that the host walks through.

    seeking: label of the checkpoint to begin at, -1 once it is met. yielded: 1 + the label of the
    checkpoint that ended it, or 0.
    """

    __slots__ = ("pointer", "seeking", "yielded")

    def __init__(self, pointer: Any, seeking: int) -> None:
        self.pointer = pointer
        self.seeking = seeking
        self.yielded = 0


class _Step(Protocol):
    def go(self, walk: _Walk) -> bool:
        """Do it; whether the launch ends here."""
        ...


class _Segment:
    """Items that the device does without the host: one graph, or plain launches."""

    def __init__(self, owner: FlowRunner, items: Sequence[Item], graph: bool) -> None:
        self._owner: Final = owner
        self._items: Final = items
        several = len(items) > 1 or any(isinstance(item, Flow) for item in items)
        self.replayed: Final = owner.replayed(items, False) if graph and several else None

    def go(self, walk: _Walk) -> bool:
        owner, pointer = self._owner, walk.pointer
        if walk.seeking >= 0:  # loops and branches before the checkpoint are passed over
            for item in self._items:
                if not isinstance(item, Flow):
                    owner.task(item)(pointer)
        elif self.replayed is not None:
            self.replayed.launch(pointer)
        else:
            for item in self._items:
                owner.plain(item, pointer)
        return False


class _Loop:
    """A do_while on the host."""

    def __init__(self, owner: FlowRunner, loop: Flow) -> None:
        self._owner: Final = owner
        self._param: Final = loop.param
        self._labels: Final = _labels(loop)
        self._steps: Final = owner.steps(loop.items)

    def go(self, walk: _Walk) -> bool:
        if walk.seeking >= 0 and walk.seeking not in self._labels:
            return False
        while True:
            for step in self._steps:
                if step.go(walk):
                    return True
            self._owner.rounds += 1
            if not self._owner.flag(walk.pointer, self._param):
                return False


class _Checkpoint:
    """A checkpoint: after it the launch ends where its flag is not 0."""

    def __init__(self, owner: FlowRunner, part: Flow) -> None:
        self._owner: Final = owner
        self._part: Final = part
        self._steps: Final = owner.steps(part.items)

    def go(self, walk: _Walk) -> bool:
        part = self._part
        if walk.seeking >= 0:
            if part.label != walk.seeking:
                return False
            walk.seeking = -1
        for step in self._steps:
            step.go(walk)
        if part.param >= 0 and self._owner.flag(walk.pointer, part.param):
            walk.yielded = 1 + part.label
            return True
        return False


def _not_one(meta: KernelMeta) -> str:
    """Why a kernel with a flow is not a graph, for people."""
    return "its tasks are timed one by one" if meta.timed else "it is not a graph=True kernel"


def _labels(part: Flow) -> set[int]:
    found = {part.label} if part.label >= 0 else set[int]()
    for item in part.items:
        if isinstance(item, Flow):
            found |= _labels(item)
    return found


class FlowRunner:
    """See the module docstring.

    graphs: parts of it may be graphs. why: what stands against the whole being one graph, for
    people; empty if nothing does. rounds: of loops on the host.
    """

    def __init__(self, executable: CudaExecutable, pool: FramePool) -> None:
        self.executable: Final = executable
        self.pool: Final = pool
        self.rounds = 0
        self.counts: Final = _Counts()
        meta, device = executable.meta, executable.device
        self.graphs = meta.graph and not pool.stream and not meta.timed
        self.why = "" if self.graphs else _not_one(meta)
        self._parameters: Final = _Parameters(executable, pool)
        self._data = b""
        self._lock: Final = threading.RLock()
        self._replayed: Final[list[_Replayed]] = []
        self._tasks: Final[dict[int, Run]] = {}
        self._branches: Final[dict[Flow, Branches]] = {}
        items: tuple[Item, ...] = meta.flow or tuple(range(len(meta.tasks)))
        self._items: Final = items
        self._labels: Final = bool(meta.labels)
        self._begin()
        self.run: Run = self._first
        device.own(self)

    def _begin(self) -> None:
        """Cut the flow into steps."""
        self._replayed.clear()
        self._whole: _Replayed | None = None
        self._steps: list[_Step] = []
        if self.graphs and len(list(tasks_of(self._items))) > 1 and self._fits(self._items):
            self._whole = self.replayed(self._items, bool(self.executable.zeroed))
        else:
            self._steps = self.steps(self._items)

    def device_ended(self) -> None:
        """The program ends: give graphs back."""
        for replayed in self._replayed:
            replayed.destroy()

    def facts(self) -> dict[str, Any] | None:
        """What there is, for people. Waits for the default stream. See `CudaExecutable`."""
        if self._replayed and not any(one.graph for one in self._replayed):
            return None
        return _facts("graph" if self._replayed else "host", self.why, self._replayed, self.counts)

    # --- cutting the flow -----------------------------------------------------------------------

    def replayed(self, items: Sequence[Item], clear: bool) -> _Replayed:
        """A graph of these items, kept for `facts`."""
        made = _Replayed(self.executable, items, clear, self.counts)
        self._replayed.append(made)
        return made

    def _fits(self, items: Sequence[Item]) -> bool:
        """Whether a graph can hold all of these; `why` tells otherwise."""
        for item in items:
            if not isinstance(item, Flow):
                task = self.executable.tasks[item]
                if task.header and not task.blocks:
                    self.why = "the device has to say how many blocks a task has"
                    return False
            elif item.kind == "checkpoint":
                self.why = "it has checkpoints"
                return False
            elif not self._fits(item.items) or (item.kind == "do_while" and not self._loops()):
                return False
        return True

    def _loops(self) -> bool:
        """Whether the device can run loops; one line of the log says why not."""
        try:
            conditional.function(self.executable.device)
        except conditional.Unavailable as error:
            self.why = f"loops run on the host: {error}"
            log.say("info", f"qd.graph.do_while runs its loops on the host: {error}", once=True)
            return False
        return True

    def steps(self, items: Sequence[Item]) -> list[_Step]:
        """What the host does one after the other, with segments as long as possible."""
        out: list[_Step] = []
        segment: list[Item] = []

        def close(graph: bool = self.graphs) -> None:
            if segment:
                out.append(_Segment(self, tuple(segment), graph))
                segment.clear()

        for item in items:
            if self.graphs and self._fits((item,)):
                segment.append(item)
                continue
            if self.graphs:
                close()
            if not isinstance(item, Flow) or item.kind == "parallel":
                segment.append(item)
                close(False)
            else:
                close()
                out.append((_Checkpoint if item.kind == "checkpoint" else _Loop)(self, item))
        close()
        return out

    # --- launching ------------------------------------------------------------------------------

    def _first(self, pointer: Any) -> None:
        """The first launch: what can be a graph becomes one, and the next launch is prepared."""
        with self._lock:
            try:
                self._prepare(pointer)
            except (CudaError, conditional.Unavailable) as error:
                if not self.graphs or (isinstance(error, CudaError) and error.fatal):
                    raise
                name = self.executable.meta.name
                log.warn(f"kernel {name} is launched task by task: {error}", once=True)
                for replayed in self._replayed:
                    replayed.destroy()
                self.graphs, self.why = False, str(error)
                self._begin()
            self.run = self._walk if self._whole is None else self._fast(self._whole)
            self.run(pointer)

    def _prepare(self, pointer: Any) -> None:
        """Make all graphs right for the parameters in a frame, and copy these to the device."""
        meta, where = self.executable.meta, self._parameters
        grids = self.executable.control.grids(pointer) if where.changes(pointer) else None
        for replayed in self._replayed:
            replayed.ready(pointer, grids)
        if meta.graph and where.start < where.end:
            self.executable.device.call(
                "copying arguments", "cuMemcpyHtoDAsync", pointer[_FRAME] + where.start,
                pointer[_HOST] + where.start, where.end - where.start, pointer[_STREAM],
            )  # fmt: skip

    def _fast(self, whole: _Replayed) -> Run:
        """The launch of a kernel that is one graph."""
        start, end = self._parameters.start, self._parameters.end
        lock, counts, launch = self._lock, self.counts, self.executable.device.driver.cuGraphLaunch
        last = b""

        def run(pointer: Any) -> None:
            nonlocal last
            data = pointer[0][start:end].tobytes()
            with lock:
                if data != last:
                    last = b""  # in case this fails half way
                    self._prepare(pointer)
                    last = data
                graph = whole.graph
                assert graph is not None
                code = launch(graph.handle, pointer[2])[0]
                if code:
                    whole.again(int(code), pointer)
                counts.replays += 1

        return run

    def _walk(self, pointer: Any) -> None:
        """The launch of a kernel that the host walks through."""
        where, buffer = self._parameters, pointer[_BUFFER]
        with self._lock:
            data = buffer[where.start : where.end].tobytes()
            if data != self._data:
                self._data = b""
                self._prepare(pointer)
                self._data = data
            control = self.executable.control
            if self.executable.zeroed:
                control.clear(pointer[_FRAME], pointer[_STREAM])
            if self.executable.meta.timed:
                control.mark(0, pointer[_STREAM])
            resume = struct.unpack_from("<q", buffer, _RESUME)[0] if self._labels else 0
            walk = _Walk(pointer, resume - 1)
            self.counts.replays += 1
            for step in self._steps:
                if step.go(walk):
                    break
            if self._labels:
                struct.pack_into("<q", buffer, _RESUME, walk.yielded)

    def task(self, k: int) -> Run:
        """What launches one task."""
        found = self._tasks.get(k)
        if found is None:
            found = self._tasks[k] = self.executable.control.task(k)
        return found

    def plain(self, item: Item, pointer: Any) -> None:
        """Launch a task, or a parallel part with each section on a stream."""
        if not isinstance(item, Flow):
            self.task(item)(pointer)
            return
        sections = [section for section in item.items if isinstance(section, Flow)]
        if len(sections) < 2:
            for k in tasks_of(item.items):
                self.task(k)(pointer)
            return
        branches = self._branches.get(item)
        if branches is None:
            branches = self._branches[item] = Branches(self.executable.device, len(sections))
        branches.run(
            self.pool.stream, [self._section(tuple(tasks_of(s.items)), pointer) for s in sections]
        )

    def _section(self, tasks: Sequence[int], pointer: Any) -> Callable[[int], None]:
        def launch(stream: int) -> None:
            handle = self.executable.device.driver.CUstream(stream) if stream else None
            moved = (*pointer[:_STREAM], handle, *pointer[_STREAM + 1 :])
            for k in tasks:
                self.task(k)(moved)

        return launch

    def flag(self, pointer: Any, param: int) -> int:
        """The i32 that a parameter points to, once all that was launched before has ended.

        Raises what it failed with: a loop whose tasks do nothing any more would never end.
        """
        (address,) = struct.unpack_from(
            "<Q", pointer[_BUFFER], self.executable.layout.params[param]
        )
        device, pool = self.executable.device, self.pool
        if pool.watched:
            pool.pending[pool] = None
            device.sync(pool.stream)
        elif pool.stream:
            device.wait_for(pool.stream)
        out = np.empty(4, np.uint8)
        device.fetch(address, out)
        return int(out.view(np.int32)[0])


class AutoRunner:
    """See the module docstring. launched: how often, up to `_AFTER`."""

    def __init__(self, executable: CudaExecutable, pool: FramePool) -> None:
        self.executable: Final = executable
        self.launched = 0
        self.counts: Final = _Counts()
        self._parameters: Final = _Parameters(executable, pool)
        self._lock: Final = threading.Lock()
        count = len(executable.tasks)
        self._replayed: Final = _Replayed(
            executable, tuple(range(count)), bool(executable.zeroed), self.counts
        )
        start = pool.start
        # For each task, the bits of the parameters, as one large number, that it takes.
        self._masks: Final = [
            sum(0xFFFFFFFFFFFFFFFF << 8 * (slot - start) for slot in {*task.slots} if slot >= start)
            for task in executable.tasks
        ]
        self.run: Run = self._plain
        executable.device.own(self)

    def device_ended(self) -> None:
        """The program ends: give the graph back."""
        self._replayed.destroy()

    def facts(self) -> dict[str, Any] | None:
        """What there is, for people; None as long as launches are plain."""
        if self._replayed.graph is None:
            return None
        return _facts("auto", "", [self._replayed], self.counts)

    def _plain(self, pointer: Any) -> None:
        self.executable.control.run(pointer)
        self.launched += 1
        if self.launched < _AFTER:
            return
        with self._lock:
            if self.run != self._plain:
                return
            try:
                self._parameters.changes(pointer)
                self._replayed.ready(pointer, None)
            except CudaError as error:
                if error.fatal:
                    raise
                log.debug(f"kernel {self.executable.meta.name} stays without a graph: {error}")
                self.run = self.executable.control.run
                return
            self.run = self._fast(pointer)

    def _fast(self, pointer: Any) -> Run:
        """The launch as a graph, whose nodes have the values of ``pointer``."""
        start, end = self._parameters.start, self._parameters.end
        lock, counts, replayed = self._lock, self.counts, self._replayed
        launch = self.executable.device.driver.cuGraphLaunch
        last = pointer[0][start:end].tobytes()

        def run(pointer: Any) -> None:
            nonlocal last
            data = pointer[0][start:end].tobytes()
            with lock:
                if data != last:
                    old, last = last, b""
                    self._change(old, data, pointer)
                    last = data
                graph = replayed.graph
                assert graph is not None
                code = launch(graph.handle, pointer[2])[0]
                if code:
                    replayed.again(int(code), pointer)
                counts.replays += 1

        return run

    def _change(self, old: bytes, new: bytes, pointer: Any) -> None:
        """Give the nodes the values they lack."""
        graph = self._replayed.graph
        assert graph is not None
        differ = int.from_bytes(old, "little") ^ int.from_bytes(new, "little")
        tasks = [k for k, mask in enumerate(self._masks) if not old or differ & mask]
        if self._parameters.changes(pointer):
            self._replayed.ready(pointer, self.executable.control.grids(pointer))
        self.counts.updates += graph.revalue(pointer, tasks)


def _facts(how: str, why: str, parts: Sequence[_Replayed], counts: _Counts) -> dict[str, Any]:
    """Plain data about graphs: nodes and edges numbered through all of them."""
    nodes: list[dict[str, Any]] = []
    edges: list[list[int]] = []
    iterations: dict[str, int] = {}
    for part in parts:
        graph = part.graph
        if graph is None:
            continue
        base = len(nodes)
        for node in graph.nodes:
            row = node._asdict()
            row["id"] += base
            row["parent"] += base if node.parent >= 0 else 0
            row["stream"] = 0
            nodes.append(row)
        edges += [[a + base, b + base] for a, b in graph.edges]
        iterations |= {str(n + base): rounds for n, rounds in graph.counted().items()}
    return {
        "how": how, "why": why, "nodes": nodes, "edges": edges, "replays": counts.replays,
        "updates": counts.updates, "rebuilds": counts.rebuilds, "iterations": iterations,
    }  # fmt: skip
