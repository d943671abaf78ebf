"""Programs on fields and dataclasses: a material point method, sweeps over fields, a fat launch.

Both engines run the same text (see `children/whole.py`), kept alive and taking turns. What they
computed is compared before anything is timed.
"""

import contextlib
import statistics
from collections import defaultdict

from .child import Child, ChildError
from .model import Options, Section, Target, paired_ratio
from .steady import agree

BUDGET_S = 0.05
LAUNCHES = 1000
ROWS = {
    "mpm88 step": ("ms", 1.0, "mpm88 step, run time"),
    "mpm88 cold compile": ("ms", 1.0, "mpm88 step, cold compile"),
    "update of a 1024x1024 field": ("ms", 1.0, "struct-for that updates a field, run time"),
    "blur of a 1024x1024 field": ("ms", 1.0, "struct-for that reads neighbours, run time"),
    "launch with 40 members": ("us", 0.5, "launch with a dataclass of 40 members"),
}
ENGINES = ("ours", "reference")

Times = dict[str, dict[str, list[float]]]


def cold(options: Options, times: Times, section: Section) -> None:
    """First call of the step in fresh processes; the code generator is loaded by then."""
    for _ in range(options.processes):
        for engine, python in options.engines().items():
            try:
                with Child(engine, python, "whole.py", engine) as child:
                    times["mpm88 cold compile"][engine].append(child.ask("cold"))
            except ChildError as error:
                section.notes.append(f"cold compile: {error}")
                return


def same(found: dict[str, Child], section: Section) -> None:
    """Compare what the engines compute."""
    prints = {engine: child.ask("settle") for engine, child in found.items()}
    for case, expected in prints.get("reference", {}).items():
        got = prints["ours"][case]
        if not agree(got, expected):
            section.notes.append(f"{case}: ours differs: {got} against {expected}")


def turns(options: Options, found: dict[str, Child], times: Times) -> None:
    """Rounds of everything that is kept alive."""
    engines = list(found)
    for turn in range(options.rounds):
        for engine in engines[turn % len(engines) :] + engines[: turn % len(engines)]:
            child = found[engine]
            seconds = child.ask("steps", budget_s=BUDGET_S)
            times["mpm88 step"][engine].append(statistics.median(seconds) * 1e3)
            for name in ("update", "blur"):
                seconds = child.ask("sweep", name=name, budget_s=BUDGET_S)
                row = f"{name} of a 1024x1024 field"
                times[row][engine].append(statistics.median(seconds) * 1e3)
            microseconds = child.ask("launch", launches=LAUNCHES)
            times["launch with 40 members"][engine].append(microseconds)


def measure(options: Options) -> list[Section]:
    section = Section(
        "Programs on fields and dataclasses (median of rounds)",
        ["case", "unit", *ENGINES, "ours/reference"],
    )
    times: Times = defaultdict(lambda: defaultdict(list))
    with contextlib.ExitStack() as stack:
        found = {
            engine: stack.enter_context(Child(engine, python, "whole.py", engine))
            for engine, python in options.engines().items()
        }
        try:
            same(found, section)
            turns(options, found, times)
        except ChildError as error:
            section.notes.append(str(error))
    cold(options, times, section)
    for row, (unit, limit, claim) in ROWS.items():
        ours, reference = times[row]["ours"], times[row]["reference"]
        quotient = paired_ratio(ours, reference)
        medians = [statistics.median(t) if t else None for t in (ours, reference)]
        section.rows.append([row, unit, *medians, quotient])
        section.targets.append(Target(f"{claim} over the reference", limit, quotient))
    section.raw = {row: dict(by_engine) for row, by_engine in times.items()}
    return [section]
