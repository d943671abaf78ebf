"""Does a whole program give the same on both engines? Samples that run unchanged on each.

A scenario is a number of steps small enough that rounding has not grown yet: threads add in any
order, so that not even two runs of one engine agree to the last bit, and what moves freely forgets
where it came from. `TOLERANCE` gives for each result how far two runs may lie apart, relative to
the largest value in the array; it is about ten times what two runs of the reference with one and
with two threads differ by, and far below what the steps change.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .child import CHILDREN, environment

STEPS = {
    "mpm88": 60, "cloth": 120, "raymarch": 1, "smoke": 12, "coral": 300,
    "springs": 3, "diffmpm": 2, "ragged": 40, "gated": 20, "fitting": 20, "jacobian": 5,
}  # fmt: skip
"""How many steps of each sample are compared."""

TOLERANCE = {
    "mpm88": {"": 1e-4},
    "cloth": {"": 1e-4},
    # A hair decides whether a ray grazes a surface: then the colour of the pixel is another.
    "raymarch": {"": 2e-3},
    "smoke": {"": 1e-4},
    "coral": {"": 1e-4},
    # Gradients, in f64.
    "springs": {"": 1e-9},
    "diffmpm": {"": 1e-9},
    "ragged": {"": 1e-9},
    "gated": {"": 1e-9},
    "fitting": {"": 1e-9},
    "jacobian": {"": 1e-12},
}
OUTLIERS = {"raymarch": 1e-3}
"""Share of the elements that may differ by more; 0 for others."""


class Difference(NamedTuple):
    """One array on both engines. worst: the largest difference, as a share of the largest value.

    outliers: the share of elements beyond the tolerance. text: empty when the two agree.
    """

    name: str
    worst: float
    outliers: float
    text: str


def why_not(python: str | None) -> str:
    """Why the reference cannot run; empty if it can."""
    if not python:
        return "no interpreter of an environment with Quadrants was given"
    try:
        done = subprocess.run(
            [python, "-c", "import quadrants"], capture_output=True, text=True, timeout=120,
            env=environment(), check=False,
        )  # fmt: skip
    except OSError as error:
        return f"{python} cannot be run: {error.strerror}"
    return f"{python} has no quadrants" if done.returncode else ""


def run(engine: str, python: str, sample: str, threads: int = 0) -> dict[str, Any]:
    """The results of a sample's scenario, by name. RuntimeError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.npz"
        command = [python, str(CHILDREN / "simulate.py"), engine, sample, str(STEPS[sample])]
        done = subprocess.run(
            [*command, str(out), *([str(threads)] if threads else [])],
            capture_output=True, text=True, env=environment(), timeout=600, check=False,
        )  # fmt: skip
        if done.returncode:
            last = done.stderr.strip() or f"exit code {done.returncode}"
            raise RuntimeError(f"{sample} on {engine}: {last[-2000:]}")
        with np.load(out) as stored:
            return dict(stored)


def fingerprints(results: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Of each result its type and shape, and three sums that equal results share but for rounding.

    Small enough to keep: with them a result can be judged where the reference is not at hand.
    """
    out: dict[str, list[Any]] = {}
    for name, array in sorted(results.items()):
        wide = array.astype(np.float64)
        sums = (wide.sum(), np.abs(wide).sum(), np.square(wide).sum())
        out[name] = [str(array.dtype), list(array.shape), *(float(f"{x:.9g}") for x in sums)]
    return out


def differences(
    sample: str, ours: Mapping[str, Any], reference: Mapping[str, Any]
) -> list[Difference]:
    """A comparison of each result; names that only one side has are differences, too."""
    return [
        _difference(sample, name, ours.get(name), reference.get(name))
        for name in sorted({*ours, *reference})
    ]


def _difference(sample: str, name: str, a: Any, b: Any) -> Difference:
    if a is None or b is None:
        side = "the reference" if a is None else "this engine"
        return Difference(name, np.inf, 1.0, f"only {side} has it")
    if a.shape != b.shape or a.dtype != b.dtype:
        text = f"{a.dtype}{a.shape}, reference {b.dtype}{b.shape}"
        return Difference(name, np.inf, 1.0, text)
    x, y = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.max(np.abs(y), initial=0.0)) or 1.0
    gap = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y)) / scale
    gap = np.where(np.isnan(gap), np.inf, gap)
    limits = TOLERANCE[sample]
    beyond = gap > limits.get(name, limits[""])
    worst, outliers = float(np.max(gap, initial=0.0)), float(np.mean(beyond))
    if outliers <= OUTLIERS.get(sample, 0.0):
        return Difference(name, worst, outliers, "")
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
    text = f"{outliers:.2%} differ, most at {list(at)}: {a[at]}, reference {b[at]}"
    return Difference(name, worst, outliers, text)
