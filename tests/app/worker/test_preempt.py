"""A save while the worker is busy, what is shown before code is generated, which kernel is first.

Nothing is timed: a file says that a step has begun, and the step does not end by itself.
"""

import os
import time

import pytest
from qd_studio.app.worker import events
from qd_studio.app.worker.protocol import Limits

from tests.app.worker.live import HEAD, LONG_S, Live, kernel_file

# Makes the code generation of the file that holds this hang where Python cannot interrupt it.
HANGING = """
import ctypes
from qd_studio.engine.backends import base

def hang(*args):
    open({flag!r}, "w").close()
    ctypes.PyDLL(None).sleep(3600)

class Hanging:
    def __init__(self, real):
        self.real = real
    def __getattr__(self, name):
        return getattr(self.real, name)
    def lower(self, *args):
        hang()

real = base.find
base.find = lambda name: Hanging(real(name)) if name == "cpu" else real(name)
"""
BODY = "for i in range(x.shape[0]):\n    x[i] = x[i] + {}.0"


def until(path):
    """Wait for a file to appear."""
    deadline = time.monotonic() + LONG_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(kernel_file(BODY.format(1)))
    return path


def updates(live):
    return [e for e in live.seen if isinstance(e, events.KernelUpdated)]


def test_old_code_and_launches_stay_marked_until_the_new_ones_come(path):
    with Live(str(path), backends=("cpu",)) as live:
        old = live.complete().kernels[0].backend("cpu")
        live.seen.clear()
        new = live.after(path, kernel_file(BODY.format(2))).kernels[0].backend("cpu")
        shown = updates(live)[0].kernel.backend("cpu")
        assert shown.compile.snapshots[0] == new.compile.snapshots[0]
        assert shown.compile.snapshots[0] != old.compile.snapshots[0]
        assert shown.launches == old.launches and "launches" in shown.earlier
        assert [a.text for a in shown.compile.artefacts] == [a.text for a in old.compile.artefacts]
        assert "code" in shown.earlier
        assert new.earlier == () and new.launches != old.launches


@pytest.mark.slow
def test_a_save_while_code_is_generated_does_not_wait_for_its_end(path, tmp_path):
    flag = str(tmp_path / "flag")
    limits = Limits(measure_s=0.01, compile_s=2 * LONG_S)
    with Live(str(path), backends=("cpu",), watch=True, limits=limits) as live:
        live.complete()
        workers = [e.pid for e in live.seen if isinstance(e, events.Started)]
        path.write_text(HANGING.format(flag=flag) + kernel_file(BODY.format(2)))
        until(flag)
        path.write_text(kernel_file(BODY.format(3)))
        record = live.wait(
            lambda e: isinstance(e, events.RecordUpdated) and e.complete and "3.0" in text(e.record)
        ).record
        assert record.kernels[0].backend("cpu").status == "ok"
        assert not record.kernels[0].stale
        ended = [e for e in live.seen if isinstance(e, events.Exited)]
        assert [e.expected for e in ended] == [True]
        started = [e.pid for e in live.seen if isinstance(e, events.Started)]
        assert len(set(started)) == len(workers) + 1


def text(record):
    return record.files[0].text


TWO = """
@qd.kernel
def first(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = x[i] + {a}

@qd.kernel
def second(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = x[i] + {b}
"""


def test_changed_kernels_come_first_and_the_one_looked_at_before_all(tmp_path):
    path = tmp_path / "two.py"

    def save(a, b):
        path.write_text(HEAD + TWO.format(a=a, b=b))
        live.seen.clear()
        live.client.request_refresh()
        live.complete()
        return [e.kernel.name for e in updates(live)]

    path.write_text(HEAD + TWO.format(a=1.0, b=1.0))
    with Live(str(path), backends=("cpu",)) as live:
        live.complete()
        assert updates(live)[0].kernel.name == "first"
        assert save(1.0, 2.0)[0] == "second"
        assert save(2.0, 2.0)[0] == "first"
        live.client.focus("two.py:second")
        assert save(3.0, 2.0)[0] == "second"
