"""The part of a record about costs: what lines of a kernel do, and what limits them; see `record`.

::

    BackendRecord ── peaks (of the machine or device)
         └── costs (by workload) ── tasks ── lines
"""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = ["CacheLevel", "CostRecord", "LineCost", "PeaksRecord", "TaskCost"]


class CacheLevel(RecordPart, frozen=True, kw_only=True):
    """The speed of memory for data of one size, measured."""

    size: Annotated[int, about("Bytes that are used again and again.")]
    read_gbps: Annotated[float, about("Bandwidth of reads.")] = 0.0
    write_gbps: Annotated[float, about("Bandwidth of writes.")] = 0.0
    latency_ns: Annotated[
        float, about("Time from one load to the next whose address it is; 0 if not measured.")
    ] = 0.0


class PeaksRecord(RecordPart, frozen=True, kw_only=True):
    """The speed of a machine or device, measured once with kernels of the program's own."""

    backend: Annotated[str, about("Backend of the measurement.")]
    device: Annotated[str, about("Processor or device.")] = ""
    created: Annotated[str, about("Time of the measurement.")] = ""
    threads: Annotated[int, about("Threads of the CPU pool; 0 for a device.")] = 0
    memory: Annotated[tuple[CacheLevel, ...], about("By size, smallest first.")] = ()
    gflops: Annotated[float, about("Operations on f32, mul and add fused.")] = 0.0
    gflops_f64: Annotated[float, about("Operations on f64.")] = 0.0
    step_ns: Annotated[
        float, about("Time of a cycle in a chain of dependent operations, by one thread.")
    ] = 0.0
    launch_us: Annotated[float, about("Launch of a kernel that does nothing.")] = 0.0
    wake_us: Annotated[
        float, about("Launch of a parallel kernel that does nothing, with threads asleep.")
    ] = 0.0
    unit: Annotated[
        int, about("Bytes that travel at least: a cache line of a CPU, a sector of a GPU.")
    ] = 64
    atomic_ns: Annotated[
        float, about("Time of an atomic operation of a device, all on one cell; 0 if not measured.")
    ] = 0.0


class LineCost(RecordPart, frozen=True, kw_only=True):
    """The amounts of one line in one task, in one launch."""

    task: Annotated[int, about("Index of the task on the CPU; -1 for none.")]
    file: Annotated[str, about("File of the kernel; empty if an op has no source location.")]
    line: Annotated[int, about("Line of the kernel, that of the call for inlined code; 0: none.")]
    inner_file: Annotated[str, about("File of the code, where that was inlined.")] = ""
    inner_line: Annotated[int, about("Line of the code, where that was inlined; else 0.")] = 0
    exact: Annotated[
        bool, about("True if the amounts were counted; False if they are upper limits.")
    ] = True
    runs: Annotated[int, about("Executions of the most frequent op.")] = 0
    instructions: Annotated[int, about("Executed ops of the IR.")] = 0
    flops: Annotated[int, about("Operations on floats.")] = 0
    loads: Annotated[int, about("Loads from arrays and fields.")] = 0
    stores: Annotated[int, about("Stores to arrays and fields.")] = 0
    atomics: Annotated[int, about("Atomic operations on arrays and fields.")] = 0
    load_bytes: Annotated[int, about("Bytes that loads ask for.")] = 0
    store_bytes: Annotated[int, about("Bytes that stores ask for.")] = 0
    read_bytes: Annotated[int | None, about("Bytes of distinct elements read.")] = None
    written_bytes: Annotated[int | None, about("Bytes of distinct elements written.")] = None
    moved_read: Annotated[
        int | None, about("Bytes of the cache lines read, shared ones divided among lines.")
    ] = None
    moved_written: Annotated[int | None, about("The same of written ones.")] = None
    near_bytes: Annotated[
        int | None,
        about("Bytes that travel past the first cache, in whole cache lines, or sectors of a GPU."),
    ] = None
    far_bytes: Annotated[
        int | None, about("Bytes that travel past the second cache, on a GPU past all caches.")
    ] = None
    gathers: Annotated[int, about("Loads whose address is computed from another load.")] = 0
    chases: Annotated[
        int, about("Loads whose address is computed from the same load, an iteration before.")
    ] = 0
    chain: Annotated[int, about("Cycles in the task's longest chain of dependent operations.")] = 0
    cycles: Annotated[int, about("Cost of the operations, in additions.")] = 0
    wide: Annotated[int, about("Operations on floats of 64 bits.")] = 0
    us: Annotated[
        float | None,
        about("Estimated part of the task's time, by counted cycles; None if that is not known."),
    ] = None
    limited_by: Annotated[
        str, about("Limit of the line: bandwidth, arithmetic, latency, or empty.")
    ] = ""


class TaskCost(RecordPart, frozen=True, kw_only=True):
    """The time of one task, and what limits it."""

    task: Annotated[int, about("Index of the task on the CPU; -1: all tasks together.")]
    us: Annotated[float | None, about("Time of the task; None if not known.")] = None
    timed: Annotated[
        str,
        about(
            "Origin of the time: ``launch`` (it is the only task), ``measured`` (by the clock "
            "between tasks), or ``estimated``."
        ),
    ] = ""
    limited_by: Annotated[
        str,
        about("Limit: bandwidth, arithmetic, latency, launch, or unknown; empty if not looked at."),
    ] = ""
    because: Annotated[str, about("Reason of the limit.")] = ""
    cached: Annotated[
        bool, about("True if the data of the launch stays in a cache that is faster than memory.")
    ] = False
    least_us: Annotated[
        dict[str, float],
        about("By limit: the time that the machine needs for the counted amounts."),
    ] = {}  # noqa: RUF012


class CostRecord(RecordPart, frozen=True, kw_only=True):
    """Costs of the launches with one workload, by line and task.

    Amounts are those of the CPU's code for the same arguments, on every backend.
    """

    workload: Annotated[str, about("Label of the workload.")]
    method: Annotated[
        str, about("Origin of the amounts: ``counted`` by a launch, ``bounds`` of loops, or empty.")
    ] = ""
    reason: Annotated[str, about("Reason if lines are missing or are upper limits.")] = ""
    tasks: Annotated[tuple[TaskCost, ...], about("The tasks.")] = ()
    lines: Annotated[tuple[LineCost, ...], about("The lines, by task.")] = ()
    bytes: Annotated[int | None, about("Bytes of distinct elements in all tasks.")] = None
    memory: Annotated[int, about("Bytes of the cache lines that are touched; 0 if not known.")] = 0
    flops: Annotated[int | None, about("Operations on floats in all tasks.")] = None
