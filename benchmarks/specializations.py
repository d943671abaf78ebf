"""Measure what the second specialization of a kernel costs, as a share of the first.

    python benchmarks/specializations.py [--processes 3]

Each kernel is called twice in a fresh process: with other types, axes or template values the second
time. Two states: nothing compiled before, and after a trivial kernel, which has loaded the code
generator. Columns are the least milliseconds of the calling thread's processor time, which other
programs change less than the clock, and the least on the clock. Caches are off.
"""

import argparse
import subprocess
import sys
import time

import numpy as np


def kernels(qd):
    """Name -> the kernel, and the arguments of its first and of its second call."""

    @qd.func
    def powers(a, b):
        r = a
        for _ in range(4):
            r = r * b + qd.sin(a)
        return r

    @qd.kernel
    def axpy(x: qd.types.ndarray(), y: qd.types.ndarray()):
        for i in x:
            y[i] = x[i] * 2.0 + y[i]

    @qd.kernel
    def scale(x: qd.types.ndarray(), n: qd.template()):
        for i in qd.grouped(x):
            for k in qd.static(range(n)):
                x[i] = x[i] * 0.5 + k

    @qd.kernel
    def matrices(x: qd.types.ndarray(), y: qd.types.ndarray()):
        n = x.shape[0]
        for i in range(n):
            left, right = qd.max(i - 1, 0), qd.min(i + 1, n - 1)
            v = qd.Vector([x[left], x[i], x[right]])
            m = v.outer_product(v)
            w = m @ v
            s = w.norm() + powers(w[0], w[1])
            y[i] = s * 0.5 if s > 1.0 else s + m.trace()
        for i in range(n):
            z = qd.Matrix([[x[i], 1.0, 2.0], [0.5, y[i], 1.0], [1.0, 2.0, 3.0]])
            y[i] += (z @ z @ z).determinant() + z.inverse()[0, 1]

    a, b = np.ones(64, np.float32), np.ones(64, np.float64)
    return {
        "small, f32 then f64": (axpy, (a, a.copy()), (b, b.copy())),
        "small, f32 then i32": (axpy, (a, a.copy()), (b.astype("i4"), b.astype("i4"))),
        "small, 1 axis then 2": (scale, (a, 3), (a.reshape(8, 8), 3)),
        "small, static 3 then 4": (scale, (a, 3), (a, 4)),
        "matrices, f32 then f64": (matrices, (a, a.copy()), (b, b.copy())),
    }


def child(name, loaded):
    from qd_studio import engine as qd

    qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
    if loaded:

        @qd.kernel
        def bump(x: qd.types.ndarray()):
            for i in x:
                x[i] += 1

        bump(np.zeros(8, np.float32))
    kernel, *calls = kernels(qd)[name]
    for args in calls:
        began, cpu = time.perf_counter(), time.thread_time()
        kernel(*args)
        qd.sync()
        cpu = time.thread_time() - cpu
        print(1e3 * cpu, 1e3 * (time.perf_counter() - began))


def measured(name, loaded, processes):
    """The least CPU and wall milliseconds of the first call, then of the second."""
    command = [sys.executable, __file__, "--child", name, *(["--loaded"] if loaded else [])]
    found = []
    for _ in range(processes):
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append([float(word) for word in text.split()])
    return np.min(found, axis=0)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=3, help="fresh processes a number (3)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--loaded", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.child:
        child(args.child, args.loaded)
        return
    for loaded in (False, True):
        print("code generator loaded" if loaded else "first of the process")
        for name in kernels(__import__("qd_studio.engine").engine):
            cpu, wall, cpu2, wall2 = measured(name, loaded, args.processes)
            spent = f"CPU {cpu2:6.1f} / {cpu:6.1f} = {cpu2 / cpu:.2f}"
            clock = f"clock {wall2:6.1f} / {wall:6.1f} = {wall2 / wall:.2f}"
            print(f"   {name:24} {spent}   {clock}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
