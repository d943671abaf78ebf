"""The search for a wrong entry of a gradient, by differences; see `gradient_check`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .record_gradient import GradientReport

__all__ = ["UNSETTLED", "Compared", "Entries", "Search", "Wrong"]

Array = np.ndarray[Any, Any]
_EXACT_STEPS: Final = (1e-5, 1e-6, 1e-7)
_WIDE_STEPS: Final = (1e-4, 1e-3, 1e-2)
"""Used if the loss rounds to more than the others change."""
_ROUGH_STEPS: Final = (1e-2, 3e-3, 1e-3)
_EXACT: Final = 1e-6
_ASIDE: Final = 12
"""Entries of an array that are set aside because they are kinks."""
_FEW: Final = 16
"""Entries that are compared one by one."""
_EACH: Final = 64
"""Entries of an array that are all compared if one of them is wrong."""
_MORE: Final = 3
"""Wrong entries of a larger array that are searched for: each needs as many runs as the first."""
_LEAST: Final = 1e-7
UNSETTLED: Final = (
    "differences with several steps differ as much as the gradient differs from them: rounding"
)
_ROUNDINGS: Final = 256
"""Roundings of the type that a gradient may have."""


@dataclass
class Entries:
    """An array with gradients, flat, in f64. start: before the kernel. weight: of its elements in
    the loss. reverse: the gradient of the backend. exact: of the f64 run, else the same. scale: of
    a step, by element. place: returns the index of an element as it is written."""

    name: str
    dtype: np.dtype[Any]
    start: Array
    weight: Array
    reverse: Array
    exact: Array
    place: Callable[[int], tuple[int, ...]]

    def __post_init__(self) -> None:
        size = np.abs(self.start)
        known = size[size > 0]
        least = 1e-2 * float(np.median(known)) if known.size else 1.0
        self.scale: Array = np.where(size > 0, np.maximum(size, least), 1.0 if not known.size else
                                     float(np.median(known)))  # fmt: skip


class Compared:
    """A function from arrays to arrays with a gradient. exact: it runs in f64."""

    entries: list[Entries]
    exact = True

    def run(self, changed: dict[int, Array]) -> list[Array]:
        """The contents of all arrays afterwards, flat, where some start as ``changed``."""
        raise NotImplementedError

    def causes(self, found: Wrong) -> GradientReport:
        """The report of a wrong entry."""
        raise NotImplementedError


@dataclass
class Slope:
    """A derivative by differences. error: of it. step: that it is from."""

    value: float
    error: float
    step: float


@dataclass
class Wrong:
    """A wrong entry. number: of the array. at: the element. below, above: one-sided differences.
    kink: they differ, and the gradient is between them. corner: they differ, and the gradient is no
    finite number. noise: the result of the backend differs
    from the f64 run. unsettled: differences with several steps differ as much.
    """

    number: int
    at: int
    slope: Slope
    below: float
    above: float
    tolerance: float
    kink: bool
    noise: bool = False
    unsettled: bool = False
    corner: bool = False

    @property
    def sure(self) -> bool:
        """There is a verdict."""
        return not (self.kink or self.noise or self.unsettled)


class Search:
    """Finds wrong entries. runs: of the function. counts: by array with wrong entries, how many
    were found, and whether these are all."""

    def __init__(self, compared: Compared) -> None:
        self.of: Final = compared
        self.runs = 0
        self.finite = True
        self.counts: Final[dict[int, tuple[int, bool]]] = {}
        self._steps: Final = _EXACT_STEPS if compared.exact else _ROUGH_STEPS
        self._rng: Final = np.random.default_rng(20)
        self._base: list[Array] | None = None

    def wrong(self) -> list[Wrong]:
        """The wrong entries of each array; without any, one for which no verdict is possible."""
        return [one for i in range(len(self.of.entries)) for one in self._in_array(i)]

    # ---- differences

    def _change(self, ahead: dict[int, Array], back: dict[int, Array] | None) -> float:
        """The loss with one start minus that with another; None is the real start."""
        one = self._run(ahead)
        if back is None:
            if self._base is None:
                self._base = self._run({})
            other = self._base
        else:
            other = self._run(back)
        parts = [
            float(np.sum(e.weight * (a - b)))
            for e, a, b in zip(self.of.entries, one, other, strict=True)
            if np.any(e.weight)
        ]
        return math.fsum(parts) if all(map(math.isfinite, parts)) else math.nan

    def _run(self, changed: dict[int, Array]) -> list[Array]:
        self.runs += 1
        with np.errstate(all="ignore"):
            return self.of.run(changed)

    def _central(self, number: int, direction: Array, step: float) -> float:
        start = self.of.entries[number].start
        ahead, back = start + step * direction, start - step * direction
        return self._change({number: ahead}, {number: back}) / (2 * step)

    def slope(
        self, number: int, direction: Array, most: int = 3, wide: bool = False
    ) -> Slope:  # fmt: skip
        """The derivative along a direction, of the two steps that agree best. wide: larger steps
        are tried as well, where the loss rounds too much for the others."""
        values = [self._central(number, direction, s) for s in self._steps[:most]]
        best = Slope(values[0], math.inf, self._steps[0])
        for i in range(1, len(values)):
            best = self._better(best, values[i], values[i - 1], self._steps[i])
        last = values[0]
        for step in _WIDE_STEPS if wide and self.of.exact else ():
            if not self._coarse(best):
                break
            value = self._central(number, direction, step)
            best, last = self._better(best, value, last, step), value
        return best

    def _better(self, best: Slope, value: float, before: float, step: float) -> Slope:
        # Steps may agree because rounding swallows them.
        error = max(abs(value - before), self._rounding() / step)
        return Slope(value, error, step) if error < best.error else best

    def _rounding(self) -> float:
        """The rounding of the largest part of the loss."""
        if self._base is None:
            self._base = self._run({})
        pairs = zip(self.of.entries, self._base, strict=True)
        sizes = [
            float(np.max(np.abs(e.weight * held), initial=0.0)) * self._eps_of(e)
            for e, held in pairs
        ]
        return max((size for size in sizes if math.isfinite(size)), default=0.0)

    def _eps_of(self, entries: Entries) -> float:
        return float(np.finfo(np.float64).eps if self.of.exact else _eps(entries.dtype))

    def one_sided(self, number: int, direction: Array, step: float) -> tuple[float, float]:
        start = self.of.entries[number].start
        above = self._change({number: start + step * direction}, None) / step
        below = -self._change({number: start - step * direction}, None) / step
        return below, above

    # ---- the search

    def _in_array(self, number: int) -> list[Wrong]:
        entries = self.of.entries[number]
        size = entries.start.size
        left = np.ones(size, bool)
        found: list[Wrong] = []
        aside: list[Wrong] = []
        covered = False
        for _ in range(_ASIDE):
            signs = self._rng.choice((-1.0, 1.0), size) * self._rng.uniform(0.5, 1.5, size)
            direction = np.where(left, signs * entries.scale, 0.0)
            off = self._off(number, direction)
            covered = off == 0.0
            if covered:
                break
            chosen = self._bisect(number, direction, np.flatnonzero(left), off)
            one = self._judged(number, chosen)
            left[chosen] = False
            if one is not None:
                (found if one.sure else aside).append(one)
            if found and size <= _EACH:
                found += self._each(number, left)
                covered = True
                break
            if len(found) == _MORE or not left.any():
                break
        if found:
            self.counts[number] = len(found), covered or not left.any()
        elif covered and not aside:
            return self._rounded(number)
        return found or aside[:1]

    def _each(self, number: int, left: Array) -> list[Wrong]:
        """The wrong ones of the entries that are left."""
        out: list[Wrong] = []
        for at in np.flatnonzero(left):
            direction = self._one(number, int(at))
            if self._off(number, direction):
                one = self._judged(number, int(at))
                out += [one] if one is not None and one.sure else []
        return out

    def _off(self, number: int, direction: Array) -> float:
        """The difference between gradient and differences along a direction; 0 if it is small."""
        entries = self.of.entries[number]
        slope = self.slope(number, direction, 2)
        off = self._off_by(entries, direction, slope)
        if off and self._coarse(slope):
            slope = self.slope(number, direction, 2, wide=True)
            off = self._off_by(entries, direction, slope)
        return off

    def _coarse(self, slope: Slope) -> bool:
        """True if the loss rounds too much for the step."""
        least = self._rounding() / slope.step
        return slope.value != 0.0 and least > _EXACT * abs(slope.value)

    def _off_by(self, entries: Entries, direction: Array, slope: Slope) -> float:
        parts = entries.exact * direction
        if not math.isfinite(slope.value):
            self.finite = False
            return 0.0
        off = slope.value - float(np.sum(parts))
        most = float(np.max(np.abs(parts), initial=0.0)) or 1.0
        norm = most * float(np.linalg.norm(parts / most))
        return 0.0 if abs(off) <= self._allowed(entries, norm, slope) else off

    def _allowed(self, entries: Entries, size: float, slope: Slope) -> float:
        relative = _EXACT if self.of.exact else 4 * _ROUNDINGS * float(_eps(entries.dtype))
        # Differences that do not settle, as at a jump, must not hide an error.
        most = (1e-3 if self.of.exact else 5e-2) * max(size, abs(slope.value))
        return relative * max(size, abs(slope.value), 1e-9) + min(2.0 * slope.error, most)

    def _bisect(self, number: int, direction: Array, within: Array, off: float) -> int:
        entries = self.of.entries[number]
        while within.size > _FEW:
            half = within[: within.size // 2]
            part = np.zeros_like(direction)
            part[half] = direction[half]
            slope = self.slope(number, part, 1)
            own = slope.value - float(np.sum(entries.exact * part))
            if not math.isfinite(own):
                own = math.inf
            if abs(own) >= abs(off - own):
                within, off = half, own
            else:
                within, off = within[half.size :], off - own
        errors: list[float] = []
        for at in within:
            slope = self.slope(number, self._one(number, int(at)), 1)
            error = slope.value / float(entries.scale[at]) - float(entries.exact[at])
            errors.append(abs(error) if math.isfinite(error) else math.inf)
        return int(within[int(np.argmax(errors))])

    def _one(self, number: int, at: int) -> Array:
        entries = self.of.entries[number]
        direction = np.zeros_like(entries.start)
        direction[at] = entries.scale[at]
        return direction

    def _judged(self, number: int, at: int) -> Wrong | None:
        """The entry, if it is wrong, or no verdict is possible."""
        entries = self.of.entries[number]
        scale, direction = float(entries.scale[at]), self._one(number, at)
        slope = self.slope(number, direction, wide=True)
        exact = float(entries.exact[at])
        tolerance = self._allowed(entries, abs(exact) * scale, slope)
        sides = [self.one_sided(number, direction, s) for s in self._steps[1:]]
        rounding = 4.0 * self._rounding() / self._steps[-1]
        below, above = sides[-1]
        (near_b, near_a), gap = sides[0], abs(above - below)
        size = max(abs(above), abs(below))
        # The gap of a smooth function shrinks with the step; that at a kink stays, at a jump grows.
        kink = gap > 0.5 * abs(near_a - near_b) and gap > max(1e-4 * size, rounding)
        kink = kink and self.of.exact
        slack = 1e-3 * size
        between = min(below, above) - slack <= exact * scale <= max(below, above) + slack
        if abs(exact * scale - slope.value) <= tolerance and not kink:
            return None
        unsettled = not kink and abs(exact * scale - slope.value) <= 2.0 * slope.error
        unit = Slope(slope.value / scale, slope.error / scale, slope.step * scale)
        return Wrong(
            number, at, unit, below / scale, above / scale, tolerance / scale, kink and between,
            unsettled=unsettled, corner=kink and not math.isfinite(exact),
        )  # fmt: skip

    def _rounded(self, number: int) -> list[Wrong]:
        """The entry of the backend that is furthest from the f64 run, if it is far."""
        entries = self.of.entries[number]
        if entries.exact is entries.reverse:
            return []
        size = float(np.max(np.abs(entries.exact), initial=0.0))
        relative = max(_ROUNDINGS * float(_eps(entries.dtype)), _LEAST)
        allowed = relative * np.maximum(np.abs(entries.exact), 1e-2 * size)
        over = np.abs(entries.reverse - entries.exact) - allowed
        over[~np.isfinite(over)] = math.inf
        over[~np.isfinite(entries.exact)] = -math.inf
        if not over.size or float(np.max(over)) <= 0:
            return []
        self.counts[number] = int(np.count_nonzero(over > 0)), True
        at = int(np.argmax(over))
        scale = float(entries.scale[at])
        slope = self.slope(number, self._one(number, at))
        unit = Slope(slope.value / scale, slope.error / scale, slope.step * scale)
        sides = self.one_sided(number, self._one(number, at), self._steps[-1])
        below, above = sides[0] / scale, sides[1] / scale
        return [Wrong(number, at, unit, below, above, float(allowed[at]), False, noise=True)]


def _eps(dtype: np.dtype[Any]) -> Any:
    return np.finfo(dtype).eps if dtype.kind == "f" else np.finfo(np.float64).eps
