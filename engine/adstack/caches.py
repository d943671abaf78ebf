"""The results of sizing kept between launches of one kernel, in five layers, with hit counts.

================= ==============================================================================
`last_plan`       all that the previous launch needed, if this one observes the same
`size_expr`       the value of each size expression
`max_reducer`     the result of each maximum that is computed separately (`max_reducer`)
`task_metadata`   the offsets of the stacks of each task in a row
`reducer_code`    the compiled kernel of each such maximum
================= ==============================================================================

An entry holds what was *observed* when it was made: scalar arguments and extents by value, arrays
by their write counter (`types.write_counter`), which changes with every write. The entry is valid
as long as the same is observed again. Where a write counter is unknown, because other code may
write to the memory unnoticed, nothing is kept. A launch that `last_plan` answers does not query the
other layers: in a steady state their counts do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar, cast

from ..named_tuple import NamedTuple

__all__ = ["LAYERS", "Caches", "Layer", "LayerFact", "Observed"]

T = TypeVar("T")

Observed = tuple[Hashable, ...]
"""The state that a result depends on. None in it: that part is unknown."""

_MOST: Final = 8
"""Results that are kept for one key: a kernel may be launched with several arrays in turn."""

LAYERS: Final = ("last_plan", "size_expr", "max_reducer", "task_metadata", "reducer_code")


class LayerFact(NamedTuple):
    """A layer as people see it."""

    name: str
    hits: int
    misses: int


class Layer:
    """One layer: for each key the last results, and what was observed for them."""

    __slots__ = ("_kept", "hits", "misses", "name")

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.hits = 0
        self.misses = 0
        self._kept: Final[dict[Hashable, dict[Observed, object]]] = {}

    def get(self, key: Hashable, observed: Observed, make: Callable[[], T]) -> T:
        """Return the result kept under ``key`` for this observation, or else call ``make``."""
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = {}
        if observed in kept:
            self.hits += 1
            return cast(T, kept[observed])
        self.misses += 1
        made = make()
        if None not in observed:
            if len(kept) == _MOST:
                del kept[next(iter(kept))]  # the oldest
            kept[observed] = made
        return made

    def clear(self) -> None:
        """Forget everything but the counts."""
        self._kept.clear()

    def fact(self) -> LayerFact:
        return LayerFact(self.name, self.hits, self.misses)


class Caches:
    """The layers of one kernel; see the module docstring."""

    __slots__ = ("last_plan", "max_reducer", "reducer_code", "size_expr", "task_metadata")

    def __init__(self) -> None:
        self.last_plan: Final = Layer("last_plan")
        self.size_expr: Final = Layer("size_expr")
        self.max_reducer: Final = Layer("max_reducer")
        self.task_metadata: Final = Layer("task_metadata")
        self.reducer_code: Final = Layer("reducer_code")

    def clear(self) -> None:
        """Forget what depends on the arguments of launches: all but compiled code."""
        for layer in (self.size_expr, self.max_reducer, self.task_metadata):
            layer.clear()

    def facts(self) -> tuple[LayerFact, ...]:
        """The layers, in the order of the table."""
        return (
            self.last_plan.fact(), self.size_expr.fact(), self.max_reducer.fact(),
            self.task_metadata.fact(), self.reducer_code.fact(),
        )  # fmt: skip
