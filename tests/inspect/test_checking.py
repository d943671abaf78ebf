"""Verdicts on races, indices and values that are not set, against the truth by construction."""

import pytest
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.checking import check
from qd_studio.engine.inspect.record import CheckRecord

from tests.inspect import checked


def verdicts(kernel) -> CheckRecord:
    capture = KernelCapture(kernel, ("interp",), CompileConfig())
    capture.prepare()
    return check(capture)


@pytest.mark.parametrize("name", checked.EXPECTED)
def test_programs(name):
    found = verdicts(getattr(checked, name))
    assert {v.check: v.outcome for v in found.verdicts} == checked.EXPECTED[name]
