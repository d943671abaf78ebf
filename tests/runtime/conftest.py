"""A simulated CUDA device."""

import pytest
from qd_studio import engine as qd

from tests import cuda_sim


@pytest.fixture
def sim(monkeypatch):
    """The state of a simulated device."""
    monkeypatch.delenv("QD_VISIBLE_DEVICE", raising=False)
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    with cuda_sim.simulated() as state:
        yield state
        qd.reset()
