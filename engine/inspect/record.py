"""The record: everything the studio, the reports and the queries show, as plain data.

One `Record` describes one look at one or more kernel files. It is immutable, versioned, written
as JSON (msgspec), and complete: a saved record opens without an engine or a device. The JSON
Schema is generated from these classes and shipped as ``record.schema.json``.

::

    Record ── files (texts) ── errors ── log
       └── kernels ── params, workloads
              └── backends ── compile ── runs (passes) ── snapshots (IR texts, shared)
        X
Fields whose values change from run to run without any change of input are listed in `VOLATILE`.
Times say their unit in their name.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .record_autodiff import AutodiffRecord
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

__all__ = [
    "VERSION",
    "VOLATILE",
    "AgreementRecord",
    "Artefact",
    "AutodiffRecord",
    "BackendRecord",
    "CacheDifference",
    "CacheLayer",
    "CfgNode",
    "CfgRecord",
    "CompileRecord",
    "ConfigEntry",
    "DeviceRecord",
    "ErrorRecord",
    "FileRecord",
    "FlowNode",
    "FlowRecord",
    "KernelRecord",
    "LaunchRecord",
    "LayoutRecord",
    "LeafRecord",
    "LoadRecord",
    "LocRecord",
    "LogLine",
    "MachineKernel",
    "MachineRecord",
    "ParamRecord",
    "PassRun",
    "Record",
    "Remark",
    "RunName",
    "Snapshot",
    "TaskRecord",
    "ToolInfo",
    "VerdictRecord",
    "WorkloadRecord",
]

VERSION: Final = 3

RunName = tuple[str, int, int | None, str, int]
"""Stage, round, task and pass of a run, and which of the runs that share these it is, from 0."""


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Settings shared by all parts of a record."""


class ToolInfo(_Base, frozen=True, kw_only=True):
    """What made the record."""

    name: str = "qd-studio"
    version: str = ""
    python: str = ""
    platform: str = ""
    numpy: str = ""
    llvm: str = ""
    cpu: str = ""
    threads: int = 0


class ConfigEntry(_Base, frozen=True, kw_only=True):
    """One compile option. origin: default, env, init, studio."""

    name: str
    value: str | int | float | bool | None
    default: str | int | float | bool | None
    origin: str = "default"


class FileRecord(_Base, frozen=True, kw_only=True):
    """A user's file that kernels or inlined functions come from. config: the options that its
    kernels were compiled with; empty for a helper, and in records of earlier versions."""

    path: str
    sha256: str
    text: str
    config: tuple[ConfigEntry, ...] = ()


class ErrorRecord(_Base, frozen=True, kw_only=True):
    """A failure, with the user's line where there is one.

    kind: class name. stage: import, config, discover, run (of the file's main), workload, frontend,
    passes, codegen, load, compile (one of these four), caches (asking them), launch, check, worker.
    chain: "file:line in function" of each inlined call, outermost first.
    """

    kind: str
    message: str
    stage: str = ""
    pass_name: str = ""
    kernel: str = ""
    backend: str = ""
    file: str = ""
    line: int = 0
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    function: str = ""
    source: str = ""
    hint: str = ""
    op: int = -1
    chain: tuple[str, ...] = ()
    rendered: str = ""
    traceback: str = ""


class LogLine(_Base, frozen=True, kw_only=True):
    """A line that user code or the engine wrote. stream: stdout, stderr, engine."""

    stream: str
    text: str


class ParamRecord(_Base, frozen=True, kw_only=True):
    """A parameter as the kernel declares it.

    kind: scalar, ndarray, template, matrix (or vector), struct, tensor, record (a dataclass),
    instance (``self``).
    """

    name: str
    kind: str
    dtype: str = ""
    ndim: int = 0
    annotation: str = ""


class WorkloadRecord(_Base, frozen=True, kw_only=True):
    """A set of arguments. origin: workload (declared), recorded (--run), synthetic, state, none.

    state: the kernel takes no arguments and is launched on fields as the file left them.
    reason: for origin none, which parameter could not be made and why.

    bytes, flops: what one launch moves to and from memory, and its operations on reals. by_bytes,
    by_flops: where that is known from: ``declared`` (the author says so), ``counted`` (see
    `counting`), or ``not counted: reason``; empty before there was a launch.
    """

    label: str
    origin: str
    sizes: dict[str, int | float | str] = {}
    args: tuple[str, ...] = ()
    bytes: int | None = None
    flops: int | None = None
    by_bytes: str = ""
    by_flops: str = ""
    reason: str = ""


