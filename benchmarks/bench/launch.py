"""What it costs to launch a kernel that has run before: one task, one array, next to no work."""

import contextlib
import statistics
from collections import defaultdict

from .child import Child, ChildError
from .model import Options, Section, Target, paired_ratio

# (engine, storage); Numba is timed as a plain loop and with `parallel=True`.
SUBJECTS = (
    ("ours", "ndarray"),
    ("reference", "ndarray"),
    ("ours", "numpy"),
    ("reference", "numpy"),
    ("numba", "serial"),
    ("numba", "parallel"),
)
CELLS = (8, 1000)
LAUNCHES = 1000


def children(options: Options, stack: contextlib.ExitStack) -> dict[str, Child]:
    """The engines at hand, each in a process of its own."""
    found = {
        engine: stack.enter_context(Child(engine, python, "run_qd.py", engine))
        for engine, python in options.engines().items()
    }
    if options.numba:
        found["numba"] = stack.enter_context(Child("numba", options.numba, "run_numba.py"))
    return found


def measure(options: Options) -> list[Section]:
    section = Section(
        "Launch of a known kernel (microseconds, median of rounds)",
        ["cells", *(f"{engine} {storage}" for engine, storage in SUBJECTS), "ours/reference"],
    )
    with contextlib.ExitStack() as stack:
        found = children(options, stack)
        for cells in CELLS:
            times: dict[tuple[str, str], list[float]] = defaultdict(list)
            for _ in range(options.rounds):
                for engine, storage in SUBJECTS:
                    if engine not in found:
                        continue
                    try:
                        microseconds = found[engine].ask(
                            "launch", cells=cells, storage=storage, launches=LAUNCHES
                        )
                    except ChildError as error:
                        section.notes.append(str(error))
                        found.pop(engine).__exit__()
                        continue
                    times[engine, storage].append(microseconds)
            medians = [statistics.median(times[s]) if times[s] else None for s in SUBJECTS]
            quotient = paired_ratio(times["ours", "ndarray"], times["reference", "ndarray"])
            section.rows.append([f"{cells:,}", *medians, quotient])
            section.raw[str(cells)] = {" ".join(subject): list(t) for subject, t in times.items()}
    section.notes.append("The ratio compares the engines' own ndarrays, the faster way in both.")
    ours, quotient = section.rows[-1][1], section.rows[-1][-1]
    section.targets = [
        Target("Launch with one ndarray of 1,000 cells over the reference", 0.25, number(quotient)),
        Target("Launch with one ndarray of 1,000 cells", 4.0, number(ours), " us"),
    ]
    return [section]


def number(value: str | float | None) -> float | None:
    return value if isinstance(value, float) else None
