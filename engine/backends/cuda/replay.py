"""Kernels of several tasks launched as one graph, and the code that launches of graphs share.

A runner launches packed argument buffers where plain launches, one task after the other, are not
right or not the fastest. There are two: `flow_runner.FlowRunner`, for ``graph`` kernels and those
with a flow, and

`AutoRunner`, for ordinary kernels of several tasks: after some plain launches they become a graph.
That costs about as much to launch as one task (on an H200 3.3 us for two tasks and 5.8 for four,
where plain launches cost 7.8 and 14.6). Its nodes hold the arguments; nodes of tasks whose
arguments have changed get new ones first, while the device is still at work on earlier launches.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...errors import CudaError
from ..device_launch.host_control import Item
from .errors import FOREIGN
from .graphs import Graph

if TYPE_CHECKING:
    from ..device_launch.arguments import Launch
    from .arguments import CudaArguments, CudaBufferPool
    from .executable import CudaExecutable
    from .facts import CudaLoop

__all__ = ["AutoRunner", "Counts", "Parameters", "Replayed", "facts_of"]

_AFTER: Final = 8
"""Plain launches of a kernel before a graph is made of it: for a single launch it never pays."""


class Parameters:
    """The part of an argument buffer that a launch packs.

    start, end: its offsets in the buffer. changes(args): True if a value that grids depend on
    differs from the last call.
    """

    def __init__(self, executable: CudaExecutable, pool: CudaBufferPool) -> None:
        self.start: Final = pool.start
        self.end: Final = executable.layout.results
        of = (*executable.tasks, *executable.loops)
        self._reads: Final = sorted({at // 4 for one in of for at in one.reads})
        self._last: list[int] | None = None

    def changes(self, args: CudaArguments) -> bool:
        ints = args.ints
        now = [ints[at] for at in self._reads]
        last, self._last = self._last, now
        return now != last


class Counts:
    """Counts launches of a kernel, updates of its nodes, and rebuilds of its graph."""

    __slots__ = ("rebuilds", "replays", "updates")

    def __init__(self) -> None:
        self.replays = self.updates = self.rebuilds = 0


class Replayed:
    """A graph of some items, built when it is first needed and again where it has to be."""

    def __init__(
        self, executable: CudaExecutable, items: Sequence[Item], clear: bool, counts: Counts,
        fused: Mapping[int, CudaLoop],
    ) -> None:  # fmt: skip
        """clear: begin by clearing the parts that must be 0 at a launch. fused: see `Graph`."""
        self.executable: Final = executable
        self.items: Final = items
        self.graph: Graph | None = None
        self._clear: Final = clear
        self._fused: Final = fused
        self._counts: Final = counts
        self._launch: Final = executable.device.driver.cuGraphLaunch

    def ready(self, args: CudaArguments, grids: Sequence[int] | None) -> None:
        """Build or update the graph for a buffer. grids: of all tasks; None if unchanged."""
        graph = self.graph
        if graph is not None and grids is None:
            return
        now: Sequence[int] = self.executable.control.grids(args) if grids is None else grids
        if graph is not None:
            changed = graph.adapt(now, args)
            if changed >= 0:
                self._counts.updates += changed
                return
            self._counts.rebuilds += 1
            graph.destroy()
        self.graph = None
        self.graph = Graph(self.executable, self.items, args, now, self._clear, self._fused)

    def launch(self, args: CudaArguments) -> None:
        """Launch it on the stream of the buffer."""
        graph = self.graph
        assert graph is not None
        code = self._launch(graph.handle, args.stream)[0]
        if code:
            self.again(int(code), args)

    def again(self, code: int, args: CudaArguments) -> None:
        """Handle a refused launch: try once more if another context was current."""
        device, graph = self.executable.device, self.graph
        primary = device.context
        assert graph is not None
        if primary.lost is None and code in FOREIGN and not primary.is_current():
            device.call("launching a graph", "cuGraphLaunch", graph.handle, args.stream)
            return
        if primary.lost is not None:
            raise primary.lost.with_traceback(None)
        raise device.failed(code, "launching its graph", self.executable.meta.name)

    def destroy(self) -> None:
        graph, self.graph = self.graph, None
        if graph is not None:
            graph.destroy()


class AutoRunner:
    """See the module docstring. launched: how often, up to `_AFTER`."""

    def __init__(self, executable: CudaExecutable, pool: CudaBufferPool) -> None:
        self.executable: Final = executable
        self.launched = 0
        self.counts: Final = Counts()
        self._parameters: Final = Parameters(executable, pool)
        self._lock: Final = threading.Lock()
        count = len(executable.tasks)
        self._replayed: Final = Replayed(
            executable, tuple(range(count)), bool(executable.zeroed), self.counts, {}
        )
        start = pool.start
        # For each task, the bits of the parameters that it uses, as one large number.
        self._masks: Final = [
            sum(0xFFFFFFFFFFFFFFFF << 8 * (slot - start) for slot in {*task.slots} if slot >= start)
            for task in executable.tasks
        ]
        self.run: Launch[CudaArguments] = self._plain
        executable.device.own(self)

    def device_ended(self) -> None:
        """The program ends: destroy the graph."""
        self._replayed.destroy()

    def facts(self) -> dict[str, Any] | None:
        """Describe the graph, for people; None as long as launches are plain."""
        if self._replayed.graph is None:
            return None
        return facts_of("auto", "", [self._replayed], self.counts)

    def _plain(self, args: CudaArguments) -> None:
        self.executable.control.run(args)
        self.launched += 1
        if self.launched < _AFTER or not self.executable.is_full:
            return
        with self._lock:
            if self.run != self._plain:
                return
            try:
                self._parameters.changes(args)
                self._replayed.ready(args, None)
            except CudaError as error:
                if error.fatal:
                    raise
                log.debug(f"kernel {self.executable.meta.name} stays without a graph: {error}")
                self.run = self.executable.control.run
                return
            self.run = self._fast(args)

    def _fast(self, args: CudaArguments) -> Launch[CudaArguments]:
        """Return the launch function for the graph, whose nodes hold the values of ``args``."""
        start, end = self._parameters.start, self._parameters.end
        lock, counts, replayed = self._lock, self.counts, self._replayed
        launch = self.executable.device.driver.cuGraphLaunch
        last = args.view[start:end].tobytes()

        def run(args: CudaArguments) -> None:
            nonlocal last
            data = args.view[start:end].tobytes()
            with lock:
                if data != last:
                    old, last = last, b""
                    self._change(old, data, args)
                    last = data
                graph = replayed.graph
                assert graph is not None
                code = launch(graph.handle, args.stream)[0]
                if code:
                    replayed.again(int(code), args)
                counts.replays += 1

        return run

    def _change(self, old: bytes, new: bytes, args: CudaArguments) -> None:
        """Update nodes whose values differ. old: empty if the last change failed half way."""
        graph = self._replayed.graph
        assert graph is not None
        differ = int.from_bytes(old, "little") ^ int.from_bytes(new, "little")
        tasks = [k for k, mask in enumerate(self._masks) if not old or differ & mask]
        if self._parameters.changes(args) or not old:
            self._replayed.ready(args, self.executable.control.grids(args))
        self.counts.updates += graph.revalue(args, tasks)


def facts_of(how: str, why: str, parts: Sequence[Replayed], counts: Counts) -> dict[str, Any]:
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
