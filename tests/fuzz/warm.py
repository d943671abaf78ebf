"""Generated kernels over caches: a warm start must compute what a cold one computes.

``python -m tests.fuzz.warm --batches 20`` writes modules of generated kernels and runs each several
times, every time in a new process, over one cache folder:

    cold      the folder is empty: nothing hits
    warm      every kernel comes from a cache, with bit for bit the same results
    moved     the same kernels some lines further down, with a comment in each: the same
    other     other kernels under the same names in the same file: as computed without caches
    options   the first kernels under other options: as computed without caches
    again     the first file as it was: every kernel comes from a cache once more

Kernels that read nothing from outside are marked ``fastcache``. One thread computes, so that sums
of floats have one order.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from .generate import generate
from .model import Program
from .source import module_source

__all__ = ["Batch", "check_batch"]

OPTIONS: Final = (
    {},
    {"fast_math": False},
    {"debug": True},
    {"check_out_of_bound": True},
    {"opt_level": 0},
    {"kernel_profiler": True},
    {"default_fp": "f64"},
    {"advanced_optimization": False},
)
SIZE: Final = 12
"""Kernels of a batch."""


class Batch(NamedTuple):
    """What a batch found. runs: how many kernels ran, in all phases. states: how often which
    layer answered what. failures: what is wrong, in words."""

    runs: int
    states: dict[str, int]
    failures: list[str]


def _pure(p: Program) -> bool:
    """Whether the kernel may be marked: fields are no part of what such a kernel can take."""
    return all(g.where != "field" for g in p.groups)


def text_of(programs: Iterable[Program], moved: bool = False) -> str:
    """The module; ``moved``: further down in the file."""
    programs = list(programs)
    text = module_source(programs)
    for p in programs:
        if _pure(p):
            pad = "    " if p.method is not None else ""
            head = f"{pad}@qd.kernel\n{pad}def {p.name}("
            assert head in text, p.name
            text = text.replace(head, f"{pad}@qd.kernel(fastcache=True)\n{pad}def {p.name}(")
    if moved:
        first, rest = text.split("\n", 1)
        text = f"{first}\n\n# Moved.\nMOVED = 3\n\n{rest}"
    return text


def child(spec: dict[str, Any]) -> dict[str, Any]:
    """Run every kernel of a module once; by name a digest of what it computed, and its layers."""
    import warnings

    import numpy as np
    from qd_studio import engine as qd

    from .frontends import containers, load_file

    warnings.simplefilter("ignore")
    qd.init(arch=qd.cpu, cpu_max_num_threads=1, log_level="error", **spec["options"])
    programs = [generate(seed, name, pairs=False) for name, seed in spec["programs"]]
    module = load_file(Path(spec["file"]), "warm_kernels")
    out: dict[str, Any] = {}
    for p in programs:
        held = containers(p, module)
        error, results, arrays = "", (), ()
        try:
            results, arrays = held.call()
        except (qd.QuadrantsAssertionError, qd.QuadrantsCompilationError) as failed:
            error = f"{type(failed).__name__}: {failed}"
        sums = hashlib.sha256(repr([np.asarray(r).tobytes() for r in results]).encode())
        for array in arrays:
            sums.update(np.ascontiguousarray(array).tobytes())
        variants = held.kernel.launchers.variants.values()
        layers = {x.layer: x.state for v in variants for x in v.compiled.layers}
        out[p.name] = {"value": sums.hexdigest(), "error": error, "layers": layers}
    return out


class _Runs:
    """The runs of one batch over one folder."""

    def __init__(self, folder: Path, start: int) -> None:
        self.folder: Final = folder
        self.file: Final = folder / "kernels.py"
        self.found: Final = Batch(0, {}, [])
        self.runs = 0
        seeds = [s for s in range(start, start + 3 * SIZE) if not _too_long(s)][:SIZE]
        self.first: Final = [(f"k{i}", s) for i, s in enumerate(seeds)]
        others = [s for s in range(start + 50_000, start + 50_000 + 3 * SIZE) if not _too_long(s)]
        self.others: Final = [(f"k{i}", s) for i, s in enumerate(others[: len(seeds)])]
        self.options: Final = OPTIONS[start // SIZE % len(OPTIONS)]

    def run(
        self, programs: list[tuple[str, int]], options: dict[str, Any], moved: bool = False
    ) -> dict[str, Any]:
        made = [generate(seed, name, pairs=False) for name, seed in programs]
        self.file.write_text(text_of(made, moved), encoding="utf-8")
        spec = {"file": str(self.file), "programs": programs, "options": options}
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.warm", "--child", json.dumps(spec)],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        if done.returncode:
            self.found.failures.append(f"a run failed: {done.stderr[-2000:]}")
            return {}
        self.runs += len(programs)
        return json.loads(done.stdout.splitlines()[-1])

    def cached(self, **options: Any) -> dict[str, Any]:
        return {**self.options, "offline_cache_file_path": str(self.folder / "cache"), **options}

    def compare(
        self, phase: str, expected: dict[str, Any], found: dict[str, Any], hits: bool | None
    ) -> None:
        """hits: whether every kernel must have come from a cache; None: who knows."""
        for name, want in expected.items():
            got = found.get(name, {"value": "", "error": "did not run", "layers": {}})
            for layer, state in got["layers"].items():
                key = f"{phase}: {layer} {state}"
                self.found.states[key] = self.found.states.get(key, 0) + 1
            # Errors say the line, which is another one in a moved file.
            same = got["value"] == want["value"] and bool(got["error"]) == bool(want["error"])
            if phase != "moved":
                same = same and got["error"] == want["error"]
            layers = got["layers"]
            hit = "hit" in layers.values()
            # A kernel that may be looked up by its source is: its entry was good when it was made.
            if hits and layers.get("fastcache") == "miss":
                hit = False
            seed = dict(self.first if phase not in ("other", "other warm") else self.others)[name]
            if not same:
                self.found.failures.append(f"{phase}: {name} (seed {seed}) differs: {want} {got}")
            elif hits is not None and hit is not hits and not want["error"].startswith("Quadrants"):
                self.found.failures.append(f"{phase}: {name} (seed {seed}) {got['layers']}")


def _too_long(seed: int) -> bool:
    from .campaign import _too_long as long

    return long(generate(seed, f"k{seed}", pairs=False))


def check_batch(start: int) -> Batch:
    """All phases for the kernels whose seeds begin at ``start``."""
    with tempfile.TemporaryDirectory() as name:
        runs = _Runs(Path(name), start)
        plain = {**runs.options, "offline_cache": False}
        cold = runs.run(runs.first, runs.cached())
        runs.compare("cold", cold, cold, False)
        runs.compare("off", cold, runs.run(runs.first, plain), False)
        runs.compare("warm", cold, runs.run(runs.first, runs.cached()), True)
        runs.compare("moved", cold, runs.run(runs.first, runs.cached(), True), True)
        expected = runs.run(runs.others, plain)
        runs.compare("other", expected, runs.run(runs.others, runs.cached()), False)
        runs.compare("other warm", expected, runs.run(runs.others, runs.cached()), True)
        flipped = {"fast_math": not runs.options.get("fast_math", True), "cfg_optimization": False}
        expected = runs.run(runs.first, {**plain, **flipped})
        runs.compare("options", expected, runs.run(runs.first, runs.cached(**flipped)), False)
        runs.compare("again", cold, runs.run(runs.first, runs.cached()), True)
        return runs.found._replace(runs=runs.runs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.warm", description=__doc__)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first kernel")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(json.loads(args.child))))
        return 0
    runs, states, failures = 0, dict[str, int](), list[str]()
    for k in range(args.batches):
        found = check_batch(args.seed + k * SIZE)
        runs += found.runs
        failures += found.failures
        for key, n in found.states.items():
            states[key] = states.get(key, 0) + n
        for text in found.failures:
            print(text, flush=True)
        print(f"{k + 1} batches, {runs} launches, {len(failures)} failures", flush=True)
    for key, n in sorted(states.items()):
        print(f"{n:8} {key}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
