"""Gradients: reverse compile, gradient launches, memory of stacks, sizes over long arrays.

The samples of gradients run on both engines (see `children/gradients.py`), with adstacks enabled in
both; what they compute is compared before anything is timed. Engines take turns.

Bytes are shown against the formula of the documents: of each stack, entries times twice the size of
a value (it and its adjoint), for each row. The reference's own figure is what it prints under
``QD_DEBUG_ADSTACK``.
"""

import contextlib
import statistics
from collections import defaultdict

from .child import Child, ChildError
from .model import Options, Section, Target, geometric_mean, paired_ratio
from .steady import agree

ENGINES = ("ours", "reference")
SCRIPT = "gradients.py"
SAMPLES = {"springs": 2, "diffmpm": 1, "ragged": 40, "gated": 20, "fitting": 5}
"""Sample -> steps of what is compared."""

LAUNCHED = (
    ("springs", "accelerate"), ("springs", "move"), ("diffmpm", "scatter"), ("diffmpm", "gather"),
    ("ragged", "compute"), ("ragged", "triangle"), ("gated", "fall"), ("fitting", "residuals"),
)  # fmt: skip
LAUNCHES = 300
CELLS = (1 << 16, 1 << 20)
SHARES = (0.001, 0.01, 0.1, 1.0)
BUDGET_S = 0.1
MAX_OVER_CELLS = 1 << 26
MAX_OVER_MS = 60.0

Times = dict[str, dict[str, list[float]]]


def measure(options: Options) -> list[Section]:
    return [compile_section(options), launch_section(options), bytes_section(options),
            max_over_section(options)]  # fmt: skip


def compile_section(options: Options) -> Section:
    section = Section(
        "Reverse compile: first gradient call (ms, code generator loaded, forward kernels known)",
        ["sample", *ENGINES, "ours/reference"],
    )
    times: Times = defaultdict(lambda: defaultdict(list))
    for sample in SAMPLES:
        for turn in range(options.processes):
            engines = list(options.engines().items())
            for engine, python in engines if turn % 2 else reversed(engines):
                try:
                    with Child(engine, python, SCRIPT, engine) as child:
                        answer = child.ask("cold", name=sample)
                except ChildError as error:
                    section.notes.append(f"{sample}: {error}")
                    continue
                times[sample][engine].append(sum(answer.values()))
                for kernel, ms in answer.items():
                    times[f"- {sample}.{kernel}"][engine].append(ms)
    quotients: list[float] = []
    for row, by_engine in times.items():
        quotient = add_row(section, row, by_engine)
        if quotient and not row.startswith("-"):
            quotients.append(quotient)
    mean = geometric_mean(quotients)
    section.rows.append(["geometric mean of the samples", None, None, mean])
    claim = "Reverse compile of the samples, geometric mean over the reference"
    section.targets.append(Target(claim, 1.0, mean))
    section.raw = {row: dict(by_engine) for row, by_engine in times.items()}
    return section


def add_row(section: Section, row: str, times: dict[str, list[float]]) -> float | None:
    """A line of medians and their quotient, paired by round."""
    medians = [statistics.median(times[e]) if times[e] else None for e in ENGINES]
    quotient = paired_ratio(times["ours"], times["reference"])
    section.rows.append([row, *medians, quotient])
    return quotient


def both(options: Options, stack: contextlib.ExitStack) -> dict[str, Child]:
    return {
        engine: stack.enter_context(Child(engine, python, SCRIPT, engine))
        for engine, python in options.engines().items()
    }


def compare(sample: str, found: dict[str, Child], section: Section) -> None:
    """Note what the engines compute differently."""
    prints = {
        engine: child.ask("results", name=sample, steps=SAMPLES[sample])
        for engine, child in found.items()
    }
    for name, expected in prints.get("reference", {}).items():
        got = prints["ours"][name]
        if not agree(got, expected):
            section.notes.append(f"{sample} {name}: ours differs: {got} against {expected}")


def launch_section(options: Options) -> Section:
    section = Section(
        "Gradient launches (microseconds, median of rounds; nothing changes in between)",
        ["kernel", *ENGINES, "ours/reference"],
    )
    quotients: list[float] = []
    for sample in SAMPLES:
        times: Times = defaultdict(lambda: defaultdict(list))
        with contextlib.ExitStack() as stack:
            try:
                found = both(options, stack)
                compare(sample, found, section)
                rounds(options, sample, found, times)
            except ChildError as error:
                section.notes.append(f"{sample}: {error}")
        for row, by_engine in times.items():
            quotient = add_row(section, row, by_engine)
            quotients += [quotient] if quotient else []
            section.raw[row] = dict(by_engine)
    mean = geometric_mean(quotients)
    section.rows.append(["geometric mean", None, None, mean])
    section.targets.append(Target("Gradient launch, geometric mean over the reference", 1.0, mean))
    return section


