"""Rules about times on a machine that is busy: ``python -m tests.app.under_load --runs 40``.

Each run times a kernel, unchanged, with a baseline of its own, while between none and three
processes keep the machine busy, others in each half. Prints what the rule ``+20%`` said, by load.
Unchanged code must never fail, and code that takes twice as long must never pass. Exit status 1
otherwise. Nothing in the test suite depends on time, so this is by command.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from contextlib import contextmanager

import numpy as np
from qd_studio import engine as qd
from qd_studio.app.core.rules import evaluate
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.record import Record

RULE = "launch.cpu.wall_us>+20%"
ARRAY = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def work(x: ARRAY, rounds: qd.i32):
    for i in x:
        total = x[i]
        for _ in range(rounds):
            total = total * 0.999 + 0.5
        x[i] = total


def spin() -> None:
    while True:
        pass


@contextmanager
def load(processes: int):
    """So many processes that do nothing but keep a processor busy."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=spin, daemon=True) for _ in range(processes)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.join()


def timed(rounds: int) -> Record:
    """A record of the kernel, which does ``rounds`` rounds for each element."""
    work.workloads.clear()

    @work.workload(n=[1 << 14])
    def _(n):
        return np.ones(n, np.float32), rounds

    kernel = inspect.capture_kernel(work, ("cpu",), CompileConfig(), budget_s=0.2)
    return Record(kernels=(kernel,))


def main(arguments: list[str] | None = None) -> int:
    """Run and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    qd.init(arch=qd.cpu)
    rng = random.Random(options.seed)
    said: dict[str, Counter[str]] = {"unchanged": Counter(), "twice as long": Counter()}
    for run in range(options.runs):
        before, after = rng.randrange(4), rng.randrange(4)
        with load(before):
            baseline = timed(400)
        with load(after):
            same, twice = timed(400), timed(800)
        for name, record in (("unchanged", same), ("twice as long", twice)):
            (found,) = evaluate(record, [RULE], baseline)
            said[name][found.state] += 1
            print(f"{run} load {before} -> {after}, {name}: {found.state}: {found.message}")
    for name, counts in said.items():
        print(name, dict(counts))
    return int(said["unchanged"]["failed"] > 0 or said["twice as long"]["passed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
