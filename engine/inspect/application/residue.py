"""Distinguishes rounding, and the order in which atomics fill lists, from faults of a launch.

A machine may round elsewhere, and run iterations in another order. How much that changes is not
guessed from the results, but measured: the kernel is compiled again for the CPU, in `variants` that
mean the same, and launched with the same arguments.

`rounding`
    An element that is near zero, where others of its sum are large, has no correct digit: the
    variants of rounding differ there as much as the backends do. A difference of up to `_FACTOR`
    times theirs is rounding.
`order`
    Where the order of iterations changes an array, both must have the same values along one of its
    axes, in whatever order. Where that is not so, they differ.

All else differs. A wrong operator, a missing iteration or an index that is off by one changes
values by more than rounding does, and the values of a list, not only their order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...named_tuple import NamedTuple
from ..agreement import Named, apart, element_name
from . import relaunch
from .variants import Rounding, turn

if TYPE_CHECKING:
    from ...ir import Func
    from .model import Compile, KeptLaunch
    from .store import ApplicationFile

__all__ = ["STATES", "Variants", "judge"]

STATES: Final = ("agrees", "rounding", "order", "unchecked", "differs")
"""The results of launches, the worst last."""
_FACTOR: Final = 16
_SALTS: Final = (1, 2, 3)
_BACKEND: Final = "cpu"

Array = np.ndarray[Any, Any]
Values = Sequence[tuple[str | Named, Any]]
"""The values that a launch has left, with their names."""


class Found(NamedTuple):
    """The difference of a launch. text: its first difference, and why."""

    state: str
    text: str


class Variants:
    """The variants of a kernel, compiled when they are needed. left: makes `Values` of a launch."""

    def __init__(
        self, file: ApplicationFile, compiled: Compile,
        left: Callable[[relaunch.Loaded, Sequence[Any], Sequence[Any]], Values],
    ) -> None:  # fmt: skip
        self._file: Final = file
        self._compiled: Final = compiled
        self._left: Final = left
        self._loaded: dict[str, list[relaunch.Loaded]] = {}

    def run(self, kind: str, launch: KeptLaunch) -> list[Values]:
        """The results of the variants ``plain``, ``rounding`` or ``order``; none if they fail."""
        found: list[Values] = []
        with contextlib.suppress(Exception):  # of a kernel for another machine
            if kind not in self._loaded:
                self._loaded[kind] = []
                self._loaded[kind] = list(self._load(kind))
            for loaded in self._loaded[kind]:
                values, results = relaunch.run(self._file, loaded, launch)
                found.append(self._left(loaded, values, results))
        return found

    def _load(self, kind: str) -> list[relaunch.Loaded]:
        if kind == "rounding":
            made: list[relaunch.Loaded] = []
            for salt in _SALTS:
                rounding = Rounding(salt)
                loaded = self._one(instruments=[rounding])
                if not rounding.changed:
                    break
                made.append(loaded)
            return made
        if kind == "order":
            turned: list[bool] = []

            def change(func: Func) -> None:
                turned.append(turn(func))

            loaded = self._one(change=change)
            return [loaded] if any(turned) else []
        return [self._one()]

    def _one(self, **options: Any) -> relaunch.Loaded:
        # On one thread a run can be repeated.
        return relaunch.load(
            self._file, self._compiled, _BACKEND, cpu_max_num_threads=1, **options
        )  # fmt: skip


def judge(ours: Values, theirs: Values, variants: Variants, launch: KeptLaunch) -> Found:
    """Judge the difference between two results of a launch."""
    worst = Found("agrees", "")
    runs: dict[str, list[Values]] = {}

    def arrays(kind: str, i: int) -> list[Array]:
        if kind not in runs:
            found = variants.run(kind, launch)
            runs[kind] = [one for one in found if len(one) == len(ours)]
        return [np.asarray(run[i][1]) for run in runs[kind]]

    # Results that are not the same twice say nothing about rounding.
    plain = variants.run("plain", launch) + variants.run("plain", launch)
    stable = len(plain) == 2 and len(plain[0]) == len(ours) and _equal(*plain)
    for i, ((name, a), (_, b)) in enumerate(zip(ours, theirs, strict=True)):
        found = _Pair(name, np.asarray(a), np.asarray(b)).judge(
            lambda kind, i=i: arrays(kind, i),
            np.asarray(plain[0][i][1]) if stable else None,
        )
        worst = max(worst, found, key=lambda one: STATES.index(one.state))
    return worst


def _equal(a: Values, b: Values) -> bool:
    return all(np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind == "f")
               for (_, x), (_, y) in zip(a, b, strict=True))  # fmt: skip


class _Pair(NamedTuple):
    name: str | Named
    ours: Array
    theirs: Array

    def judge(self, run: Callable[[str], list[Array]], plain: Array | None) -> Found:
        """Judge the difference. plain: the result of the kernel as it is."""
        x, y = self.ours, self.theirs
        if x.shape != y.shape:
            return Found("differs", f"{element_name(self.name, ())}: shape {x.shape}, "
                                    f"expected {y.shape}")  # fmt: skip
        bad = apart(x, y)
        if not bad.any():
            return Found("agrees", "")
        if plain is None or plain.shape != x.shape:
            return self._found("differs", bad, "")
        moved = _moved(run("rounding"), plain)
        left = bad & ~_within(x, y, moved)
        if not left.any():
            return self._found("rounding", bad, "rounding moves it as far")
        if any(apart(turned, plain).any() for turned in run("order")):
            if _permuted(x, y):
                why = "the same values in another order, which the order of iterations decides"
                return self._found("order", left, why)
            return self._found("differs", left, "the values depend on the order of iterations, but "
                                                "are not the same in another order")  # fmt: skip
        return self._found("differs", left, "")

    def _found(self, state: str, bad: Array, why: str) -> Found:
        index = tuple([int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape)])
        x, y = self.ours[index], self.theirs[index]
        text = f"{element_name(self.name, index)}: got {x!s}, expected {y!s}"
        return Found(state, f"{text} ({why})" if why else text)


def _moved(rounded: Sequence[Array], plain: Array) -> Array:
    """The distance by which other rounding moves each element."""
    most = np.zeros(plain.shape)
    with np.errstate(all="ignore"):
        for one in rounded:
            gap = np.abs(one.astype(np.float64) - plain.astype(np.float64))
            most = np.maximum(most, np.where(np.isfinite(gap), gap, 0.0))
    return most


def _within(x: Array, y: Array, moved: Array) -> Array:
    """True for elements whose difference is one of rounding."""
    if x.dtype.kind != "f":  # a count, or a branch
        return (moved > 0) & (np.abs(x.astype(np.float64) - y.astype(np.float64)) <= moved)
    typical = float(np.median(moved[moved > 0])) if bool((moved > 0).any()) else 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(x.astype(np.float64) - y.astype(np.float64))
        return np.isfinite(gap) & (gap <= _FACTOR * np.maximum(moved, typical))


def _permuted(x: Array, y: Array) -> bool:
    """True if both have the same values along one of their axes, or altogether."""
    for axis in reversed(range(x.ndim)):
        if not apart(np.sort(x, axis=axis), np.sort(y, axis=axis)).any():
            return True
    return not apart(np.sort(x, axis=None), np.sort(y, axis=None)).any()
