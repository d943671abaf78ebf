"""The record: all data of the studio, the reports and the queries, as plain data.

One `Record` describes one inspection of kernel files. It is immutable, versioned, stored
as JSON (msgspec), and complete: a saved record opens without an engine or a device. The JSON
Schema is generated from these classes and shipped as ``record.schema.json``.

::

    Record ── files (texts) ── errors ── log
       └── kernels ── params, workloads
              └── backends ── compile ── runs (passes) ── snapshots (IR texts, shared)

Fields whose values change from run to run without any change of input are listed in `VOLATILE`.
Times say their unit in their name.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Final

from .record_arguments import BindingRecord, LayoutRecord, ParamRecord, WorkloadRecord
from .record_autodiff import AutodiffRecord
from .record_base import RecordPart, about
from .record_caches import CacheDifference, CacheLayer
from .record_check import CHECKS, CheckFinding, CheckRecord, CheckVerdict
from .record_compile import (
    Artefact,
    CfgNode,
    CfgRecord,
    CompileRecord,
    LocRecord,
    PassRun,
    Remark,
    Rewrite,
    Snapshot,
    TaskRecord,
)
from .record_cost import CacheLevel, CostRecord, LineCost, PeaksRecord, TaskCost
from .record_launch import (
    AgreementRecord,
    DeviceRecord,
    FlowNode,
    FlowRecord,
    LaunchRecord,
    LoadRecord,
    VerdictRecord,
)
from .record_machine import MachineKernel, MachineRecord
from .record_what_if import WhatIfCount, WhatIfRecord

__all__ = [
    "CHECKS", "VERSION", "VOLATILE", "AgreementRecord", "Artefact", "AutodiffRecord",
    "BackendRecord", "BindingRecord", "CacheDifference", "CacheLayer", "CacheLevel", "CfgNode",
    "CfgRecord", "CheckFinding", "CheckRecord", "CheckVerdict", "CompileRecord", "ConfigEntry",
    "CostRecord", "DeviceRecord", "ErrorRecord", "FileRecord", "FlowNode", "FlowRecord",
    "KernelRecord", "LaunchRecord", "LayoutRecord", "LineCost", "LoadRecord", "LocRecord",
    "LogLine", "MachineKernel", "MachineRecord", "ParamRecord", "PassRun", "PeaksRecord", "Record",
    "Remark", "Rewrite", "RunName", "RunNames", "Snapshot", "TaskCost", "TaskRecord", "ToolInfo",
    "VerdictRecord", "WhatIfCount", "WhatIfRecord", "WorkloadRecord",
]  # fmt: skip

VERSION: Final = 3

RunName = tuple[str, int, int | None, str, int]
"""Stage, round, task and pass of a run, and which of the runs that share these it is, from 0."""


class RunNames:
    """Names the runs of a compile; they come in their order."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, int, int | None, str]] = Counter()

    def next(self, stage: str, round: int, task: int | None, name: str) -> RunName:
        """The name of the next run."""
        key = (stage, round, task, name)
        self._seen[key] += 1
        return (*key, self._seen[key] - 1)

    @classmethod
    def of(cls, runs: Iterable[PassRun]) -> list[RunName]:
        """The names of all runs."""
        names = cls()
        return [names.next(run.stage, run.round, run.task, run.name) for run in runs]


class ToolInfo(RecordPart, frozen=True, kw_only=True):
    """The program and the machine that made the record."""

    name: Annotated[str, about("Name of the program.")] = "qd-studio"
    version: Annotated[str, about("Version of the program.")] = ""
    python: Annotated[str, about("Version of Python.")] = ""
    platform: Annotated[str, about("Operating system and architecture.")] = ""
    numpy: Annotated[str, about("Version of NumPy.")] = ""
    llvm: Annotated[str, about("Version of LLVM.")] = ""
    cpu: Annotated[str, about("Model of the CPU.")] = ""
    threads: Annotated[int, about("Threads of the CPU pool.")] = 0


class ConfigEntry(RecordPart, frozen=True, kw_only=True):
    """One compile option."""

    name: Annotated[str, about("Name of the option.")]
    value: Annotated[str | int | float | bool | None, about("Value in this run.")]
    default: Annotated[str | int | float | bool | None, about("Value without any setting.")]
    origin: Annotated[str, about("Source of the value: default, env, init or studio.")] = "default"


