"""Comparing gradients with differences of the loss, for ``Tape(grad_check=...)``.

For each checked field a random direction is drawn. The recorded calls run again from the state
that the tape began with, the field moved a little along the direction and against it; half the
difference of the losses, divided by the step, should be the product of gradient and direction.
Steps of 2^-3, 2^-5, ..., 2^-29 are tried: one that agrees to a hundredth is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...errors import QuadrantsAssertionError, QuadrantsRuntimeError
from ...frontend.specialization import unwrapped
from ...runtime import program
from ...types import f64
from ..fields.builder import placed_fields
from ..fields.placed import Field
from ..ndarray import Ndarray
from . import watching

__all__ = ["GradChecker"]

_STEPS: Final = 2.0 ** np.arange(-3, -30, -2)
_AGREES: Final = 1e-2
_NOISE: Final = 16 * np.finfo(np.float64).eps
"""The relative error of the difference of two losses that rounding alone can cause."""

Array = np.ndarray[Any, Any]


class GradChecker:
    """Made when a tape begins: it keeps the values of all fields and ndarrays as they are then.

    loss: of the tape. to_check: fields and ndarrays.
    """

    def __init__(self, loss: Any, to_check: Sequence[Any]) -> None:
        if loss is None:
            raise QuadrantsRuntimeError("grad_check needs a loss to differentiate")
        if not isinstance(loss, Field | Ndarray) or getattr(loss, "dtype", None) is not f64:
            raise QuadrantsAssertionError("Only f64 is supported when checking grad.")
        self._loss: Any = loss
        self._checked: Final[list[Any]] = [unwrapped(one) for one in to_check]
        for one in self._checked:
            if not isinstance(one, Field | Ndarray) or getattr(one, "grad", None) is None:
                raise TypeError(f"grad_check takes fields and ndarrays of real numbers: {one!r}")
        arrays = [one for one in list(program.current().owned) if isinstance(one, Ndarray)]
        fields = [f for f in placed_fields() if f.snode.builder.finalized is not None]
        state = [*fields, *arrays]
        self._state: Final = [(one, one.to_numpy()) for one in state]

    def _run(self, calls: Sequence[tuple[Any, tuple[Any, ...]]], moved: Any, by: Array) -> float:
        """The loss, with ``moved`` by ``by`` from where it was."""
        for one, values in self._state:
            one.from_numpy(values)
        moved.from_numpy(moved.to_numpy() + by)
        for func, args in calls:
            func(*args)
        return float(self._loss.to_numpy().sum())

    def check(self, calls: Sequence[tuple[Any, tuple[Any, ...]]]) -> None:
        """Compare. QuadrantsAssertionError names what does not agree; values stay as they are."""
        after = [(one, one.to_numpy()) for one, _ in self._state]
        gradients = [one.grad.to_numpy() for one in self._checked]
        wrong: list[str] = []
        try:
            with watching.unwatched():
                for number, one in enumerate(self._checked):
                    if one is not self._loss:
                        wrong += self._compare(calls, one, gradients[number], number)
        finally:
            for one, values in after:
                one.from_numpy(values)
        if wrong:
            raise QuadrantsAssertionError(
                "Grad check failed: Not all variables pass grad check", hint="; ".join(wrong)
            )

    def _compare(
        self, calls: Sequence[tuple[Any, tuple[Any, ...]]], one: Any, gradient: Array, number: int
    ) -> list[str]:
        """The messages about a variable whose gradient does not agree; empty if it does."""
        shape: tuple[int, ...] = gradient.shape
        direction: Array = np.random.default_rng(number).random(shape)
        mine = float(np.vdot(gradient.astype(np.float64), direction))
        best = float("nan")
        for step in _STEPS:
            by: Array = (direction * step).astype(one.dtype.np)
            plus, minus = self._run(calls, one, by), self._run(calls, one, -by)
            found = (plus - minus) / (2 * step)
            noise = _NOISE * max(abs(plus), abs(minus)) / step
            error = abs(found - mine)
            if error <= _AGREES * abs(mine) or (error <= noise and step > 1e-4):
                return []
            if not abs(best - mine) <= error:
                best = found
        name = getattr(one, "name", "") or f"number {number}"
        return [f"{name}: gradient {mine:g}, difference {best:g} along a random direction"]
