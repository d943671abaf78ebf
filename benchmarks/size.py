"""What a compile costs by the size and the shape of a kernel: seconds of CPU time.

    python benchmarks/size.py [--shape block ...] [--sizes 500 2000 10000] [--record] [--limit 300]

Each kernel is compiled in a process of its own, once. `call` is the time of a first call with two
tiers, `llvm` that of full code, `exp` the exponent of both together between the last two sizes: 1
for a compile that is linear in the size of the kernel. `MB` is the peak of memory of a first call.
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
from bench.shapes import SHAPES, source

PARTS = ("frontend", "passes", "emitter", "first", "llvm", "record")
FIRST = 4
"""Of these, the parts of a first call; `llvm` is full code, made by a helper process."""


def compile_one(path: Path, mode: str, limit: float) -> dict[str, Any]:
    """The figures of one compile; as many of them as there were after ``limit`` seconds."""
    words = [sys.executable, str(CHILDREN / "size_cost.py"), str(path), *([mode] if mode else [])]
    child = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment() | {"QD_TIERED": "off"}, start_new_session=True,
    )  # fmt: skip
    why = ""
    try:
        out, errors = child.communicate(timeout=limit)
        if child.returncode:
            why = (errors.strip() or f"exit {child.returncode}").rpartition("\n")[2][:100]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, _ = child.communicate()
        why = f"stopped after {limit:.0f} s"
    lines = out.splitlines()
    found = json.loads(lines[-1])["shown"] if lines else {}
    return {**found, **({"why": why} if why else {})}


def _total(found: dict[str, Any]) -> float:
    return sum(found.get(part, 0.0) for part in PARTS if part != "record")


def line(shape: str, size: int, found: dict[str, Any], before: tuple[int, float] | None) -> str:
    """A row of the table."""
    total = _total(found)
    call = sum(found.get(part, 0.0) for part in PARTS[:FIRST])
    cells = [f"{found[part]:8.2f}" if part in found else " " * 8 for part in PARTS]
    exponent = ""
    if before and before[1] and total and "why" not in found:
        exponent = f"{math.log(total / before[1]) / math.log(size / before[0]):.2f}"
    slow = sorted(found.get("of", {}).items(), key=lambda item: -item[1])[:3]
    names = ", ".join(f"{name} {took:.2f}" for name, took in slow)
    ops = found.get("ops", 0)
    row = f"{shape:10} {size:7} {ops:8} {found.get('peak', 0):5.0f} {call:7.2f} "
    row += f"{' '.join(cells)} {exponent:>5}"
    return f"{row}  {names} {found.get('why', '')}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shape", action="append", choices=SHAPES, help="one of the shapes")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 10_000])
    parser.add_argument("--record", action="store_true", help="under the studio's recorder, too")
    parser.add_argument("--limit", type=float, default=300, help="seconds that one may last")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures here")
    args = parser.parse_args()
    everything: dict[str, Any] = {}
    head = " ".join(f"{part:>8}" for part in PARTS)
    title = f"{'shape':10} {'size':>7} {'ops':>8} {'MB':>5} {'call':>7} {head} {'exp':>5}"
    print(f"{title}  slowest passes")
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shape or SHAPES:
            before: tuple[int, float] | None = None
            for size in args.sizes:
                path = Path(folder) / f"{shape}_{size}.py"
                path.write_text(source(shape, size))
                found = compile_one(path, "", args.limit)
                if args.record and "why" not in found:
                    again = compile_one(path, "record", args.limit)
                    found |= {"record": math.nan, **again}
                everything[f"{shape} {size}"] = found
                print(line(shape, size, found, before), flush=True)
                before = (size, _total(found))
                if "why" in found:
                    break
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
