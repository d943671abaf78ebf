"""Locks of processors: as many jobs compute as there are, and one measures alone."""

import threading

import pytest
from qd_studio.app.worker import locks
from qd_studio.app.worker.locks import LocksError, Turns


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "processors", lambda: [0, 1])
    return str(tmp_path)


def started(action):
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_two_processors_for_two_jobs(folder):
    first, second, third = (Turns(folder) for _ in range(3))
    first.compute()
    second.compute()
    waiting = started(third.compute)
    waiting.join(0.1)
    assert waiting.is_alive()
    first.release()
    waiting.join(20)
    assert not waiting.is_alive()


def test_who_measures_is_alone(folder):
    one, other, later = (Turns(folder) for _ in range(3))
    one.compute()
    measuring = started(other.measure)
    measuring.join(0.1)
    assert measuring.is_alive()
    # The processor that is left is not given to those who come later.
    computing = started(later.compute)
    computing.join(0.1)
    assert computing.is_alive()
    one.release()
    measuring.join(20)
    assert not measuring.is_alive() and computing.is_alive()
    other.release()
    computing.join(20)
    assert not computing.is_alive()


def test_other_processors_with_another_device_are_another_machine(folder, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    one = Turns(folder)
    one.measure()
    monkeypatch.setattr(locks, "processors", lambda: [2, 3])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    other = Turns(folder)
    thread = started(other.measure)
    thread.join(20)
    assert not thread.is_alive()
    # A device that is not named by an index may be any of them.
    monkeypatch.setattr(locks, "processors", lambda: [4])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1234")
    thread = started(Turns(folder).measure)
    thread.join(0.1)
    assert thread.is_alive()
    one.release()
    other.release()
    thread.join(20)
    assert not thread.is_alive()


def test_locks_that_cannot_be_made_say_so(tmp_path, monkeypatch):
    monkeypatch.setenv(locks.FOLDER, str(tmp_path / "file" / "inner"))
    (tmp_path / "file").write_text("")
    with pytest.raises(LocksError, match="name another folder with QD_FARM_LOCKS"):
        locks.lock_folder()
