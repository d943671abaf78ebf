"""How often a verdict about times is wrong: an edited file, with a change that is known.

    taskset -c 0-7 python benchmarks/a_against_a.py [--minutes 11] [--change 3] [--json OUT]

A worker looks at a file with two serial and two parallel kernels after each save, as the studio
does. A round has three saves: another constant, which is other code of the same speed
(``unchanged``); loops that are ``--change`` percent longer; and the short loops again
(``shorter``). Rounds go on for a third of ``--minutes`` without another load, and for the rest with
one: a process that computes for every processor that this one may use. So a run of 11 minutes has
all that `RESULTS.md` asks for, and prints its table.

A verdict counts once it is final, that is after the launches that the studio adds to those that are
not clear; the table has the time until the first verdicts, and until the last. From the same
records come the verdicts that two runs without turns would have (``--baseline``, and ``diff`` of
two records). ``better`` or ``worse`` where nothing changed is false, and so is the wrong one of
them. ``unknown`` (the machine was busy) is neither false nor found. The ratio is the median of all
measured ones: it shows if longer loops took longer by as much.

Timing never decides a test: the exit code is 0 whatever is measured.
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
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from msgspec.structs import replace
from qd_studio.app.worker.client import WorkerClient
from qd_studio.app.worker.events import RecordUpdated
from qd_studio.app.worker.protocol import LAST, Limits
from qd_studio.engine.inspect.compare import compare_records
from qd_studio.engine.inspect.compare_figures import Timing
from qd_studio.engine.inspect.record import KernelRecord, Record

BUSY = "while True: pass"
LOADED = 0.65
"""Share of the time for saves on a busy machine, which take several times as long."""
STEPS = {"chain-small": 16_000, "chain": 60_000, "spread": 1_000, "stream": 4_000_000}
PARALLEL = ("spread", "stream")
SAVES = (("unchanged", 0.0), ("longer", 1.0), ("shorter", 0.0))
RIGHT = {"unchanged": "", "longer": "worse", "shorter": "better"}


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
    few, several, many = (np.ones(n, np.float32) for n in (16, 1024, 1 << 22))
    chain_small(few)
    chain(few)
    spread(several)
    stream(many)
"""


class Studio:
    """A worker that looks at the file after each save, and what each save did.

    first_s, last_s: from a save to the first verdicts, and to the last.
    """

    def __init__(self, folder: str, budget_s: float) -> None:
        self.path = Path(folder) / "kernels.py"
        self.done = threading.Event()
        self.before: Record | None = None
        self.now: Record | None = None
        self.first_s = self.last_s = self.began = 0.0
        self.save("0.999", 0.0)
        self.client = WorkerClient(
            [self.path], backends=["cpu"], on_event=self.heard, run=True,
            limits=Limits(measure_s=budget_s), keep=LAST, against=LAST,
        )  # fmt: skip
        self.done.wait(120)

    def heard(self, event: object) -> None:
        if not isinstance(event, RecordUpdated) or not event.complete:
            return
        self.now, self.last_s = event.record, time.perf_counter() - self.began
        if not event.again:
            self.first_s = self.last_s
        if not any(map(unclear, event.record.kernels)):
            self.done.set()

    def save(self, constant: str, percent: float) -> None:
        text = FILE.replace("{constant}", constant)
        for name, n in STEPS.items():
            text = text.replace("{" + name + "}", str(n + round(n * percent / 100)))
        self.path.write_text(text)

    def edited(self, constant: str, percent: float) -> dict[str, dict[str, Timing]]:
        """Of each kernel, after a save: the verdict in turns, and that of two runs."""
        self.save(constant, percent)
        self.done.clear()
        self.before, self.began = self.now, time.perf_counter()
        self.client.request_refresh()
        if not self.done.wait(120) or self.before is None or self.now is None:
            return {}
        strangers = replace(self.before, kernels=tuple(map(without_turns, self.before.kernels)))
        found: dict[str, dict[str, Timing]] = {}
        for kind, before in (("edited", self.before), ("two runs", strangers)):
            for kernel in compare_records(before, self.now).kernels:
                for timing in (t for b in kernel.backends for t in b.timings):
                    found.setdefault(kernel.name.replace("_", "-"), {})[kind] = timing
        return found


def unclear(kernel: KernelRecord) -> bool:
    """True if launches of the kernel go on."""
    launches = (x for b in kernel.backends for x in b.launches)
    return any(x.earlier is not None and x.earlier.more_s > 0 for x in launches)


def without_turns(kernel: KernelRecord) -> KernelRecord:
    """The kernel, of a run that no other has been compared with."""
    backends = [
        replace(b, launches=tuple(replace(x, stamp="") for x in b.launches))
        for b in kernel.backends
    ]
    return replace(kernel, backends=tuple(backends))


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


