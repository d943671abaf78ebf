"""Programs on the CPU, with checks and without optimisation as well, and in the interpreter."""

import pytest
from qd_studio import engine as qd


@pytest.fixture(
    params=[("cpu", {}), ("cpu", {"debug": True}), ("cpu", {"opt_level": 0}), ("interp", {})],
    ids=["cpu", "debug", "plain", "interp"],
)
def configured(request):
    """A program for each of them."""
    name, options = request.param
    qd.init(arch=getattr(qd, name), log_level="error", **options)
    yield
    qd.reset()


@pytest.fixture(params=("cpu", "interp"))
def arch(request):
    """A program on the CPU and in the interpreter; the name of its arch."""
    qd.init(arch=getattr(qd, request.param), log_level="error")
    yield request.param
    qd.reset()
