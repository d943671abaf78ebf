"""What caches save: fifty small kernels, from the start of a process to its last result.

The same text runs on both engines (see `fifty`) in three states: *cold* with an empty cache folder,
*offline warm* where an earlier process has compiled the same kernels, *fastcache warm* where the
kernels are marked for the fast cache, too. Each engine and state has folders of its own. Engines
and states take turns; the wall time is taken outside, around the process; the program itself says
where it goes.
"""

import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import fifty
from .child import ChildError, environment
from .imports import probe
from .model import Options, Section, Target, paired_ratio
from .steady import agree

STATES = ("cold", "offline warm", "fastcache warm")
PARTS = ("start", "import", "init", "decorate", "arrays", "calls")
LIMITS = {"offline warm": 0.4, "fastcache warm": 0.25}
HIT_MS = 0.5
CHEAPER = 30.0


@dataclass(frozen=True)
class Run:
    """One process. ms: until its last result. parts: where they went. calls: each first call, ms.

    results: what the kernels computed. loaded: kernels that came from the fast cache. cpu:
    milliseconds of processor time from the end of the import to the last result, of all threads.
    """

    ms: float
    parts: dict[str, float]
    calls: list[float]
    results: list[float]
    loaded: int
    cpu: float


def run(python: str, main: Path, caches: Path, **variables: str) -> Run:
    """Run the program once with this cache folder. Raises ChildError.

    variables: of the environment, in addition.
    """
    kept = {name: value for name, value in environment().items() if name != "QD_OFFLINE_CACHE"}
    with tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            [python, str(main)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=kept | {"XDG_CACHE_HOME": str(caches)} | variables,
        )
        assert process.stdout is not None
        with process.stdout as out:
            line = next((line for line in out if line == "done\n"), "")
            ms = (time.perf_counter() - began) * 1e3
            answer = out.readline()
        if process.wait() or not line:
            errors.seek(0)
            last = errors.read().strip().rpartition("\n")[2]
            raise ChildError(f"{main.parent.name}: {last}")
    found = json.loads(answer)
    clock = [at / 1e6 for at in found["times"]]
    steps = [b - a for a, b in itertools.pairwise(clock)]
    calls = steps[4:]
    spent = [*steps[:4], sum(calls)]
    parts = dict(zip(PARTS, [ms - sum(spent), *spent], strict=True))
    return Run(ms, parts, calls, found["results"], found["loaded"], found["cpu"])


class Bench:
    """The programs and cache folders of every engine and state, under one folder."""

    def __init__(self, options: Options, folder: Path, section: Section) -> None:
        self.options = options
        self.folder = folder
        self.section = section
        self.runs: dict[tuple[str, str], list[Run]] = defaultdict(list)

    def program(self, engine: str, state: str) -> Path:
        kind = "fast" if state == "fastcache warm" else "plain"
        main = self.folder / f"{engine}-{kind}" / "main.py"
        return main if main.exists() else fifty.write(main.parent, engine, kind == "fast")

    def once(self, engine: str, state: str) -> Run:
        python = self.options.engines()[engine]
        main = self.program(engine, state)
        if state != "cold":
            return run(python, main, self.folder / f"caches-{engine}-{state.replace(' ', '-')}")
        with tempfile.TemporaryDirectory(prefix="cold-", dir=self.folder) as empty:
            return run(python, main, Path(empty))

    def measure(self) -> None:
        """Warming runs, then all in turns; an engine that fails has no numbers."""
        engines = list(self.options.engines())
        pairs = [(state, engine) for state in STATES for engine in engines]
        for turn in range(-1, self.options.processes):
            for state, engine in pairs if turn % 2 else reversed(pairs):
                try:
                    found = self.once(engine, state)
                except ChildError as error:
                    self.section.notes.append(f"{engine}, {state}: {error}")
                    pairs = [pair for pair in pairs if pair != (state, engine)]
                    continue
                if turn >= 0:
                    self.runs[engine, state].append(found)

    def compare(self) -> None:
        """Note every result that differs: between engines, and from a cache or without."""
        for state in STATES:
            for engine in self.options.engines():
                cold, others = self.runs[engine, "cold"], self.runs[engine, state]
                if cold and not all(_agree(cold[0], other) for other in others):
                    self.section.notes.append(f"{engine}, {state}: other results than without")
        ours, reference = self.runs["ours", "cold"], self.runs["reference", "cold"]
        if ours and reference and not _agree(ours[0], reference[0]):
            self.section.notes.append("the engines compute different results")


def _agree(one: Run, other: Run) -> bool:
    """Compare results but for rounding, in which the tiers may differ with ``fast_math``."""
    pairs = zip(one.results, other.results, strict=True)
    return all(agree([mine], [its]) for mine, its in pairs)


def measure(options: Options) -> list[Section]:
    engines = ("ours", "reference")
    whole = Section(
        "Fifty kernels, process start to last result (ms, median of fresh processes)",
        ["state", *engines, "ours/reference"],
    )
    with tempfile.TemporaryDirectory(prefix="bench-caches-", ignore_cleanup_errors=True) as folder:
        bench = Bench(options, Path(os.path.realpath(folder)), whole)
        bench.measure()
    bench.compare()
    for state in STATES:
        runs = [bench.runs[engine, state] for engine in engines]
        quotient = paired_ratio(*([r.ms for r in several] for several in runs))
        whole.rows.append([state, *(median(r.ms for r in several) for several in runs), quotient])
        if state in LIMITS:
            claim = f"50 kernels, {state}, process start to last result over the reference"
            whole.targets.append(Target(claim, LIMITS[state], quotient))
        for part in PARTS:
            spent = [median(r.parts[part] for r in several) for several in runs]
            whole.rows.append([f"- {part}", *spent, None])
    whole.notes.append(
        "start: the interpreter, and waiting for the answer. calls: the first call of each kernel."
    )
    numpy = median(probe(options.ours, "import numpy")[0] for _ in range(options.processes))
    whole.notes.append(
        f"Importing NumPy alone takes {numpy:.0f} ms, in ours within init, in the reference within "
        "its import."
    )
    whole.raw = {
        f"{engine}, {state}": [r.ms for r in several]
        for (engine, state), several in bench.runs.items()
    }
    return [whole, hits(bench)]


def hits(bench: Bench) -> Section:
    """What the first call of one kernel costs, from each cache and without."""
    section = Section(
        "First call of one small kernel (ms, median over kernels and processes)",
        ["engine", *STATES, "cold/fastcache", "from the fast cache"],
    )
    for engine in bench.options.engines():
        every = [bench.runs[engine, state] for state in STATES]
        cells = [median(ms for r in several for ms in r.calls) for several in every]
        cold, fast = every[0], every[2]
        compile_ms = [
            statistics.median(column) for column in zip(*(r.calls for r in cold), strict=True)
        ]
        hit_ms = [
            statistics.median(column) for column in zip(*(r.calls for r in fast), strict=True)
        ]
        cheaper = paired_ratio(compile_ms, hit_ms)
        loaded = f"{min((r.loaded for r in fast), default=0)} of {fifty.COUNT}"
        section.rows.append([engine, *cells, cheaper, loaded])
        if engine == "ours":
            section.targets += [
                Target("First call of a kernel from the fast cache", HIT_MS, cells[2], " ms"),
                Target(
                    "First call from the fast cache over compiling", 1 / CHEAPER,
                    1 / cheaper if cheaper else None,
                ),
            ]  # fmt: skip
    return section


def median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None
