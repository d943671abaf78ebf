"""Programs on each backend."""

import pytest
from qd_studio import engine as qd


@pytest.fixture(params=["interp", "cpu"])
def arch(request):
    qd.init(arch=request.param, offline_cache=False)
    yield request.param
    qd.reset()


@pytest.fixture
def cpu():
    qd.init(arch=qd.cpu, offline_cache=False)
    yield
    qd.reset()
