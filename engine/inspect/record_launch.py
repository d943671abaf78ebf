"""The part of a record that tells of launches: times, agreement, devices, graphs; see `record`.

::

    KernelRecord ── verdicts (a backend against another, with a workload)
    BackendRecord ── launches (a workload each)
        ├── agreement
        ├── device (what they ran on, where that is not the host)
        └── flow (the order of the kernel's tasks, where it is another than one after the other)
"""

from __future__ import annotations

import msgspec

__all__ = [
    "AgreementRecord", "DeviceRecord", "FlowNode", "FlowRecord", "LaunchRecord", "LoadRecord",
    "VerdictRecord",
]  # fmt: skip


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Settings shared by all parts of a record."""


class LoadRecord(_Base, frozen=True, kw_only=True):
    """How busy the machine was while launches were timed; see `machine_load`.

    cpus: of the machine. waited: seconds that threads of this process were ready and waited for a
    processor, for each second of timing; with several threads it can be above 1. None if it is not
    known. loop_us, loop_fast_us, loop_slow_us: what a fixed loop of Python took next to the
    launches: the median, and the tenth of the times below and above.
    """

    cpus: int = 0
    waited: float | None = None
    loop_us: float = 0.0
    loop_fast_us: float = 0.0
    loop_slow_us: float = 0.0


class LaunchRecord(_Base, frozen=True, kw_only=True):
    """Timing of launches with one workload.

    method: what the time holds, e.g. "host wall clock around the call, device synced".
    warmup: untimed launches; first_us: the first of them. samples_us: all timed launches.
    mad_us: median absolute deviation. Sample k of every backend belongs to the same moment: they
    take turns. gbps, gflops: what the workload's ``bytes`` and ``flops`` make with the median.

    Of launches on a device, where these times are those of the device: host_us: the median time
    that the host needed to issue one. wall_us, wall_mad_us, wall_samples_us: the same launches, or
    as many between them, by the wall clock, from the call until they were over, which is what a
    caller waits for; None and empty where the times above are that, and in records of earlier
    versions. memory_bytes: of the device, in use with all arguments in place. load: of the machine
    meanwhile; None where that was not measured.
    """

    workload: str
    method: str
    n: int
    warmup: int
    first_us: float
    median_us: float
    mad_us: float
    min_us: float
    max_us: float
    samples_us: tuple[float, ...] = ()
    gbps: float | None = None
    gflops: float | None = None
    host_us: float | None = None
    memory_bytes: int | None = None
    wall_us: float | None = None
    wall_mad_us: float | None = None
    wall_samples_us: tuple[float, ...] = ()
    load: LoadRecord | None = None

    @property
    def by_device(self) -> bool:
        """Whether ``median_us`` and its kin are time of a device, not of the wall clock."""
        return self.host_us is not None

    @property
    def waits_us(self) -> tuple[float, ...]:
        """What the caller of each launch waited; empty where only the device's time is known."""
        return self.wall_samples_us if self.by_device else self.samples_us


class AgreementRecord(_Base, frozen=True, kw_only=True):
    """Results of a backend, compared with those of the interpreter on the same arguments.

    state: ``ok``, ``differs``, or ``unknown``: nothing was compared, and reason says why. It is
    never ``ok`` without elements: where none were compared, the state becomes ``unknown``.
    against: what the results were compared with. elements: the numbers that the kernel writes or
    returns, and that were compared. nans: those of them that are NaN on both sides.
    workload: what was compared; of results that differ, the workload that does. uncompared: the
    workloads that were launched and not compared, for the reason in ``reason``.
    check: the author's own check: passed, failed, none. max_abs, max_rel, max_ulp: the largest
    errors over all workloads; ulp counts representable values between two floats. differing: the
    elements of the workload that differs that are too far off; ``elements`` are then its own.
    first_difference: "parameter[index]: got x, interpreter y".
    """

    state: str
    reason: str = ""
    workload: str = ""
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    tolerance: str = ""
    differing: int = 0
    elements: int = 0
    first_difference: str = ""
    check: str = "none"
    check_message: str = ""
    against: str = ""
    nans: int = 0
    uncompared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.state == "unchecked":  # the word in records of earlier versions
            msgspec.structs.force_setattr(self, "state", "unknown")
        elif self.state == "ok" and not self.elements:
            msgspec.structs.force_setattr(self, "state", "unknown")
            reason = self.reason or "no element of a result was compared"
            msgspec.structs.force_setattr(self, "reason", reason)

    @property
    def verdict(self) -> str:
        """``ok``, ``differs`` or ``unknown``; ``differs`` too where the author's check failed."""
        return "differs" if self.check == "failed" else self.state


class VerdictRecord(_Base, frozen=True, kw_only=True):
    """A backend's launches with one workload against another backend's.

    ratio: of the medians, above 1 where ``backend`` takes longer. band: how far from 1 the ratio
    may be and still say nothing. verdict: faster, slower, within noise. clock: what was compared:
    ``wall clock`` or ``device time``; empty in records of earlier versions, which compared the
    `LaunchRecord.median_us` of both, whatever that was. See `verdicts`.
    """

    workload: str
    backend: str
    against: str
    ratio: float
    band: float
    verdict: str
    clock: str = ""


class DeviceRecord(_Base, frozen=True, kw_only=True):
    """A device. driver: its version. capability: such as 9.0. total_bytes: its memory."""

    name: str
    driver: str = ""
    capability: str = ""
    multiprocessors: int = 0
    total_bytes: int = 0


class FlowNode(_Base, frozen=True, kw_only=True):
    """A task of a kernel, or something that has others in it.

    id: its place in `FlowRecord.nodes`. kind: task; do_while, checkpoint, parallel, section (which
    hold others); of a graph also memset, memcpy, join. name: for people. task: its number, -1 for
    none. parent: the node it lies in, -1 for none. param: whose value decides (of a do_while,
    whether it goes on; of a checkpoint, whether the launch ends there). label: of a checkpoint, as
    the user wrote it. grid, block: of the last launch, 0 where that is not known. stream: number of
    the stream, 0 for the default one. runs: rounds of a loop in all launches so far, -1 if that is
    not known. A loop with a block is one kernel, which runs all of it by itself.
    """

    id: int
    kind: str
    name: str = ""
    task: int = -1
    parent: int = -1
    param: str = ""
    label: str = ""
    grid: int = 0
    block: int = 0
    stream: int = 0
    runs: int = -1
    loc: int = -1


class FlowRecord(_Base, frozen=True, kw_only=True):
    """In which order a kernel's tasks run.

    how: ``graph`` (a device replays them as a graph), ``launches`` (one launch after the other),
    ``host`` (the host runs loops and branches), ``none`` (this backend launches nothing here).
    why: the reason where it is no graph. nodes: in
    program order, outer ones first. edges: (from, to), where ``to`` waits for ``from``.
    replays, updates, rebuilds: of the graph so far: launches of it, changes of arguments in place,
    and times it was made. streams, events: that the last launch used.
    """

    how: str = "launches"
    why: str = ""
    nodes: tuple[FlowNode, ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    replays: int = 0
    updates: int = 0
    rebuilds: int = 0
    streams: int = 0
    events: int = 0
