"""Launches after something has changed; `relaunches` runs as many programs as one likes."""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.runtime import relaunches


@pytest.mark.parametrize(
    "seed", [*range(2), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20)]]
)
def test_what_is_kept_between_launches_changes_nothing(seed):
    found = {mode: relaunches.run(seed, mode) for mode in relaunches.MODES}
    slow = found.pop("the slow path")
    assert len(slow[1]) > 20
    for mode, log in found.items():
        assert repr(log) == repr(slow), mode


@qd.data_oriented
class Holder:
    def __init__(self):
        self.a, self.b = qd.ndarray(qd.f32, 3), qd.ndarray(qd.f32, 3)

    @qd.kernel
    def add(self) -> qd.f32:
        for i in range(3):
            self.a[i] += self.b[i] + 1.0
        return self.a[0]


def test_a_stub_refuses_a_numpy_array_in_an_object_as_a_first_call_does():
    qd.init(arch=qd.cpu)
    try:
        holder = Holder()
        assert [holder.add() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
        own, holder.b = holder.b, np.ones(3, np.float32)
        for _ in range(4):
            with pytest.raises(qd.QuadrantsTypeError, match="run-time value"):
                holder.add()
        holder.b = own
        assert holder.add() == 5.0
    finally:
        qd.reset()
