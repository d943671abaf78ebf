"""The rows of the conformance table, and their registration.

A feature is a function without parameters that runs a small program and returns what it computed:
numbers, strings, arrays, or lists of these. The decorator has the expected result, as plain data::

    feature = Group("operators", "Operators")

    @feature("integer division rounds down", [-4, 3])
    def floor_division():
        @qd.kernel
        def k() -> ...

Kernels are defined inside, so that each run compiles them again, and fields are made inside, since
they belong to the program. Modules of `kernels` register their features when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["ANY", "NEEDS", "REGISTRY", "Feature", "Group"]

NEEDS: Final = {
    "f64": "real numbers of 64 bits",
    "f16": "real numbers of 16 bits",
    "i64 atomics": "atomic updates of 64 bits",
    "blocks": "threads of a block that wait for each other",
    "subgroups": "values of the other lanes of a subgroup",
    "gradients": "kernels differentiated",
    "checks": "errors that kernels raise",
    "prints": "prints of kernels",
    "graphs": "kernels recorded and replayed",
    "streams": "streams and events",
    "random": "the engine's random numbers",
}
"""Needs of features that not every device or backend meets."""


class _Any:
    """See `ANY`."""

    def __repr__(self) -> str:
        return "anything"


ANY: Final = _Any()
"""In an expected result: any value; only the interpreter's result is compared."""


class Feature(NamedTuple):
    """A row of the table.

    id: short, for command lines. `gives`: the result that `run` must return. needs: keys of
    `NEEDS`. rtol: relative tolerance for floats, 0 for the same value. options: of `qd.init`.
    """

    id: str
    group: str
    what: str
    run: Callable[[], Any]
    gives: Any
    needs: tuple[str, ...]
    rtol: float
    options: dict[str, Any]


REGISTRY: Final[list[Feature]] = []
"""Every feature, in the order of the table."""


class Group:
    """Makes features of functions and registers them under one title.

    key: the prefix of the names of its features.
    """

    def __init__(self, key: str, title: str, needs: tuple[str, ...] = ()) -> None:
        self.key = key
        self.title = title
        self.needs = needs

    def __call__(
        self, what: str, gives: Any, needs: tuple[str, ...] = (), rtol: float = 0.0, **options: Any
    ) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """A decorator; options: those of `qd.init` that the feature is about."""

        def add(run: Callable[[], Any]) -> Callable[[], Any]:
            self.add(run.__name__, what, run, gives, needs, rtol, **options)
            return run

        return add

    def add(
        self, name: str, what: str, run: Callable[[], Any], gives: Any,
        needs: tuple[str, ...] = (), rtol: float = 0.0, **options: Any,
    ) -> None:  # fmt: skip
        """Register a feature; KeyError for a need that is not in `NEEDS`."""
        all_needs = tuple(dict.fromkeys((*self.needs, *needs)))
        for need in all_needs:
            NEEDS[need]
        full = f"{self.key}.{name}"
        if any(f.id == full for f in REGISTRY):
            raise ValueError(f"there is a feature {full} already")
        feature = Feature(full, self.title, what, run, gives, all_needs, rtol, options)
        REGISTRY.append(feature)
