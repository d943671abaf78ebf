"""Kernels that do not end: run as a script, prints which of them returned all the same.

    python tests/kernels/endless.py ARCH OPTIONS NAME...

Each kernel is compiled by a launch that ends, then launched in a child that has a tenth of a second
of processor time. The limit is not one of elapsed time, so a loaded machine changes nothing.
"""

import json
import os
import signal
import sys

from qd_studio import engine as qd

A = qd.types.NDArray[qd.i32, 1]


@qd.real_func
def spin(n: qd.i32) -> qd.i32:
    turns = 0
    while n == 0:
        turns += 1
    return turns


@qd.kernel
def stores(a: A):
    while a[0] == 0:
        a[1] += 1


@qd.kernel
def nothing(a: A):
    if a[0] == 0:
        while True:
            pass


@qd.kernel
def unused_local(a: A):
    turns = 0
    while turns + a[0] == 0:
        turns += 0


@qd.kernel
def in_parallel(a: A):
    for _ in range(4):
        while a[0] == 0:
            pass


@qd.kernel
def around_loops(a: A):
    for i in range(3):
        for j in range(a.shape[0]):
            while a[i * 0] == 0:
                for _ in range(j):
                    pass


@qd.kernel
def in_function(a: A):
    spin(a[0])


@qd.kernel
def unused_result(a: A):
    if spin(a[0]) > 3:
        pass


@qd.kernel
def returns(a: A) -> qd.i32:
    while a[0] == 0:
        a[1] = 3
    return 5


KERNELS = (
    stores, nothing, unused_local, in_parallel, around_loops, in_function, unused_result, returns,
)  # fmt: skip


def main(arch, options, *names):
    chosen = [k for k in KERNELS if not names or k.__name__ in names]
    together = arch != "opencl"  # a device of OpenCL cannot be used in a child
    start = {"arch": getattr(qd, arch), "offline_cache": False, **json.loads(options)}
    if together:
        qd.init(**start)
    children = {}
    for kernel in chosen:
        if together:
            launch(kernel, 1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if not together:
                    qd.init(**start)
                    launch(kernel, 1)
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
                launch(kernel, 0)
                code = 0
            finally:
                os._exit(code)
        children[child] = kernel.__name__
    for child, name in children.items():
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != -signal.SIGVTALRM:
            print(name, "returned" if status == 0 else f"ended with {status}")
    print("done")


def launch(kernel, first):
    array = qd.ndarray(qd.i32, 2)
    array[0] = first
    kernel(array)
    qd.sync()


if __name__ == "__main__":
    main(*sys.argv[1:])
