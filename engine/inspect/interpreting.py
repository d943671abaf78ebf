"""Runs of the interpreter, with a limited number of steps; and once more in f64 (`widened`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..backends import interp
from ..backends.base import StackPlan
from ..errors import QuadrantsRuntimeError
from ..ir import Func
from .steps import StepLimit
from .widened import widened

if TYPE_CHECKING:
    from ..ir import Loc

__all__ = ["SEED", "Given", "TooLong", "counted", "discard", "run_widened", "wide_copies"]

SEED: Final = 1
Given = Callable[[], Sequence[Any]]
"""Makes the arguments of a launch, by parameter; their memory is the launch's own."""


class TooLong(Exception):
    """Raised when the interpreter exceeds its steps or its time. loop: the one it was in."""

    def __init__(self, loop: Loc | None = None) -> None:
        super().__init__()
        self.loop = loop


def discard(text: str) -> None:
    """Drop a print of the interpreter, because another backend prints the same."""


def counted(
    program: interp.InterpretedKernel,
    values: Sequence[Any],
    print_fn: Callable[[str], object] | None,
    most: int,
    stacks: StackPlan | None = None,
    seed: int = SEED,
) -> tuple[Any, ...]:
    """Interpret with at most ``most`` steps. Raises TooLong if it needs more, or too much time."""
    try:
        return program.launch(values, print_fn=print_fn, max_steps=most, seed=seed, stacks=stacks)
    except (QuadrantsRuntimeError, StepLimit) as error:
        if isinstance(error, QuadrantsRuntimeError) and "step limit" not in error.message:
            raise
        loop = program.loop_at(error)
        raise TooLong(None if loop is None else loop.loc) from None


def run_widened(
    func: Func, values: Sequence[Any], most: int
) -> tuple[list[Any], tuple[Any, ...]] | None:
    """Interpret with f64 for f32 and f16: (what the arguments hold then, the results).

    None for a function that has no such types, or uses them in ways that this cannot follow (see
    `widened`). No two of its arrays overlap.
    """
    wide = widened(func)
    if wide is None:
        return None
    given = wide_copies(values)
    program = interp.compile_func(wide, counted=True)
    return given, counted(program, given, discard, most)


def wide_copies(values: Iterable[Any]) -> list[Any]:
    """The values, with copies of arrays: those of f32 and f16 in f64."""
    narrow = (np.float32, np.float16)
    return [
        v.astype(np.float64 if v.dtype in narrow else v.dtype) if hasattr(v, "dtype") else v
        for v in values
    ]
