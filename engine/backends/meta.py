"""The facts about a compiled kernel, as plain data: its target, its tasks, its sites.

The records hold no state of a device, so caches can keep them and other processes can read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from ..ir import Loc, Param
    from ..types import DataType

__all__ = [
    "AssertSite", "Caps", "Flow", "KernelMeta", "PrintSite", "StackMeta", "StackPlan", "Target",
    "TaskMeta", "TaskPlan",
]  # fmt: skip


class Target(NamedTuple):
    """The hardware that code is generated for. Two equal targets can share code.

    kind: the backend's family (``cpu``). arch: the instruction set, as the toolchain names it (for
    LLVM a triple). cpu: the model that code is tuned for. features: what it can do, sorted.
    """

    kind: str
    arch: str = ""
    cpu: str = ""
    features: str = ""


class Caps(NamedTuple):
    """The types and features that a backend supports.

    types: element and scalar types. checks: asserts and bounds checks can raise. prints: `print`
    works. parallel: top-level loops run on several threads.
    """

    types: frozenset[DataType]
    checks: bool = True
    prints: bool = True
    parallel: bool = True


class AssertSite(NamedTuple):
    """An assertion of the finished kernel: the error to raise when it fails.

    types: of the values that the text shows.
    """

    kind: str
    text: str
    types: tuple[DataType, ...]
    loc: Loc


class PrintSite(NamedTuple):
    """A print of the finished kernel. pieces: texts, or a format spec in a 1-tuple for a value."""

    pieces: tuple[Any, ...]
    types: tuple[DataType, ...]


class StackMeta(NamedTuple):
    """An adstack of a task, in the order of their ops. See `ir.attrs.AdStackAttr`.

    real: it is stored in the heap of floats, else in that of integers. size: the text of its
    size, as an `adstack.size_expr` over the kernel's parameters; of a fixed one, for messages.
    max_size: its entries, if that was known at compile time, else 0.
    """

    name: str
    dtype: DataType
    adjoint: bool
    size: str
    max_size: int
    forced_by: str
    loc: Loc

    @property
    def real(self) -> bool:
        return self.dtype.is_real

    @property
    def entry(self) -> int:
        """Bytes of one entry."""
        return self.dtype.size * (1 + self.adjoint)


class TaskMeta(NamedTuple):
    """A task as it was compiled. kind: serial or range_for. name: its symbol.

    stacks: its adstacks. trip, predicate: of a task with stacks; see `ir.attrs.TaskAttr`.
    """

    name: str
    kind: str
    unit: str
    loop_name: str
    axes: int
    loc: Loc
    ops: int
    stacks: tuple[StackMeta, ...] = ()
    trip: str = ""
    predicate: str = ""


class TaskPlan(NamedTuple):
    """The memory that one launch assigns to the adstacks of one task.

    Row ``r`` of its float stacks starts ``r * real_stride`` bytes after the start of the program's
    float heap, and each float stack starts ``offsets[i]`` bytes into the row; the same holds for
    integers. A thread has row ``its number`` of the integers. It has the same row of the floats,
    unless the task is ``predicated``: then a thread claims the next free row when it first passes
    the adstack predicate.

    real_rows / integer_rows: how many there are. capacities: entries of each stack. offsets: bytes.
    """

    real_rows: int
    integer_rows: int
    real_stride: int
    integer_stride: int
    capacities: tuple[int, ...]
    offsets: tuple[int, ...]
    predicated: bool = False


class StackPlan(NamedTuple):
    """The memory that one launch assigns to the adstacks of a kernel.

    tasks: of each task, None for one without stacks. real_heap / integer_heap: addresses of the
    program's heaps, which hold all rows of the largest task; no other launch uses them meanwhile.
    An argument buffer that already holds an equal plan need not be written again.
    """

    tasks: tuple[TaskPlan | None, ...]
    real_heap: int = 0
    integer_heap: int = 0


class Flow(NamedTuple):
    """A part of a kernel that does not run its tasks just once, one after the other.

    kind: ``do_while`` (again and again while the i32 at ``param`` is not 0 after a round),
    ``checkpoint`` (once; where ``param`` is not -1 and the i32 there is not 0 afterwards, the
    launch ends here and says so), ``parallel`` (its items, each a ``section``, in any order or at
    once), ``section`` (one after the other).
    items: tasks by number, or parts, in order. param: number of the 0-D array parameter, -1 for
    none. label: of a checkpoint, its number among those of the kernel in the order of the source.
    """

    kind: str
    items: tuple[int | Flow, ...]
    param: int = -1
    label: int = -1


class KernelMeta(NamedTuple):
    """The facts that a launch needs. Plain data.

    written: numbers of the arrays and fields that some task writes. noalias: the code assumes that
    a written array overlaps no other array or field, and a written field no array. seeded: the code
    asks for `launch_seed`. reports: asserts that end nothing, and are reported after a launch.
    timed: launches time each task. graph: a device may record the tasks and replay them.
    flow: the tasks by number and parts of them, in order; empty for all tasks one after the other.
    labels: of the kernel's checkpoints, as the user wrote them; empty without.
    """

    name: str
    params: tuple[Param, ...]
    results: tuple[DataType, ...]
    global_tmp_size: int = 0
    written: tuple[int, ...] = ()
    noalias: bool = True
    seeded: bool = False
    tasks: tuple[TaskMeta, ...] = ()
    asserts: tuple[AssertSite, ...] = ()
    prints: tuple[PrintSite, ...] = ()
    reports: tuple[AssertSite, ...] = ()
    timed: bool = False
    graph: bool = False
    flow: tuple[int | Flow, ...] = ()
    labels: tuple[int, ...] = ()

    @property
    def has_stacks(self) -> bool:
        """True if a launch needs a `StackPlan`."""
        return any(task.stacks for task in self.tasks)
