"""A generated program as something the runner can run: arguments and tolerance.

Integers, and floats of ``exact`` kernels, must agree bit for bit, but for the sign of a zero and
the payload of a NaN. ``tame`` kernels call functions that no two libraries round alike and sum in
another order in parallel reductions: they compute with well-conditioned expressions of a few dozen
operations, so agreement is asked to within 2**5 units in the last place of the coarsest real type
they use, and under ``fast_math``, which reassociates, 2**9 units. Sums over a parallel loop of n
elements are worth n half units more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from qd_studio.engine.types import f16, f32

from .model import Array, Program, expressions, walk
from .runner import Case

__all__ = ["arguments", "case_of"]


def case_of(p: Program) -> Case:
    """The program's arguments, names and tolerance. ``exact`` kernels mean nothing in fast_math."""
    names = tuple(f"{a.name} ({a.dtype})" for a in p.arrays)
    return Case(
        p.name, lambda: arguments(p), names, tolerance(p, False), tolerance(p, True),
        p.mode != "exact",
    )  # fmt: skip


def _fill(p: Program, array: Array, random: np.random.Generator) -> np.ndarray:
    t = array.dtype
    shape = tuple(p.dims[d] for d in array.dims)
    if t.is_real:
        if p.mode == "tame":
            values = random.uniform(0.5, 2.0, shape)
        else:
            plain = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 1e3, 65504.0])
            values = np.where(
                random.random(shape) < 0.4, random.choice(plain, shape), random.normal(0, 10, shape)
            )
        return np.ascontiguousarray(values.astype(t.np)).reshape(shape)
    edges = np.array([0, 1, 2, 5, t.max, t.min, t.max // 3], dtype=t.np)
    spread = random.integers(t.min, t.max, shape, dtype=t.np, endpoint=True)
    small = random.integers(0, 10, shape).astype(t.np)
    pick = random.random(shape)
    values = np.where(pick < 0.3, random.choice(edges, shape), np.where(pick < 0.7, small, spread))
    return np.ascontiguousarray(values.astype(t.np)).reshape(shape)


def arguments(p: Program) -> list[Any]:
    """Fresh arguments, the same for each call."""
    random = np.random.default_rng(p.seed)
    return [_fill(p, a, random) for a in p.arrays] + [s.value for s in p.scalars]


def units(p: Program) -> float:
    """The unit in the last place of the coarsest real type that the program uses."""
    types = {a.dtype for a in p.arrays} | {s.dtype for s in p.scalars} | set(p.results)
    for f in p.functions:
        types |= {t for _, t in f.params} | {e.t for e in expressions(f.result)}
        types |= {x.t for s in walk(f.body) for e in s.exprs for x in expressions(e)}
    types |= {x.t for s in walk(p.body) for e in s.exprs for x in expressions(e)}
    return 2.0**-10 if f16 in types else 2.0**-23 if f32 in types else 2.0**-52


def tolerance(p: Program, fast: bool) -> float:
    """Relative tolerance for floats; 0 asks for the same bits."""
    if p.mode != "tame":
        return 0.0
    cells = max((int(np.prod([p.dims[d] for d in a.dims])) for a in p.arrays), default=1)
    return units(p) * ((512 if fast else 32) + cells / 2)
