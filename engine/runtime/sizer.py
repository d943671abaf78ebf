"""The plan of a launch: how many entries each adstack of a kernel gets, and where they lie.

A `Sizer` belongs to one compiled kernel. It lists what the sizes depend on (`Need`): scalar
arguments, extents, the contents of arrays. Before a launch it *observes* these, contents by their
generation. As long as they are as before, so is the plan: nothing is evaluated. Otherwise the
layers of `adstack.caches` are asked, expression by expression.

Rows: in a parallel task each thread of the pool has one, in a serial task there is one. Of a task
with a gate no more threads get a row of reals than iterations pass. A row holds
the stacks of one kind, reals or integers, one behind the other: those with the widest values first,
so that nothing lies between them, and the row's end is rounded up to that width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from ..adstack import gate as gates
from ..adstack import host_eval
from ..adstack.caches import Caches, Observed
from ..adstack.host_eval import Env
from ..adstack.max_reducer import MaxReducerSpec, in_rounds, recognise, substituted
from ..adstack.size_expr import Arg, Const, Read, SizeExpr, leaves, parse
from ..backends.base import KernelMeta, StackMeta, StackPlan, TaskMeta, TaskPlan

if TYPE_CHECKING:
    from .stacks import Stacks

__all__ = ["Need", "Sizer", "Source", "bytes_of"]


class Source(Protocol):
    """What an array argument came from; see `types.generation`."""

    @property
    def generation(self) -> int | None: ...


class Need(NamedTuple):
    """Something that sizes depend on: ``arg``, ``shape`` (with an axis) or ``content`` of a
    parameter."""

    kind: str
    param: int
    axis: int = 0


def _needs(e: SizeExpr, params: Sequence[Any]) -> tuple[Need, ...]:
    """What ``e`` depends on; shapes of fields are fixed."""
    found: dict[Need, None] = {}
    for leaf in leaves(e):
        if isinstance(leaf, Arg):
            found[Need("arg", leaf.param)] = None
        elif isinstance(leaf, Read):
            found[Need("content", leaf.param)] = None
            if params[leaf.param].layout is None:  # an index is checked against the extents
                for axis in range(len(leaf.indices)):
                    found[Need("shape", leaf.param, axis)] = None
        elif params[leaf.param].layout is None:
            found[Need("shape", leaf.param, leaf.axis)] = None
    return tuple(found)


class Ready(NamedTuple):
    """A plan that is right as long as the same is observed. memory: keeps the heaps alive."""

    observed: Observed
    plan: StackPlan
    memory: Any


class _Size(NamedTuple):
    """The size of a stack. observed: positions of its needs in those of the kernel."""

    expr: SizeExpr
    observed: tuple[int, ...]


class _Task(NamedTuple):
    """A task with stacks. rows: threads that may work on it. gate, trip: where they are known."""

    number: int
    meta: TaskMeta
    sizes: tuple[_Size, ...]
    rows: int
    gate: _Gate | None


class _Gate(NamedTuple):
    """The gate of a task. trip: how often its loop runs, if known. observed: as in `_Size`."""

    gate: gates.Gate
    trip: _Size | None
    observed: tuple[int, ...]

    @property
    def read(self) -> Read:
        """What it looks at."""
        return Read(self.gate.param, self.gate.indices)


def _gate_parts(task: TaskMeta) -> list[SizeExpr]:
    """What the count of a gate depends on."""
    if not task.gate:
        return []
    gate = gates.parse(task.gate)
    trip = [parse(task.trip)] if task.trip else []
    return [Read(gate.param, gate.indices), *trip]


class Launch:
    """The arguments of one launch, as sizing sees them."""

    __slots__ = ("env", "needs", "seen", "sources")

    def __init__(
        self, params: Sequence[Any], values: Sequence[Any], sources: Sequence[Source | None],
        needs: Sequence[Need], what: str,
    ) -> None:  # fmt: skip
        self.env: Final = Env(params, values, what)
        self.sources: Final = sources
        self.seen: Final[Observed] = tuple([self._observe(need) for need in needs])

    def _observe(self, need: Need) -> int | None:
        if need.kind == "arg":
            return int(self.env.values[need.param])
        if need.kind == "shape":
            return self.env.extents(need.param)[need.axis]
        source = self.sources[need.param] if self.sources else None
        return None if source is None else source.generation


class Sizer:
    """See the module docstring.

    needs: what all sizes together depend on. specs: the maxima that are found by themselves.
    ready: the plan of the last launch with what was observed for it; None for no plan, for one that
    depends on what is not known, and while the heaps are elsewhere than it says. plan_made: the
    last one, in any case. counted: iterations that passed the gate, by task; no more than there are
    threads. overflow: what the last full stack was told with. evaluated, dispatched: as those of
    `Stacks`, for this kernel.
    """

    def __init__(self, stacks: Stacks, meta: KernelMeta) -> None:
        self.stacks: Final = stacks
        self.meta: Final = meta
        self.caches: Final = Caches()
        sizes = {
            stack.size: parse(stack.size) if not stack.max_size else Const(stack.max_size)
            for task in meta.tasks for stack in task.stacks
        }  # fmt: skip
        self.specs: Final[tuple[MaxReducerSpec, ...]] = recognise(
            parse(stack.size) for task in meta.tasks for stack in task.stacks if not stack.max_size
        )
        needs: dict[Need, int] = {}
        other = [e for task in meta.tasks if task.stacks for e in _gate_parts(task)]
        for e in (*sizes.values(), *other):
            for need in _needs(e, meta.params):
                needs.setdefault(need, len(needs))
        self.needs: Final = tuple(needs)
        self._positions: Final = needs
        self.tasks: Final = tuple([self._task(i, task) for i, task in enumerate(meta.tasks)])
        self.ready: Ready | None = None
        self.plan_made: StackPlan | None = None
        self.evaluated = 0
        self.dispatched = 0
        self.overflow = ""
        self.counted: Final[dict[int, int]] = {}
        self.last: Observed | None = None
        self.values: dict[SizeExpr, int] = {}

    def _task(self, number: int, meta: TaskMeta) -> _Task | None:
        if not meta.stacks:
            return None
        rows = 1 if meta.kind == "serial" else self.stacks.threads
        gate = None
        if meta.gate and rows > 1:
            found = gates.parse(meta.gate)
            trip = None
            if meta.trip:
                e = parse(meta.trip)
                trip = _Size(e, self._observed(e))
            gate = _Gate(found, trip, self._observed(Read(found.param, found.indices)))
        return _Task(number, meta, tuple(map(self._size, meta.stacks)), rows, gate)

    def _size(self, stack: StackMeta) -> _Size:
        if stack.max_size:
            return _Size(Const(stack.max_size), ())
        e = parse(stack.size)
        return _Size(e, self._observed(e))

    def _observed(self, e: SizeExpr) -> tuple[int, ...]:
        return tuple([self._positions[need] for need in _needs(e, self.meta.params)])

    # --- a launch -------------------------------------------------------------------------------

    def plan(self, values: Sequence[Any], sources: Sequence[Source | None] = ()) -> StackPlan:
        """The plan for a launch with these values; the last one, if it still is right.

        sources: where each array comes from; None, or an empty sequence, for unknown memory.
        """
        launch = Launch(self.meta.params, values, sources, self.needs, f"kernel {self.meta.name}")
        ready = self.ready
        if ready is not None and launch.seen == ready.observed:
            self.stacks.reused += 1
            return ready.plan
        self.ready = None
        tasks = self.sized(launch)
        plan = self.plan_made = self.stacks.placed(self, tasks)
        self.last = launch.seen
        if None not in launch.seen:
            self.ready = Ready(launch.seen, plan, self.stacks.memory)
        return plan

    def sized(self, launch: Launch) -> tuple[TaskPlan | None, ...]:
        """What each task needs."""
        results = self._dispatched(launch)
        self.values = {}
        return tuple([None if t is None else self._task_plan(t, launch, results)
                      for t in self.tasks])  # fmt: skip

    def _dispatched(self, launch: Launch) -> dict[SizeExpr, int]:
        """The results of all captured maxima, found in rounds."""
        results: dict[SizeExpr, int] = {}
        for one in in_rounds(self.specs):
            for spec in one:
                observed = tuple([launch.seen[i] for i in self._observed(spec.node)])
                results[spec.node] = self.caches.max_reducer.get(
                    spec.node, observed, lambda spec=spec: self._dispatch(spec, launch, results)
                )
        return results

    def _dispatch(self, spec: MaxReducerSpec, launch: Launch, results: dict[SizeExpr, int]) -> int:
        self.stacks.dispatched += 1
        self.dispatched += 1
        self._count()
        return self.stacks.reduce(self, spec, launch.env, results)

    def _task_plan(self, task: _Task, launch: Launch, results: dict[SizeExpr, int]) -> TaskPlan:
        capacities = tuple([max(self._value(s, launch, results), 1) for s in task.sizes])
        rows = task.rows if task.gate is None else self._passing(task, task.gate, launch, results)
        key: Observed = (capacities, rows)
        return self.caches.task_metadata.get(
            task.number, key,
            lambda: packed(
                task.meta.stacks, capacities, rows, task.rows, task.gate is not None
            ),
        )  # fmt: skip

    def _passing(
        self, task: _Task, gate: _Gate, launch: Launch, results: dict[SizeExpr, int]
    ) -> int:
        """Rows for the iterations that pass a gate: no more are counted than there are threads."""
        most = task.rows
        if gate.trip is not None:
            most = min(most, max(self._value(gate.trip, launch, results), 1))
        observed = (most, *[launch.seen[i] for i in gate.observed])

        def count() -> int:
            self._count()
            return gates.count(gate.gate, launch.env, most)

        found = self.counted[task.number] = self.caches.size_expr.get(
            (task.number, "gate"), observed, count
        )
        return max(found, 1)

    def _value(self, size: _Size, launch: Launch, results: dict[SizeExpr, int]) -> int:
        if isinstance(size.expr, Const):
            return size.expr.value
        observed = tuple([launch.seen[i] for i in size.observed])
        known = self.values.get(size.expr)
        if known is not None:  # of another stack in this launch
            return known
        value = self.caches.size_expr.get(
            size.expr, observed, lambda: self._evaluate(size.expr, launch, results)
        )
        self.values[size.expr] = value
        return value

    def _evaluate(self, e: SizeExpr, launch: Launch, results: dict[SizeExpr, int]) -> int:
        rest = substituted(e, results)
        if isinstance(rest, Const):
            return rest.value
        self._count()
        return host_eval.evaluate(rest, launch.env)

    def _count(self) -> None:
        self.stacks.evaluated += 1
        self.evaluated += 1

    def sized_now(self, values: Sequence[Any]) -> tuple[TaskPlan | None, ...]:
        """What each task needs with the arrays as they are now, whatever is kept."""
        self.forget()
        what = f"kernel {self.meta.name}"
        return self.sized(Launch(self.meta.params, values, (), self.needs, what))

    @property
    def known(self) -> bool:
        """Whether every content that sizes depend on was seen when the last plan was made."""
        return self.last is None or None not in self.last

    def forget(self) -> None:
        """Size afresh in the next launch."""
        self.ready = None
        self.caches.clear()


def packed(
    stacks: Sequence[StackMeta], capacities: Sequence[int], real_rows: int, integer_rows: int,
    gated: bool = False,
) -> TaskPlan:  # fmt: skip
    """Where the stacks of a task lie, with so many entries."""
    offsets = [0] * len(stacks)
    strides = {True: 0, False: 0}
    widths = {True: 1, False: 1}
    for i in sorted(range(len(stacks)), key=lambda i: -stacks[i].dtype.size):
        stack = stacks[i]
        widths[stack.real] = max(widths[stack.real], stack.dtype.size)
        offsets[i] = strides[stack.real]
        strides[stack.real] += stack.entry * capacities[i]
    real, integer = [-(-strides[kind] // widths[kind]) * widths[kind] for kind in (True, False)]
    return TaskPlan(
        real_rows, integer_rows, real, integer, tuple(capacities), tuple(offsets), gated
    )  # fmt: skip


def bytes_of(tasks: Sequence[TaskPlan | None]) -> tuple[int, int]:
    """The bytes that the reals and the integers of the largest task take."""
    real = [t.real_rows * t.real_stride for t in tasks if t is not None]
    integer = [t.integer_rows * t.integer_stride for t in tasks if t is not None]
    return max(real, default=0), max(integer, default=0)