def rounds(options: Options, sample: str, found: dict[str, Child], times: Times) -> None:
    """All rows of a sample, engines taking turns."""
    engines = list(found)
    for turn in range(options.rounds):
        for engine in engines[turn % len(engines) :] + engines[: turn % len(engines)]:
            child = found[engine]
            for name, kernel in LAUNCHED:
                if name == sample:
                    spent = child.ask("launch", name=name, kernel=kernel, launches=LAUNCHES)
                    times[f"{name}.{kernel}"][engine].append(spent)
            if sample == "ragged":
                for cells in CELLS:
                    seconds = child.ask("ragged", cells=cells, budget_s=BUDGET_S)
                    row = f"ragged.compute, {cells:,} cells"
                    times[row][engine].append(statistics.median(seconds) * 1e6)
            if sample == "gated":
                seconds = child.ask("gated", share=1.0, budget_s=BUDGET_S)
                row = "gated.fall, all awake"
                times[row][engine].append(statistics.median(seconds) * 1e6)


def bytes_section(options: Options) -> Section:
    """Ours: as planned, and as the documented formula allows. The reference: what it says."""
    section = Section(
        "Memory of adstacks (bytes of one gradient launch)",
        ["kernel", "ours", "by the formula", "reference", "rows of ours", "passing the gate"],
    )
    asked = [(name, kernel, None) for name, kernel in LAUNCHED if name != "gated"]
    asked += [("gated", "fall", share) for share in SHARES]
    worst = 0.0
    gated: list[tuple[int, int]] = []
    for name, kernel, share in asked:
        found: dict[str, dict[str, int]] = {}
        for engine, python in options.engines().items():
            try:
                with Child(engine, python, SCRIPT, engine, "bytes") as child:
                    found[engine] = child.ask("sizes", name=name, kernel=kernel, share=share)
            except ChildError as error:
                section.notes.append(f"{name}.{kernel}: {error}")
        ours = found.get("ours", {})
        theirs = found.get("reference", {}).get("bytes")
        row = f"{name}.{kernel}" + (f", {share:.1%} awake" if share is not None else "")
        cells = [ours.get("bytes"), ours.get("formula"), theirs, ours.get("rows")]
        cells.append(ours.get("passing"))
        section.rows.append([row, *(None if c is None else f"{c:,}" for c in cells)])
        if ours.get("formula"):
            worst = max(worst, ours["bytes"] / ours["formula"])
        if share is not None and ours:
            gated.append((ours["rows"], ours["passing"]))
    section.targets.append(
        Target("Bytes of adstacks over the documented formula, worst kernel", 1.0, worst or None)
    )
    if gated:
        most = max(rows / max(passing, 1) for rows, passing in gated)
        section.targets.append(Target("Rows of a gated kernel for each that passes", 1.0, most))
    return section


def max_over_section(options: Options) -> Section:
    section = Section(
        f"Gradient launches over {MAX_OVER_CELLS:,} cells, the array changed before each (ms)",
        ["what", *ENGINES, "ours/reference"],
    )
    found: dict[str, dict[str, list[float]]] = {}
    for engine, python in options.engines().items():
        try:
            with Child(engine, python, SCRIPT, engine) as child:
                found[engine] = child.ask("max_over", cells=MAX_OVER_CELLS, rounds=5)
        except ChildError as error:
            section.notes.append(str(error))
    launches = {e: [s * 1e3 for s in answer["launch"]] for e, answer in found.items()}
    add_row(section, "the whole launch", defaultdict(list, launches))
    ours = found.get("ours")
    took = None
    if ours and ours["evaluation"]:
        took = statistics.median(ours["evaluation"]) * 1e3
        section.notes.append(f"{ours['again']} maxima were found in launches without a change.")
    section.rows.append(["the size alone", took, None, None])
    claim = "A maximum over 2^26 cells on all cores"
    section.targets.append(Target(claim, MAX_OVER_MS, took, " ms"))
    again = float(ours["again"]) if ours else None
    claim = "Maxima found again while nothing changed"
    section.targets.append(Target(claim, 0.0, again))
    return section
