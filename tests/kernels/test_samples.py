"""Every kernel of every sample agrees with the interpreter in every configuration.

The reference is the interpreter on the frontend's IR; for kernels that draw random numbers, which
exist only after demote_random, on the finished IR.
"""

from __future__ import annotations

import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir, passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.ir import codes as C
from qd_studio.engine.lang.ndarray import Ndarray
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.runtime.args import classify

from tests.fuzz.configs import VARIANTS
from tests.fuzz.runner import Case, Tally, check
from tests.samples.sample_files import KERNELS, kernel_of

RTOL, FAST_RTOL = 3e-5, 3e-4
"""Samples sum hundreds of terms in single precision, in an order that is free."""


def case_and_func(kernel):
    """The kernel with the arguments of its smallest case, and its IR as the frontend makes it."""
    make_args = kernel.workloads[0].cases()[0].make
    config = CompileConfig(fast_math=False)

    def classified():
        pairs = zip(kernel.decl.params, make_args(), strict=True)
        return [
            classify(kernel.name, i, param, value, config, Ndarray)
            for i, (param, value) in enumerate(pairs)
        ]

    func = build(kernel.decl, [a.spec_key for a in classified()], config).func

    def make():
        pairs = zip(classified(), kernel.decl.params, strict=True)
        return [a.value for a, p in pairs if p.kind != "template"]

    names = tuple(p.name for p in func.params if p.kind == "ndarray")
    return Case(kernel.name, make, names, RTOL, FAST_RTOL), func


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("sample", "name"), KERNELS, ids=[f"{s}.{k}" for s, k in KERNELS])
def test_sample_agrees_in_all_configurations(sample, name):
    qd.init(arch=qd.interp, offline_cache=False)
    case, func = case_and_func(kernel_of(sample, name))
    reference = None
    if any(op.code == C.RAND for op in ir.walk(func.body)):
        copied = ir.parse(ir.to_text(func))
        reference = passes.run(copied, VARIANTS[0].config(), PipelineKind.INTERP)
        assert not any(op.code == C.RAND for op in ir.walk(reference.body))
    tally = Tally()
    failure = check(case, func, tally, stages=reference is None, reference=reference)
    qd.reset()
    assert failure is None, failure
    assert set(tally.by_config) >= {v.name for v in VARIANTS}