class FileRecord(RecordPart, frozen=True, kw_only=True):
    """A user's file with kernels or inlined functions."""

    path: Annotated[str, about("Path of the file.")]
    sha256: Annotated[str, about("Digest of the text.")]
    text: Annotated[str, about("Contents of the file.")]
    config: Annotated[
        tuple[ConfigEntry, ...],
        about(
            "Options of the kernels in this file; empty for a helper, and in records of earlier "
            "versions."
        ),
    ] = ()


class ErrorRecord(RecordPart, frozen=True, kw_only=True):
    """A failure, with the user's source line if it is known."""

    kind: Annotated[str, about("Class name of the error.")]
    message: Annotated[str, about("Text of the error.")]
    stage: Annotated[
        str,
        about(
            "Failed stage: import, config, discover, run (of the file's main), workload, "
            "frontend, passes, codegen, load, compile (one of these four), caches (querying "
            "them), launch, check or worker."
        ),
    ] = ""
    pass_name: Annotated[str, about("Failed pass.")] = ""
    kernel: Annotated[str, about("Name of the kernel.")] = ""
    backend: Annotated[str, about("Name of the backend.")] = ""
    file: Annotated[str, about("Source file.")] = ""
    line: Annotated[int, about("First line, from 1; 0 if unknown.")] = 0
    col: Annotated[int, about("First column, as a UTF-8 byte offset from 0.")] = 0
    end_line: Annotated[int, about("Last line.")] = 0
    end_col: Annotated[int, about("End column, exclusive.")] = 0
    function: Annotated[str, about("Function of the source line.")] = ""
    source: Annotated[str, about("Text of the source line.")] = ""
    hint: Annotated[str, about("What the user can do.")] = ""
    op: Annotated[int, about("Id of the op; -1 for none.")] = -1
    chain: Annotated[
        tuple[str, ...], about('"file:line in function" of each inlined call, outermost first.')
    ] = ()
    rendered: Annotated[str, about("The error as the engine prints it.")] = ""
    traceback: Annotated[str, about("Traceback of an exception from other code.")] = ""


class LogLine(RecordPart, frozen=True, kw_only=True):
    """A line of output from user code or the engine."""

    stream: Annotated[str, about("Source: stdout, stderr or engine.")]
    text: Annotated[str, about("The line.")]


class BackendRecord(RecordPart, frozen=True, kw_only=True):
    """A kernel on one backend."""

    backend: Annotated[
        str, about("Name of the backend, with the requested target (``cuda:sm_75``).")
    ]
    status: Annotated[str, about("One of ``ok``, ``absent``, ``error`` and ``not_run``.")]
    reason: Annotated[str, about("Reason if the status is not ok.")] = ""
    compile: Annotated[CompileRecord | None, about("The compile.")] = None
    launches: Annotated[tuple[LaunchRecord, ...], about("Launches by workload.")] = ()
    agreement: Annotated[AgreementRecord | None, about("Comparison with the interpreter.")] = None
    caches: Annotated[tuple[CacheLayer, ...], about("Cache layers.")] = ()
    autodiff: Annotated[
        AutodiffRecord | None, about("For a kernel that differentiates another one.")
    ] = None
    unlaunched: Annotated[str, about("Reason why compiled code cannot be launched here.")] = ""
    device: Annotated[
        DeviceRecord | None, about("Device of the launches, if it is not the host.")
    ] = None
    flow: Annotated[
        FlowRecord | None, about("Order of the tasks, if they do not run one after another.")
    ] = None
    errors: Annotated[tuple[ErrorRecord, ...], about("Failures on this backend.")] = ()
    costs: Annotated[tuple[CostRecord, ...], about("Costs by line, by workload.")] = ()
    peaks: Annotated[
        PeaksRecord | None,
        about("Measured speed of the machine or device; None if it was not measured."),
    ] = None
    earlier: Annotated[
        tuple[str, ...],
        about(
            "Parts from an earlier look: passes, code, launches, caches. They are pending during "
            "a look, and stale in a finished record."
        ),
    ] = ()


