"""Launch stubs: used for what they fit, passed by for all else."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.runtime import reading, stub_checks


@pytest.fixture(autouse=True)
def _program():
    qd.init(arch=qd.cpu, tiered=False)
    yield
    qd.reset()


@qd.kernel
def shifted(x: qd.types.NDArray[qd.i32, 1], by: qd.i32, twice: qd.template()) -> qd.i32:
    for i in range(x.shape[0]):
        x[i] += by
        if qd.static(twice):
            x[i] += by
    return x[0]


def only_prepared(kernel, monkeypatch):
    """From here on the slow path is a failure."""

    def never(*args):
        raise AssertionError("took the slow path")

    monkeypatch.setattr(kernel.launchers, "call", never)
    monkeypatch.setattr(kernel.launchers, "slow", never)


def test_known_arguments_never_take_the_slow_path(monkeypatch):
    x, held = np.zeros(5, np.int32), qd.ndarray(qd.i32, 5)
    for _ in range(2):
        shifted(x, 1, False)
        shifted(x, 1, True)
    x[:] = 0
    only_prepared(shifted, monkeypatch)
    for n in range(3):
        for array in (x, held, np.zeros(n + 1, np.int32)):
            shifted(array, n, False)
            shifted(array, by=n, twice=True)
    assert x.tolist() == [3 * (0 + 1 + 2)] * 5
    assert held[4] == 9
    with pytest.raises(AssertionError, match="slow path"):
        shifted(x.astype(np.int64), 1, False)
    with pytest.raises(AssertionError, match="slow path"):
        shifted(x, np.int32(1), False)


def test_a_new_program_starts_without_launchers():
    x = np.zeros(1, np.int32)
    shifted(x, 1, False)
    shifted(x, 1, False)
    used = shifted._hot
    qd.init(arch=qd.cpu, tiered=False)
    assert shifted._hot is not used
    shifted(x, 1, False)
    assert x[0] == 3


def test_addresses_without_looking_into_arrays(monkeypatch):
    """As on an interpreter whose arrays are laid out in another way."""
    assert reading._data_pointer_is_readable()
    monkeypatch.setattr(stub_checks, "FAST_ADDRESS", False)
    x = np.zeros(7, np.int32)
    for n in range(1, 5):
        assert shifted(x[2:], 1, False) == n
    assert x.tolist() == [0, 0, 4, 4, 4, 4, 4]


def test_a_view_is_launched_on_its_own_memory():
    x = np.zeros(9, np.int32)
    for start in range(3):
        for _ in range(3):
            shifted(x[3 * start : 3 * start + 3], start + 1, False)
    assert x.tolist() == [3, 3, 3, 6, 6, 6, 9, 9, 9]


def test_a_kernel_that_is_called_once_is_not_prepared():
    x = np.zeros(1, np.int32)
    shifted(x, 1, False)
    first = shifted._hot
    shifted(x, 1, True)
    assert shifted._hot == first == shifted._miss
    shifted(x, 1, True)
    assert shifted._hot is not first
    assert x[0] == 5
