"""How kernels with a flow, and ``graph`` kernels, get to the device.

`FlowRunner` cuts the flow into *steps*, which the host walks: segments of tasks, loops on the host,
checkpoints. A segment of a ``graph`` kernel with more than one task is a `graphs.Graph`, and it is
as long as possible: loops that the device can run by itself are within it. Mostly the kernel is one
segment, and a launch is then

1. a look whether the bytes of the parameters are those of the last launch,
2. if not, one small copy to the device frame, and other grids where they change,
3. one ``cuGraphLaunch``.

Never is a graph built anew for other arrays or numbers, except where a grid within a loop has to be
another one (see `graphs`) or loops become small or large enough for another way (`facts.CudaLoop`).

Without what loops on the device need (see `conditional`), with ``QD_GRAPH=0``, and where the driver
refuses a graph, the host does the same: plain launches, and after each round of a loop a read of
its flag. One line of the log says why. Checkpoints are always left to the host, which has to know
whether they yield.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from ... import logs as log
from ...errors import CudaError
from ..base import Flow, KernelMeta
from ..frame.branches import Branches
from . import conditional
from .facts import CudaLoop, loop_fits
from .graphs import tasks_of
from .replay import Counts, Item, Parameters, Replayed, Run, facts_of

if TYPE_CHECKING:
    from .executable import CudaExecutable
    from .frame import FramePool

__all__ = ["FlowRunner"]

_BUFFER, _INTS, _STREAM, _FRAME, _HOST = range(5)
"""Where `frame.Frame` has these."""
_RESUME: Final = 48
"""Where the host frame says at which checkpoint to begin, and afterwards which one yielded."""


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


def _do_whiles(items: Sequence[Item]) -> Iterator[Flow]:
    """All loops, at any depth, those around others first."""
    for item in items:
        if isinstance(item, Flow):
            if item.kind == "do_while":
                yield item
            yield from _do_whiles(item.items)


class FlowRunner:
    """See the module docstring.

    graphs: parts of it may be graphs. why: what stands against the whole being one graph, for
    people; empty if nothing does. rounds: of loops on the host. fused: the loops that are one
    kernel, with that, by `id`.
    """

    def __init__(self, executable: CudaExecutable, pool: FramePool) -> None:
        self.executable: Final = executable
        self.pool: Final = pool
        self.rounds = 0
        self.counts: Final = Counts()
        meta, device = executable.meta, executable.device
        self.graphs = meta.graph and not pool.stream and not meta.timed
        self.why = ""
        self._parameters: Final = Parameters(executable, pool)
        self._data: bytes | None = None
        self._arranged = False
        self._lock: Final = threading.RLock()
        self._replayed: Final[list[Replayed]] = []
        self._whole: Replayed | None = None
        self._steps: list[_Step] = []
        self._tasks: Final[dict[int, Run]] = {}
        self._branches: Final[dict[Flow, Branches]] = {}
        self._items: Final[tuple[Item, ...]] = meta.flow or tuple(range(len(meta.tasks)))
        numbered = list(_do_whiles(self._items))
        self._loops: Final = {id(numbered[one.number]): one for one in executable.loops}
        self.fused: dict[int, CudaLoop] = {}
        self._launch: Final = device.driver.cuGraphLaunch
        self._copy: Final = device.driver.cuMemcpyHtoDAsync
        self._cell: Final = ctypes.c_uint64(pool.device_frame)
        self._array: Final = ctypes.c_void_p(ctypes.addressof(self._cell))
        device.own(self)

    def device_ended(self) -> None:
        """The program ends: give graphs back."""
        for replayed in self._replayed:
            replayed.destroy()

    def facts(self) -> dict[str, Any] | None:
        """What there is, for people. Waits for the default stream. See `CudaExecutable`."""
        if not self._arranged:
            return None
        found = facts_of(
            "graph" if self._replayed else "host", self.why, self._replayed, self.counts
        )
        if self.rounds:
            found["iterations"]["host"] = self.rounds
        return found

    # --- cutting the flow -----------------------------------------------------------------------

    def _begin(self) -> None:
        """Cut the flow into steps."""
        for replayed in self._replayed:
            replayed.destroy()
        self._replayed.clear()
        self._whole, self._steps = None, []
        if self.graphs:
            self.why = ""
        elif not self.why:
            self.why = _not_one(self.executable.meta)
        several = len(list(tasks_of(self._items))) > 1 or any(
            isinstance(item, Flow) and id(item) not in self.fused for item in self._items
        )
        if self.graphs and several and self._fits(self._items):
            self._whole = self.replayed(self._items, bool(self.executable.zeroed))
        else:
            self._steps = self.steps(self._items)

    def replayed(self, items: Sequence[Item], clear: bool) -> Replayed:
        """A graph of these items, kept for `facts`."""
        made = Replayed(self.executable, items, clear, self.counts, self.fused)
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
            elif id(item) not in self.fused and (
                not self._fits(item.items) or (item.kind == "do_while" and not self._can_loop())
            ):
                return False
        return True

    def _can_loop(self) -> bool:
        """Whether the device can run loops; one line of the log says why not."""
        try:
            conditional.functions(self.executable.device)
        except conditional.Unavailable as error:
            self.why = f"loops run on the host: {error}"
            log.warn(f"qd.graph.do_while runs its loops on the host: {error}", once=True)
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
            alone = not isinstance(item, Flow) or item.kind == "parallel" or id(item) in self.fused
            if alone:
                segment.append(item)
                close(False)
            else:
                assert isinstance(item, Flow)
                out.append((_Checkpoint if item.kind == "checkpoint" else _Loop)(self, item))
        close()
        return out

    # --- launching ------------------------------------------------------------------------------

    def run(self, pointer: Any) -> None:
        """Launch a filled frame; waits only where the host has to know a flag."""
        where = self._parameters
        data = pointer[0][where.start : where.end].tobytes()
        with self._lock:
            if data != self._data:
                begun, self._data = self._data is None, None  # in case this fails half way
                self._prepare(pointer, begun)
                self._data = data
            self.counts.replays += 1
            whole = self._whole
            if whole is None:
                self._walk(pointer)
                return
            assert whole.graph is not None
            code = self._launch(whole.graph.handle, pointer[2])[0]
            if code:
                whole.again(int(code), pointer)

    def _prepare(self, pointer: Any, begun: bool) -> None:
        """Make all right for the parameters in a frame, and copy these to the device.

        begun: nothing is right yet, or the last time this has failed half way.
        """
        where, meta = self._parameters, self.executable.meta
        if where.changes(pointer) or begun:
            self._arrange(pointer)
            grids = self.executable.control.grids(pointer)
            try:
                for replayed in self._replayed:
                    replayed.ready(pointer, grids)
            except (CudaError, conditional.Unavailable) as error:
                self._without_graphs(error)
        if meta.graph and where.start < where.end:
            at, size = where.start, where.end - where.start
            what = pointer[_FRAME] + at, pointer[_HOST] + at, size, pointer[_STREAM]
            if self._copy(*what)[0]:  # in a thread where another context is current, perhaps
                self.executable.device.call("copying arguments", "cuMemcpyHtoDAsync", *what)

    def _arrange(self, pointer: Any) -> None:
        """Cut the flow, at first and where loops are small or large now."""
        ints = pointer[_INTS]
        fused = {
            key: one
            for key, one in self._loops.items()
            if loop_fits(one, *[ints[at // 4] for at in one.reads])
        }
        if self._arranged and fused.keys() == self.fused.keys():
            return
        self.counts.rebuilds += self._arranged
        self._arranged = True
        self.fused = fused
        self._begin()

    def _without_graphs(self, error: Exception) -> None:
        """A graph cannot be built: go on with plain launches, and say so once."""
        if isinstance(error, CudaError) and error.fatal:
            raise error
        name = self.executable.meta.name
        log.warn(f"kernel {name} is launched task by task: {error}", once=True)
        self.graphs, self.why = False, str(error)
        self._begin()

    def _walk(self, pointer: Any) -> None:
        """The launch of a kernel that the host walks through."""
        buffer, labels = pointer[_BUFFER], self.executable.meta.labels
        control = self.executable.control
        if self.executable.zeroed:
            control.clear(pointer[_FRAME], pointer[_STREAM])
        if self.executable.meta.timed:
            control.mark(0, pointer[_STREAM])
        resume = struct.unpack_from("<q", buffer, _RESUME)[0] if labels else 0
        walk = _Walk(pointer, resume - 1)
        for step in self._steps:
            if step.go(walk):
                break
        if labels:
            struct.pack_into("<q", buffer, _RESUME, walk.yielded)

    def task(self, k: int) -> Run:
        """What launches one task."""
        found = self._tasks.get(k)
        if found is None:
            found = self._tasks[k] = self.executable.control.task(k)
        return found

    def plain(self, item: Item, pointer: Any) -> None:
        """Launch a task, a loop that is one kernel, or branches each on a stream of its own."""
        if not isinstance(item, Flow):
            self.task(item)(pointer)
            return
        one = self.fused.get(id(item))
        if one is not None:
            device = self.executable.device
            device.call(
                "launching a loop", "cuLaunchKernel", self.executable.code.function(one.symbol),
                1, 1, 1, one.block_dim, 1, 1, 0, pointer[_STREAM],
                ctypes.addressof(self._array), 0,
            )  # fmt: skip
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
        at = self.executable.layout.params[param]
        (address,) = struct.unpack_from("<Q", pointer[_BUFFER], at)
        device, pool = self.executable.device, self.pool
        if pool.watched:
            pool.pending[pool] = None
            device.sync(pool.stream)
        elif pool.stream:
            device.wait_for(pool.stream)
        out = np.empty(4, np.uint8)
        device.fetch(address, out)
        return int(out.view(np.int32)[0])