class LayoutRecord(_Base, frozen=True, kw_only=True):
    """Where the elements of a field lie in memory.

    shape, element_shape: of the field, and of the vector or matrix in each element. origin: the
    first valid index of each axis. digits: what the address is made of, outermost first: an axis
    (``i``, ``j``, ...; of the element ``c`` for a vector, ``r`` and ``c`` for a matrix), with the
    part of its index where dense levels are nested (``i/8``, ``i%8``). strides: bytes between
    neighbours along each digit. arrangement: of the parts of an element: ``AOS`` (side by side),
    ``SOA`` (apart), ``mixed``, or empty for scalars. bytes: of all elements. span: bytes from the
    first to the end of the last; more than ``bytes`` where others lie in between.
    """

    shape: tuple[int, ...]
    element_shape: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()
    digits: tuple[str, ...] = ()
    strides: tuple[int, ...] = ()
    arrangement: str = ""
    bytes: int = 0
    span: int = 0


class LeafRecord(_Base, frozen=True, kw_only=True):
    """A parameter of the compiled function, and what a launch gives for it.

    name: as the kernel calls it: ``x``, ``tank.rates.feed``, ``p.vel[1]``, ``position``. kind:
    scalar, ndarray, field. ndim: axes, without those of an element. origin: argument, member (of a
    dataclass or an object), part (of a vector, matrix or struct), gradient, field. argument: the
    declared parameter that it comes from; empty for a field. written: the kernel writes to it.
    used: the finished kernel needs it. axes: of an array, as they lie in memory, outermost first;
    empty if that is their own order. layout: of a field.
    """

    name: str
    kind: str
    dtype: str
    ndim: int = 0
    element_shape: tuple[int, ...] = ()
    origin: str = "argument"
    argument: str = ""
    written: bool = False
    used: bool = True
    axes: tuple[int, ...] = ()
    layout: LayoutRecord | None = None


class LocRecord(_Base, frozen=True, kw_only=True, array_like=True):
    """A source span; ``parent`` indexes the call site's LocRecord, -1 for none."""

    file: str
    line: int
    col: int = 0
    end_line: int = 0
    end_col: int = 0
    func: str = ""
    parent: int = -1


class Snapshot(_Base, frozen=True, kw_only=True):
    """IR text at one moment. ids: op id per line; locs: index per line; -1 for none."""

    lines: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]
    ops: int = 0


class Remark(_Base, frozen=True, kw_only=True):
    """Why a pass did, or did not, do something to an op."""

    pass_name: str
    op: int
    text: str
    loc: int = -1


class PassRun(_Base, frozen=True, kw_only=True):
    """One run of one pass. state: changed, noop, failed, skipped.

    before / after index `CompileRecord.snapshots`; equal when nothing changed. round: 0 outside
    of repeated groups, else from 1. task: number of the task the run was limited to, or None.
    added / removed / rewritten / moved: counts of ops by identity.
    """

    index: int
    stage: str
    name: str
    round: int = 0
    task: int | None = None
    state: str = "noop"
    us: float = 0.0
    before: int = 0
    after: int = 0
    added: int = 0
    removed: int = 0
    rewritten: int = 0
    moved: int = 0
    remarks: tuple[Remark, ...] = ()


class CfgNode(_Base, frozen=True, kw_only=True):
    """A straight-line run of ops in a control-flow graph.

    ops: ids. live_out: ids of the address ops whose memory is live at the end. label: start,
    final, or what the node belongs to (task body, loop body, then, else, ...). depth: loop nesting.
    """

    id: int
    ops: tuple[int, ...]
    lines: tuple[str, ...]
    prev: tuple[int, ...]
    next: tuple[int, ...]
    live_out: tuple[int, ...] = ()
    label: str = ""
    parallel: bool = False
    depth: int = 0


class CfgRecord(_Base, frozen=True, kw_only=True):
    """A control-flow graph around one run of cfg_optimization. when: before, after."""

    stage: str
    task: int
    when: str
    nodes: tuple[CfgNode, ...]
    run: int = -1


class Artefact(_Base, frozen=True, kw_only=True):
    """Generated text. name: llvm_ir, llvm_ir_optimized, asm, ... language: for highlighting.

    lines: for each text line the index of its LocRecord, -1 for none; may be empty.
    """

    name: str
    language: str
    text: str
    lines: tuple[int, ...] = ()


class TaskRecord(_Base, frozen=True, kw_only=True):
    """An offloaded task of the finished kernel."""

    index: int
    kind: str
    name: str
    ops: int
    loc: int = -1
    loop_name: str = ""
    axes: int = 0


