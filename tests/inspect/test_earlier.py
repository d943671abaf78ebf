"""Launches of an earlier compile, timed in turns with those of the present one."""

import types

import numpy as np
import pytest
from msgspec.structs import replace
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import earlier, measuring
from qd_studio.engine.inspect import timing as timing_module
from qd_studio.engine.inspect.capture import KernelCapture
from qd_studio.engine.inspect.compare import compare_kernels
from qd_studio.engine.inspect.earlier import Earlier, KeptLooks
from qd_studio.engine.inspect.steps import Steps

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


def chain(steps, factor=0.5, more=False, field=None, kind=F32):
    """A kernel whose launches take a time that grows with ``steps``."""

    @qd.kernel
    def chain(x: kind, n: qd.i32):
        for _ in range(1):
            value = x[0]
            for j in range(steps):
                value = value * factor + 0.001 * (j % 7)
            x[0] = value
            if qd.static(more):
                x[n] = field[1]

    return chain


def values(n=8, factor=1.0):
    return lambda: (np.arange(n, dtype=np.float32) * np.float32(factor), 3)


def look(kernel, looks, made=None, keep="last", against="last", budget_s=0.02, unclear=False):
    steps = Steps()
    steps.earlier = Earlier(looks, keep, against)
    made = made or values()
    kernel.workload(n=[8])(lambda n: made())
    capture = KernelCapture(kernel, ["cpu"], CompileConfig(), steps)
    capture.compile()
    record = capture.launch(budget_s)
    assert not record.errors
    return (record, steps.earlier) if unclear else record


def launch(record):
    (found,) = record.backend("cpu").launches
    return found


def timing(before, after):
    (backend,) = [b for b in compare_kernels(before, after).backends if b.after == "cpu"]
    return backend.timings[0]


@pytest.fixture(autouse=True)
def program():
    qd.init(arch=qd.cpu)
    yield
    qd.reset()


def test_code_of_another_speed_is_found_and_turned_around_the_other_way():
    looks = KeptLooks()
    first = look(chain(1000), looks)
    qd.reset()  # the code that is kept needs no program
    qd.init(arch=qd.cpu)
    second = look(chain(30_000), looks)
    found = launch(second).earlier
    assert launch(first).earlier is None and found.stamp == launch(first).stamp != ""
    assert found.verdict == "slower" and found.ratio > 1.2 and found.n >= 5
    there, back = timing(first, second), timing(second, first)
    assert (there.verdict, back.verdict) == ("worse", "better")
    assert there.in_turns and there.ratio * back.ratio == pytest.approx(1.0)
    assert (there.before_us, there.after_us) == (back.after_us, back.before_us)
    # Of other launches there is only the rule of two runs.
    stranger = replace(second, backends=tuple(
        replace(b, launches=tuple(replace(x, stamp="other") for x in b.launches))
        for b in first.backends
    ))  # fmt: skip
    assert not timing(stranger, second).in_turns


def test_the_same_code_is_not_launched_again():
    looks = KeptLooks()
    first, second = look(chain(1000), looks), look(chain(1000), looks)
    assert launch(second).earlier is None and launch(second).stamp != launch(first).stamp
    assert timing(first, second).reason == "the code is the same"


def test_a_field_more_and_other_contents_leave_the_earlier_code_its_own_arrays():
    looks = KeptLooks()
    field = qd.field(qd.f32, shape=4)
    first = look(chain(1000, more=True, field=field), looks)
    second = look(chain(30_000), looks, values(factor=2.0))
    assert launch(second).earlier.verdict == "slower"
    assert timing(first, second).in_turns


def test_arrays_of_another_shape_are_not_compared():
    looks = KeptLooks()
    look(chain(1000), looks)
    assert launch(look(chain(3000), looks, values(16))).earlier is None


@pytest.mark.slow
def test_only_what_asks_for_it_is_kept_and_compared():
    looks = KeptLooks()
    assert launch(look(chain(1000), looks, keep="")).stamp == ""
    look(chain(1000), looks, keep="reference", against="")
    for steps in (2000, 3000):
        found = launch(look(chain(steps), looks, keep="", against="reference"))
        assert found.earlier is not None and found.stamp == ""


def test_what_is_large_is_not_kept_and_the_oldest_goes_first(monkeypatch):
    looks = KeptLooks()
    monkeypatch.setattr(earlier, "_MOST", 110)
    monkeypatch.setattr(earlier, "_LARGEST", 60)
    code = types.SimpleNamespace(artifact=types.SimpleNamespace(code=b"12", texts={"asm": "345"}))
    view = Earlier(looks, "last", "last")
    for name in ("f.py:a", "f.py:b", "g.py:b"):
        view.keep(name, "cpu", "n=1", view.copied(code, [np.ones(10, np.float32), 7]))
    assert [key[1] for key in looks._kept] == ["f.py:b", "g.py:b"]
    assert looks.find("last", "f.py:b", "cpu", "n=1").bytes == 45
    # By its name alone, if that is one: another file with it could be meant.
    assert looks.find("last", "h.py:b", "cpu", "n=1") is None
    assert looks.find("last", "f.py:b", "cpu", "n=2") is None
    assert view.copied(code, [np.ones(16, np.float32)]) is None


def test_what_is_not_clear_goes_on_after_the_look_and_the_record_is_renewed(monkeypatch):
    for most in ("_LONGER_S", "_LONGER_BUSY_S"):
        monkeypatch.setattr(earlier, most, 0.3)
    for module in (earlier, timing_module):
        monkeypatch.setattr(module, "decided", lambda one, other: False)
    looks = KeptLooks()
    first = look(chain(1000), looks)
    clear = Earlier(looks, "last", "last")
    second, view = look(chain(1000, factor=0.75), looks, budget_s=0.001, unclear=True)
    launches = launch(second).earlier.n
    assert launch(second).earlier.more_s == 0.3
    assert timing(first, second).more_s == 0.3
    (one,) = view.unclear
    rounds = []
    steps = Steps()
    steps.counted = lambda done, unit: rounds.append(done)
    renewed = launch(one.measured(steps)).earlier
    assert renewed.more_s == 0 and renewed.n > launches and rounds
    assert renewed.stamp == launch(first).stamp and renewed.verdict in ("within noise", "unknown")
    assert replace(launch(one.capture.record), earlier=None) == replace(
        launch(second), earlier=None
    )
    # Without the program it begins again, on what was kept; fewer launches would change nothing.
    view.leave_program()
    (gone,) = view.unclear
    qd.reset()
    qd.init(arch=qd.cpu)
    one.capture.record = second
    assert gone.timed.place is None
    again = launch(gone.measured(Steps(), 0.3)).earlier
    assert again.more_s == 0 and again.stamp == renewed.stamp
    assert again.n > launches or again == replace(launch(second).earlier, more_s=0.0)
    # There is no memory to hold its arrays, or no time.
    monkeypatch.setattr(earlier, "_MOST", 1)
    record = replace(launch(second), earlier=replace(launch(second).earlier, more_s=0.0))
    assert clear.noted(one.capture, record, one.timed) is record and not clear.unclear


def test_comparisons_of_a_look_have_a_limit_together():
    view = Earlier(KeptLooks(), "last", "last")
    launcher = types.SimpleNamespace(earlier=view, rival_of=lambda name, names: names[0])
    partner = types.SimpleNamespace(contender="old")
    one = types.SimpleNamespace(
        started=types.SimpleNamespace(name="cpu"), contender="new", partner=partner
    )
    assert measuring._pairs(launcher, [one]) == [("new", "old")]
    view.left_s = 0.0
    assert measuring._pairs(launcher, [one]) == []
