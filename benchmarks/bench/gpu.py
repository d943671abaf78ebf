"""Kernels on a GPU: rates, launches, loops and first compiles, two engines taking turns.

The yardstick of what memory bounds is a copy on the device, made in the same run. Every rate counts
the bytes that a kernel must move: 12 a cell of saxpy, 8 of a Jacobi sweep, 4 of a sum.
"""

import contextlib
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from .child import Child, ChildError, run_once
from .model import Options, Section, Target, geometric_mean, paired_ratio, ratio

SAMPLES = Path(__file__).parents[2] / "sample_kernels"


class Case(NamedTuple):
    """name: as `run_gpu.py` knows it. work: bytes or operations of a launch. limit: of the target,
    over the copy for bytes, over the reference for operations; 0 for no target."""

    name: str
    title: str
    size: int
    work: float
    unit: str
    launches: int
    limit: float


CASES = (
    Case("saxpy", "saxpy 2^28", 1 << 28, 12 * 2.0**28, "GB/s", 40, 0.95),
    Case("jacobi", "Jacobi 16384^2", 16384, 8 * 2.0**28, "GB/s", 40, 0.95),
    Case("sum", "sum 2^28 into an element", 1 << 28, 4 * 2.0**28, "GB/s", 80, 0.95),
    Case("sum returned", "sum 2^28, returned", 1 << 28, 4 * 2.0**28, "GB/s", 80, 0.0),
    Case("saxpy on a plate", "saxpy 16384^2, two axes", 16384, 12 * 2.0**28, "GB/s", 40, 0.0),
    Case("nbody", "n-body 65,536", 65536, 20 * 2.0**32, "TFLOP/s", 10, 1.5),
)
SCALE = {"GB/s": 1e9, "TFLOP/s": 1e12}
COPY_BYTES = 1 << 30
LAUNCHES = (("one task", "one_task", 6.5), ("four tasks", "four_tasks", 8.0),
            ("four tasks as a graph", "four_tasks_graph", 6.5))  # fmt: skip
TOLERANCE = 1e-3
ROUND_SECONDS = 0.4
"""A round of one engine takes no longer, or it is a single launch."""


class Sizes(NamedTuple):
    """How much is measured. loop: rounds of a loop on the device and on the host."""

    cases: tuple[Case, ...] = CASES
    rounds: int = 7
    launches: int = 1000
    loop: tuple[int, int] = (10_000, 1_000)


FULL = Sizes()
SMALL = Sizes(
    tuple(c._replace(size=64 if c.size == 16384 else 4096, launches=2) for c in CASES),
    1, 20, (100, 20),
)  # fmt: skip
"""Sizes at which everything runs in seconds, also on a CPU."""


def shares(found: dict[str, Child], arch: str, sizes: Sizes = FULL) -> Section:
    """Rates of the kernels that memory or arithmetic bound."""
    section = Section(
        "Kernels on a GPU (GB/s or TFLOP/s, median of rounds)",
        ["kernel", "unit", "ours", "reference", "copy", "ours/copy", "ours/reference"],
    )
    copies: list[float] = []
    for case in sizes.cases:
        prints: dict[str, float] = {}
        for engine, child in list(found.items()):
            try:
                prints[engine] = child.ask("prepare", case=case.name, size=case.size)
            except ChildError as error:
                section.notes.append(f"{case.title}: {error}")
        if len(prints) == 2:
            one, other = prints.values()
            if not math.isclose(one, other, rel_tol=TOLERANCE):
                section.notes.append(f"{case.title}: the engines differ: {one} and {other}")
        rates: dict[str, list[float]] = defaultdict(list)
        copied: list[float] = []
        times = {engine: _launches(found[engine], case) for engine in prints}
        for turn in range(sizes.rounds):
            if arch == "cuda" and "ours" in found:
                copied.append(found["ours"].ask("copy", size=COPY_BYTES, copies=8) / 1e9)
            order = list(prints)
            for engine in order[turn % len(order) :] + order[: turn % len(order)]:
                seconds = found[engine].ask("steady", case=case.name, launches=times[engine])
                rates[engine].append(case.work / seconds / SCALE[case.unit])
        for engine in prints:
            found[engine].ask("forget", case=case.name)
        ours, reference = (statistics.median(rates[e]) if rates[e] else None for e in NAMES)
        copy = statistics.median(copied) if copied and case.unit == "GB/s" else None
        copies += copied
        section.rows.append(
            [case.title, case.unit, ours, reference, copy, ratio(ours, copy),
             paired_ratio(rates["ours"], rates["reference"])]
        )  # fmt: skip
        section.raw[case.title] = {**rates, "copy": copied}
        if case.limit:
            whole, what = (copy, "copy") if case.unit == "GB/s" else (reference, "reference")
            claim = f"{case.title}, rate of the {what} over ours"
            section.targets.append(Target(claim, 1 / case.limit, ratio(whole, ours)))
    section.notes.append("Rates are bytes that must be moved, or 20 operations for each pair.")
    return section


