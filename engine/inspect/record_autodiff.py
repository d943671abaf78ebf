"""The part of a record that tells of a differentiated kernel; see `record`.

::

    AutodiffRecord ── links (forward op, reverse op)
        ├── tasks ── gate
        │     └── stacks ── tree, leaves (of the size expression)
        ├── reducers (what was maximised before the launch, in rounds)
        ├── layers (the caches of the sizers)
        └── heaps

What the compiler knows is there as soon as the kernel is compiled. What only a launch knows (slots,
rows, bytes, values) is that of the last launch, and ``sized`` says whether there was one.
"""

from __future__ import annotations

import msgspec

__all__ = [
    "AutodiffRecord",
    "GateRecord",
    "HeapRecord",
    "OpLink",
    "ReducerRecord",
    "SizeLeaf",
    "SizeRow",
    "SizerLayer",
    "StackRecord",
    "StackTask",
]


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Settings shared by all parts of a record."""


class OpLink(_Base, frozen=True, kw_only=True, array_like=True):
    """An op of the forward IR and one of the reverse IR that belong together.

    by: ``same`` (it is that op: the forward part that stayed), ``made`` (it replaces that op, or
    was made for it), ``place`` (both stand for the same place in the source).
    """

    forward: int
    reverse: int
    by: str


class SizeRow(_Base, frozen=True, kw_only=True, array_like=True):
    """A node of a size expression, as a row of its tree. value: at the last launch, where it has
    one (a node below a maximum has one for each value of its variable)."""

    depth: int
    text: str
    value: int | None = None


class SizeLeaf(_Base, frozen=True, kw_only=True, array_like=True):
    """Something of the arguments that a size depends on: ``a.shape[0]``, ``n``; of elements of
    an array what is known of them: ``a[i]`` and the largest."""

    text: str
    value: int | None = None


class StackRecord(_Base, frozen=True, kw_only=True):
    """An adstack of a task.

    name: the user's variable. real: it lies in the heap of reals, else in that of integers.
    adjoint: each entry has an adjoint beside its value. size: the text of its size expression;
    empty where ``max_size`` entries were known when the kernel was compiled. formula: the size in
    the user's names. tree, leaves: of the expression. forced_by: the loop that makes the stack
    necessary. line: of the variable. entry: bytes of an entry. slots: entries. bytes: of all
    slots of one row. rows: of its heap in this task. total: bytes of all rows. peak: no other
    stack of the kernel takes more.
    """

    name: str
    dtype: str
    real: bool = True
    adjoint: bool = True
    size: str = ""
    max_size: int = 0
    formula: str = ""
    tree: tuple[SizeRow, ...] = ()
    leaves: tuple[SizeLeaf, ...] = ()
    forced_by: str = ""
    line: int = 0
    entry: int = 0
    slots: int = 0
    bytes: int = 0
    rows: int = 0
    total: int = 0
    peak: bool = False


class GateRecord(_Base, frozen=True, kw_only=True):
    """Which iterations of a task use its real stacks.

    state: captured, or not captured; then ``reason`` says why. formula: the condition in the user's
    names. count: iterations that passed it at the last launch.
    """

    state: str
    formula: str = ""
    reason: str = ""
    count: int | None = None


class StackTask(_Base, frozen=True, kw_only=True):
    """A task that has adstacks.

    index: among the kernel's tasks. trip: how often its loop runs, as a formula; empty where that
    is not known. real_stride, integer_stride: bytes of a row, with what aligns the next one.
    """

    index: int
    name: str = ""
    line: int = 0
    trip: str = ""
    gate: GateRecord | None = None
    stacks: tuple[StackRecord, ...] = ()
    real_rows: int = 0
    integer_rows: int = 0
    real_stride: int = 0
    integer_stride: int = 0

    @property
    def bytes(self) -> int:
        """What the task takes of both heaps."""
        return self.real_rows * self.real_stride + self.integer_rows * self.integer_stride


class ReducerRecord(_Base, frozen=True, kw_only=True):
    """A maximum that is found before a launch, by a kernel of its own.

    stack: whose size it is part of. formula: ``max over i < a.shape[0] of a[i] + 1``. axes: how
    many cells it goes over, by axis. round: those of one round need nothing of each other; from 1,
    0 for one that is walked. how: kernel, numpy (small), sequential walk (outside of what the
    max-reducer knows; what is found there is not kept apart). value: found.
    """

    task: int
    stack: str
    formula: str
    axes: tuple[int, ...] = ()
    round: int = 1
    how: str = ""
    value: int | None = None


class SizerLayer(_Base, frozen=True, kw_only=True):
    """One of the caches that spare launches the evaluation of sizes."""

    name: str
    hits: int
    misses: int


class HeapRecord(_Base, frozen=True, kw_only=True):
    """One of the program's two heaps. kind: real, integer. needed: bytes that the last launch of
    this kernel needed. size: bytes that it has by now."""

    kind: str
    needed: int
    size: int


class AutodiffRecord(_Base, frozen=True, kw_only=True):
    """How a kernel was differentiated, and what its adstacks take.

    mode: reverse, forward, validation. forward, reverse: snapshots (by index) before and after
    differentiation; -1 where it did not come so far. sized: there was a launch, with the workload
    ``workload``. bytes: what that launch needed of both heaps. dispatches: maxima that were found
    for it. evaluations: sizes and maxima that were found. reused: timed launches that found the
    plan of the one before, and asked no cache. overflow: empty, or what the last overflow said.
    reason: why there is no launch, or nothing to say.
    """

    mode: str
    forward: int = -1
    reverse: int = -1
    links: tuple[OpLink, ...] = ()
    tasks: tuple[StackTask, ...] = ()
    sized: bool = False
    workload: str = ""
    bytes: int = 0
    rounds: int = 0
    dispatches: int = 0
    evaluations: int = 0
    reused: int = 0
    reducers: tuple[ReducerRecord, ...] = ()
    layers: tuple[SizerLayer, ...] = ()
    heaps: tuple[HeapRecord, ...] = ()
    overflow: str = ""
    reason: str = ""
