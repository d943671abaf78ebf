"""Programs of these tests, and the memory that they have."""

import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import program

from . import opaque


@pytest.fixture(params=opaque.MEMORIES)
def memory(request):
    """A program on the CPU with its own memory, and with a device's that it does not see."""
    with opaque.installed(request.param):
        qd.init(arch=qd.cpu)
        yield request.param
        qd.reset()


@pytest.fixture
def device():
    """The device of a program whose memory the host does not see."""
    with opaque.installed():
        qd.init(arch=qd.cpu, offline_cache=False)
        yield program.current().device
        qd.reset()
