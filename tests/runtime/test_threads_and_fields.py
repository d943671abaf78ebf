"""The memory of fields while kernels run in other threads."""

import gc
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
