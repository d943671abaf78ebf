"""Measure first calls with and without two tiers, next to Quadrants; all take turns.

    python benchmarks/tiers.py [--reference-python REF/bin/python] [--processes 3] [SAMPLE ...]

Three states, each in fresh processes with empty caches: the first kernel of a process, from the end
of the import; kernels after a trivial one, which has loaded the code generator; fifty small kernels
(see `bench/fifty`), from the end of the import to the last result. These run a second time, once
the helper process has ended. Columns are milliseconds on the clock and of processor time, of all
threads. A helper process is not part of the latter.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from bench import caches, fifty, first_call
from bench.child import run_once
from bench.model import Section, geometric_mean
from bench.tables import text_section

TIERS = {"off": "0", "exact": "exact", "auto": "auto"}


def parse(arguments: list[str]) -> argparse.Namespace:
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("samples", nargs="*", help="only these sample kernels (all)")
    parser.add_argument("--reference-python", metavar="PATH", help="interpreter with quadrants")
    parser.add_argument("--processes", type=int, default=3, help="fresh processes a number (3)")
    return parser.parse_args(arguments)


def engines(args: argparse.Namespace) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Column -> the engine's name, its interpreter, environment variables."""
    found = {name: ("ours", sys.executable, {"QD_TIERED": v}) for name, v in TIERS.items()}
    if args.reference_python:
        found["reference"] = ("reference", args.reference_python, {})
    return found


Times = dict[str, dict[str, list[tuple[float, float]]]]


def first_calls(args: argparse.Namespace, state: str) -> Times:
    """Row -> column -> times on the clock and of the processor."""
    times: Times = defaultdict(lambda: defaultdict(list))
    for _ in range(args.processes):
        for sample in args.samples or first_call.samples():
            for column, (engine, python, variables) in engines(args).items():
                found = run_once(
                    engine, python, "first_call.py", engine, sample, state, **variables
                )
                for answer in found:
                    before = answer["init"] if state == "virgin" else (0.0, 0.0)
                    times[f"{sample}.{answer['kernel']}"][column].append(
                        (answer["ms"] + before[0], answer["cpu"] + before[1])
                    )
    return times


def fifty_kernels(args: argparse.Namespace, folder: Path) -> Times:
    """`first_calls` for the program of fifty kernels."""
    times: Times = {"cold": defaultdict(list), "second run": defaultdict(list)}
    for _ in range(args.processes):
        for column, (engine, python, variables) in engines(args).items():
            main = fifty.write(folder / engine, engine, False)
            with tempfile.TemporaryDirectory(prefix="cold-", dir=folder) as empty:
                for rows in times.values():
                    run = caches.run(python, main, Path(empty), **variables)
                    wall = sum(run.parts[part] for part in ("init", "decorate", "arrays", "calls"))
                    rows[column].append((wall, run.cpu))
                    if engine == "ours" and not filled(Path(empty)):
                        print(f"{column}: the cache does not have all kernels", flush=True)
    return times


def filled(folder: Path, seconds: float = 60) -> bool:
    """True once the cache has all kernels; a helper process writes them after the program."""
    end = time.monotonic() + seconds
    while len([*folder.rglob("offline/*.qd1")]) < fifty.COUNT:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def section(title: str, times: Times) -> Section:
    """The least of each; the last row has the geometric means over the reference."""
    names = list(next(iter(times.values())))
    table = Section(title, ["kernel", *(f"{n}, {what}" for n in names for what in ("ms", "cpu"))])
    least = {
        row: [min(pair[k] for pair in columns[name]) for name in names for k in (0, 1)]
        for row, columns in times.items()
    }
    table.rows += [[row, *values] for row, values in least.items()]
    if "reference" in names:
        quotients = [
            geometric_mean(values[at] / values[at % 2 - 2] for values in least.values())
            for at in range(2 * len(names))
        ]
        table.rows.append(["over the reference", *quotients])
    return table


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    states = {"virgin": "first of the process, from the import", "warm": "code generator loaded"}
    for state, title in states.items():
        print(text_section(section(f"First call, {title}", first_calls(args, state))), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-tiers-") as folder:
        for state, columns in fifty_kernels(args, Path(folder)).items():
            print(text_section(section(f"Fifty kernels, {state}", {"fifty": columns})))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
