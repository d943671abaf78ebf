"""Scenes of Genesis on this engine and on Quadrants: times, and whether the states agree.

    python benchmarks/genesis.py --python GENESIS/bin/python [SCENE ...] [--steps N] [--rounds 2]

GENESIS is an environment with genesis-world, torch and quadrants, and with what this engine needs
(NumPy and llvmlite). Nothing of Genesis is changed: its ``import quadrants`` means this engine.
Both engines have compiled bytecode, as pip leaves it: ours is copied and compiled first. Each run
is a process of its own. The engines take turns; the first round has empty caches, the last one full
ones. ``--only ours`` or ``--only reference`` runs one engine. Exits with 1 if a scene fails or
states differ.

A build also shows the CPU time of its main thread, which other load changes less than the clock,
and the seconds outside of all engines: waiting for subprocesses of Genesis, and ``import vtk``.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
STEPS = {
    "bodies": 40, "box": 300, "performance": 300, "franka": 60, "go2": 10, "environments": 20,
    "mpm": 10, "sph": 10, "cloth": 10, "fem": 20, "coupling": 10, "diff_mpm": 3, "diff_rigid": 3,
}  # fmt: skip
"""How many steps each scene takes: so few that rounding has not grown."""

TOLERANCE = {"mpm": 1e-3, "fem": 1e-3, "coupling": 1e-3, "diff_mpm": 1e-4, "diff_rigid": 1e-4}
"""How far states may lie apart, as a share of the largest value of an array or of 1; else 1e-5.

The velocity gradients of material points are differences of neighbours, and the implicit solver of
finite elements iterates until 1e-6: both are less exact.
"""


def install(python, folder):
    """Copy the package to `folder`, with its bytecode, which pip makes for that of the reference.

    Without it, where Python must not write bytecode, each run of ours would compile its source.
    """
    for name in ("engine", "app"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(HERE.parent / name, folder / "qd_studio" / name, ignore=skipped)
    subprocess.run([python, "-m", "compileall", "-q", folder], check=True)


def run(python, engine, scene, steps, folder):
    """One run in a process of its own: its times, and the arrays of its state by name."""
    package = folder / "package"
    if not package.exists():
        install(python, package)
    cache, out = folder / f"{scene}-{engine}", folder / f"{scene}-{engine}.npz"
    environment = {
        n: v for n, v in os.environ.items() if not n.startswith("QD_") or n == "QD_TIERED"
    }
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, HERE / "children" / "genesis_scenes.py", engine, scene, str(steps), out,
         package],
        capture_output=True, text=True, env=environment | {"XDG_CACHE_HOME": str(cache)},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{engine}, {scene}: " + "\n".join(done.stderr.splitlines()[-6:]))
    with np.load(out) as found:
        return json.loads(done.stdout.splitlines()[-1]), dict(found)


def difference(ours, reference):
    """The largest difference, as a share of the largest value of its array or of 1; its name."""
    worst = (0.0, "")
    for name in sorted({*ours, *reference}):
        if name not in ours or name not in reference or ours[name].shape != reference[name].shape:
            return float("inf"), name
        a, b = ours[name].astype(float), reference[name].astype(float)
        if a.size:
            share = np.abs(a - b).max() / max(1.0, np.abs(b).max())
            worst = max(worst, (float("inf") if np.isnan(share) else float(share), name))
    return worst


def line(engine, cache, times):
    print(
        f"   {engine:10} {cache:5} build {times['build']:7.2f} s (CPU {times['cpu']:.2f}, outside"
        f" {times['outside']:.2f})   first step {times['first']:7.3f} s   the others"
        f" {times['rest']:7.3f} s   a late step {1e3 * times['step']:9.3f} ms",
        flush=True,
    )


def measure(args, scene, folder):
    """Run one scene by turns and print what is found; True if all is well."""
    steps, states = args.steps or STEPS[scene], {}
    print(f"{scene}, {steps} steps", flush=True)
    fine = True
    for turn in range(args.rounds):
        for engine in ("ours", "reference"):
            if args.only in (None, engine):
                try:
                    times, states[engine] = run(args.python, engine, scene, steps, folder)
                except RuntimeError as error:
                    print(f"   {error}", flush=True)
                    fine = False
                    continue
                line(engine, "warm" if turn else "cold", times)
    if len(states) == 2:
        worst, name = difference(states["ours"], states["reference"])
        near = worst <= TOLERANCE.get(scene, 1e-5)
        print(f"   states: {worst:.1e} ({name}), {'equal' if near else 'DIFFERENT'}", flush=True)
        fine &= near
    return fine


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(STEPS))
    parser.add_argument("--python", required=True, help="interpreter with genesis-world")
    parser.add_argument("--steps", type=int, default=0, help="in place of a scene's own")
    parser.add_argument("--rounds", type=int, default=2, help="the first has empty caches (2)")
    parser.add_argument("--only", choices=("ours", "reference"), help="run one engine")
    args = parser.parse_args(arguments)
    unknown = sorted({*args.scenes} - {*STEPS})
    if unknown:
        parser.error(f"there is no scene {', '.join(unknown)}; there are {', '.join(STEPS)}")
    with tempfile.TemporaryDirectory(prefix="genesis-") as folder:
        found = [measure(args, scene, Path(folder)) for scene in args.scenes or STEPS]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
