"""Interpreting a kernel in both ways: over arrays of iterations, and one after the other."""

from __future__ import annotations

import math

import numpy as np
from qd_studio.engine import passes
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsAssertionError, QuadrantsRuntimeError
from qd_studio.engine.frontend.build import build
from qd_studio.engine.lang.ndarray import Ndarray
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.runtime.args import classify
from qd_studio.engine.types import u1


def bits(array):
    """The bytes, all NaNs alike: what a NaN holds is not defined."""
    array = np.array(array)
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan
    return array.dtype, array.shape, array.tobytes()


def both(func, make, **options):
    """Interpret ``func`` in the two ways and compare; gives the tasks and the arguments after."""
    outcomes = []
    for least in (None, 1):
        program = interp.compile_func(func, counted=True, least=least)
        args, reported, error, results = make(), [], "", ()
        try:
            results = program.launch(args, print_fn=reported.append, **options)
        except (QuadrantsAssertionError, QuadrantsRuntimeError) as raised:
            error = str(raised)
        arrays = [bits(a) for a in args if isinstance(a, np.ndarray)]
        outcomes.append((arrays, bits(results), reported, error))
        assert bool(program.vectors) <= (least == 1)
    assert outcomes[0] == outcomes[1], program.source
    return program.vectors, args, outcomes[1]


def finished(kernel, *args, debug=False):
    """The finished IR of a kernel for these arguments, and what makes the latter again."""
    config = CompileConfig(fast_math=False, debug=debug)

    def classified():
        pairs = zip(kernel.decl.params, args, strict=True)
        return [
            classify(
                kernel.name, i, p, np.array(v) if isinstance(v, np.ndarray) else v, config, Ndarray
            )
            for i, (p, v) in enumerate(pairs)
        ]

    func = build(kernel.decl, [a.spec_key for a in classified()], config).func
    passes.run(func, config, PipelineKind.INTERP)
    return func, lambda: [a.value for a in classified()]


def specials(t):
    """Values at which operations differ most easily."""
    if t is u1:
        return [0, 1]
    if t.is_int:
        edge = [t.min, t.min + 1, t.max, t.max - 1, 0, 1, 2, 3, 7, 31, 33, 100]
        return [*edge, -1, -2, -7, -100] if t.is_signed else edge
    some = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, 1e4, 255.7, -128.5]
    some += [math.inf, -math.inf, math.nan, 0.1, -0.3, 2.0**31, -(2.0**63), 1e-8, 6e4, 88.8, 710.0]
    with np.errstate(all="ignore"):
        return [float(t.np(x)) for x in some]
