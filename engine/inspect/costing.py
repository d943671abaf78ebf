"""The limit of each task, and an estimate of the cost of each line: a `CostRecord`.

From the amounts of `counting` and the speed of the machine (`peaks`) follow times that a task
cannot beat, all of them for the data and operations that were counted::

    bandwidth    bytes that travel / bandwidth: to the second cache, and beyond it (see `travel`)
    arithmetic   operations / peak rate, or the longest chain of dependent operations
    latency      loads that wait for another load * latency; atomic operations
    launch       the launch of a kernel that does nothing

The one that explains most of the shortest measured time is the limit. Where none explains enough,
operations at the rate of code without vectors and gathers with some loads in flight are looked at;
these are estimates, and one that is longer than the measured time is discarded. If nothing explains
a fifth of the time, the limit is *unknown*.

The time of a task is divided among its lines by their weights: the largest of a line's own times
for bandwidth, arithmetic and latency. That is an estimate: nothing measures a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, Final

import msgspec

from ..named_tuple import NamedTuple
from .record_compile import TaskRecord
from .record_cost import CacheLevel, CostRecord, LineCost, PeaksRecord, TaskCost
from .record_launch import LaunchRecord

if TYPE_CHECKING:
    from .line_counts import LineAmounts, LineKey
    from .travel import Travel

__all__ = ["TYPICAL", "Counted", "costs_of", "speed_of"]

TYPICAL: Final = PeaksRecord(
    backend="", device="a typical machine",
    memory=(
        CacheLevel(size=32 << 10, read_gbps=200.0, write_gbps=200.0, latency_ns=1.5),
        CacheLevel(size=1 << 20, read_gbps=100.0, write_gbps=100.0, latency_ns=5.0),
        CacheLevel(size=16 << 20, read_gbps=60.0, write_gbps=50.0, latency_ns=30.0),
        CacheLevel(size=256 << 20, read_gbps=25.0, write_gbps=15.0, latency_ns=100.0),
    ),
    gflops=100.0, gflops_f64=50.0, step_ns=0.15, launch_us=2.0,
)  # fmt: skip
"""Weights of lines where nothing was measured. No limit is named by these."""

_SURE: Final = 0.4
_LIKELY: Final = 0.2
_LEAST: Final = 0.2
_TOO_LONG: Final = {"chain": 1.6, "scalar": 1.6, "gathers": 4.0, "jumps": 2.5, "atomics": 4.0}
"""An estimate that exceeds the measured time by this factor is wrong."""
_IN_FLIGHT: Final = 24
"""Independent loads that one thread waits for at a time."""
_SURE_NAMES: Final = ("bandwidth", "arithmetic", "chases")
_BASIC: Final = ("bandwidth", "arithmetic", "chain", "chases", "atomics")
"""The times that weigh lines where it is not known which of them count."""
_PER_CYCLE: Final = 1.5
"""Operations of a thread without vectors for each step of a chain (half a cycle)."""
_ATOMIC_STEPS: Final = 40
_NEAR: Final = {64: 512 << 10, 32: 16 << 20}
"""Data for which the bandwidth of the nearest shared level is known, by what travels at least."""
_RESIDENT: Final = 1 << 16
"""Threads of a device that wait at the same time."""
_CELLS: Final = 64
"""Cells that a device updates at the same time."""
_FASTER: Final = 1.5
"""Data is in a cache if it is read this much faster than memory."""


class Counted(NamedTuple):
    """The amounts of one launch on the CPU.

    memory: bytes of the cache lines that are touched. exact: the lines whose amounts are no upper
    limits; None for all. method, reason: of `CostRecord`. tasks: of the CPU's code. chunks: by
    task, into how many parts it was divided for threads. iterations: by task, those of its
    parallel loop. device: what differs on a device, where atomic operations stay; None for nothing.
    """

    lines: tuple[LineAmounts, ...] = ()
    memory: int = 0
    bytes: int | None = None
    flops: int | None = None
    method: str = ""
    reason: str = ""
    exact: frozenset[LineKey] | None = None
    tasks: tuple[TaskRecord, ...] = ()
    chunks: Mapping[int, int] = {}
    iterations: Mapping[int, int] = {}
    device: Counted | None = None


class _Times(NamedTuple):
    """Microseconds that amounts need at least: see the module docstring."""

    bandwidth: float = 0.0
    arithmetic: float = 0.0
    chain: float = 0.0
    chases: float = 0.0
    scalar: float = 0.0
    gathers: float = 0.0
    jumps: float = 0.0
    atomics: float = 0.0

    def of(self, names: Iterable[str]) -> dict[str, float]:
        """Some of them by name."""
        every = self._asdict()
        return {name: every[name] for name in names}


class _Speed(NamedTuple):
    """The speed of memory of one size."""

    read_gbps: float
    write_gbps: float
    latency_ns: float


def speed_of(peaks: PeaksRecord, size: int) -> _Speed:
    """The speed of memory for data of this size, between measured ones in proportion."""
    levels = peaks.memory or TYPICAL.memory
    size = max(1, size)
    if size <= levels[0].size:
        return _Speed(levels[0].read_gbps, levels[0].write_gbps, levels[0].latency_ns)
    for low, high in pairwise(levels):
        if size <= high.size:
            part = log(size / low.size) / log(high.size / low.size)
            return _Speed(
                _between(low.read_gbps, high.read_gbps, part),
                _between(low.write_gbps, high.write_gbps, part),
                low.latency_ns + part * (high.latency_ns - low.latency_ns),
            )
    return _Speed(levels[-1].read_gbps, levels[-1].write_gbps, levels[-1].latency_ns)


def _between(low: float, high: float, part: float) -> float:
    """The rate between two: times of a byte are in proportion, not rates."""
    return 1 / (1 / low + part * (1 / high - 1 / low)) if low > 0 and high > 0 else max(low, high)


def costs_of(
    launch: LaunchRecord, counted: Counted, peaks: PeaksRecord | None,
    task_us: Sequence[float] | None = None,
) -> CostRecord:  # fmt: skip
    """The costs of the launches with one workload.

    task_us: the measured time of each of the tasks; None if it is not known.
    """
    made = CostRecord(
        workload=launch.workload, method=counted.method, reason=counted.reason,
        bytes=counted.bytes, flops=counted.flops, memory=counted.memory,
    )  # fmt: skip
    return _Model(launch, counted, peaks).record(made, task_us)


class _Model:
    """The times of one launch."""

    def __init__(self, launch: LaunchRecord, counted: Counted, peaks: PeaksRecord | None) -> None:
        self._launch: Final = launch
        self._counted: Final = counted
        self._peaks: Final = peaks or TYPICAL
        self._known: Final = peaks is not None
        self._speed: Final = speed_of(self._peaks, counted.memory)
        near = min(max(1, counted.memory), _NEAR.get(self._peaks.unit, 512 << 10))
        self._near: Final = speed_of(self._peaks, near)
        last = (self._peaks.memory or TYPICAL.memory)[-1]
        self._cached: Final = self._known and self._speed.read_gbps > _FASTER * last.read_gbps
        self._lines: Final[dict[int, list[LineAmounts]]] = {}
        for line in counted.lines:
            self._lines.setdefault(line.key.task, []).append(line)

    def record(self, made: CostRecord, task_us: Sequence[float] | None) -> CostRecord:
        """The record with tasks and lines."""
        indices = list(range(len(self._counted.tasks)))
        indices = indices or [i for i in self._lines if i >= 0] or [-1]
        times = {i: self._sum(self._lines.get(i, ())) for i in (*indices, -1)}
        if task_us is not None and len(task_us) != len(indices):
            task_us = None
        total = self._launch.median_us
        timed = "launch" if len(indices) == 1 else "estimated" if task_us is None else "measured"
        if timed == "launch":
            found: list[float | None] = [total]
        elif task_us is not None:
            found = [*task_us]
        else:
            weights = [max(times[i].of(_BASIC).values()) for i in indices]
            whole = sum(weights)
            found = [total * weight / whole if whole else None for weight in weights]
        tasks: list[TaskCost] = []
        lines: list[LineCost] = []
        for i, us in zip(indices, found, strict=True):
            task, by = self._task(i, us, timed, times[i], len(indices))
            tasks.append(task)
            lines += self._costs(i, us, by)
        if -1 not in indices:
            lines += self._costs(-1, None, _BASIC)
        return msgspec.structs.replace(made, tasks=tuple(tasks), lines=tuple(lines))

    # ---- times

    @property
    def _is_host(self) -> bool:
        """True if the launch is on the processor that counted."""
        return self._peaks.backend in ("", "cpu")

    def _waiting(self, task: int) -> int:
        """The threads of a task that wait side by side."""
        if self._is_host:
            return self._parallel(task)
        return max(1, min(self._counted.iterations.get(task, 1), _RESIDENT))

    def _parallel(self, task: int) -> int:
        """The threads that work on a task."""
        chunks = self._counted.chunks.get(task, self._peaks.threads)
        return max(1, min(chunks, self._peaks.threads))

    def _times(self, line: LineAmounts) -> _Times:
        peaks = self._peaks
        threads = self._waiting(line.key.task)
        alone = max(1, peaks.threads) // threads if self._is_host else 1
        wide = peaks.gflops / peaks.gflops_f64 - 1 if peaks.gflops_f64 else 1.0
        work = max(0, line.cycles - line.loads - line.stores - 19 * line.atomics)
        step_us = peaks.step_ns / 1e3
        latency_us = self._speed.latency_ns / 1e3
        return _Times(
            bandwidth=self._bandwidth(line),
            arithmetic=alone * (work + wide * line.wide) / peaks.gflops / 1e3,
            chain=line.chain * step_us / threads,
            chases=line.chases * latency_us / threads,
            scalar=line.cycles * step_us / _PER_CYCLE / threads,
            gathers=line.gathers * latency_us / _IN_FLIGHT / threads,
            jumps=self._jumps(line, latency_us / threads),
            atomics=self._atomics(line, threads),
        )

    def _bandwidth(self, line: LineAmounts) -> float:
        """Microseconds for what travels for a line."""
        read = line.load_bytes if line.moved_read is None else line.moved_read
        written = line.store_bytes if line.moved_written is None else line.moved_written
        travel = _travel(line, self._peaks)
        near, far = self._near, self._speed
        if travel is None:
            return (read / far.read_gbps + written / far.write_gbps) / 1e3
        return max(
            travel.near_read / near.read_gbps + travel.near_written / near.write_gbps,
            travel.far_read / far.read_gbps + travel.far_written / far.write_gbps,
        ) / 1e3  # fmt: skip

    def _jumps(self, line: LineAmounts, latency_us: float) -> float:
        """Microseconds for cache lines far from the one before, which no CPU fetches in advance.

        Stores become visible in order, each after the one before.
        """
        travel = line.host
        if not travel or not self._is_host:
            return 0.0
        return (travel.jumps_read / _IN_FLIGHT + travel.jumps_written) * latency_us

    def _atomics(self, line: LineAmounts, threads: int) -> float:
        """Microseconds of atomic operations: those on the same cell wait for each other."""
        each_us = self._peaks.atomic_ns / 1e3
        apart = line.atomics * _ATOMIC_STEPS * self._peaks.step_ns / 1e3 / threads
        if not line.atomics or not each_us:
            return apart
        most = line.atomics if self._is_host else _CELLS
        waits = sum(n / min(max(1, cells), most) for n, cells in line.updates)
        return max(apart * self._is_host, waits * each_us)

    def _sum(self, lines: Iterable[LineAmounts]) -> _Times:
        total = _Times()
        for line in lines:
            total = _Times(*(a + b for a, b in zip(total, self._times(line), strict=True)))
        return total

    def _costs(self, task: int, us: float | None, by: Sequence[str]) -> list[LineCost]:
        """The lines of a task. by: the names of the times that weigh them."""
        lines = self._lines.get(task, [])
        if not lines:
            return []
        times = [self._times(line).of(by) for line in lines]
        weights = [max(one.values()) for one in times]
        whole = sum(weights)
        shares = [w / whole for w in weights] if whole else [1 / len(lines)] * len(lines)
        kinds = [_best(one, 1e-9) if self._known else "" for one in times]
        return [
            _line_cost(line, self._exact(line), None if us is None else us * share,
                       _KINDS.get(kind, ""), _travel(line, self._peaks))
            for line, share, kind in zip(lines, shares, kinds, strict=True)
        ]  # fmt: skip

    def _exact(self, line: LineAmounts) -> bool:
        """True if no amount of a line is an upper limit."""
        exact = self._counted.exact
        # What is touched is an upper limit where it was not counted.
        return exact is None or (line.key in exact and not line.loads and not line.stores)

    # ---- limits

    def _task(
        self, index: int, us: float | None, timed: str, times: _Times, several: int
    ) -> tuple[TaskCost, Sequence[str]]:
        """The record of a task, and the names of the times that weigh its lines."""
        if not self._known:
            return TaskCost(task=index, us=us, timed=timed), _BASIC
        launch_us = self._launch_us(self._lines) if timed == "launch" else 0.0
        least = {
            "bandwidth": times.bandwidth, "arithmetic": times.arithmetic,
            "latency": max(times.chases, times.atomics), "launch": launch_us,
        }  # fmt: skip
        limit, because, by = "unknown", "its time is not known", _BASIC
        whole = self._launch.min_us
        nothing_us = self._launch_us(self._lines) * (1 if several == 1 else 1.5)
        if whole <= 2 * nothing_us:
            limit = "launch"
            because = (
                f"the shortest launch took {whole:.3g} us, one that does nothing needs "
                f"{nothing_us:.3g} us"
            )
        elif (self._launch.wall_us or 0.0) > 3 * self._launch.median_us:
            limit = "launch"
            because = (
                f"a caller waits {self._launch.wall_us:.3g} us, in which the device works "
                f"{self._launch.median_us:.3g} us"
            )
        elif us is not None and us < self._peaks.launch_us / 2 and timed == "measured":
            limit, because = "launch", "it needs less time than the launch of a kernel"
        elif timed == "estimated":
            because = "its time was not measured"
        elif us is not None:
            # The shortest launch has least to do with what else the machine did.
            shortest = us * whole / max(self._launch.median_us, 1e-9) - launch_us
            limit, because, by = self._limit(max(shortest, 1e-3), times)
            if limit == "bandwidth":
                because += self._excess(index)
        made = TaskCost(
            task=index, us=us, timed=timed, limited_by=limit, because=because, least_us=least,
            cached=self._cached,
        )  # fmt: skip
        return made, by

    def _excess(self, task: int) -> str:
        """Notes on the bytes that travel: more than asked for, or none from memory."""
        lines = self._lines.get(task, ())
        asked = sum(line.load_bytes + line.store_bytes for line in lines)
        found = [_travel(line, self._peaks) for line in lines]
        bytes = sum(max(x[0] + x[1], x[2] + x[3]) for x in found if x)
        out = "; the data stays in cache" if self._cached else ""
        if asked and bytes > 1.5 * asked:
            kind = "cache lines" if self._peaks.unit > 32 else "sectors"
            out += (
                f"; {bytes / asked:.2g} times the bytes asked for travel, in whole {kind} of "
                f"{self._peaks.unit} bytes"
            )
        return out

    def _launch_us(self, tasks: Iterable[int]) -> float:
        """Microseconds of a launch of tasks that do nothing."""
        parallel = any(self._parallel(task) > 1 for task in tasks)
        return self._peaks.wake_us if parallel else self._peaks.launch_us

    def _limit(self, us: float, times: _Times) -> tuple[str, str, Sequence[str]]:
        """The limit of a task that needs ``us``, the reason, and the times that weigh its lines."""
        if not self._counted.lines:
            return "unknown", self._counted.reason or "nothing was counted", _BASIC
        parts = {name: value / us for name, value in times._asdict().items()}
        sure = {name: parts[name] for name in _SURE_NAMES}
        found = _best(sure, _SURE)
        if self._peaks.atomic_ns and max(sure.values()) < parts["atomics"] <= _TOO_LONG["atomics"]:
            # Measured on one cell, as sure as the others: the data of the kernel travels meanwhile.
            found = _best({"atomics": parts["atomics"]}, _SURE) or found
        if found == "bandwidth" and parts["chases"] >= _SURE and parts["bandwidth"] < 0.6:
            found = "chases"
        for names in (("chain",), ("scalar", "gathers", "jumps", "atomics")):
            likely = {n: parts[n] for n in names if parts[n] <= _TOO_LONG[n]}
            found = found or _best(likely, _LIKELY)
        found = found or _best(sure, _LEAST)
        by = [*_SURE_NAMES, "atomics"]
        by += [n for n in ("chain", "scalar", "gathers", "jumps") if n == found]
        if not found:
            shares = ", ".join(f"{_NAMES[n]} {v:.0%}" for n, v in sure.items())
            return "unknown", f"no resource is near its limit: {shares} of the time", _BASIC
        because = _REASONS[found].format(
            part=min(parts[found], 1.0), gbps=self._speed.read_gbps, gflops=self._peaks.gflops,
            latency=self._speed.latency_ns,
        )  # fmt: skip
        return _KINDS[found], because, by


def _best(several: Mapping[str, float], least: float) -> str:
    """The name of the largest value, if it is at least ``least``; else empty."""
    name = max(several, key=several.__getitem__, default="")
    return name if name and several[name] >= least else ""


_KINDS: Final = {
    "bandwidth": "bandwidth", "arithmetic": "arithmetic", "chain": "arithmetic",
    "scalar": "arithmetic", "chases": "latency", "gathers": "latency", "jumps": "latency",
    "atomics": "latency",
}  # fmt: skip
_NAMES: Final = {"bandwidth": "bandwidth", "arithmetic": "peak arithmetic", "chases": "latency"}
_REASONS: Final = {
    "bandwidth": "at {gbps:.3g} GB/s, its bytes need {part:.0%} of the time",
    "arithmetic": "at {gflops:.3g} GFLOP/s, its operations need {part:.0%} of the time",
    "chain": "operations that each wait for the one before need {part:.0%} of the time",
    "scalar": "its operations one by one, without vectors, would need {part:.0%} of the time",
    "chases": "at {latency:.3g} ns a load, loads that each wait for the one before need "
    "{part:.0%} of the time",
    "gathers": "at {latency:.3g} ns a load, loads from addresses that were loaded need {part:.0%} "
    "of the time",
    "jumps": "at {latency:.3g} ns a cache line, accesses far from each other need {part:.0%} of "
    "the time",
    "atomics": "atomic operations need {part:.0%} of the time",
}


def _travel(line: LineAmounts, peaks: PeaksRecord) -> Travel | None:
    """The bytes that travel for a line on this machine or device; None if that is not known."""
    return (line.device if peaks.unit <= 32 else line.host) or None


def _line_cost(
    line: LineAmounts, exact: bool, us: float | None, kind: str, travel: Travel | None
) -> LineCost:
    key = line.key
    inlined = (key.inner_file, key.inner_line) != (key.file, key.line)
    return LineCost(
        task=key.task, file=key.file, line=key.line,
        inner_file=key.inner_file if inlined else "", inner_line=key.inner_line if inlined else 0,
        exact=exact, us=us, limited_by=kind,
        runs=line.runs, instructions=line.instructions, flops=line.flops, loads=line.loads,
        stores=line.stores, atomics=line.atomics, load_bytes=line.load_bytes,
        store_bytes=line.store_bytes, read_bytes=line.read_bytes,
        written_bytes=line.written_bytes, moved_read=line.moved_read,
        moved_written=line.moved_written,
        near_bytes=None if travel is None else travel.near_read + travel.near_written,
        far_bytes=None if travel is None else travel.far_read + travel.far_written,
        gathers=line.gathers, chases=line.chases,
        chain=line.chain, cycles=line.cycles, wide=line.wide,
    )  # fmt: skip
