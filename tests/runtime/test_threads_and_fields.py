"""The memory of fields while kernels run in other threads."""

import gc
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd

i32s = qd.types.NDArray[qd.i32, 1]


@pytest.fixture(autouse=True)
def _program():
    qd.init(arch=qd.cpu)
    yield
    qd.reset()


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
