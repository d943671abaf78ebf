"""Run the example programs of Taichi's wheel, unmodified, on Taichi and on this engine.

    python benchmarks/taichi_examples.py --reference-python REF/bin/python [PROGRAM ...]

REF is an environment with taichi 1.7.4. Each program runs in a process of its own, with windows
that are stand-ins and close after some frames. First both engines compute in f64, on one thread,
with the same random numbers, and the fields at the end are compared. Then the program runs as it
is, on the CPU without caches, on both engines by turns. The time to the first frame and the median
time between frames are compared, of each the least of all rounds; the first frame includes the
import of the engine, but not Python's own start. Exits with 1 if a program that runs there fails
here or differs.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

CHILD = Path(__file__).parent / "children" / "taichi_example.py"
TOLERANCE = 1e-9
"""Largest difference of two equal results, as a share of the largest value of the field."""

TOLERANCE_F32 = 1e-4
"""The same for programs of `SINGLE`."""

NOT_COMPARED = {
    # It writes outside of the fields next to these.
    "machine_learning/differential_evolution.py": ("best_pop", "trial", "fit"),
    # It reads outside of a field; these follow from what is there.
    "simulation/eulerfluid2d.py": (
        "divField", "pressField", "_new_pressField", "pressure_pair.cur", "pressure_pair.nxt",
    ),
    # Residuals of an iteration, which are zero but for rounding.
    "simulation/implicit_fem.py": ("F_r0", "F_p0", "F_mul_ans"),
}  # fmt: skip
"""Fields whose contents are not defined by the program."""

LOOSE = {
    # Conjugate gradients that end at a relative residual of 1e-6; the order of sums is free.
    "simulation/implicit_fem.py": 1e-6,
}
"""Programs that determine their results less closely than `TOLERANCE`, and how closely."""

SINGLE = {"simulation/implicit_mass_spring.py"}
"""Programs that do not work on Taichi in f64: its sparse matrix is one of f32."""


class Run(NamedTuple):
    """One process. error: empty if the program ran. times: of the frames. ended: of the end."""

    error: str
    times: list[float]
    ended: float
    fields: dict[str, Any]

    @property
    def first(self) -> float:
        """Seconds to the first frame; to the end, if the program shows none."""
        return self.times[0] if self.times else self.ended

    @property
    def step(self) -> float:
        """Seconds between two frames; nan if there are no two."""
        gaps = [b - a for a, b in zip(self.times, self.times[1:], strict=False)]
        return median(gaps) if gaps else math.nan


def run(python: str, engine: str, program: Path, frames: int, limit: float, mode: str) -> Run:
    """Run ``program`` in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out, fields = Path(folder) / "out.json", Path(folder) / "fields.npz"
        command = [python, str(CHILD), engine, str(program), str(out), str(fields), str(frames)]
        environment = os.environ | {"MPLBACKEND": "agg", "TI_LOG_LEVEL": "error"}
        # Packages that were installed have their bytecode.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            done = subprocess.run(
                [*command, mode], capture_output=True, text=True, timeout=limit,
                env=environment, cwd=folder, stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Run(f"no end after {limit:g} s", [], limit, {})
        if not out.is_file():
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            return Run(f"exit code {done.returncode}: {last}", [], 0.0, {})
        found = json.loads(out.read_text())
        with np.load(fields) as stored:
            return Run(found["error"], found["times"], found["ended"], dict(stored))


def difference(ours: Run, reference: Run, ignored: Sequence[str]) -> tuple[float, str]:
    """The largest relative difference of the fields, and the name of that field."""
    worst, where = 0.0, ""
    for name, b in reference.fields.items():
        if name in ignored:
            continue
        a = ours.fields.get(name)
        if a is None or a.shape != b.shape:
            gap = math.inf
        else:
            scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)) or 1.0
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            gap = float(np.max(np.where(same, 0.0, np.abs(a - b)), initial=0.0)) / scale
            gap = math.inf if math.isnan(gap) else gap
        if gap > worst:
            worst, where = gap, name
    return worst, where


