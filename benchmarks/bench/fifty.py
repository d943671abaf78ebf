"""Fifty small kernels as the text of a program, the same for every engine but for its import.

Ten shapes (one or two arrays, numbers, mathematics, a branch, an inner loop, two axes, reductions)
come five times each with other constants, so that no two kernels are equal. `write` puts two files
into a folder: the kernels, and a program that calls each of them once and says what it took.
"""

from pathlib import Path

COUNT = 50
CELLS = 256

IMPORTS = {"ours": "from qd_studio import engine as qd", "reference": "import quadrants as qd"}

_X = "x: qd.types.NDArray[qd.f32, 1]"
_XY = f"{_X}, y: qd.types.NDArray[qd.f32, 1]"
_M = "m: qd.types.NDArray[qd.f32, 2]"

# Parameters and result, body, arguments; {c} is a constant between 0.25 and 0.75.
SHAPES = {
    "shift": (f"({_X})", ["for i in x:", "    x[i] = x[i] * {c} + 0.125"], "x"),
    "axpy": (
        f"({_XY}, a: qd.f32)",
        ["for i in x:", "    y[i] = a * x[i] + {c} * y[i]"],
        "x, y, 0.5",
    ),
    "ramp": (
        f"({_X}, n: qd.i32)",
        ["for i in range(n):", "    x[i] = x[i] * 0.5 + {c} * i / n"],
        "x, 200",
    ),
    "waves": (
        f"({_XY})",
        ["for i in range(x.shape[0]):", "    y[i] = qd.sin(x[i]) * {c} + qd.sqrt(qd.abs(y[i]))"],
        "x, y",
    ),
    "fold": (
        f"({_XY})",
        [
            "for i in x:",
            "    if x[i] > {c}:",
            "        x[i] = x[i] - {c} * y[i]",
            "    else:",
            "        x[i] = x[i] + 0.25 * {c}",
        ],
        "x, y",
    ),
    "horner": (
        f"({_XY}, a: qd.f32)",
        [
            "for i in x:",
            "    s = x[i]",
            "    for _ in range(4):",
            "        s = s * a + {c}",
            "    y[i] = s * 0.5",
        ],
        "x, y, 0.25",
    ),
    "blur": (
        f"({_XY})",
        [
            "n = x.shape[0]",
            "for i in range(n):",
            "    left, right = qd.max(i - 1, 0), qd.min(i + 1, n - 1)",
            "    y[i] = {c} * x[i] + 0.25 * (x[left] + x[right])",
        ],
        "x, y",
    ),
    "grid": (
        f"({_M}, {_X})",
        ["for i, j in m:", "    m[i, j] = m[i, j] * {c} + x[i] * 0.125 + 0.01 * j"],
        "m, x",
    ),
    "total": (
        f"({_X}, a: qd.f32) -> qd.f32",
        ["s = 0.0", "for i in x:", "    s += x[i] * a + {c}", "return s"],
        "x, 0.5",
    ),
    "count": (
        f"({_M}, t: qd.f32) -> qd.i32",
        ["n = 0", "for i, j in m:", "    if m[i, j] * {c} > t:", "        n += 1", "return n"],
        "m, 0.0625",
    ),
}

MAIN = '''"""Calls fifty kernels once each; see the harness."""

import sys
from time import perf_counter_ns as now
from time import process_time_ns as spent

times = [now()]
{engine}

cpu = -spent()
times.append(now())
qd.init(arch=qd.cpu, log_level="error")
times.append(now())
import kernels

times.append(now())
x, y = qd.ndarray(qd.f32, ({cells},)), qd.ndarray(qd.f32, ({cells},))
m = qd.ndarray(qd.f32, (16, 16))
results = []
times.append(now())
for call in kernels.CALLS:
    results.append(call(x, y, m) or 0)
    times.append(now())
qd.sync()
cpu += spent()
sys.stdout.write("done\\n")
sys.stdout.flush()

import json

loaded = 0
for kernel in kernels.KERNELS:
    primal = getattr(kernel, "_primal", None)
    loaded += bool(primal and primal.src_ll_cache_observations.cache_loaded)
for array in (x, y, m):
    data = array.to_numpy().astype("float64")
    results += [float(data.sum()), float(abs(data).sum()), float((data * data).sum())]
found = {{"times": times, "results": list(map(float, results)), "loaded": loaded}}
found["cpu"] = cpu / 1e6
sys.stdout.write(json.dumps(found) + "\\n")
'''


def kernels_text(engine: str, fastcache: bool) -> str:
    """The module of kernels, for one engine."""
    decorator = "@qd.kernel(fastcache=True)" if fastcache else "@qd.kernel"
    parts = [f'"""Fifty small kernels."""\n\n{IMPORTS[engine]}\n']
    names: list[str] = []
    calls: list[str] = []
    for k in range(COUNT):
        name, (parameters, body, arguments) = list(SHAPES.items())[k % len(SHAPES)]
        constant = str(0.25 + k / 100)
        lines = [line.replace("{c}", constant) for line in body]
        head = f"\n\n{decorator}\ndef {name}_{k}{parameters}:"
        parts.append("\n".join([head, *(f"    {line}" for line in lines), ""]))
        names.append(f"{name}_{k}")
        calls.append(f"    lambda x, y, m: {name}_{k}({arguments}),")
    parts.append("\n\nKERNELS = [{}]\n".format(", ".join(names)))
    parts.append("CALLS = [\n{}\n]\n".format("\n".join(calls)))
    return "".join(parts)


def write(folder: Path, engine: str, fastcache: bool) -> Path:
    """Write the program; the path of the file to run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernels.py").write_text(kernels_text(engine, fastcache))
    main = folder / "main.py"
    main.write_text(MAIN.format(engine=IMPORTS[engine], cells=CELLS))
    return main
