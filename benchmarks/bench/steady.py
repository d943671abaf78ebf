"""Steady run time of seven kernels, everything compiled, three engines taking turns.

In each round each engine runs one kernel for a short while. A ratio is the median over rounds of
the quotient of the two medians within the round, so slow drift of the machine cancels. Results are
compared before anything is timed: a fast wrong answer is reported as wrong, not as fast. "Best" is
the fastest single call of all rounds; on a busy machine that may be disturbed, too.
"""

import contextlib
import math
import statistics
import time
from collections import defaultdict

from .child import Child, ChildError
from .launch import children
from .model import Options, Section, Target, paired_ratio, ratio

CASES = (
    "saxpy 2^24", "sum 2^24", "jacobi 2048^2", "nbody 2048", "mandelbrot 512^2",
    "copy 8192^2", "transpose 8192^2",
)  # fmt: skip
ENGINES = ("ours", "reference", "numba")
BUDGET_S = 0.05
LONGEST_S = 6.0
"""Seconds of one case after which no further round begins."""

# Rounding: sums of 2^24 numbers differ by their order, and a chaotic boundary by single iterations.
TOLERANCE = 5e-3


def agree(one: list[float], other: list[float]) -> bool:
    """Compare fingerprints: the first entry may cancel, so it is measured by the second."""
    scale = max(map(abs, one + other))
    pairs = zip(one, other, strict=True)
    return all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale) for a, b in pairs)


def prepare(case: str, found: dict[str, Child], section: Section) -> list[str]:
    """Compile the case everywhere; the engines that can run it, the wrong ones named in a note."""
    prints: dict[str, list[float]] = {}
    for engine, child in found.items():
        try:
            prints[engine] = child.ask("prepare", case=case)
        except ChildError as error:
            section.notes.append(f"{case}: {error}")
    judge = prints.get("numba") or prints.get("reference")
    for engine, fingerprint in prints.items():
        if judge and not agree(fingerprint, judge):
            section.notes.append(f"{case}: {engine} differs: {fingerprint} against {judge}")
    return list(prints)


def compete(case: str, found: dict[str, Child], rounds: int, section: Section) -> None:
    """Rounds of one case, and its row; fewer rounds, three at least, of one that takes long."""
    able = prepare(case, found, section)
    medians: dict[str, list[float]] = defaultdict(list)
    best: dict[str, float] = defaultdict(lambda: math.inf)
    busy: dict[str, float] = defaultdict(lambda: math.inf)
    end = time.perf_counter() + LONGEST_S
    for turn in range(rounds):
        if turn >= 3 and time.perf_counter() > end:
            break
        # Who follows whom changes from round to round.
        for engine in able[turn % len(able) :] + able[: turn % len(able)]:
            seconds = found[engine].ask("steady", case=case, budget_s=BUDGET_S)
            medians[engine].append(statistics.median(s for s, _ in seconds) * 1e3)
            best[engine] = min(best[engine], min(s for s, _ in seconds) * 1e3)
            busy[engine] = min(busy[engine], min(s for _, s in seconds) * 1e3)
    for engine in able:
        found[engine].ask("forget", case=case)
    fastest = [best.get(engine) for engine in ENGINES]
    section.rows.append(
        [
            case,
            *(statistics.median(medians[e]) if medians[e] else None for e in ENGINES),
            paired_ratio(medians["ours"], medians["reference"]),
            paired_ratio(medians["ours"], medians["numba"]),
            *fastest,
            ratio(fastest[0], fastest[2]),
        ]
    )
    section.raw[case] = {"medians_ms": dict(medians), "best_ms": dict(best),
                         "busy_ms": dict(busy)}  # fmt: skip


def measure(options: Options) -> list[Section]:
    best = [f"best {engine}" for engine in ENGINES]
    section = Section(
        "Steady run time (milliseconds, median of rounds)",
        ["kernel", *ENGINES, "ours/reference", "ours/numba", *best, "best ours/numba"],
    )
    with contextlib.ExitStack() as stack:
        found = children(options, stack)
        for case in CASES:
            compete(case, found, options.rounds, section)
    section.notes.append("Of the two ratios over Numba the less favourable one decides.")
    for row in section.rows:
        ratios = [value for value in (row[5], row[-1]) if isinstance(value, float)]
        worse = max(ratios, default=None)
        section.targets.append(Target(f"{row[0]}, run time over Numba", 1.1, worse))
    return [section]
