"""The facts of the program's allocator about the stacks of a kernel: maxima, caches, heaps.

The maxima are found once more here, by the code that finds them before a launch, which keeps only
the sizes that result from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ..adstack.formulas import formula
from ..adstack.host_eval import Env, evaluate
from ..adstack.max_reducer import MaxReducerSpec, in_rounds, substituted
from ..adstack.reducer_kernels import SMALL
from ..adstack.size_expr import MaxOver, SizeExpr, free_vars, parse, walk
from ..backends.base import StackPlan
from ..runtime.sizer import bytes_of
from .autodiff import sized
from .record import AutodiffRecord
from .record_autodiff import HeapRecord, ReducerRecord, SizerLayer

if TYPE_CHECKING:
    from ..backends.base import Executable, KernelMeta
    from ..runtime.stacks import Stacks

__all__ = ["facts_of_launch"]

_LAYERS: Final = ("last_plan", "size_expr", "reducer_code", "task_metadata", "max_reducer")


def facts_of_launch(
    record: AutodiffRecord,
    stacks: Stacks,
    executable: Executable,
    plan: StackPlan,
    values: Sequence[object],
    workload: str,
) -> AutodiffRecord:
    """Return ``record`` with the stack sizes of a launch with ``values``, and their cost."""
    meta = executable.meta
    sizer = stacks.sizer(executable)
    # Before anything is found again.
    facts = {fact.name: fact for fact in sizer.caches.facts()}
    env = sizer.env(values)
    results: dict[SizeExpr, int] = {}
    reducers: list[ReducerRecord] = []
    rounds = in_rounds(sizer.specs)
    for number, one in enumerate(rounds, 1):
        for spec in one:
            cells = tuple(_extents(spec, env, results))
            results[spec.node] = stacks.reduce(sizer, spec, env, results)
            how = "kernel" if stacks.native and math.prod(cells) > SMALL else "numpy"
            reducers.append(_reducer(meta, spec.node, cells, number, how, results[spec.node]))
    reducers += [
        _reducer(meta, node, (), 0, "sequential walk", None) for node in _walked(meta, results)
    ]
    real, integer = bytes_of(plan.tasks)
    heaps = sizer.heaps
    sizes = sized(record, meta, plan, values, workload, results)
    return replace(
        sizes,
        bytes=real + integer,
        rounds=len(rounds),
        dispatches=len(results),
        evaluations=sum(facts[name].misses for name in ("size_expr", "max_reducer")),
        reducers=tuple(reducers),
        layers=tuple(
            SizerLayer(name=name, hits=facts[name].hits, misses=facts[name].misses)
            for name in _LAYERS
        ),
        heaps=(
            HeapRecord(kind="real", needed=real, size=heaps.real.size),
            HeapRecord(kind="integer", needed=integer, size=heaps.integer.size),
        ),
    )


def _extents(spec: MaxReducerSpec, env: Env, results: Mapping[SizeExpr, int]) -> Iterator[int]:
    for axis in spec.axes:
        begin, end = (evaluate(substituted(e, results), env) for e in (axis.begin, axis.end))
        yield max(0, end - begin)


def _sizes(meta: KernelMeta) -> Iterator[tuple[int, str, SizeExpr]]:
    """(task, stack, size) of every stack whose size depends on the launch."""
    for index, task in enumerate(meta.tasks):
        for stack in task.stacks:
            if stack.size and not stack.max_size:
                yield index, stack.name, parse(stack.size)


def _reducer(
    meta: KernelMeta, node: MaxOver, cells: tuple[int, ...], round: int, how: str, value: int | None
) -> ReducerRecord:
    task, stack = next((t, s) for t, s, e in _sizes(meta) if node in walk(e))
    text = formula(node, meta.params)
    return ReducerRecord(
        task=task, stack=stack, formula=text, axes=cells, round=round, how=how, value=value
    )


def _walked(meta: KernelMeta, captured: Mapping[SizeExpr, int]) -> list[MaxOver]:
    """The outermost maxima that are left to the sequential walk."""
    found = {
        node: None
        for _, _, e in _sizes(meta)
        for node in walk(e)
        if isinstance(node, MaxOver) and not free_vars(node) and node not in captured
    }
    return [node for node in found if not any(node in walk(o) for o in found if o is not node)]
