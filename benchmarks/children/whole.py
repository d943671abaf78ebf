"""Programs on fields and dataclasses, on one of the two engines: `whole.py ours|reference`.

The files say `import quadrants as qd`; our engine answers that through its alias, so both engines
run the very same text.
"""

import sys
import time
from pathlib import Path

from wire import Wire

wire = Wire()

if sys.argv[1] == "ours":
    from qd_studio.engine import alias

    alias.install("quadrants")

sys.path.insert(0, str(Path(__file__).parents[2] / "sample_kernels"))

import mpm88  # noqa: E402  (calls qd.init and compiles its first kernel)
import quadrants as qd  # noqa: E402
import timing  # noqa: E402
import whole_kernels  # noqa: E402

SETTLING = 200  # steps after which the drops touch the floor and spread

state = {}


def cold():
    """Milliseconds of the first call of the step: source to result."""
    start = time.perf_counter()
    mpm88.step()
    qd.sync()
    return (time.perf_counter() - start) * 1e3


def fingerprint(array):
    """Three numbers that two correct results share but for rounding."""
    wide = array.astype("float64")
    return [float(wide.sum()), float(abs(wide).sum()), float((wide * wide).sum())]


def settle():
    """Compile and run everything once; fingerprints of what was computed."""
    found = {}
    state["sweeps"] = whole_kernels.fields()
    for name, kernel in state["sweeps"].items():
        kernel()
        found[name] = fingerprint(whole_kernels.target.to_numpy())
    state["many"] = whole_kernels.many()
    whole_kernels.use(state["many"])
    found["dataclass"] = fingerprint(state["many"].a00.to_numpy())
    mpm88.fill_drops()
    for _ in range(SETTLING):
        mpm88.step()
    found["mpm88"] = fingerprint(mpm88.position.to_numpy())
    return found


def steps(budget_s):
    """Seconds of each step of the method, over many steps: the work changes slowly."""
    mpm88.fill_drops()
    for _ in range(SETTLING):
        mpm88.step()
    qd.sync()

    def ten():
        for _ in range(10):
            mpm88.step()
        qd.sync()

    return [wall / 10 for wall, _ in timing.calls_within(budget_s, ten)]


def sweep(name, budget_s):
    kernel = state["sweeps"][name]

    def call():
        kernel()
        qd.sync()

    return [wall for wall, _ in timing.calls_within(budget_s, call)]


def launch(launches):
    """Microseconds a launch with a dataclass of 40 members."""
    return timing.microseconds_a_launch(launches, whole_kernels.use, state["many"], qd.sync)


wire.serve({"cold": cold, "settle": settle, "steps": steps, "sweep": sweep, "launch": launch})