def _launches(child: Child, case: Case) -> int:
    """How many launches a round has: as the case says, fewer where they take long."""
    seconds = child.ask("steady", case=case.name, launches=1)
    return max(1, min(case.launches, int(ROUND_SECONDS / seconds)))


NAMES = ("ours", "reference")


def launches(found: dict[str, Child], sizes: Sizes = FULL) -> Section:
    """What a launch costs when little is computed."""
    section = Section(
        "Launches on a GPU (microseconds, median of rounds)",
        ["launch", *NAMES, "ours/reference"],
    )
    for title, kernel, limit in LAUNCHES:
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(sizes.rounds):
            for engine, child in found.items():
                if engine in section.raw.get("failed " + kernel, ()):
                    continue
                try:
                    us = child.ask("launch", name=kernel, cells=1000, launches=sizes.launches)
                    times[engine].append(us)
                except ChildError as error:
                    section.notes.append(f"{title}: {error}")
                    section.raw.setdefault("failed " + kernel, []).append(engine)
        ours, reference = (statistics.median(times[e]) if times[e] else None for e in NAMES)
        quotient = paired_ratio(times["ours"], times["reference"])
        section.rows.append([title, ours, reference, quotient])
        section.raw[title] = dict(times)
        section.targets.append(Target(f"Launch of {title}", limit, ours, " us"))
    loops: dict[tuple[str, str], float] = {}
    for engine, child in found.items():
        for how, rounds in zip(("device", "host"), sizes.loop, strict=True):
            try:
                found_us = [child.ask("loop", how=how, cells=1000, rounds=rounds) for _ in range(3)]
            except ChildError as error:
                section.notes.append(f"loop on the {how}: {error}")
                continue
            loops[engine, how] = statistics.median(found_us)
    for how in ("device", "host"):
        ours, reference = (loops.get((engine, how)) for engine in NAMES)
        section.rows.append(
            [
                f"a round of a do_while, looping on the {how}",
                ours,
                reference,
                ratio(ours, reference),
            ]
        )
    claim = "do_while of 10,000 rounds on the device over the loop on the host"
    quotient = ratio(loops.get(("ours", "device")), loops.get(("ours", "host")))
    section.targets.append(Target(claim, 0.1, quotient))
    return section


def compiles(options: Options, arch: str, processes: int = 2) -> Section:
    """First calls with every cache off."""
    section = Section(
        "First calls on a GPU, caches off (milliseconds, median of processes)",
        ["kernel", *NAMES, "ours/reference"],
    )
    names = [
        path.stem
        for path in sorted(SAMPLES.glob("*.py"))
        if "from qd_studio import engine" in path.read_text() and ".workload(" in path.read_text()
    ]
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(processes):
        for engine, python in options.engines().items():
            try:
                answers = run_once(engine, python, "gpu_compile.py", engine, arch, *names)
            except ChildError as error:
                section.notes.append(str(error))
                continue
            for answer in answers:
                if "failed" in answer:
                    note = f"{engine} {answer['kernel']}: {answer['failed']}"
                    if note not in section.notes:
                        section.notes.append(note)
                else:
                    times[answer["kernel"]][engine].append(answer["ms"])
    ratios: list[float] = []
    for kernel, by_engine in times.items():
        ours, reference = (statistics.median(by_engine[e]) if by_engine[e] else None for e in NAMES)
        quotient = ratio(ours, reference)
        section.rows.append([kernel, ours, reference, quotient])
        if quotient and kernel != "first of the process":
            ratios.append(quotient)
    mean = geometric_mean(ratios)
    section.rows.append(["geometric mean of ratios", None, None, mean])
    claim = "First compile on a GPU over the reference, geometric mean of the samples"
    section.targets.append(Target(claim, 0.7, mean))
    section.raw = {kernel: dict(found) for kernel, found in times.items()}
    return section


def measure(options: Options, arch: str = "cuda", sizes: Sizes = FULL) -> list[Section]:
    with contextlib.ExitStack() as stack:
        found = {
            engine: stack.enter_context(Child(engine, python, "run_gpu.py", engine, arch))
            for engine, python in options.engines().items()
        }
        sections = [shares(found, arch, sizes), launches(found, sizes)]
    return [*sections, compiles(options, arch)]
