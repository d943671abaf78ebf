"""The part of a record about launches: times, agreement, devices, graphs; see `record`.

::

    KernelRecord ── verdicts (a backend compared with another, by workload)
    BackendRecord ── launches (by workload)
        ├── agreement
        ├── device (of the launches, if it is not the host)
        └── flow (the order of the tasks, if they do not run one after another)
"""

from typing import Annotated

import msgspec

from .record_base import RecordPart, about

__all__ = [
    "AgreementRecord", "DeviceRecord", "EarlierRecord", "FlowNode", "FlowRecord",
    "LaunchRecord", "LoadRecord", "VerdictRecord",
]  # fmt: skip


class LoadRecord(RecordPart, frozen=True, kw_only=True):
    """The load of the machine during timed launches; see `machine_load`."""

    cpus: Annotated[int, about("CPUs that this process may use.")] = 0
    waited: Annotated[
        float | None,
        about(
            "Seconds that ready threads of this process waited for a processor, beyond the time "
            "of waking, per second of timing; above 1 is possible with several threads. None if "
            "unknown."
        ),
    ] = None
    loop_us: Annotated[float, about("Median time of a fixed Python loop during the launches.")] = (
        0.0
    )
    loop_fast_us: Annotated[float, about("Fastest tenth of those times.")] = 0.0
    loop_slow_us: Annotated[float, about("Slowest tenth of those times.")] = 0.0


class EarlierRecord(RecordPart, frozen=True, kw_only=True):
    """Launches of an earlier compile, made in turns with those of the record; see `earlier`."""

    stamp: Annotated[str, about("The ``stamp`` of the earlier launches.")]
    before_us: Annotated[float, about("Median of the earlier compile.")]
    after_us: Annotated[float, about("Median of this compile.")]
    n: Annotated[int, about("Launches of the earlier compile.")]
    ratio: Annotated[float, about("Median of the ratios of pairs; above 1 if this is slower.")]
    band: Annotated[float, about("Distance from 1 that is within noise.")]
    verdict: Annotated[str, about("One of faster, slower, within noise and unknown.")]
    clock: Annotated[str, about("Compared times: ``wall clock``, ``device time`` or ``CPU time``.")]
    reason: Annotated[str, about("Reason for ``unknown``.")] = ""
    more_s: Annotated[
        float, about("Most seconds that launches go on for after the look; 0 if they are over.")
    ] = 0.0


class LaunchRecord(RecordPart, frozen=True, kw_only=True):
    """Timing of launches with one workload. Sample k of every backend belongs to the same round."""

    workload: Annotated[str, about("Label of the workload.")]
    method: Annotated[
        str,
        about('Definition of the times, e.g. "host wall clock around the call, device synced".'),
    ]
    n: Annotated[int, about("Number of timed launches.")]
    warmup: Annotated[int, about("Number of untimed launches.")]
    first_us: Annotated[float, about("First untimed launch.")]
    median_us: Annotated[float, about("Median.")]
    mad_us: Annotated[float, about("Median absolute deviation.")]
    min_us: Annotated[float, about("Shortest launch.")]
    max_us: Annotated[float, about("Longest launch.")]
    samples_us: Annotated[
        tuple[float, ...],
        about("The timed launches in order; each the median of ``burst`` consecutive ones."),
    ] = ()
    burst: Annotated[
        int,
        about(
            "Launches in a sample, which is their median: 1 up to 200 launches, so many that there "
            "are at most 200 samples where a comparison needed more. ``n``, median, deviation, "
            "shortest and longest are of single launches."
        ),
    ] = 1
    gbps: Annotated[float | None, about("Bandwidth: the workload's ``bytes`` over the median.")] = (
        None
    )
    gflops: Annotated[float | None, about("Rate: the workload's ``flops`` over the median.")] = None
    host_us: Annotated[
        float | None,
        about(
            "On a device: median time that the host needed to issue a launch; the times above are"
            " then device times."
        ),
    ] = None
    memory_bytes: Annotated[
        int | None, about("Device memory in use with all arguments in place.")
    ] = None
    wall_us: Annotated[
        float | None,
        about(
            "Median wall-clock time from the call to the end of a launch; None if the times above"
            " are wall-clock times, and in records of earlier versions."
        ),
    ] = None
    wall_mad_us: Annotated[float | None, about("Median absolute deviation of ``wall_us``.")] = None
    wall_samples_us: Annotated[
        tuple[float, ...],
        about("Wall-clock times of the same launches, or of as many between them."),
    ] = ()
    cpu_samples_us: Annotated[
        tuple[float, ...],
        about(
            "CPU time of all threads of the process in the same launches; empty unless launches "
            "ran on the host and the machine was busy."
        ),
    ] = ()
    load: Annotated[LoadRecord | None, about("Load of the machine; None if not measured.")] = None
    stamp: Annotated[
        str, about("Name of these launches where later ones can be compared with them; else empty.")
    ] = ""
    earlier: Annotated[
        EarlierRecord | None,
        about("The compile before, launched in turns with this one; None if it was not."),
    ] = None

    @property
    def by_device(self) -> bool:
        """True if ``median_us`` and its kin are time of a device, not of the wall clock."""
        return self.host_us is not None

    @property
    def waits_us(self) -> tuple[float, ...]:
        """The times that callers of launches waited; empty if only the device's time is known."""
        return self.wall_samples_us if self.by_device else self.samples_us