def short(error: str) -> str:
    """The line of an error that says what is wrong."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    kind = lines[0].partition(":")[0] if lines else ""
    said = [line for line in lines if not line.startswith(("File ", "^", "hint"))]
    text = said[-1] if said else ""
    return (text if text.startswith(kind) else f"{kind}: {text}")[:160]


class Row(NamedTuple):
    """One program. verdict: of the comparison. first, step: (ours, reference) in seconds."""

    name: str
    verdict: str
    fields: int
    first: tuple[float, float]
    step: tuple[float, float]


def measure(args: argparse.Namespace, program: Path, name: str) -> Row:
    """Compare one program and measure it."""
    none = (math.nan, math.nan)
    sides = (("ours", sys.executable), ("reference", args.reference_python))
    pairs: dict[str, Run] = {}
    fields = 0
    if not args.no_compare:
        mode = "single" if name in SINGLE else "compare"
        for side, python in reversed(sides):
            found = run(python, side, program, args.frames, args.limit, mode)
            if found.error and side == "reference":
                # Some need f32. Then both engines only show that they run it.
                mode = "plain"
                found = run(python, side, program, args.frames, args.limit, mode)
                if found.error:
                    return Row(name, f"not there: {short(found.error)}", 0, none, none)
            pairs[side] = found
        if pairs["ours"].error:
            return Row(name, f"FAILS: {short(pairs['ours'].error)}", 0, none, none)
        worst, where = difference(pairs["ours"], pairs["reference"], NOT_COMPARED.get(name, ()))
        fields = len(pairs["reference"].fields)
        verdict = f"equal to {worst:.0e}" if worst else "equal"
        if worst > (TOLERANCE_F32 if name in SINGLE else LOOSE.get(name, TOLERANCE)):
            verdict = f"DIFFERS by {worst:.1e} in {where}"
        if not fields:
            verdict = "runs"
    else:
        verdict = "-"
    first: dict[str, list[float]] = {"ours": [], "reference": []}
    step: dict[str, list[float]] = {"ours": [], "reference": []}
    for turn in range(args.rounds):
        for side, python in sides if turn % 2 else reversed(sides):
            found = run(python, side, program, args.timed_frames, args.limit, "plain")
            if found.error:
                if side == "ours" and "FAILS" not in verdict:
                    verdict += f"; FAILS as it is: {short(found.error)}"
                continue
            first[side].append(found.first)
            step[side].append(found.step)
    # The least of the rounds: other work of the machine only adds time.
    both = [(min(d["ours"], default=math.nan), min(d["reference"], default=math.nan))
            for d in (first, step)]  # fmt: skip
    return Row(name, verdict, fields, *both)


def ratio(pair: tuple[float, float]) -> float:
    """Ours by the reference's."""
    return pair[0] / pair[1] if pair[1] else math.nan


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| program | fields | result | first frame: ours, Taichi (s) | ratio "
        "| step: ours, Taichi (ms) | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row.name, str(row.fields or ""), row.verdict.replace("|", "/")]
        for pair, factor in ((row.first, 1.0), (row.step, 1e3)):
            known = not any(map(math.isnan, pair))
            cells.append(f"{pair[0] * factor:.3g}, {pair[1] * factor:.3g}" if known else "")
            cells.append(f"{ratio(pair):.2f}" if known else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Counts and geometric means."""
    there = [row for row in rows if not row.verdict.startswith("not there")]
    good = [row for row in there if "FAILS" not in row.verdict and "DIFFERS" not in row.verdict]
    text = f"{len(rows)} programs, {len(there)} run on Taichi, {len(good)} here with equal results"
    for what, pairs in (("first frame", [r.first for r in rows]), ("step", [r.step for r in rows])):
        logs = [math.log(ratio(p)) for p in pairs if not any(map(math.isnan, p))]
        if logs:
            mean = math.exp(sum(logs) / len(logs))
            text += f"; {what}: {mean:.2f} of Taichi's time (geometric mean of {len(logs)})"
    return text


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="parts of names (all)")
    parser.add_argument("--reference-python", metavar="PATH", required=True)
    parser.add_argument("--frames", type=int, default=3, help="frames of a comparison")
    parser.add_argument("--timed-frames", type=int, default=8, help="frames of a measurement")
    parser.add_argument("--rounds", type=int, default=2, help="measurements; 0 only compares")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one process")
    parser.add_argument("--no-compare", action="store_true", help="only measure")
    parser.add_argument("--markdown", metavar="OUT", type=Path)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    query = "import importlib.util as u; print(u.find_spec('taichi').submodule_search_locations[0])"
    done = subprocess.run(
        [args.reference_python, "-c", query], capture_output=True, text=True, check=True
    )
    folder = Path(done.stdout.strip()) / "examples"
    rows: list[Row] = []
    for program in sorted(folder.rglob("*.py")):
        name = str(program.relative_to(folder))
        if args.programs and not any(part in name for part in args.programs):
            continue
        rows.append(measure(args, program, name))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    print(summary(rows))
    if args.markdown:
        args.markdown.write_text(f"{table(rows)}\n\n{summary(rows)}\n")
    return int(any("FAILS" in row.verdict or "DIFFERS" in row.verdict for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
