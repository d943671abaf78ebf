"""The part of a record about a compile: passes, IR texts, graphs, code; see `record`."""

from typing import Annotated

from .record_arguments import BindingRecord
from .record_base import RecordPart, about
from .record_machine import MachineRecord

__all__ = [
    "Artefact", "CfgNode", "CfgRecord", "CompileRecord", "LocRecord", "PassRun", "Remark",
    "Rewrite", "Snapshot", "TaskRecord",
]  # fmt: skip


class LocRecord(RecordPart, frozen=True, kw_only=True, array_like=True):
    """A source span."""

    file: Annotated[str, about("Source file.")]
    line: Annotated[int, about("First line, from 1.")]
    col: Annotated[int, about("First column.")] = 0
    end_line: Annotated[int, about("Last line.")] = 0
    end_col: Annotated[int, about("End column, exclusive.")] = 0
    func: Annotated[str, about("Function.")] = ""
    parent: Annotated[int, about("Index of the LocRecord of the call site; -1 for none.")] = -1


class Snapshot(RecordPart, frozen=True, kw_only=True):
    """IR text at one moment."""

    lines: Annotated[tuple[str, ...], about("Lines of the text.")]
    ids: Annotated[tuple[int, ...], about("Op id of each line; -1 for none.")]
    locs: Annotated[tuple[int, ...], about("Index of the LocRecord of each line; -1 for none.")]
    ops: Annotated[int, about("Number of ops.")] = 0


class Remark(RecordPart, frozen=True, kw_only=True):
    """The reason why a pass changed an op, or did not."""

    pass_name: Annotated[str, about("Name of the pass.")]
    op: Annotated[int, about("Id of the op.")]
    text: Annotated[str, about("The reason.")]
    loc: Annotated[int, about("Index of the LocRecord; -1 for none.")] = -1


class Rewrite(RecordPart, frozen=True, kw_only=True, array_like=True):
    """The fate of one op in a pass, as the pass reports it."""

    op: Annotated[int, about("Id of the op.")]
    into: Annotated[
        int,
        about(
            "Id of the op that has its value afterwards: its own if it was changed in place, -1 "
            "for none."
        ),
    ] = -1
    how: Annotated[str, about("The rule that applied, or the reason.")] = ""


class PassRun(RecordPart, frozen=True, kw_only=True):
    """One run of one pass."""

    index: Annotated[int, about("Position among all runs.")]
    stage: Annotated[str, about("Stage of the pipeline.")]
    name: Annotated[str, about("Name of the pass.")]
    round: Annotated[int, about("Round of a repeated group, from 1; 0 outside of groups.")] = 0
    task: Annotated[
        int | None, about("Index of the task that the run was limited to, or None.")
    ] = None
    state: Annotated[str, about("Result: changed, noop, failed or skipped.")] = "noop"
    us: Annotated[float, about("Duration in microseconds.")] = 0.0
    before: Annotated[int, about("Index into `CompileRecord.snapshots` before the run.")] = 0
    after: Annotated[
        int,
        about(
            "Index into `CompileRecord.snapshots` after the run; equal to ``before`` if nothing "
            "changed."
        ),
    ] = 0
    added: Annotated[int, about("Number of added ops, by identity.")] = 0
    removed: Annotated[int, about("Number of removed ops, by identity.")] = 0
    rewritten: Annotated[int, about("Number of ops that were rewritten in place.")] = 0
    moved: Annotated[int, about("Number of ops at a new position or in a new block.")] = 0
    remarks: Annotated[tuple[Remark, ...], about("Remarks of the run.")] = ()
    rewrites: Annotated[
        tuple[Rewrite, ...],
        about("The ops that the run reports as replaced, changed or deleted, in order."),
    ] = ()


class CfgNode(RecordPart, frozen=True, kw_only=True):
    """A straight-line run of ops in a control-flow graph."""

    id: Annotated[int, about("Index of the node.")]
    ops: Annotated[tuple[int, ...], about("Ids of the ops.")]
    lines: Annotated[tuple[str, ...], about("The ops as text.")]
    prev: Annotated[tuple[int, ...], about("Indices of the predecessors.")]
    next: Annotated[tuple[int, ...], about("Indices of the successors.")]
    live_out: Annotated[
        tuple[int, ...],
        about("Ids of the address ops whose memory is live at the end, at most 100."),
    ] = ()
    live_more: Annotated[int, about("Number of address ops beyond those in live_out.")] = 0
    label: Annotated[
        str,
        about(
            "Kind of the node: start, final, or its owner (task body, loop body, then, else, ...)."
        ),
    ] = ""
    parallel: Annotated[bool, about("True if the node is in a parallel loop.")] = False
    depth: Annotated[int, about("Loop nesting depth.")] = 0


