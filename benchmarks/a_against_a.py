"""How often a verdict about times is wrong: the same kernels twice, and a change that is known.

    python benchmarks/a_against_a.py [--runs 200] [--change 3] [--json OUT]

Each run times the same kernel twice, nothing changed, and then the kernel with loops that are
``--change`` percent longer; all without another load and with one (a process that computes, for
every processor). Two kinds of verdicts are counted:

* of launches made in turns, as two backends are compared: ``faster`` or ``slower`` where nothing
  changed is false;
* of two runs, as two saves, ``diff`` and ``--baseline`` compare them: ``better`` or ``worse`` where
  nothing changed is false. ``unknown`` (the machine was busy) is neither.

What counts is: no false verdict, and the change found. Timing never decides a test: the exit code
is 0 whatever is measured.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.inspect.compare_figures import timing_of
from qd_studio.engine.inspect.record import LaunchRecord
from qd_studio.engine.inspect.timing import Contender, measure, measure_together
from qd_studio.engine.inspect.verdicts import verdict_between

F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)
Launch = Callable[[], object]
BUSY = "while True: pass"


@qd.kernel
def chain(x: F32, n: qd.i32):
    """A serial loop: its time is that of n steps."""
    qd.loop_config(serialize=True)
    for _ in range(1):
        value = x[0]
        for j in range(n):
            value = value * 0.999 + 0.001 * (j % 7)
        x[0] = value


@qd.kernel
def spread(x: F32, n: qd.i32):
    """The same work on all threads."""
    for i in x:
        value = x[i]
        for j in range(n):
            value = value * 0.999 + 0.001 * (j % 7)
        x[i] = value


@qd.kernel
def stream(x: F32, n: qd.i32):
    """Memory: the time is that of n cells."""
    for i in range(n):
        x[i] = x[i] * 0.999 + 1.0


# Kernel, cells of its array, n. About 20 us, 200 us, and two between.
CASES = {
    "chain-small": (chain, 16, 4_000),
    "chain": (chain, 16, 60_000),
    "spread": (spread, 4_096, 200),
    "stream": (stream, 1 << 20, 900_000),
}


def launches(name: str, percent: float) -> tuple[Launch, Launch]:
    """The kernel as it is, and with more to do."""
    kernel, cells, n = CASES[name]
    x = np.ones(cells, np.float32)
    more = n + round(n * percent / 100)

    def plain() -> None:
        kernel(x, n)
        qd.sync()

    def longer() -> None:
        kernel(x, more)
        qd.sync()

    return plain, longer


def nothing() -> None:
    pass


def in_turns(one: Launch, other: Launch, budget_s: float) -> str:
    both = [Contender(one, nothing, budget_s), Contender(other, nothing, budget_s)]
    measure_together(both)
    first, second = (x.record("w") for x in both)
    assert first is not None and second is not None
    return verdict_between(second.waits_us, first.waits_us)[2]


def of_two_runs(one: LaunchRecord, other: LaunchRecord) -> tuple[str, str]:
    found = timing_of(one, other, "", False)
    return ("unknown", "nothing was measured") if found is None else (found.verdict, found.reason)


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that compute."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        time.sleep(0.3 if running else 0)
        yield
    finally:
        for each in running:
            each.kill()
        for each in running:
            each.wait()


def experiment(runs: int, percent: float, budget_s: float, loaded: bool) -> dict[str, object]:
    """The verdicts by case and question."""
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()

    def count(question: str, verdict: str) -> None:
        counts.setdefault(question, Counter())[verdict] += 1

    sides = {name: launches(name, percent) for name in CASES}
    with load(os.cpu_count() or 1 if loaded else 0):
        for _ in range(runs):
            for name, (plain, longer) in sides.items():
                count(f"{name}, in turns, unchanged", in_turns(plain, plain, budget_s))
                count(f"{name}, in turns, longer", in_turns(plain, longer, budget_s))
                first, again, more = (
                    measure("w", launch, nothing, budget_s) for launch in (plain, plain, longer)
                )
                for question, other in (("unchanged", again), ("longer", more)):
                    verdict, why = of_two_runs(first, other)
                    count(f"{name}, two runs, {question}", verdict)
                    reasons[why.partition(":")[0]] += bool(why)
    return {"counts": {k: dict(v) for k, v in counts.items()}, "reasons": dict(reasons)}


WRONG = {"unchanged": ("faster", "slower", "better", "worse"), "longer": ("faster", "better")}
FOUND = ("slower", "worse")


def report(found: dict[str, dict[str, Counter[str]]], runs: int) -> dict[str, float]:
    """Print a table; return the shares of false verdicts and of changes found."""
    totals: Counter[str] = Counter()
    for question, counts in found["counts"].items():
        _, how, what = question.split(", ")
        false = sum(counts.get(word, 0) for word in WRONG[what])
        right = sum(counts.get(word, 0) for word in FOUND) if what == "longer" else 0
        totals[f"false, {how}, {what}"] += false
        totals[f"of, {how}, {what}"] += runs
        totals[f"found, {how}, {what}"] += right
        words = ", ".join(f"{word} {n}" for word, n in sorted(counts.items()))
        print(f"  {question:<36} {f'{false} false':<9} {words}")
    for why, n in found["reasons"].items():
        print(f"  unknown {n} times: {why}")
    shares: dict[str, float] = {}
    for how in ("in turns", "two runs"):
        for what in WRONG:
            of = totals[f"of, {how}, {what}"]
            shares[f"false, {how}, {what}"] = totals[f"false, {how}, {what}"] / of
        shares[f"found, {how}"] = totals[f"found, {how}, longer"] / totals[f"of, {how}, longer"]
    for name, share in shares.items():
        print(f"  {name}: {share:.1%}")
    return shares


def main(arguments: list[str]) -> int:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--runs", type=int, default=200, help="of each case (200)")
    parser.add_argument("--change", type=float, default=3.0, help="percent of a longer loop (3)")
    parser.add_argument("--seconds", type=float, default=0.4, help="of timing a side (0.4)")
    parser.add_argument("--no-load", action="store_true", help="leave out the runs with a load")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write all numbers here")
    options = parser.parse_args(arguments)
    qd.init(arch=qd.cpu, fast_math=False)
    out: dict[str, object] = {"runs": options.runs, "change": options.change,
                              "load": os.getloadavg()[0]}  # fmt: skip
    print(f"processors {os.cpu_count()}, load at the start {os.getloadavg()[0]:.1f}")
    for loaded in (False,) if options.no_load else (False, True):
        name = "with another load" if loaded else "without another load"
        print(f"{name}, {options.runs} runs, {options.change:g} % longer")
        found = experiment(options.runs, options.change, options.seconds, loaded)
        out[name] = {**found, "shares": report(found, options.runs)}  # pyright: ignore
        print(flush=True)
    if options.json:
        options.json.write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
