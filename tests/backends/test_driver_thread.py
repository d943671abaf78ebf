"""The thread that uses a driver: forks and the end of the process wait for it."""

import os
import subprocess
import sys
import threading
import time

import pytest
from qd_studio.engine.backends.driver_thread import DriverThread

PROGRAM = """
import os, sys, threading, time
from qd_studio.engine.backends import base
from qd_studio.engine.backends.driver_thread import DriverThread

inside = threading.Event()

def work(seconds):
    with thread.using():
        inside.set()
        time.sleep(seconds)
        print("out", flush=True)

thread = DriverThread("driver", work)
for before, parent, child in base.FORK_HANDLERS:
    os.register_at_fork(before=before, after_in_parent=parent, after_in_child=child)
for _ in range(3):
    thread.submit(0.2)
inside.wait()
"""


def run(more):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM + more],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_end_of_the_process_waits_for_one_call():
    assert run("") == ["out"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_waits_and_the_child_begins_anew():
    more = """
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    while thread.running:
        time.sleep(0.01)
else:
    assert not thread.running and not thread.waiting
    thread.submit(0.01)
    while thread.running:
        time.sleep(0.01)
    sys.stdout.flush()
    os._exit(0)
"""
    found = run(more)
    assert found == ["out"] * 4


def test_threads_take_short_turns_meanwhile():
    before, inside, end = sys.getswitchinterval(), threading.Event(), threading.Event()

    def work(_):
        with thread.using():
            inside.set()
            assert end.wait(20)

    thread = DriverThread("driver", work)
    thread.submit(None)
    assert inside.wait(20)
    assert sys.getswitchinterval() < 0.001 <= before
    end.set()
    while thread.running:
        time.sleep(0.001)
    assert sys.getswitchinterval() == before