class CfgRecord(RecordPart, frozen=True, kw_only=True):
    """A control-flow graph before or after one run of cfg_optimization."""

    stage: Annotated[str, about("Stage of the pipeline.")]
    task: Annotated[int, about("Index of the task.")]
    when: Annotated[str, about("Either before or after.")]
    nodes: Annotated[tuple[CfgNode, ...], about("The nodes.")]
    run: Annotated[int, about("Index of the pass run; -1 for none.")] = -1


class Artefact(RecordPart, frozen=True, kw_only=True):
    """Generated text."""

    name: Annotated[str, about("Kind of text: llvm_ir, llvm_ir_optimized, asm, ...")]
    language: Annotated[str, about("Language for highlighting.")]
    text: Annotated[str, about("The text.")]
    lines: Annotated[
        tuple[int, ...], about("Index of the LocRecord of each line, -1 for none; may be empty.")
    ] = ()
    ops: Annotated[
        tuple[int, ...], about("Id of the op that each line is from, -1 for none; may be empty.")
    ] = ()
    remarks: Annotated[
        tuple[Remark, ...], about("Remarks of the compiler that made the text, such as LLVM.")
    ] = ()


class TaskRecord(RecordPart, frozen=True, kw_only=True):
    """An offloaded task of the finished kernel."""

    index: Annotated[int, about("Index of the task.")]
    kind: Annotated[str, about("Kind of task.")]
    name: Annotated[str, about("Name of the task.")]
    ops: Annotated[int, about("Number of ops.")]
    loc: Annotated[int, about("Index of the LocRecord; -1 for none.")] = -1
    loop_name: Annotated[str, about("Name from `loop_config`.")] = ""
    axes: Annotated[int, about("Number of axes of its loop.")] = 0


class CompileRecord(RecordPart, frozen=True, kw_only=True):
    """One compile for one backend."""

    frontend_ms: Annotated[float, about("Time of the frontend.")] = 0.0
    passes_ms: Annotated[float, about("Time of the passes.")] = 0.0
    codegen_ms: Annotated[float, about("Time of code generation.")] = 0.0
    load_ms: Annotated[float, about("Time of loading.")] = 0.0
    cold_ms: Annotated[float, about("Time of all parts, without caches.")] = 0.0
    warm_ms: Annotated[
        float | None,
        about(
            "Time if a cache on disk has the code: the frontend, reading the entry, loading; None"
            " if nothing is loaded."
        ),
    ] = None
    runs: Annotated[tuple[PassRun, ...], about("Pass runs in order.")] = ()
    snapshots: Annotated[tuple[Snapshot, ...], about("IR texts that runs refer to.")] = ()
    locs: Annotated[tuple[LocRecord, ...], about("Source locations that texts refer to.")] = ()
    origins: Annotated[
        dict[str, int], about("By the id of a replacement op, as text: the id of the replaced op.")
    ] = {}  # noqa: RUF012
    cfgs: Annotated[
        tuple[CfgRecord, ...],
        about(
            "Control-flow graphs, in records of earlier versions; those of a listing can be built."
        ),
    ] = ()
    artefacts: Annotated[tuple[Artefact, ...], about("Generated texts.")] = ()
    tasks: Annotated[tuple[TaskRecord, ...], about("Tasks of the finished kernel.")] = ()
    metrics: Annotated[dict[str, int], about("Counts by name.")] = {}  # noqa: RUF012
    code_bytes: Annotated[int, about("Size of the binary for the cache.")] = 0
    params: Annotated[
        tuple[BindingRecord, ...],
        about("Parameters of the compiled function, with aggregates split into parts."),
    ] = ()
    machine: Annotated[MachineRecord | None, about("Facts about code for a GPU.")] = None

    def root(self, loc: int) -> LocRecord | None:
        """The place in the kernel itself that location ``loc`` was inlined at; None for -1."""
        while loc >= 0 and self.locs[loc].parent >= 0:
            loc = self.locs[loc].parent
        return self.locs[loc] if loc >= 0 else None
