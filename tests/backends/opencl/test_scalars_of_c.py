"""Every scalar operation in OpenCL C, on every type, against `ir.semantics`."""

import clkit
import irkit
import pytest
import test_scalars as scalars
from qd_studio.engine.types import PRIMITIVE_TYPES


@pytest.mark.sampled(5)
@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_operations_and_casts(t, monkeypatch):
    monkeypatch.setattr(irkit, "execute", clkit.execute)
    scalars.test_unary(t)
    scalars.test_binary(t)
    scalars.test_casts(t)


@pytest.mark.slow
def test_powers_and_constants(monkeypatch):
    monkeypatch.setattr(irkit, "execute", clkit.execute)
    scalars.test_integer_powers_of_other_types()
    for t in PRIMITIVE_TYPES:
        if t.bits in (16, 64):
            scalars.test_select_and_constants(t)
