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
