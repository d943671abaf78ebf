"""Kernels of these tests run on the interpreter."""

import pytest
from qd_studio import engine as qd
from qd_studio.engine import logs


@pytest.fixture
def interp():
    qd.init(arch=qd.interp, log_level="error", offline_cache=False)
    yield
    qd.reset()
    logs.set_level("info")
