"""The plan of a launch: the number of entries of each adstack of a kernel, and their offsets.

A `Sizer` belongs to one compiled kernel. It lists the inputs of the sizes (`Need`): scalar
arguments, extents, the contents of arrays. Before a launch it *observes* these, contents by their
write counter, and those of small arrays whose writes are not counted by their bytes. If they are
unchanged, the plan is reused, and nothing is evaluated. Otherwise the layers of `adstack.caches`
are asked, expression by expression.

Rows: in a parallel task each thread of the pool has one, in a serial task there is one. On a device
there are as many threads as the loop has iterations, rounded up to whole blocks, but no more than
can be resident, and no more than there is memory for their rows. In a task with an adstack
predicate, no more threads get a row of floats than iterations pass it. A row holds the stacks of
one kind, floats or integers, one after the other: those with the widest values first, so that there
is no padding between them, and the row's end is rounded up to that width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..adstack import host_eval
from ..adstack import predicate as predicates
from ..adstack.caches import Caches, Observed
from ..adstack.host_eval import Env
from ..adstack.max_reducer import MaxReducerSpec, in_rounds, recognise, substituted
from ..adstack.size_expr import Arg, Const, Read, SizeExpr, leaves, parse
from ..backends.array_memory import DeviceArray, host_copy
from ..backends.base import Executable, StackMeta, StackPlan, TaskMeta, TaskPlan
from ..named_tuple import NamedTuple
from .overflow import over_budget

if TYPE_CHECKING:
    from ..types import WriteCounter
    from .stacks import Stacks

__all__ = ["FETCH", "Need", "Sizer", "bytes_of"]


_COMPARED: Final = 1 << 16
"""Bytes of arrays that a kernel's launches compare; sizes are less to evaluate than to compare
with more."""


class _FromDevice:
    """Reads arrays in device memory; see `adstack.host_eval.Fetch`. Waits for earlier launches."""

    def whole(self, value: DeviceArray) -> np.ndarray[Any, Any]:
        return host_copy(value)

    def element(self, value: DeviceArray, number: int) -> int:
        out = np.empty(1, value.dtype)
        assert value.memory is not None
        value.memory.read(value.offset + number * value.dtype.itemsize, out)
        return int(out[0])


FETCH: Final = _FromDevice()


class Need(NamedTuple):
    """An input of sizes: ``arg``, ``shape`` (with an axis) or ``content`` of a parameter."""

    kind: str
    param: int
    axis: int = 0


def _needs(e: SizeExpr, params: Sequence[Any]) -> tuple[Need, ...]:
    """The inputs of ``e``; shapes of fields are fixed."""
    found: dict[Need, None] = {}
    for leaf in leaves(e):
        if isinstance(leaf, Arg):
            found[Need("arg", leaf.param)] = None
        elif isinstance(leaf, Read):
            found[Need("content", leaf.param)] = None
            param = params[leaf.param]
            if param.layout is None:  # an index is checked against the extents
                for axis in range(param.ndim):  # those of elements are fixed
                    found[Need("shape", leaf.param, axis)] = None
        elif params[leaf.param].layout is None:
            found[Need("shape", leaf.param, leaf.axis)] = None
    return tuple(found)


class Ready(NamedTuple):
    """A plan that is valid while the same is observed. memory: keeps the heaps alive."""

    observed: Observed
    plan: StackPlan
    memory: Any


class _Size(NamedTuple):
    """An expression of the kernel. observed: indices of its needs in those of the kernel. number:
    its key in the caches.
    """

    expr: SizeExpr
    observed: tuple[int, ...] = ()
    number: int = -1


class _Task(NamedTuple):
    """A task with stacks.

    rows: threads that may work on it. block: on a device, the number of threads in a block; 0
    elsewhere, and for a serial task. predicate, trip: where they are known.
    """

    number: int
    meta: TaskMeta
    sizes: tuple[_Size, ...]
    rows: int
    block: int
    predicate: _TaskPredicate | None
    trip: _Size | None


class _TaskPredicate(NamedTuple):
    """The adstack predicate of a task. observed: as in `_Size`."""

    predicate: predicates.Predicate
    observed: tuple[int, ...]

    @property
    def read(self) -> Read:
        """The read that it checks."""
        return Read(self.predicate.param, self.predicate.indices)


def _other_parts(task: TaskMeta, on_device: bool) -> list[SizeExpr]:
    """The expressions that the rows of a task depend on."""
    trip = [parse(task.trip)] if task.trip and (task.predicate or on_device) else []
    if not task.predicate:
        return trip
    predicate = predicates.parse(task.predicate)
    return [Read(predicate.param, predicate.indices), *trip]


class _Launch:
    """The arguments of one launch, the observations of them, and the maxima found for it."""

    __slots__ = ("env", "results", "seen")

    def __init__(self, env: Env, seen: Observed) -> None:
        self.env: Final = env
        self.seen: Final = seen
        self.results: Final[dict[SizeExpr, int]] = {}

    def of(self, positions: tuple[int, ...]) -> Observed:
        """The observations of these needs."""
        seen = self.seen
        return tuple([seen[i] for i in positions])


class Sizer:
    """See the module docstring.

    needs: the inputs of all sizes together. specs: the maxima that are evaluated separately. ready:
    the plan of the last launch with its observations; None for no plan, for one that depends on an
    unknown input, and after the heaps have moved. plan_made: the last plan, in any case. counted:
    iterations that passed the adstack predicate, by task; no more than there are threads. overflow:
    the message about the last full stack. evaluated, dispatched: as in `Stacks`, for this kernel.
    """

    def __init__(self, stacks: Stacks, executable: Executable) -> None:
        meta = executable.meta
        self.stacks: Final = stacks
        self.meta: Final = meta
        self.heaps: Final = stacks.heaps_for(executable)
        self._blocks: Final[tuple[int, ...]] = getattr(executable, "block_dims", ())
        device = self.heaps.device
        self.caches: Final = Caches()
        sizes = {
            stack.size: parse(stack.size) if not stack.max_size else Const(stack.max_size)
            for task in meta.tasks for stack in task.stacks
        }  # fmt: skip
        self.specs: Final[tuple[MaxReducerSpec, ...]] = recognise(
            parse(stack.size) for task in meta.tasks for stack in task.stacks if not stack.max_size
        )
        needs: dict[Need, int] = {}
        other = [e for task in meta.tasks if task.stacks 
                 for e in _other_parts(task, device is not None)]  # fmt: skip
        for e in (*sizes.values(), *other):
            for need in _needs(e, meta.params):
                needs.setdefault(need, len(needs))
        self.needs: Final = tuple(needs)
        self._positions: Final = needs
        self._numbers: Final[dict[SizeExpr, int]] = {}
        self._what: Final = f"kernel {meta.name}"
        self._rounds: Final = tuple([
            (spec, self._sized(spec.node)) for one in in_rounds(self.specs) for spec in one
        ])  # fmt: skip
        self.tasks: Final = tuple([self._task(i, task) for i, task in enumerate(meta.tasks)])
        self.ready: Ready | None = None
        self.last: Observed | None = None
        self.plan_made: StackPlan | None = None
        self.evaluated = 0
        self.dispatched = 0
        self.overflow = ""
        self.counted: Final[dict[int, int]] = {}
        self.values: dict[int, int] = {}

    def _task(self, number: int, meta: TaskMeta) -> _Task | None:
        if not meta.stacks:
            return None
        device, rows, block = self.heaps.device, self.stacks.threads, 0
        if meta.kind == "serial":
            rows = 1
        elif device is not None:
            rows, block = device.max_threads, self._blocks[number]
        predicate = trip = None
        if meta.trip and (block or (meta.predicate and rows > 1)):
            trip = self._sized(parse(meta.trip))
        if meta.predicate and rows > 1:
            found = predicates.parse(meta.predicate)
            predicate = _TaskPredicate(found, self._observed(Read(found.param, found.indices)))
        sizes = tuple(map(self._size, meta.stacks))
        return _Task(number, meta, sizes, rows, block, predicate, trip)

    def _size(self, stack: StackMeta) -> _Size:
        if stack.max_size:
            return _Size(Const(stack.max_size))
        return self._sized(parse(stack.size))

    def _sized(self, e: SizeExpr) -> _Size:
        return _Size(e, self._observed(e), self._numbers.setdefault(e, len(self._numbers)))

    def _observed(self, e: SizeExpr) -> tuple[int, ...]:
        return tuple([self._positions[need] for need in _needs(e, self.meta.params)])

    # --- a launch -------------------------------------------------------------------------------

    def plan(self, values: Sequence[Any], sources: Sequence[WriteCounter | None] = ()) -> StackPlan:
        """The plan for a launch with these values; the last one, if it is still valid.

        sources: the counter of each array; None, or an empty sequence, for unknown memory.
        """
        env = self.env(values)
        seen = tuple([self._observe(need, env, sources) for need in self.needs])
        seen = self._compared(seen, env)
        ready = self._reused(seen)
        if ready is not None:
            self.stacks.reused += 1
            return ready.plan
        return self._replan(seen, env).plan

    def replan(self, seen: Observed, values: Sequence[Any]) -> Ready:
        """The plan for arguments with these observations, which differ from those of `ready`.

        values: only of parameters whose value or contents are needed.
        """
        env = self.env(values)
        seen = self._compared(seen, env)
        return self._reused(seen) or self._replan(seen, env)

    def env(self, values: Sequence[Any]) -> Env:
        """The environment of these arguments, in which expressions are evaluated."""
        return Env(self.meta.params, values, self._what, FETCH)

    def _reused(self, seen: Observed) -> Ready | None:
        """The last plan, if it is still valid."""
        ready = self.ready
        if ready is None or seen != ready.observed:
            return None
        self.caches.last_plan.hits += 1
        return ready

    def _compared(self, seen: Observed, env: Env) -> Observed:
        """The observations, with the bytes of small arrays whose writes are not counted."""
        if None not in seen:
            return seen
        found, left = list(seen), _COMPARED
        for i, need in enumerate(self.needs):
            value = env.values[need.param] if seen[i] is None else None
            if isinstance(value, np.ndarray):
                array = cast("np.ndarray[Any, Any]", value)
                if array.nbytes <= left:
                    left -= array.nbytes
                    found[i] = array.tobytes()
        return tuple(found)

    def _replan(self, seen: Observed, env: Env) -> Ready:
        self.ready = None
        self.caches.last_plan.misses += 1
        tasks = self._sizes(_Launch(env, seen))
        plan = self.plan_made = self.stacks.placed(self, tasks)
        self.last = seen
        ready = Ready(seen, plan, self.heaps.memory)
        if None not in seen:
            self.ready = ready
        return ready

    def _observe(self, need: Need, env: Env, sources: Sequence[WriteCounter | None]) -> int | None:
        if need.kind == "arg":
            return int(env.values[need.param])
        if need.kind == "shape":
            return env.extents(need.param)[need.axis]
        source = sources[need.param] if sources else None
        return None if source is None else source.count

    def _sizes(self, launch: _Launch) -> tuple[TaskPlan | None, ...]:
        """The plan of each task."""
        for spec, size in self._rounds:
            launch.results[spec.node] = self.caches.max_reducer.get(
                size.number, launch.of(size.observed),
                lambda spec=spec: self._dispatch(spec, launch),
            )  # fmt: skip
        self.values = {}
        return tuple([None if t is None else self._task_plan(t, launch) for t in self.tasks])

    def _dispatch(self, spec: MaxReducerSpec, launch: _Launch) -> int:
        self.stacks.dispatched += 1
        self.dispatched += 1
        self._count()
        return self.stacks.reduce(self, spec, launch.env, launch.results)

    def _task_plan(self, task: _Task, launch: _Launch) -> TaskPlan:
        capacities = tuple([max(self._value(size, launch), 1) for size in task.sizes])
        if self.stacks.budget:
            sizes = zip(task.meta.stacks, capacities, strict=True)
            needed = sum(stack.entry * n for stack, n in sizes)
            if needed > self.stacks.budget:
                raise over_budget(self, task.number, capacities, needed)
        most = task.rows
        if task.trip is not None:
            most = min(most, max(self._trips(task, task.trip, launch), 1))
        threads = -(-most // task.block) * task.block if task.block else task.rows
        rows = (
            threads if task.predicate is None else self._passing(task, task.predicate, most, launch)
        )
        key: Observed = (capacities, rows, threads)
        predicated = task.predicate is not None
        found = self.caches.task_metadata.get(
            task.number, key,
            lambda: packed(task.meta.stacks, capacities, rows, threads, predicated),
        )  # fmt: skip
        return self._within_budget(task, found) if task.block else found

    def _trips(self, task: _Task, trip: _Size, launch: _Launch) -> int:
        """The iterations of a task's loop; not counted where they only bound the threads."""
        if task.predicate is not None or trip.number in self.values:
            return self._value(trip, launch)
        return host_eval.evaluate(substituted(trip.expr, launch.results), launch.env)

    def _within_budget(self, task: _Task, plan: TaskPlan) -> TaskPlan:
        """The plan with as many threads as there is memory for, at least one block."""
        device = self.heaps.device
        assert device is not None
        budget = device.stack_budget
        threads, rows = plan.integer_rows, plan.real_rows
        while (
            threads > task.block
            and rows * plan.real_stride + threads * plan.integer_stride > budget
        ):
            threads = max(threads // 2 // task.block, 1) * task.block
            rows = min(rows, threads)
        return plan._replace(real_rows=rows, integer_rows=threads)

    def _passing(self, task: _Task, predicate: _TaskPredicate, most: int, launch: _Launch) -> int:
        """Rows for the iterations that pass a predicate: at most as many as there are threads."""

        def count() -> int:
            self._count()
            return self.stacks.passing(self, predicate.predicate, launch.env, most)

        observed = (most, *launch.of(predicate.observed))
        found = self.caches.size_expr.get((task.number, "predicate"), observed, count)
        self.counted[task.number] = found
        return max(found, 1)

    def _value(self, size: _Size, launch: _Launch) -> int:
        """The value of an expression; each is looked up once in a launch."""
        if isinstance(size.expr, Const):
            return size.expr.value
        known = self.values.get(size.number)
        if known is None:
            known = self.values[size.number] = self.caches.size_expr.get(
                size.number, launch.of(size.observed), lambda: self._evaluate(size.expr, launch)
            )
        return known

    def _evaluate(self, e: SizeExpr, launch: _Launch) -> int:
        rest = substituted(e, launch.results)
        if isinstance(rest, Const):
            return rest.value
        self._count()
        return host_eval.evaluate(rest, launch.env)

    def _count(self) -> None:
        self.stacks.evaluated += 1
        self.evaluated += 1

    def sized_now(self, values: Sequence[Any]) -> tuple[TaskPlan | None, ...]:
        """The plan of each task for the present contents of the arrays, without the caches."""
        self.forget()
        env = self.env(values)
        seen = tuple([self._observe(need, env, ()) for need in self.needs])
        return self._sizes(_Launch(env, seen))

    @property
    def known(self) -> bool:
        """True if no content that sizes depend on may have been written unseen since the last plan
        was made."""
        return all(value is not None and value.__class__ is not bytes for value in self.last or ())

    def forget(self) -> None:
        """Size again in the next launch."""
        self.ready = None
        self.caches.clear()


def packed(
    stacks: Sequence[StackMeta], capacities: Sequence[int], real_rows: int, integer_rows: int,
    predicated: bool = False,
) -> TaskPlan:  # fmt: skip
    """The layout of the stacks of a task, with these numbers of entries."""
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
        real_rows, integer_rows, real, integer, tuple(capacities), tuple(offsets), predicated
    )  # fmt: skip


def bytes_of(tasks: Sequence[TaskPlan | None]) -> tuple[int, int]:
    """The bytes of the floats and of the integers of the largest task."""
    real = [t.real_rows * t.real_stride for t in tasks if t is not None]
    integer = [t.integer_rows * t.integer_stride for t in tasks if t is not None]
    return max(real, default=0), max(integer, default=0)
