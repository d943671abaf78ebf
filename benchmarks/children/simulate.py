"""One sample's scenario on one engine: `simulate.py ours|reference SAMPLE STEPS OUT.npz [THREADS]`.

The samples meant for both engines say `import quadrants as qd` and define `simulate(steps)`, which
returns arrays by name. The reference is what that import finds in its environment; ours answers it
through the alias.
"""

import os
import sys
from pathlib import Path

engine, sample, steps, out, *threads = sys.argv[1:]
os.environ["QD_OFFLINE_CACHE"] = "0"
if threads:
    os.environ["QD_CPU_MAX_NUM_THREADS"] = threads[0]

if engine == "ours":
    from qd_studio.engine import alias

    alias.install("quadrants")

import numpy as np  # noqa: E402
import quadrants as qd  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "sample_kernels"))
qd.init(arch=qd.cpu)
module = __import__(sample)
np.savez(out, **module.simulate(int(steps)))