class Tally:
    """The verdicts of one part of the experiment."""

    def __init__(self) -> None:
        self.words: dict[tuple[str, str, str], Counter[str]] = {}
        self.ratios: dict[tuple[str, str], list[float]] = {}
        self.reasons: Counter[str] = Counter()
        self.first_s: list[float] = []
        self.last_s: list[float] = []

    def add(self, what: str, kernel: str, kind: str, timing: Timing) -> None:
        kind = kind if timing.in_turns or kind != "edited" else "not in turns"
        self.words.setdefault((kind, what, kernel), Counter())[timing.verdict] += 1
        if kind == "edited":
            self.ratios.setdefault((what, kernel), []).append(timing.ratio)
        if timing.verdict == "unknown":
            self.reasons[f"{kind}, {timing.reason.partition(':')[0]}"] += 1

    def rows(self) -> Iterator[tuple[str, str, str, int, int, int, int, float | None]]:
        """Kind, question, kernels; how many, false, found, unknown; median ratio."""
        for kind, what in dict.fromkeys(key[:2] for key in self.words):
            for label, names in (("serial", set(STEPS) - {*PARALLEL}), ("parallel", PARALLEL)):
                words = sum((self.words.get((kind, what, n), Counter()) for n in names), Counter())
                false = sum(words[w] for w in ("better", "worse") if w != RIGHT[what])
                ratios = [r for n in names for r in self.ratios.get((what, n), ())]
                middle = median(ratios) if ratios and kind == "edited" else None
                yield (kind, what, label, words.total(), false, words[RIGHT[what]],
                       words["unknown"], middle)  # fmt: skip


def experiment(seconds: float, percent: float, budget_s: float, loaded: bool) -> Tally:
    """Rounds of saves for so long."""
    tally, count = Tally(), len(os.sched_getaffinity(0))
    with load(count if loaded else 0), tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + seconds
        studio = Studio(folder, budget_s)
        number = 0
        while time.monotonic() < end:
            for what, share in SAVES:
                found = studio.edited(f"0.99{number % 9}", share * percent)
                tally.first_s.append(studio.first_s)
                tally.last_s.append(studio.last_s)
                for kernel, timings in found.items():
                    for kind, timing in timings.items():
                        tally.add(what, kernel, kind, timing)
            number += 1
        studio.client.stop()
    return tally


def table(found: dict[str, Tally]) -> Iterator[str]:
    """The lines of a table for RESULTS.md, and what else there is to know."""
    yield "| load | verdict | kernels | of | false | found | unknown | median ratio |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, tally in found.items():
        for kind, what, kernels, of, false, right, unknown, ratio in tally.rows():
            share = "" if what == "unchanged" else f"{right} ({right / max(of, 1):.0%})"
            middle = "" if ratio is None else f"{ratio:.3f}"
            yield (f"| {name} | {kind}, {what} | {kernels} | {of} | {false} | {share} | {unknown} "
                   f"| {middle} |")  # fmt: skip
    for name, tally in found.items():
        yield ""
        yield (f"{name}: {len(tally.first_s)} saves, first verdicts after "
               f"{median(tally.first_s):.1f} s, last after {median(tally.last_s):.1f} s, "
               f"at most {max(tally.last_s):.1f} s")  # fmt: skip
        yield from (f"{n} times: {why}" for why, n in tally.reasons.items())


def main(arguments: list[str]) -> int:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--minutes", type=float, default=11.0, help="of all of it (11)")
    parser.add_argument("--change", type=float, default=3.0, help="percent of a longer loop (3)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of timing a side (0.2)")
    parser.add_argument("--no-load", action="store_true", help="leave out the part with a load")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write all numbers here")
    options = parser.parse_args(arguments)
    count = len(os.sched_getaffinity(0))
    print(f"{count} processors, load at the start {os.getloadavg()[0]:.1f}, "
          f"{options.change:g} % longer, {options.seconds:g} s a side", flush=True)  # fmt: skip
    halves = {"none": False} if options.no_load else {"none": False, f"{count} processes": True}
    seconds = 60 * options.minutes
    shares = {False: 1.0 if options.no_load else 1 - LOADED, True: LOADED}
    found = {
        name: experiment(shares[loaded] * seconds, options.change, options.seconds, loaded)
        for name, loaded in halves.items()
    }
    print("\n".join(table(found)))
    if options.json:
        out = {name: {"rows": list(tally.rows()), "reasons": tally.reasons,
                      "words": {", ".join(k): v for k, v in tally.words.items()}}
               for name, tally in found.items()}  # fmt: skip
        options.json.write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
