"""What the debugger takes to go forward and back: CPU time after many instructions.

python benchmarks/time_travel.py [--instructions 1000000]
"""

import argparse
import time

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine import inspect


@qd.kernel
def mixed(x: qd.types.NDArray[qd.f32, 1], n: qd.i32) -> qd.f32:
    s = 0.0
    qd.loop_config(serialize=True)
    for i in range(n):
        v = x[i % 1000] * 0.5
        if v > 0.3:
            s += v
        else:
            s -= v
        x[(i * 7) % 1000] = s % 1.0
    return s


def spent(action):
    """Milliseconds of CPU time."""
    begun = time.process_time()
    action()
    return (time.process_time() - begun) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instructions", type=int, default=1_000_000)
    count = parser.parse_args().instructions
    qd.init(arch=qd.cpu)
    x = np.random.default_rng(0).random(1000).astype(np.float32)
    d = inspect.debug(mixed, x, count)
    print(f"{count} instructions forward: {spent(lambda: d.goto(count)):.0f} ms")
    print(f"snapshots: {len(d.machine.snapshots)}, {d.machine.bytes() / 1e6:.1f} MB")
    for name in ("back", "back_op", "back_into", "next", "step"):
        times = sorted(spent(getattr(d, name)) for _ in range(9))
        print(f"{name}: {times[4]:.1f} ms, at most {times[-1]:.1f}")
    for cell in ("x[5]", "s"):
        print(f"who wrote {cell}: {spent(lambda cell=cell: d.who_wrote(cell)):.1f} ms")


if __name__ == "__main__":
    main()
