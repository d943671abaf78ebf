"""Derivatives of a kernel as differences of its results, to judge its gradient: `Differences`.

The kernel as written runs in the interpreter, with f64 for f32, and one element of an argument is
a little larger or smaller. The sum of all outputs, each weighted with its own gradient at the
start, changes by what the gradient of that element must be. This is done for a few elements of each
array that the kernel only reads. Where a result depends on what an output held before, or the
function has a kink, differences say nothing, and the element or the kernel is left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np

from ..ir import Func
from .contents import elements, put_elements
from .gradients import GradientCapture
from .interpreting import TooLong, run_widened
from .launching import ORACLE
from .trials import Trials

__all__ = ["Differences"]

_ELEMENTS: Final = 8
_STEP: Final = 1e-6
_TOLERANCE: Final = 2e-3
_STEPS: Final = 400_000
_SECONDS: Final = 10.0

Array = np.ndarray[Any, Any]


class Differences:
    """See the module docstring. known: the derivatives, by parameter and index of the element."""

    def __init__(self, trials: Trials, capture: GradientCapture, forward: Func) -> None:
        """forward: the kernel as written."""
        self._trials: Final = trials
        self._forward: Final = forward
        self._params: Final = trials.compiled.executable.meta.params
        self._given: Final[list[Any]] = list(trials.values())
        primal = capture.primal.compiled(ORACLE, trials.spec_keys).executable.meta
        written = {primal.params[i].name for i in primal.written}
        real = [i for i, p in enumerate(self._params) if p.grad >= 0]
        self._outputs: Final = [i for i in real if self._params[i].name in written]
        self._inputs: Final = [i for i in real if self._params[i].name not in written]
        self.known: Final[dict[tuple[int, int], float]] = {}
        # What takes the interpreter too long has none, or those of the first elements.
        with suppress(TooLong):
            after = self._run({})
            if after is not None and self._independent(after):
                for place, value in self._derivatives():
                    self.known[place] = value

    def wrong(self, func: Func) -> str:
        """The first wrong derivative of differentiated IR in words; empty if there is none."""
        outcome = self._trials.interpret(func)
        kept = [
            i for i, p in enumerate(self._params) if p.kind == "ndarray" or p.layout is not None
        ]  # fmt: skip
        scale = max((abs(v) for v in self.known.values()), default=0.0)
        for (param, at), wanted in self.known.items():
            number = self._params[param].grad
            values = np.asarray(outcome.values[kept.index(number)]).reshape(-1)
            found = float(values[at]) - float(self._elements(number).reshape(-1)[at])
            if not abs(found - wanted) <= _TOLERANCE * max(abs(wanted), scale, 1e-3):
                name = f"{self._params[param].name}.grad"
                return f"{name}, element {at}: got {found:.6g}, by differences {wanted:.6g}"
        return ""

    # ---- parts

    def _elements(self, number: int, values: list[Any] | None = None) -> Array:
        held = np.asarray((values or self._given)[number])
        return elements(self._params[number].layout, held)

    def _run(self, changed: dict[int, Array]) -> list[Any] | None:
        """Return the contents of the arguments after the kernel, in f64; None without a run."""
        values = list(self._given)
        for i, array in changed.items():
            values[i] = np.array(values[i], np.float64)
            put_elements(self._params[i].layout, values[i], array)
        found = run_widened(self._forward, values, _STEPS)
        self._trials.runs += 1
        return None if found is None else found[0]

    def _independent(self, after: list[Any]) -> bool:
        """True if no result depends on what outputs held, but for sums that are added to them."""
        for i in self._outputs:
            before = self._elements(i).astype(np.float64)
            if np.allclose(self._elements(i, after), before, rtol=1e-6, atol=1e-9):
                continue
            again = self._run({i: before + 1.0})
            if again is None:
                return False
            for k in self._outputs:
                shift = self._elements(k, again) - self._elements(k, after)
                if not (np.allclose(shift, float(k == i)) or np.allclose(shift, 0.0)):
                    return False
        return bool(self._outputs)

    def _loss(self, changed: dict[int, Array]) -> float:
        after = self._run(changed)
        assert after is not None
        total = 0.0
        for i in self._outputs:
            weight = self._elements(self._params[i].grad).astype(np.float64)
            total += float(np.sum(weight * self._elements(i, after)))
        return total

    def _derivatives(self) -> Iterator[tuple[tuple[int, int], float]]:
        base, end = self._loss({}), time.monotonic() + _SECONDS
        for param in self._inputs:
            values = self._elements(param).astype(np.float64)
            count = min(_ELEMENTS, values.size)
            for at in dict.fromkeys(int(n) for n in np.linspace(0, values.size - 1, count)):
                if time.monotonic() > end:
                    return
                step = _STEP * max(1.0, abs(float(values.reshape(-1)[at])))
                slopes: list[float] = []
                for sign in (1.0, -1.0):
                    moved = values.copy()
                    moved.reshape(-1)[at] += sign * step
                    slopes.append(sign * (self._loss({param: moved}) - base) / step)
                if abs(slopes[0] - slopes[1]) <= _TOLERANCE * max(1e-2, *map(abs, slopes)):
                    yield (param, at), (slopes[0] + slopes[1]) / 2
