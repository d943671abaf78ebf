"""Programs with adstacks and f64, on the interpreter and on the CPU."""

import pytest
from qd_studio import engine as qd


@pytest.fixture(params=["interp", "cpu"])
def backend(request):
    """The name of the backend of the program."""
    qd.init(
        arch=getattr(qd, request.param),
        default_fp=qd.f64,
        ad_stack_experimental_enabled=True,
        offline_cache=False,
    )
    yield request.param
    qd.reset()


@pytest.fixture
def f64_program():
    """A program on the CPU whose numbers are f64."""
    qd.init(arch=qd.cpu, default_fp=qd.f64, log_level="error")
    yield
    qd.reset()
