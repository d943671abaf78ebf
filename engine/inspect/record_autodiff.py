"""The part of a record about a differentiated kernel; see `record`.

::

    AutodiffRecord ── links (forward op, reverse op)
        ├── tasks ── predicate
        │     └── stacks ── tree, leaves (of the size expression)
        ├── plan (the choice for each loop, within a budget of adstacks)
        ├── reducers (maxima found before the launch, in rounds)
        ├── layers (the caches of the sizers)
        └── heaps

Facts of the compiler are set as soon as the kernel is compiled. Facts of a launch (slots, rows,
bytes, values) come from the last launch, and ``sized`` is true if there was one.
"""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = [
    "AutodiffRecord", "HeapRecord", "LoopPlan", "OpLink", "PredicateRecord", "ReducerRecord",
    "SizeLeaf", "SizeRow", "SizerLayer", "StackRecord", "StackTask",
]  # fmt: skip


class OpLink(RecordPart, frozen=True, kw_only=True, array_like=True):
    """A pair of related ops: one of the forward IR, one of the reverse IR."""

    forward: Annotated[int, about("Id of the forward op.")]
    reverse: Annotated[int, about("Id of the reverse op.")]
    by: Annotated[
        str,
        about(
            "Relation: ``same`` (the op stayed), ``made`` (it replaces that op, or was added for "
            "it) or ``place`` (both come from the same source location)."
        ),
    ]


class SizeRow(RecordPart, frozen=True, kw_only=True, array_like=True):
    """A node of a size expression, as a row of its tree."""

    depth: Annotated[int, about("Depth in the tree.")]
    text: Annotated[str, about("The node as text.")]
    value: Annotated[
        int | None,
        about(
            "Value at the last launch; None for a node below a maximum, which has one for each "
            "value of its variable."
        ),
    ] = None


class SizeLeaf(RecordPart, frozen=True, kw_only=True, array_like=True):
    """A part of the arguments that a size depends on."""

    text: Annotated[
        str,
        about(
            "The part: ``a.shape[0]``, ``n``; for elements of an array ``a[i]`` and the largest."
        ),
    ]
    value: Annotated[int | None, about("Value at the last launch.")] = None


class StackRecord(RecordPart, frozen=True, kw_only=True):
    """An adstack of a task."""

    name: Annotated[str, about("The user's variable.")]
    dtype: Annotated[str, about("Data type.")]
    real: Annotated[bool, about("True for the float heap, false for the integer heap.")] = True
    adjoint: Annotated[bool, about("True if each entry has an adjoint.")] = True
    size: Annotated[
        str, about("Size expression as text; empty if ``max_size`` was known at compile time.")
    ] = ""
    max_size: Annotated[int, about("Entries known at compile time.")] = 0
    formula: Annotated[str, about("Size in the user's names.")] = ""
    tree: Annotated[tuple[SizeRow, ...], about("Rows of the size expression.")] = ()
    leaves: Annotated[tuple[SizeLeaf, ...], about("Parts of the arguments in the expression.")] = ()
    forced_by: Annotated[str, about("Loop that makes the stack necessary.")] = ""
    line: Annotated[int, about("Line of the variable.")] = 0
    entry: Annotated[int, about("Bytes of an entry.")] = 0
    slots: Annotated[int, about("Number of entries.")] = 0
    bytes: Annotated[int, about("Bytes of all entries of one row.")] = 0
    rows: Annotated[int, about("Rows of its heap in this task.")] = 0
    total: Annotated[int, about("Bytes of all rows.")] = 0
    peak: Annotated[bool, about("True if no other stack of the kernel is larger.")] = False


class PredicateRecord(RecordPart, frozen=True, kw_only=True):
    """The adstack predicate: the iterations of a task that use its float stacks."""

    state: Annotated[str, about("Either captured or not captured.")]
    formula: Annotated[str, about("The condition in the user's names.")] = ""
    reason: Annotated[str, about("Reason if it is not captured.")] = ""
    count: Annotated[int | None, about("Iterations that passed at the last launch.")] = None


