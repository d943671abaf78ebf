"""Dispatch to the fastest implementation: who is tried, who wins, who is asked."""

from __future__ import annotations

import time

import pytest
from qd_studio import engine as qd


@pytest.fixture(autouse=True)
def _program(monkeypatch):
    monkeypatch.delenv("QD_PERFDISPATCH_FORCE", raising=False)
    qd.init(arch=qd.cpu, log_level="error")


def dispatcher(calls, **options):
    @qd.perf_dispatch(get_geometry_hash=lambda x, n: n, **options)
    def work(x, n):
        """The work."""

    @work.register
    def slow(x, n):
        calls.append("slow")
        time.sleep(0.01)
        return "slow"

    @work.register(is_compatible=lambda x, n: n > 3)
    def fast(x, n):
        calls.append("fast")
        return "fast"

    return work


@qd.kernel
def doubled(x: qd.i32) -> qd.i32:
    return x * 2


def test_what_is_timed_is_prepared():
    hot = []

    @qd.perf_dispatch(get_geometry_hash=lambda x: 0)
    def work(x):
        """Twice a number."""

    @work.register
    def first(x):
        hot.append(doubled._hot)
        return doubled(x)

    @work.register
    def second(x):
        return doubled(x)

    assert [work(k) for k in range(4)] == [0, 2, 4, 6]
    assert hot[0] == doubled._miss and doubled._hot != doubled._miss
    assert hot[1] != doubled._miss  # the timed call of the first


def test_the_fastest_runs_after_each_was_tried():
    calls = []
    work = dispatcher(calls)
    results = [work(1, 5) for _ in range(8)]
    assert results == calls
    assert calls[:4] == ["slow", "fast", "slow", "fast"]
    assert calls[4:] == ["fast"] * 4
    assert work.__name__ == "work"
    assert work.__doc__ == "The work."


def test_warm_up_and_timed_calls_can_be_chosen():
    calls = []
    work = dispatcher(calls, first_warmup=0, active=3)
    for _ in range(10):
        work(1, 5)
    assert calls.count("slow") == 3
    assert calls[6:] == ["fast"] * 4


def test_a_geometry_is_measured_again():
    calls = []
    work = dispatcher(calls, first_warmup=0, repeat_after_count=3)
    for _ in range(12):
        work(1, 5)
    assert calls.count("slow") == 3
    assert calls[2:5] == ["fast"] * 3
    never = []
    work = dispatcher(never, first_warmup=0, repeat_after_count=0)
    for _ in range(700):
        work(1, 5)
    assert never.count("slow") == 1


def test_only_what_is_compatible_runs():
    calls = []
    work = dispatcher(calls)
    assert [work(1, 2) for _ in range(3)] == ["slow"] * 3

    @qd.perf_dispatch(get_geometry_hash=lambda x: 0)
    def none(x): ...

    with pytest.raises(qd.QuadrantsRuntimeError, match="No suitable functions were found"):
        none(1)


def test_another_signature_is_an_error():
    work = dispatcher([])
    with pytest.raises(qd.QuadrantsSyntaxError, match="doesn't match number of parameters"):

        @work.register
        def third(x): ...


def test_the_environment_decides(monkeypatch, capsys):
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "other:x, work:slow")
    monkeypatch.setenv("QD_PERFDISPATCH_PRINT_DEBUG", "1")
    calls = []
    work = dispatcher(calls)
    assert [work(1, 5) for _ in range(4)] == ["slow"] * 4
    assert "forced to 'slow'" in capsys.readouterr().out
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "work:missing")
    work = dispatcher(calls)
    work(1, 5)
    assert "'missing'" in capsys.readouterr().out
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "work")
    with pytest.raises(ValueError, match="name:implementation"):
        dispatcher(calls)
