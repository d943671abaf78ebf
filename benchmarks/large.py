"""First calls of large kernels, next to Quadrants: seconds of CPU time.

    python benchmarks/large.py [--reference-python REF/bin/python] [--scale 1] [--limit 120] [NAME]

Each in a process of its own, once: with two tiers, with full code from the first call on, and the
reference. `same` compares the sums of the arrays afterwards.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.child import CHILDREN, environment
from bench.large import ENGINE, SIZES, SOURCES

IMPORT = "import qd\n"


def call(python: str, engine: str, path: Path, tiered: str, limit: float) -> dict[str, Any]:
    """What `large_call.py` says, or ``why`` there is nothing."""
    child = subprocess.Popen(
        [python, str(CHILDREN / "large_call.py"), engine, str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=environment() | {"QD_TIERED": tiered},
    )  # fmt: skip
    try:
        out, errors = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return {"why": f"stopped after {limit:.0f} s"}
    if child.returncode:
        why = errors.strip().rpartition("\n")[2] or f"exit {child.returncode}"
        return {"why": why[:60]}
    return json.loads(out.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SOURCES))
    parser.add_argument("--reference-python", metavar="PATH", help="interpreter with quadrants")
    parser.add_argument("--scale", type=float, default=1, help="of the sizes (1)")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one may last")
    args = parser.parse_args()
    engines = [("tiered", sys.executable, "ours", "auto"), ("full", sys.executable, "ours", "off")]
    if args.reference_python:
        engines.append(("reference", args.reference_python, "reference", "off"))
    print(f"{'kernel':10} {'size':>6}" + "".join(f" {n:>10} {'MB':>6}" for n, *_ in engines))
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or SOURCES:
            size = max(12, int(SIZES[name] * args.scale))
            path = Path(folder) / f"{name}.py"
            path.write_text(SOURCES[name](size).replace(ENGINE, IMPORT))
            row, totals, notes = f"{name:10} {size:6}", list[float](), list[str]()
            for title, python, engine, tiered in engines:
                found = call(python, engine, path, tiered, args.limit)
                if "why" in found:
                    notes.append(f"{title}: {found['why']}")
                    row += f" {'-':>10} {'':6}"
                else:
                    totals.append(found["total"])
                    row += f" {found['cpu']:10.2f} {found['peak']:6.0f}"
            same = all(math.isclose(t, totals[0], rel_tol=1e-4) for t in totals)
            print(row, "same" if same else f"differ: {totals}", *notes, sep="  ", flush=True)


if __name__ == "__main__":
    main()