class StackTask(RecordPart, frozen=True, kw_only=True, rename={"predicate": "gate"}):
    """A task that has adstacks."""

    index: Annotated[int, about("Index among the kernel's tasks.")]
    name: Annotated[str, about("Name of the task.")] = ""
    line: Annotated[int, about("Source line.")] = 0
    trip: Annotated[str, about("Trip count of its loop as a formula; empty if unknown.")] = ""
    predicate: Annotated[PredicateRecord | None, about("Adstack predicate.")] = None
    stacks: Annotated[tuple[StackRecord, ...], about("The stacks.")] = ()
    real_rows: Annotated[int, about("Rows in the float heap.")] = 0
    integer_rows: Annotated[int, about("Rows in the integer heap.")] = 0
    real_stride: Annotated[int, about("Bytes of a float row, with alignment.")] = 0
    integer_stride: Annotated[int, about("Bytes of an integer row, with alignment.")] = 0

    @property
    def bytes(self) -> int:
        """The bytes of both heaps that the task uses."""
        return self.real_rows * self.real_stride + self.integer_rows * self.integer_stride


class LoopPlan(RecordPart, frozen=True, kw_only=True):
    """The choice for one loop; see the option `ad_stack_budget_bytes`."""

    line: Annotated[int, about("Source line of the loop or value.")]
    choice: Annotated[str, about("One of keep, recompute and checkpoint.")]
    text: Annotated[str, about("Segments, bytes for one thread, additional runs; or the reason.")]


class ReducerRecord(RecordPart, frozen=True, kw_only=True):
    """A maximum that a separate kernel computes before a launch."""

    task: Annotated[int, about("Index of the task.")]
    stack: Annotated[str, about("Stack whose size contains the maximum.")]
    formula: Annotated[str, about("``max over i < a.shape[0] of a[i] + 1``.")]
    axes: Annotated[tuple[int, ...], about("Number of iterations by axis.")] = ()
    round: Annotated[
        int, about("Round, from 1; maxima of one round are independent. 0 for a sequential walk.")
    ] = 1
    how: Annotated[
        str,
        about(
            "Method: kernel, numpy (small) or sequential walk (not supported by the max-reducer; "
            "its result is not recorded)."
        ),
    ] = ""
    value: Annotated[int | None, about("The maximum.")] = None


class SizerLayer(RecordPart, frozen=True, kw_only=True):
    """One of the caches that save launches the evaluation of sizes."""

    name: Annotated[str, about("Name of the layer.")]
    hits: Annotated[int, about("Number of hits.")]
    misses: Annotated[int, about("Number of misses.")]


class HeapRecord(RecordPart, frozen=True, kw_only=True):
    """One of the program's two heaps."""

    kind: Annotated[str, about("Either real or integer.")]
    needed: Annotated[int, about("Bytes that the last launch of this kernel needed.")]
    size: Annotated[int, about("Bytes allocated so far.")]


class AutodiffRecord(RecordPart, frozen=True, kw_only=True):
    """The differentiation of a kernel, and the memory of its adstacks."""

    mode: Annotated[str, about("Mode: reverse, forward or validation.")]
    forward: Annotated[
        int, about("Snapshot before differentiation; -1 if it did not come so far.")
    ] = -1
    reverse: Annotated[
        int, about("Snapshot after differentiation; -1 if it did not come so far.")
    ] = -1
    links: Annotated[tuple[OpLink, ...], about("Related ops of both snapshots.")] = ()
    tasks: Annotated[tuple[StackTask, ...], about("Tasks with adstacks.")] = ()
    plan: Annotated[
        tuple[LoopPlan, ...], about("Choice for each loop with adstacks; empty without a budget.")
    ] = ()
    sized: Annotated[bool, about("True if there was a launch.")] = False
    workload: Annotated[str, about("Workload of that launch.")] = ""
    bytes: Annotated[int, about("Bytes that the launch needed of both heaps.")] = 0
    rounds: Annotated[int, about("Rounds of maxima.")] = 0
    dispatches: Annotated[int, about("Maxima found for the launch.")] = 0
    evaluations: Annotated[int, about("Sizes and maxima found.")] = 0
    reused: Annotated[
        int, about("Timed launches that reused the plan of the launch before and queried no cache.")
    ] = 0
    reducers: Annotated[
        tuple[ReducerRecord, ...], about("Maxima found before the launch, in rounds.")
    ] = ()
    layers: Annotated[tuple[SizerLayer, ...], about("Caches of the sizers.")] = ()
    heaps: Annotated[tuple[HeapRecord, ...], about("The heaps.")] = ()
    overflow: Annotated[str, about("Message of the last overflow, or empty.")] = ""
    reason: Annotated[str, about("Reason why there is no launch, or nothing to report.")] = ""
