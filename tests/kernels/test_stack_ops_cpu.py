"""Adstacks in compiled code: the same as on the interpreter, and never a write past a row."""

import numpy as np
import pytest
from qd_studio.engine.backends import interp
from qd_studio.engine.errors import AdStackOverflowError, QuadrantsInternalError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, to_text
from qd_studio.engine.types import f32, f64, i32

from tests.passes.qdir import arguments
from tests.passes.random_ir import random_func

from .stackkit import Heaps, compiled, power


def _arrays(n):
    return [np.linspace(0.5, 1.5, n, dtype=np.float32), np.ones(n, np.float32),
            np.arange(n, dtype=np.float32)]  # fmt: skip


def test_compiled_code_agrees_with_the_interpreter():
    kernel = compiled(power())
    wanted, got = _arrays(50), _arrays(50)
    interp.run(power(), [*wanted, 2])
    heaps = Heaps(kernel.meta, 101)
    kernel.launch((*got, 2), 0, heaps.plan)
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-5)
    assert heaps.is_whole()


def test_a_full_stack_ends_the_launch_and_not_the_process():
    kernel = compiled(power(), debug=False)
    heaps = Heaps(kernel.meta, 7)
    for n in (1, 100_000 // 5):
        with pytest.raises(AdStackOverflowError, match="stack 'p' of task 0 has 7 entries") as e:
            kernel.launch((*_arrays(20), n), 0, heaps.plan)
        assert (e.value.task, e.value.stack) == (0, 0)
        assert heaps.is_whole()
    arrays = _arrays(3)
    kernel.launch((*arrays, 2), 0, heaps.plan)
    np.testing.assert_allclose(arrays[1], [1, 1 + 4, 1 + 2 * 6 * 1.5**5], rtol=1e-5)


def test_a_launch_without_a_plan_is_refused():
    kernel = compiled(power())
    with pytest.raises(QuadrantsInternalError, match="plan"):
        kernel.launch((*_arrays(3), 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_histories(seed):
    func = random_func(seed, (i32, f32, f64), stacks=True)
    func.stage = "ast"
    for op in func.body.ops:
        if op.code == C.RANGE_FOR:  # its iterations need their order
            op.attr = op.attr._replace(strictly_serialized=True)
    wanted, got = arguments(func, seed), arguments(func, seed)
    results = interp.run(func, wanted)
    kernel = compiled(parse(to_text(func)), debug=False)
    heaps = Heaps(kernel.meta, 40, rows=1)
    found = kernel.launch(got, 0, heaps.plan if kernel.meta.has_stacks else None)
    for a, b in zip([*results, *wanted], [*found, *got], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert heaps.is_whole()