class AgreementRecord(RecordPart, frozen=True, kw_only=True):
    """Comparison of a backend's results with the interpreter's, for the same arguments.

    It is never ``ok`` without compared elements: the state then becomes ``unknown``.
    """

    state: Annotated[
        str, about("State: ``ok``, ``differs`` or ``unknown`` (nothing was compared).")
    ]
    reason: Annotated[str, about("Reason of ``unknown``.")] = ""
    workload: Annotated[
        str, about("Compared workload; if results differ, the workload that differs.")
    ] = ""
    max_abs: Annotated[float, about("Largest absolute error over all workloads.")] = 0.0
    max_rel: Annotated[float, about("Largest relative error over all workloads.")] = 0.0
    max_ulp: Annotated[
        float, about("Largest error in representable values between two floats.")
    ] = 0.0
    tolerance: Annotated[str, about("Tolerance as text.")] = ""
    differing: Annotated[
        int, about("Elements of the differing workload that exceed the tolerance.")
    ] = 0
    elements: Annotated[
        int,
        about(
            "Compared numbers that the kernel writes or returns; if results differ, those of that"
            " workload."
        ),
    ] = 0
    first_difference: Annotated[str, about('"parameter[index]: got x, interpreter y".')] = ""
    check: Annotated[str, about("The author's check: ``passed``, ``failed`` or ``none``.")] = "none"
    check_message: Annotated[str, about("Message of the check.")] = ""
    against: Annotated[str, about("Reference of the comparison.")] = ""
    nans: Annotated[int, about("Compared elements that are NaN on both sides.")] = 0
    uncompared: Annotated[
        tuple[str, ...],
        about("Workloads that were launched and not compared, for the reason in the reason field."),
    ] = ()

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


class VerdictRecord(RecordPart, frozen=True, kw_only=True):
    """A backend's launches with one workload, compared with another backend's; see `verdicts`."""

    workload: Annotated[str, about("Label of the workload.")]
    backend: Annotated[str, about("The backend.")]
    against: Annotated[str, about("The reference backend.")]
    ratio: Annotated[
        float, about("Median of the ratios of pairs; above 1 if ``backend`` is slower.")
    ]
    band: Annotated[float, about("Distance from 1 that is within noise.")]
    verdict: Annotated[str, about("One of faster, slower, within noise and unknown.")]
    clock: Annotated[
        str,
        about(
            "Compared times: ``wall clock``, ``device time`` or ``CPU time``; empty in records of "
            "earlier versions, which compared `LaunchRecord.median_us` of both."
        ),
    ] = ""
    reason: Annotated[str, about("Reason for ``unknown``.")] = ""


class DeviceRecord(RecordPart, frozen=True, kw_only=True):
    """A device."""

    name: Annotated[str, about("Name of the device.")]
    driver: Annotated[str, about("Version of the driver.")] = ""
    capability: Annotated[str, about("Compute capability, such as 9.0.")] = ""
    multiprocessors: Annotated[int, about("Number of multiprocessors.")] = 0
    total_bytes: Annotated[int, about("Size of its memory.")] = 0


class FlowNode(RecordPart, frozen=True, kw_only=True):
    """A task of a kernel, or a node that contains others.

    A loop with a block is a single kernel that runs all of the loop.
    """

    id: Annotated[int, about("Index in `FlowRecord.nodes`.")]
    kind: Annotated[
        str,
        about(
            "Kind: task; do_while, checkpoint, parallel, section (which contain others); in a "
            "graph also memset, memcpy, join."
        ),
    ]
    name: Annotated[str, about("Name for display.")] = ""
    task: Annotated[int, about("Index of the task; -1 for none.")] = -1
    parent: Annotated[int, about("Index of the enclosing node; -1 for none.")] = -1
    param: Annotated[
        str,
        about(
            "Parameter whose value decides: if a do_while continues, or if a launch ends at a "
            "checkpoint."
        ),
    ] = ""
    label: Annotated[str, about("Label of a checkpoint, as the user wrote it.")] = ""
    grid: Annotated[int, about("Blocks of the last launch; 0 if unknown.")] = 0
    block: Annotated[int, about("Threads per block; 0 if unknown.")] = 0
    stream: Annotated[int, about("Index of the stream; 0 for the default one.")] = 0
    runs: Annotated[int, about("Iterations of a loop in all launches so far; -1 if unknown.")] = -1
    loc: Annotated[int, about("Index of the LocRecord; -1 for none.")] = -1


class FlowRecord(RecordPart, frozen=True, kw_only=True):
    """The order in which the tasks of a kernel run."""

    how: Annotated[
        str,
        about(
            "Method: ``graph`` (a device replays a graph), ``launches`` (one launch after "
            "another), ``host`` (the host runs loops and branches) or ``none`` (this backend "
            "cannot launch here)."
        ),
    ] = "launches"
    why: Annotated[str, about("Reason if it is not a graph.")] = ""
    nodes: Annotated[tuple[FlowNode, ...], about("Nodes in program order, outer ones first.")] = ()
    edges: Annotated[
        tuple[tuple[int, int], ...], about("Pairs (from, to): ``to`` waits for ``from``.")
    ] = ()
    replays: Annotated[int, about("Launches of the graph so far.")] = 0
    updates: Annotated[int, about("In-place changes of arguments so far.")] = 0
    rebuilds: Annotated[int, about("Number of times that the graph was built.")] = 0
    streams: Annotated[int, about("Streams of the last launch.")] = 0
    events: Annotated[int, about("Events of the last launch.")] = 0