class KernelRecord(RecordPart, frozen=True, kw_only=True):
    """A kernel of a file."""

    id: Annotated[str, about('"file name:kernel name", unique within a record.')]
    name: Annotated[str, about('Name of the kernel; for a method "class.method".')]
    file: Annotated[str, about("Source file.")]
    line: Annotated[int, about("First line.")]
    end_line: Annotated[int, about("Last line.")] = 0
    doc: Annotated[str, about("Docstring.")] = ""
    params: Annotated[tuple[ParamRecord, ...], about("Declared parameters.")] = ()
    returns: Annotated[str, about("Declared result.")] = ""
    instance: Annotated[
        str,
        about(
            "Name of the object that a method was captured for, and of the other objects; empty "
            "for functions."
        ),
    ] = ""
    workloads: Annotated[tuple[WorkloadRecord, ...], about("Sets of arguments.")] = ()
    backends: Annotated[tuple[BackendRecord, ...], about("Results by backend.")] = ()
    verdicts: Annotated[
        tuple[VerdictRecord, ...], about("Comparison of each launching backend with the first one.")
    ] = ()
    errors: Annotated[tuple[ErrorRecord, ...], about("Failures of the kernel.")] = ()
    gradient: Annotated[
        str,
        about(
            "Id of the kernel that differentiates this one, if its arguments or fields have "
            "gradients."
        ),
    ] = ""
    primal: Annotated[str, about("Id of the kernel that this one differentiates.")] = ""
    stale: Annotated[bool, about("True if this is an earlier result.")] = False
    what_ifs: Annotated[
        tuple[WhatIfRecord, ...], about("Assumptions that were tried on the kernel.")
    ] = ()
    check: Annotated[
        CheckRecord | None,
        about("Verdicts on races, indices and values that are not set; null if not checked."),
    ] = None

    def backend(self, name: str) -> BackendRecord | None:
        """The record of backend ``name``, if there is one."""
        return next((b for b in self.backends if b.backend == name), None)


class Record(RecordPart, frozen=True, kw_only=True):
    """The whole record; see the module docstring."""

    version: Annotated[int, about("Version of the format.")] = VERSION
    tool: Annotated[ToolInfo, about("The program that made the record.")] = ToolInfo()
    created: Annotated[str, about("Time of creation.")] = ""
    elapsed_ms: Annotated[float, about("Duration of the look.")] = 0.0
    command: Annotated[tuple[str, ...], about("Command line.")] = ()
    config: Annotated[
        tuple[ConfigEntry, ...], about("Options of a single file; see `FileRecord.config`.")
    ] = ()
    files: Annotated[tuple[FileRecord, ...], about("Source files.")] = ()
    kernels: Annotated[tuple[KernelRecord, ...], about("Kernels.")] = ()
    errors: Annotated[tuple[ErrorRecord, ...], about("Failures outside of kernels.")] = ()
    log: Annotated[tuple[LogLine, ...], about("Output of user code and the engine.")] = ()
    extra: Annotated[dict[str, Any], about("Data of other programs.")] = {}  # noqa: RUF012


# Names of fields that may differ between two runs over the same input: times and how many launches
# fit into one (with what these found in memory), and errors of sums, which depend on the order in
# which threads add.
VOLATILE: Final = frozenset(
    {
        "created", "elapsed_ms", "us", "frontend_ms", "passes_ms", "codegen_ms", "load_ms",
        "cold_ms", "warm_ms", "n", "first_us", "median_us", "mad_us", "min_us", "max_us",
        "samples_us", "gbps", "gflops", "warmup", "max_abs", "max_rel", "max_ulp", "cost_ms",
        "entry_created", "reused", "host_us", "memory_bytes", "assemble_ms", "replays", "updates",
        "rebuilds", "ratio", "band", "verdict", "wall_us", "wall_mad_us", "wall_samples_us",
        "hits", "waited", "loop_us", "loop_fast_us", "loop_slow_us", "timed", "limited_by",
        "because", "least_us", "read_gbps", "write_gbps", "latency_ns", "gflops_f64", "step_ns",
        "launch_us", "wake_us", "burst", "stamp", "before_us", "after_us", "cpu_samples_us",
    }
)  # fmt: skip
