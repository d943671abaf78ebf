"""How often a verdict about times is wrong: the same kernels twice, and a change that is known.

    python benchmarks/a_against_a.py [--runs 200] [--change 3] [--json OUT]

Each run times the same kernel twice, nothing changed, and then the kernel with loops that are
``--change`` percent longer; all without another load and with one (a process that computes, for
every processor). Three kinds of verdicts are counted:

* of launches made in turns, as two backends are compared: ``faster`` or ``slower`` where nothing
  changed is false;
* of an edited file, as the studio compares two saves: a worker looks at a file with these kernels
  after each save. Nothing changed means that another constant is in the code, which is another code
  of the same speed. After the longer loops come the short ones again, which is counted as
  ``shorter``;
* of two runs, as ``--baseline``, and ``diff`` of two records, compare them: ``better`` or ``worse``
  where nothing changed is false. ``unknown`` (the machine was busy) is neither.

What counts is: no false verdict, and the change found. Timing never decides a test: the exit code
is 0 whatever is measured.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from qd_studio import engine as qd
from qd_studio.app.worker.client import WorkerClient
from qd_studio.app.worker.events import RecordUpdated
from qd_studio.app.worker.protocol import LAST, Limits
from qd_studio.engine.inspect.compare import compare_records
from qd_studio.engine.inspect.compare_figures import timing_of
from qd_studio.engine.inspect.record import LaunchRecord, Record
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


# The same kernels with a constant, and with their numbers of steps, in a file.
FILE = """import numpy as np
from qd_studio import engine as qd

qd.init(arch=qd.cpu, fast_math=False)
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def chain_small(x: F32):
    qd.loop_config(serialize=True)
    for _ in range(1):
        value = x[0]
        for j in range({chain-small}):
            value = value * {constant} + 0.001 * (j % 7)
        x[0] = value


@qd.kernel
def chain(x: F32):
    qd.loop_config(serialize=True)
    for _ in range(1):
        value = x[0]
        for j in range({chain}):
            value = value * {constant} + 0.001 * (j % 7)
        x[0] = value


@qd.kernel
def spread(x: F32):
    for i in x:
        value = x[i]
        for j in range({spread}):
            value = value * {constant} + 0.001 * (j % 7)
        x[i] = value


@qd.kernel
def stream(x: F32):
    for i in range({stream}):
        x[i] = x[i] * {constant} + 1.0


def main():
    few, several, many = (np.ones(n, np.float32) for n in (16, 4096, 1 << 20))
    chain_small(few)
    chain(few)
    spread(several)
    stream(many)
"""


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


class Studio:
    """A worker that looks at the file after each save, and what each save did."""

    def __init__(self, folder: str, budget_s: float) -> None:
        self.path = Path(folder) / "kernels.py"
        self.done = threading.Event()
        self.records: list[Record] = []
        self.save("0.999", 0.0)
        self.client = WorkerClient(
            [self.path], backends=["cpu"], on_event=self.heard, run=True,
            limits=Limits(measure_s=budget_s), keep=LAST, against=LAST,
        )  # fmt: skip
        self.done.wait(120)

    def heard(self, event: object) -> None:
        if isinstance(event, RecordUpdated) and event.complete:
            self.records = [*self.records[-1:], event.record]
            self.done.set()

    def save(self, constant: str, percent: float) -> None:
        steps = {name: n + round(n * percent / 100) for name, (_, _, n) in CASES.items()}
        text = FILE.replace("{constant}", constant)
        for name, n in steps.items():
            text = text.replace("{" + name + "}", str(n))
        self.path.write_text(text)

    def edited(self, constant: str, percent: float) -> dict[str, tuple[str, str]]:
        """(verdict, reason) by kernel, after a save."""
        self.save(constant, percent)
        self.done.clear()
        self.client.request_refresh()
        if not self.done.wait(120):
            return {}
        found: dict[str, tuple[str, str]] = {}
        for kernel in compare_records(*self.records).kernels:
            for timing in (t for b in kernel.backends for t in b.timings):
                why = timing.reason or ("" if timing.in_turns else "not in turns")
                found[kernel.name.replace("_", "-")] = timing.verdict, why
        return found


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
    with load(os.cpu_count() or 1 if loaded else 0), tempfile.TemporaryDirectory() as folder:
        studio = Studio(folder, budget_s)
        for run in range(runs):
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
            constant = f"0.99{run % 9}"
            saves = (("unchanged", 0.0), ("longer", percent), ("shorter", 0.0))
            for question, by in saves:
                for name, (verdict, why) in studio.edited(constant, by).items():
                    count(f"{name}, edited, {question}", verdict)
                    reasons["edited, " + why.partition(":")[0]] += bool(why)
        studio.client.stop()
    return {"counts": {k: dict(v) for k, v in counts.items()}, "reasons": dict(reasons)}


SLOWER, FASTER = ("slower", "worse"), ("faster", "better")
WRONG = {"unchanged": (*SLOWER, *FASTER), "longer": FASTER, "shorter": SLOWER}
FOUND = {"unchanged": (), "longer": SLOWER, "shorter": FASTER}


def report(found: dict[str, dict[str, Counter[str]]]) -> dict[str, float]:
    """Print the counts and a table of them; return the shares."""
    totals: dict[str, Counter[str]] = {}
    for question, counts in found["counts"].items():
        _, how, what = question.split(", ")
        false = sum(counts.get(word, 0) for word in WRONG[what])
        total = totals.setdefault(f"{how}, {what}", Counter())
        total["of"] += sum(counts.values())
        total["false"] += false
        total["found"] += sum(counts.get(word, 0) for word in FOUND[what])
        words = ", ".join(f"{word} {n}" for word, n in sorted(counts.items()))
        print(f"  {question:<36} {f'{false} false':<9} {words}")
    for why, n in found["reasons"].items():
        if n:
            print(f"  {n} times: {why}")
    shares: dict[str, float] = {}
    print(f"  {'':<22} {'of':>6} {'false':>12} {'found':>12}")
    for name, total in totals.items():
        false, right = (total[word] / total["of"] for word in ("false", "found"))
        shares[f"false, {name}"], shares[f"found, {name}"] = false, right
        text = "" if name.endswith("unchanged") else f"{total['found']} {right:.1%}"
        wrong = f"{total['false']} {false:.1%}"
        print(f"  {name:<22} {total['of']:>6} {wrong:>12} {text:>12}")
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
        out[name] = {**found, "shares": report(found)}  # pyright: ignore
        print(flush=True)
    if options.json:
        options.json.write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
