"""The neutral elements of reductions, against what the operations compute."""

import math

import pytest
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import ATOMIC_OPERATION, binary_fn, neutral, same_const
from qd_studio.engine.types import PRIMITIVE_TYPES

BITWISE = {C.ATOMIC_BIT_AND, C.ATOMIC_BIT_OR, C.ATOMIC_BIT_XOR}


@pytest.mark.parametrize("fast_math", [True, False])
@pytest.mark.parametrize("code", ATOMIC_OPERATION, ids=lambda code: C.NAME[code])
def test_it_changes_nothing(code, fast_math):
    for t in PRIMITIVE_TYPES:
        if t.is_real and code in BITWISE:
            continue
        none = neutral(code, t, fast_math)
        combine = binary_fn(ATOMIC_OPERATION[code], t, t, t)
        values = [-0.0, 0.0, -2.5, 7.0, math.inf, -math.inf] if t.is_real else [t.min, 0, 1, t.max]
        for value in values:
            assert same_const(combine(value, none), value), (t, value)
            assert same_const(combine(none, value), value), (t, value)