class CompileRecord(_Base, frozen=True, kw_only=True):
    """One compile for one backend. params: of the compiled function, aggregates in parts.

    cold_ms: all parts, no cache asked. warm_ms: what is left of it where a cache on disk has the
    code: the frontend, reading the entry, loading; None where nothing is loaded. code_bytes: of
    the binary that the cache would keep. machine: what is known of code for a GPU.
    """

    frontend_ms: float = 0.0
    passes_ms: float = 0.0
    codegen_ms: float = 0.0
    load_ms: float = 0.0
    cold_ms: float = 0.0
    warm_ms: float | None = None
    runs: tuple[PassRun, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    locs: tuple[LocRecord, ...] = ()
    origins: dict[str, int] = {}
    cfgs: tuple[CfgRecord, ...] = ()
    artefacts: tuple[Artefact, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()
    metrics: dict[str, int] = {}
    code_bytes: int = 0
    params: tuple[LeafRecord, ...] = ()
    machine: MachineRecord | None = None


class CacheDifference(_Base, frozen=True, kw_only=True):
    """One thing in which a kernel differs from what a cache holds.

    part: the part of the key; ``source`` and ``capture`` for what parts are digests of. text: the
    difference as one line. before, after: the values, None where there is none. name: of the
    function or captured value. file, line: where it is. lines: changed source lines,
    ``-12 text`` as it was and ``+12 text`` as it is.
    """

    part: str
    text: str
    before: str | None = None
    after: str | None = None
    name: str = ""
    file: str = ""
    line: int = 0
    lines: tuple[str, ...] = ()


class CacheLayer(_Base, frozen=True, kw_only=True):
    """What one cache layer would answer a program that starts now.

    state: hit, miss, bypass, off, not_applicable, damaged. source: of a hit, disk or memory. key,
    parts: what is asked for; empty if there is nothing to ask. size_bytes, path, entry_created: of
    the entry that is hit, or that is nearest. nearest: its key. against: what `differences`
    compare with: entry (the nearest one of this kernel), look (the previous look, where there is
    no entry), or empty. differences: empty with ``look`` if nothing has changed since. before: the
    parts that differ there, with what they are there; empty text for a part that is new. cost_ms:
    what a miss costs: the parts of a compile that a hit does without. advice: what could be done.
    """

    name: str
    state: str
    reason: str = ""
    source: str = ""
    key: str = ""
    parts: dict[str, str] = {}
    size_bytes: int = 0
    path: str = ""
    entry_created: str = ""
    nearest: str = ""
    against: str = ""
    differences: tuple[CacheDifference, ...] = ()
    before: dict[str, str] = {}
    cost_ms: float = 0.0
    advice: str = ""


class BackendRecord(_Base, frozen=True, kw_only=True):
    """A kernel on one backend. status: ok, absent, error, not_run; reason says why not ok.

    backend: its name, with the target where one was asked for (``cuda:sm_75``). unlaunched: why
    code that was compiled cannot be launched here. device: what it was launched on, where that is
    not the host. flow: the order of its tasks, where that is another than one after the other.
    autodiff: of a kernel that differentiates another one. earlier: the parts that this look has not
    renewed, and what they hold is of an older one: passes, code, launches, caches. They are pending
    while the look goes on; in a finished record they are stale, as the kernel then is.
    """

    backend: str
    status: str
    reason: str = ""
    compile: CompileRecord | None = None
    launches: tuple[LaunchRecord, ...] = ()
    agreement: AgreementRecord | None = None
    caches: tuple[CacheLayer, ...] = ()
    autodiff: AutodiffRecord | None = None
    unlaunched: str = ""
    device: DeviceRecord | None = None
    flow: FlowRecord | None = None
    errors: tuple[ErrorRecord, ...] = ()
    earlier: tuple[str, ...] = ()


class KernelRecord(_Base, frozen=True, kw_only=True):
    """A kernel of a file. id: "file name:kernel name", unique within a record.

    A method's name is "class.method". instance: how the file calls the object that a method was
    captured for, and which others there are; empty for functions. gradient: id of the kernel that
    differentiates this one, if its arguments or fields have gradients; primal: of such a kernel,
    the id of what it differentiates. verdicts: each backend that launched against the first one.
    """

    id: str
    name: str
    file: str
    line: int
    end_line: int = 0
    doc: str = ""
    params: tuple[ParamRecord, ...] = ()
    returns: str = ""
    instance: str = ""
    workloads: tuple[WorkloadRecord, ...] = ()
    backends: tuple[BackendRecord, ...] = ()
    verdicts: tuple[VerdictRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    gradient: str = ""
    primal: str = ""
    stale: bool = False

    def backend(self, name: str) -> BackendRecord | None:
        """The record of backend ``name``, if there is one."""
        return next((b for b in self.backends if b.backend == name), None)


class Record(_Base, frozen=True, kw_only=True):
    """The whole; see the module docstring. config: of one file; see `FileRecord.config`."""

    version: int = VERSION
    tool: ToolInfo = ToolInfo()
    created: str = ""
    elapsed_ms: float = 0.0
    command: tuple[str, ...] = ()
    config: tuple[ConfigEntry, ...] = ()
    files: tuple[FileRecord, ...] = ()
    kernels: tuple[KernelRecord, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    log: tuple[LogLine, ...] = ()
    extra: dict[str, Any] = {}


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
        "hits", "waited", "loop_us", "loop_fast_us", "loop_slow_us",
    }
)  # fmt: skip
