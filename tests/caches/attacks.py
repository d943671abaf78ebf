"""Programs that try to run stale code from fastcache, by the thousand; see `attack_rows`.

    python -m tests.caches.attacks --count 2000 --seed 1 --jobs 2

Each program runs in the variant ``a``, twice, and then in ``b``, where one thing has changed that
`qd.static` can read. All runs of a program share a cache folder. If ``b`` was found there, it runs
again with an empty folder: the results must be equal. The second run of ``a`` says whether a
program of that kind is cached at all.

A run is a forked child of a process that has compiled one kernel and forgotten it: that has loaded
all that compiles, which takes ten times as long as a run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import linecache
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from qd_studio import engine as qd
from qd_studio.engine.cache.in_process import IN_PROCESS

from tests.caches.attack_rows import REACHES, Program, generated

__all__ = ["Outcome", "attack", "main", "one_run"]

_LIMIT_S = 120
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where folders are: entries are written to the disk itself, which takes longest by far."""


class Run(NamedTuple):
    """What a run gave: its result or error, and the state and reason of fastcache."""

    result: Any
    state: str
    reason: str


class Outcome(NamedTuple):
    """What became of one program. fresh: of ``b`` with an empty cache, if it was found before."""

    program: Program
    first: Run
    again: Run
    changed: Run
    fresh: Run | None

    @property
    def stale(self) -> bool:
        """True if stale code ran, or the cache changed what an unchanged program gives."""
        if self.again.state == "hit" and self.again.result != self.first.result:
            return True
        return self.fresh is not None and self.fresh.result != self.changed.result


def one_run(folder: Path, program: Program, pick: str, cache: str) -> Run:
    """Run a variant of a program in a forked child."""
    (folder / "attack.py").write_text(program.text(pick), encoding="utf-8")
    (folder / "attack_helper.py").write_text(program.helper(pick), encoding="utf-8")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _in_child(folder, cache, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        reported = stream.read()
    os.waitpid(child, 0)
    return Run(*json.loads(reported)) if reported else Run("the child died", "died", "")


def _in_child(folder: Path, cache: str, writer: int) -> None:
    signal.alarm(_LIMIT_S)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    warnings.simplefilter("ignore")
    try:
        run = _run(cache)
    except BaseException:
        run = Run(traceback.format_exc()[-500:], "fault", "")
    os.write(writer, json.dumps(run).encode())
    os._exit(0)


def _run(cache: str) -> Run:
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache_file_path=cache, cpu_max_num_threads=1, log_level="error")
    module: Any = importlib.import_module("attack")
    try:
        result = repr(module.main())
    except Exception as error:
        result = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    layers = module.k.launchers.observed.layers
    seen = layers[0] if layers else None
    return Run(result, seen.state if seen else "none", seen.reason if seen else "")


def _warm_up() -> None:
    program = Program("", "", "G = 1" + REACHES["a global"]("X"), True)
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        root = Path(folder)
        (root / "attack.py").write_text(program.text("a"), encoding="utf-8")
        (root / "attack_helper.py").write_text("", encoding="utf-8")
        sys.path.insert(0, folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _run(str(root / "cache"))
        sys.path.remove(folder)
    for name in ("attack", "attack_helper"):
        del sys.modules[name]
    importlib.invalidate_caches()
    qd.reset()
    IN_PROCESS.clear()
    linecache.clearcache()


def attack(program: Program) -> Outcome:
    """Run a program in both variants."""
    with tempfile.TemporaryDirectory(prefix="attack", dir=_MEMORY) as folder:
        root = Path(folder)
        cache = str(root / "cache")
        first = one_run(root, program, "a", cache)
        again = one_run(root, program, "a", cache)
        changed = one_run(root, program, "b", cache)
        fresh = None
        if changed.state == "hit":
            fresh = one_run(root, program, "b", str(root / "empty"))
        return Outcome(program, first, again, changed, fresh)


def _report(outcomes: list[Outcome], seconds: float, seed: int) -> dict[str, Any]:
    faults = [o for o in outcomes if "fault" in (o.first.state, o.changed.state) or
              "died" in (o.first.state, o.changed.state)]  # fmt: skip
    kept = [o for o in outcomes if o.again.state == "hit"]
    missed = [o for o in outcomes if o.program.kept and o.first.state != "none"]
    missed = [o for o in missed if o.again.state != "hit"]
    return {
        "seed": seed,
        "programs": len(outcomes),
        "seconds": round(seconds, 1),
        "stale": [_described(o) for o in outcomes if o.stale],
        "cached when nothing changed": len(kept),
        "not compiled": sum(o.first.state == "none" for o in outcomes),
        "changed result": sum(o.first.result != o.changed.result for o in outcomes),
        "found again though changed, with the right result": sum(
            o.fresh is not None and not o.stale for o in outcomes
        ),
        "expected in the cache, and not there": [_described(o) for o in missed],
        "faults": [_described(o) for o in faults],
        "kinds": dict(sorted(Counter(o.program.kind for o in outcomes).items())),
        "cached kinds": dict(sorted(Counter(o.program.kind for o in kept).items())),
    }


def _described(o: Outcome) -> dict[str, Any]:
    return {
        "kind": o.program.kind, "name": o.program.name, "first": o.first, "again": o.again,
        "changed": o.changed, "fresh": o.fresh, "text": o.program.text("b"),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run the programs and print what came of it; 1 if stale code ran, or a run broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.caches.attacks", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", action="store_true", help="one object, for a test")
    options = parser.parse_args(argv)
    _warm_up()
    programs = generated(random.Random(options.seed), options.count, options.only)
    began = time.perf_counter()
    if options.jobs > 1:
        with ProcessPoolExecutor(options.jobs, get_context("fork")) as pool:
            outcomes = list(pool.map(attack, programs, chunksize=8))
    else:
        outcomes = [attack(program) for program in programs]
    found = _report(outcomes, time.perf_counter() - began, options.seed)
    print(json.dumps(found) if options.json else _shown(found))
    return 1 if found["stale"] or found["faults"] else 0


def _shown(found: dict[str, Any]) -> str:
    lines: list[str] = []
    for key, value in found.items():
        if isinstance(value, list):
            lines.append(f"{key}: {len(value)}")
            for one in value:
                lines += [f"  {one['kind']}: {one['name']}"]
                lines += [f"    {part}: {one[part]}" for part in ("first", "again", "changed")]
                lines += [f"    fresh: {one['fresh']}"]
        else:
            lines.append(f"{key}: {value}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
