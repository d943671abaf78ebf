"""Code of parallel loops on a processor, against the best that is known for each, and how long
launches take while another program keeps one processor busy.
"""

import contextlib
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

from .child import Child, ChildError
from .launch import children
from .model import Options, Section, Target, ratio
from .steady import compete

CASES = (
    "mandelbrot 512^2", "product 1024^2", "copy 8192^2", "transpose 8192^2", "histogram 2^24",
    "scatter 2^24",
)  # fmt: skip
CELLS = (1_000, 10_000, 100_000, 1_000_000)
RESTS = (0.0, 0.001)
"""Seconds before a launch: with none, threads that wait for work have not gone to sleep yet."""
LAUNCHES = 300
ENGINES = ("ours", "reference", "Numba or NumPy")


@contextlib.contextmanager
def busy_processor() -> Iterator[None]:
    """Another program keeps the last processor busy meanwhile."""
    last = max(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as program:
        try:
            os.sched_setaffinity(program.pid, {last})
            yield
        finally:
            program.kill()


def code(options: Options, found: dict[str, Child]) -> Section:
    steady = Section("", [])
    section = Section(
        "Code of parallel loops on a processor (milliseconds, medians of rounds)",
        ["loop", *ENGINES, "ours/reference", "ours/Numba or NumPy",
         *(f"processor {engine}" for engine in ENGINES), "of processor: ours/Numba or NumPy"],
    )  # fmt: skip
    for case in CASES:
        compete(case, found, options.rounds, steady)
    section.notes = steady.notes
    section.raw = steady.raw
    busy = {case: steady.raw[case]["busy_ms"] for case in CASES}
    for row in steady.rows:
        times = [busy[str(row[0])].get(engine) for engine in ("ours", "reference", "numba")]
        section.rows.append([*row[:6], *times, ratio(times[0], times[2])])
    copied, transposed = (busy[f"{what} 8192^2"].get("ours") for what in ("copy", "transpose"))

    def number(case: str) -> float | None:
        return ratio(busy[case].get("ours"), busy[case].get("numba"))

    section.targets = [
        Target("mandelbrot 512^2, time over Numba", 0.5, number("mandelbrot 512^2")),
        Target("product of 1024^2 f32, time over OpenBLAS", 2.0, number("product 1024^2")),
        Target("transpose of 8192^2 f32, time over a copy", 1 / 0.7, ratio(transposed, copied)),
        Target("histogram, time over private copies in Numba", 1.1, number("histogram 2^24")),
        Target("scatter, time over private copies in Numba", 1.1, number("scatter 2^24")),
    ]
    section.notes.append(
        "Processor: of all threads of a launch, the least; it decides, since other programs do not"
        " add to it. It misses up to a tick of threads that still spin when a launch returns."
    )
    section.notes.append(
        "Numba or NumPy: `np.matmul` on OpenBLAS for the product; loops with a copy of the sums for"
        " each thread for histogram and scatter; the same loops for the others."
    )
    return section


def launches(found: dict[str, Child]) -> Section:
    section = Section(
        "Launches while another program keeps a processor busy (microseconds)",
        ["cells", "rest before, ms", *(
            f"{engine} {what}" for engine in found for what in ("p50", "p90", "p50, quiet")
        )],
    )  # fmt: skip
    worst: dict[int, float] = defaultdict(float)
    for cells in CELLS:
        for rest in RESTS:
            row: list[str | float | None] = [f"{cells:,}", f"{1e3 * rest:g}"]
            for engine, child in found.items():
                asked = {"cells": cells, "launches": LAUNCHES, "rest_s": rest}
                try:
                    quiet = child.ask("latencies", **asked)
                    with busy_processor():
                        rounds = [child.ask("latencies", **asked) for _ in range(2)]
                except ChildError as error:
                    section.notes.append(str(error))
                    row += [None] * 3
                    continue
                half, most = (statistics.median(r[k] for r in rounds) for k in (0, 1))
                row += [half, most, quiet[0]]
                if engine == "ours":
                    worst[cells] = max(worst[cells], most)
            section.rows.append(row)
    section.targets = [
        Target(f"launch with {cells:,} cells, a processor busy, p90", 15.0, worst[cells], " us")
        for cells in CELLS[:2]
    ]
    return section


def measure(options: Options) -> list[Section]:
    with contextlib.ExitStack() as stack:
        found = children(options, stack)
        return [code(options, found), launches(found)]
