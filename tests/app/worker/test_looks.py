"""Comparisons with the last look of a session, where no cache has an entry; workers come and go."""

import os
import signal

import pytest
from qd_studio.app.worker import events
from qd_studio.app.worker.protocol import Limits
from qd_studio.engine.inspect import PastLookups

from tests.app.worker.live import HEAD, Live, backend

TWO = (
    HEAD
    + """
@qd.func
def scale(v):
    return v * {factor}


@qd.kernel
def k(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = scale(x[i])


@qd.kernel
def other(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = x[i] + {addend}
"""
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(TWO.format(factor=2.0, addend=1.0))
    return path


def offline(record, kernel=0):
    layers = backend(record, "cpu", kernel).caches
    return next(layer for layer in layers if layer.name == "offline")


def save(live, path, **values):
    return live.after(path, TWO.format(**values))


def test_a_save_is_compared_with_the_look_before(path):
    with Live(str(path), backends=("cpu",)) as live:
        first = offline(live.complete())
        assert (first.state, first.against, first.reason) == ("miss", "", "no entry of this kernel")
        record = save(live, path, factor=3.0, addend=1.0)
        layer = offline(record)
        assert layer.against == "look" and layer.nearest == ""
        assert [d.text for d in layer.differences] == ["source of helper `scale` changed, line 7"]
        assert layer.reason == (
            "no entry; since the last save: source of helper `scale` changed, line 7"
        )
        assert offline(record, 1).reason == ("no entry; since the last save: nothing has changed")


def test_an_option_is_compared_with_the_look_before(path):
    with Live(str(path), backends=("cpu",)) as live:
        live.complete()
        live.client.set_config({"fast_math": False})
        layer = offline(live.complete())
        assert layer.reason == "no entry; since the last look: config.fast_math: True -> False"
        assert layer.before == {"config.fast_math": "True"}


def test_what_was_asked_outlives_the_worker(path):
    with Live(str(path), backends=("cpu",)) as live:
        live.complete()
        (started,) = live.of(events.Started)
        os.kill(started.pid, signal.SIGKILL)
        live.wait(lambda e: isinstance(e, events.Exited))
        layer = offline(save(live, path, factor=5.0, addend=1.0))
        assert len(live.of(events.Started)) == 2
        assert [d.text for d in layer.differences] == ["source of helper `scale` changed, line 7"]


def test_passes_are_shown_before_the_caches_are_asked(path):
    with Live(str(path), backends=("cpu",)) as live:
        live.complete()
        live.forget()
        save(live, path, factor=7.0, addend=1.0)
        updates = [e.kernel.backend("cpu") for e in live.of(events.KernelUpdated)]
        with_passes = [b.compile is not None and bool(b.compile.runs) for b in updates]
        asked = [bool(b.caches) and "caches" not in b.earlier for b in updates]
        assert with_passes.index(True) < asked.index(True)
        # Until then the layers are those of the save before, and say so.
        waiting = [b for b in updates if "caches" in b.earlier]
        assert waiting and all(b.caches for b in waiting)
        assert "caches" not in updates[-1].earlier


def test_look_ups_give_what_was_kept_and_state_what_is_new():
    looks = PastLookups()
    assert looks.swap("a", {"parts": {"x": "1"}}) is None
    assert looks.swap("a", {"parts": {"x": "2"}}) == {"parts": {"x": "1"}}
    unsent = looks.unsent()
    assert list(unsent) == ["a"] and looks.unsent() == {}
    other = PastLookups()
    other.swap("b", {})
    other.take({**unsent, "b": b'{"old": 1}'})
    assert other.swap("a", {}) == {"parts": {"x": "2"}}
    assert other.swap("b", {}) == {}  # its own is newer


DYING = (
    HEAD
    + """
import os

def count(log={log!r}):
    with open(log, "a") as file:
        file.write("x")
    if os.path.getsize(log) == 2:  # once for the compile, then for the caches
        os._exit(3)
    return 2.0


@qd.kernel
def k(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = x[i] * qd.static(count())
"""
)


def test_code_that_ends_the_worker_while_the_caches_are_asked_costs_only_their_answer(tmp_path):
    path = tmp_path / "dying.py"
    path.write_text(DYING.format(log=str(tmp_path / "log")))
    with Live(str(path), backends=("cpu",)) as live:
        record = live.complete()
    assert len(live.of(events.Started)) == 2
    found = backend(record)
    assert found.status == "ok" and found.launches and not record.kernels[0].stale
    assert [f.error.stage for f in live.of(events.Failed)] == ["caches"]
    assert "exited with status 3" in offline(record).reason
    assert offline(record).state == "bypass"


ENDLESS = (
    HEAD
    + """
@qd.kernel
def k(x: qd.types.ndarray(dtype=qd.i32, ndim=1)):
    for i in x:
        while x[i] >= {least}:
            x[i] = 1
"""
)


@pytest.mark.slow
def test_a_look_that_ran_out_of_time_is_no_save_before(path):
    path.write_text(ENDLESS.format(least=5))
    limits = Limits(measure_s=0.01, launch_s=0.3, interpret_s=0.1, grace_s=0.3)
    with Live(str(path), backends=("cpu",), limits=limits) as live:
        assert live.complete().kernels[0].backends[0].status == "ok"
        record = live.after(path, ENDLESS.format(least=0))
        assert live.of(events.Exited), "the worker should have been killed"
    layer = offline(record)
    assert "nothing has changed" not in layer.reason
    assert [d.part for d in layer.differences] == ["source"] and layer.against == "look"
