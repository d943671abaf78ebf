"""The memory of fields while kernels run in other threads."""

import gc
import os
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.device_launch.device import Users
from qd_studio.engine.runtime import obtain
from qd_studio.engine.runtime import program as qd_program

from tests.runtime.ending import race

i32s = qd.types.NDArray[qd.i32, 1]


pytestmark = pytest.mark.usefixtures("program")


@pytest.mark.parametrize("end", ["reset", "destroy"])
def test_memory_stays_while_a_kernel_runs_on_it(end):
    builder = qd.FieldsBuilder()
    x = qd.field(qd.i32)
    builder.dense(qd.i, 1000).place(x)
    tree = builder.finalize()

    @qd.kernel
    def wait(flag: i32s):
        flag[1] = 1
        while qd.volatile_load(flag[0]) == 1:
            pass
        for i in x:
            x[i] = 7

    flag = np.zeros(2, np.int32)
    wait(flag)  # compiles, and makes a launcher
    memory = weakref.ref(x.block.data.base)
    flag[:] = 1, 0
    thread = threading.Thread(target=wait, args=(flag,))
    thread.start()
    while not flag[1]:
        time.sleep(0.001)
    if end == "reset":
        qd.reset()
    else:
        tree.destroy()
    gc.collect()
    assert memory() is not None
    flag[0] = 0
    thread.join()
    gc.collect()
    assert memory() is None


@pytest.fixture
def often_switched():
    """Python goes from thread to thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_make_and_use_fields_at_once(often_switched):
    wrong = []
    start = threading.Barrier(6)

    def work():
        start.wait()
        try:
            for _ in range(30):
                x, v = qd.field(qd.f32, shape=7), qd.Vector.field(2, qd.i32, shape=3)
                x.fill(2)
                v[1] = [1, 2]
                if (x[6], v[1].to_list()) != (2, [1, 2]):
                    wrong.append((x[6], v[1].to_list()))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_launches_run_once_or_not_at_all_while_programs_end():
    found = race(1.5)
    assert not found.wrong
    assert found.launches > 50
    assert found.inits > 5


def test_a_device_stops_when_other_threads_have_left_it_and_refuses_those_that_come():
    uses, inside, leave = Users(), threading.Event(), threading.Event()

    def use():
        with uses, uses:
            inside.set()
            leave.wait()

    user = threading.Thread(target=use)
    user.start()
    inside.wait()
    stopper = threading.Thread(target=uses.stop)
    stopper.start()
    stopper.join(0.05)
    assert stopper.is_alive()
    with pytest.raises(qd.QuadrantsRuntimeError, match="while this call began"), uses:
        raise AssertionError("entered")
    leave.set()
    for thread in (user, stopper):
        thread.join(5)
        assert not thread.is_alive()
    assert not uses.inside


def test_a_device_can_be_stopped_by_anyone_who_uses_it():
    uses = Users()
    with uses:
        uses.stop()
        with uses:
            assert uses.inside
    assert not uses.inside


@pytest.mark.filterwarnings("ignore:Debug mode is disabled")
def test_read_flags_of_a_tape_end_with_their_program():
    kept = []
    for _ in range(2):
        qd.init(arch=qd.cpu)
        kept.append(_gradient_with_validation())  # so that their marks could outlive the program


def _gradient_with_validation():
    x, loss = qd.field(qd.f32, 4, needs_grad=True), qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def total():
        for i in x:
            loss[None] += x[i] * x[i]

    x.fill(3)
    with qd.ad.Tape(loss, validation=True):
        total()
    assert x.grad.to_numpy().tolist() == [6.0] * 4
    return x, loss


def test_a_program_that_ends_while_a_call_begins(monkeypatch):
    @qd.kernel
    def add(x: i32s, k: qd.i32):
        x[0] += k

    x = np.zeros(1, np.int32)
    own = add.get_ready

    def interrupted(args=()):
        own(args)
        qd.reset()

    monkeypatch.setattr(add, "get_ready", interrupted)
    with pytest.raises(qd.QuadrantsRuntimeError, match="in another thread while this call began"):
        add(x, 1)
    monkeypatch.undo()
    assert x[0] == 0
    qd.init(arch=qd.cpu)
    add(x, 1)
    assert x[0] == 1


def test_a_program_that_ends_while_a_kernel_is_compiled(monkeypatch):
    @qd.kernel
    def add(x: i32s, y: i32s):
        for i in x:
            x[i] += y[0]

    own = obtain.compile_kernel
    made = []

    def interrupted(*args):
        made.append(own(*args))
        qd.init(arch=qd.cpu)
        return made[-1]

    x = np.zeros(2, np.int32)
    for arrays in ((x, x.copy()), (x, x)):  # the second needs the variant for overlapping arrays
        if arrays[0] is arrays[1]:
            add(x, np.zeros(2, np.int32))
            made.clear()
        monkeypatch.setattr(obtain, "compile_kernel", interrupted)
        with pytest.raises(qd.QuadrantsRuntimeError, match="another thread while this call began"):
            add(*arrays)
        assert made
        assert not x.any()
        monkeypatch.undo()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_can_end_a_device_that_a_thread_of_its_parent_was_using():
    device = qd_program.current().device
    uses = getattr(device, "uses", None)
    if uses is None:
        pytest.skip("launches on the host need no leave to run")
    inside, leave = threading.Event(), threading.Event()

    def use():
        with uses:
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=use)
    thread.start()
    inside.wait()
    child = os.fork()
    if not child:
        signal.alarm(10)
        qd.init(arch=qd.interp, log_level="error")
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    leave.set()
    thread.join()
    assert ended == 0


def test_an_array_that_is_made_while_its_program_ends_has_ended():
    program = qd_program.current()
    qd.reset()
    qd.init(arch=qd.cpu)
    x = qd.ndarray(qd.i32, 3)
    program.own(x)
    with pytest.raises(qd.QuadrantsRuntimeError, match="belongs to a program that has ended"):
        x.fill(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("which", ["launchers", "owned"])
def test_a_child_can_use_kernels_that_another_thread_was_about_to_change(which):
    @qd.kernel
    def k() -> qd.i32:
        return 3

    k()
    lock = k.launchers.lock if which == "launchers" else qd_program.current()._owning
    taken = threading.Event()

    def hold():
        with lock:
            taken.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if not child:
        got = lock.acquire(timeout=3)
        os._exit(0 if got else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_launchers_are_prepared_without_making_other_threads_wait(monkeypatch):
    from qd_studio.engine.runtime import stub

    @qd.kernel
    def k(n: qd.i32) -> qd.i32:
        return n

    made, free = stub.launch_stub, []

    def watched(*args):
        def other():
            free.append(k.launchers.lock.acquire(timeout=3))
            k.launchers.lock.release()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return made(*args)

    monkeypatch.setattr(stub, "launch_stub", watched)
    qd.init(arch=qd.cpu, tiered=False)
    assert [k(n) for n in range(4)] == [0, 1, 2, 3]
    assert free == [True]
