"""Threads launch kernels while another ends programs and begins new ones.

    python -m tests.runtime.ending --seconds 60

Each launch runs once, or raises an error that says why it did not, and has then done nothing. Exit
status 1 where one did not.
"""

import argparse
import collections
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np
from qd_studio import engine as qd

ARRAY = qd.types.NDArray[qd.i32, 1]


@qd.kernel
def count(x: ARRAY, k: qd.i32) -> qd.i32:
    for i in range(x.shape[0]):
        x[i] += k
    return k


@qd.kernel
def count_by_array(x: ARRAY, y: ARRAY):
    for i in range(x.shape[0]):
        x[i] += y[0]


@qd.kernel
def count_by_field(x: ARRAY, f: qd.template()):
    for i in range(x.shape[0]):
        x[i] += f[0]


@qd.data_oriented
class Counter:
    def __init__(self):
        self.one = 1

    @qd.kernel
    def count(self, x: ARRAY):
        for i in range(x.shape[0]):
            x[i] += self.one


@dataclass
class Found:
    """launches: that ran. inits: programs that were begun. refused: errors, by their first line.
    wrong: launches that ran twice, in part, or raised an error of another kind.
    """

    launches: int = 0
    inits: int = 0
    refused: collections.Counter = field(default_factory=collections.Counter)
    wrong: list = field(default_factory=list)

    def attempt(self, what, x, launch):
        before = int(x[0])
        try:
            launch()
        except qd.QuadrantsRuntimeError as error:
            self.refused[f"{what}: {error.message[:60]}"] += 1
            wanted = before
        except BaseException as error:
            self.wrong.append((what, repr(error)))
            return
        else:
            self.launches += 1
            wanted = before + 1
        if not (x == wanted).all():
            self.wrong.append((what, f"{before} became {x.min()} to {x.max()}"))


def _work(found, stop, size):
    x, counter = np.zeros(size, np.int32), Counter()
    while not stop.is_set():
        found.attempt("numbers", x, lambda: count(x, 1))
        found.attempt("slow path", x, lambda: count(x, np.int32(1)))
        found.attempt("method", x, lambda: counter.count(x))
        try:
            ones = qd.ndarray(qd.i32, 5)
            ones.fill(1)
            f = qd.field(qd.i32, 5)
            f.fill(1)
        except qd.QuadrantsRuntimeError:
            continue
        except BaseException as error:
            found.wrong.append(("memory", repr(error)))
            continue
        for _ in range(3):
            found.attempt("array", x, lambda ones=ones: count_by_array(x, ones))
            found.attempt("field", x, lambda f=f: count_by_field(x, f))


def race(seconds, threads=4, size=64, programs=6, launches=51):
    """Launch in ``threads`` threads, and end programs in this one, for so long; on a busy machine
    until so many have begun and run, a minute longer at most."""
    found, stop, switching = Found(), threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    workers = [threading.Thread(target=_work, args=(found, stop, size)) for _ in range(threads)]
    try:
        qd.init(arch=qd.cpu, log_level="error")
        for worker in workers:
            worker.start()
        end = time.monotonic() + seconds
        while (late := time.monotonic() - end) < 0 or (
            late < 60 and (found.inits < programs or found.launches < launches)
        ):
            if found.inits % 3 == 0:
                qd.reset()
            qd.init(arch=qd.cpu, log_level="error")
            found.inits += 1
            time.sleep(0.002 * (found.inits % 5))
    finally:
        stop.set()
        for worker in workers:
            if worker.ident:
                worker.join()
        sys.setswitchinterval(switching)
        qd.reset()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=4)
    given = parser.parse_args()
    found = race(given.seconds, given.threads)
    print(f"{found.launches} launches, {found.inits} programs, {len(found.wrong)} wrong")
    for text, times in found.refused.most_common():
        print(f"  {times} refused: {text}")
    for one in found.wrong[:20]:
        print("  wrong:", *one)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
