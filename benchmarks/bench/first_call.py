"""Cold first call: from a kernel's source to its first result, with all caches off.

The same files run on both engines (see `children/language.py`), each measurement in a fresh
process. Two states are measured, because engines load their code generator at different moments,
one with its import and one with its first compile:

- *first of the process*: `init` and the first kernel of each sample, nothing compiled before it;
- *code generator loaded*: every kernel of each sample, after one trivial kernel.
"""

import statistics
from collections import defaultdict
from pathlib import Path

from .child import ChildError, run_once
from .model import Options, Section, Target, geometric_mean, ratio

SAMPLES = Path(__file__).parents[2] / "sample_kernels"


def samples() -> list[str]:
    """Files that import this engine and declare kernels with workloads."""
    texts = {path.stem: path.read_text() for path in sorted(SAMPLES.glob("*.py"))}
    return [
        name
        for name, text in texts.items()
        if ".workload(" in text and "import quadrants as qd" not in text
    ]


Times = dict[str, dict[str, list[float]]]


def collect(options: Options, state: str, section: Section) -> Times:
    """Row -> engine -> milliseconds, one a process; engines take turns."""
    times: Times = defaultdict(lambda: defaultdict(list))
    failed: set[tuple[str, str]] = set()
    for _ in range(options.processes):
        for sample in samples():
            for engine, python in options.engines().items():
                if (sample, engine) in failed:
                    continue
                try:
                    answers = run_once(engine, python, "first_call.py", engine, sample, state)
                except ChildError as error:
                    failed.add((sample, engine))
                    section.notes.append(str(error))
                    continue
                for answer in answers:
                    before = answer["init"][0] if state == "virgin" else 0.0
                    times[f"{sample}.{answer['kernel']}"][engine].append(before + answer["ms"])
    return times


def summarise(times: Times, section: Section) -> float | None:
    """Fill the table; the geometric mean of the ratios."""
    ratios: list[float] = []
    for row, by_engine in times.items():
        ours, reference = (
            statistics.median(by_engine[engine]) if by_engine[engine] else None
            for engine in ("ours", "reference")
        )
        quotient = ratio(ours, reference)
        if quotient:
            ratios.append(quotient)
        section.rows.append([row, ours, reference, quotient])
    mean = geometric_mean(ratios)
    section.rows.append(["geometric mean of ratios", None, None, mean])
    section.raw = {row: dict(by_engine) for row, by_engine in times.items()}
    return mean


def measure(options: Options) -> list[Section]:
    columns = ["kernel", "ours ms", "reference ms", "ours/reference"]
    title = "Cold first call, {} (median of fresh processes)"
    virgin = Section(title.format("first of the process, with init"), columns)
    warm = Section(title.format("code generator loaded"), columns)
    for state, section in (("virgin", virgin), ("warm", warm)):
        mean = summarise(collect(options, state, section), section)
        claim = f"{section.title.partition(' (')[0]}, geometric mean over the reference"
        section.targets.append(Target(claim, 1.0, mean))
        section.targets.append(Target(f"{claim}, wished for", 0.5, mean))
    return [virgin, warm]
