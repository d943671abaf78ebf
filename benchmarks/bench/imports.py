"""What importing the engine costs: wall time in fresh processes, and what it drags in."""

import json
import statistics
import subprocess

from .child import environment
from .model import Options, Section, Target

# Modules that a plain import of the engine has no business loading.
UNWANTED = ("textual", "cuda", "pyopencl", "llvmlite", "watchdog", "pygments", "rich")

PROBE = """
import json, sys, time
before = set(sys.modules)
start = time.perf_counter()
{statement}
ms = (time.perf_counter() - start) * 1e3
new = set(sys.modules) - before
print(json.dumps([ms, len(new), sorted({{m.partition(".")[0] for m in new}})]))
"""


def probe(python: str, statement: str) -> tuple[float, int, set[str]]:
    """Milliseconds, number of modules, and top-level packages of one import in a new process."""
    done = subprocess.run(
        [python, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    ms, count, names = json.loads(done.stdout.splitlines()[-1])
    return ms, count, set(names)


def measure(options: Options) -> list[Section]:
    section = Section(
        "Import (median of fresh processes)", ["import", "ms", "modules", "without it, ms"]
    )
    subjects = [
        ("our engine", options.ours, "from qd_studio import engine", "import numpy"),
        ("our engine and init", options.ours,
         "from qd_studio import engine as qd; qd.init(arch=qd.cpu)", "import numpy"),
    ]  # fmt: skip
    if options.reference:
        subjects.append(("quadrants", options.reference, "import quadrants", "import numpy"))
    if options.numba:
        subjects.append(("numba", options.numba, "import numba", "import numpy"))
    for name, python, statement, base in subjects:
        try:
            probes = [probe(python, statement) for _ in range(2 * options.processes + 1)]
            bare = [probe(python, base)[0] for _ in range(options.processes)]
        except subprocess.CalledProcessError as error:
            section.notes.append(f"{name}: {error.stderr.strip().rpartition(chr(10))[2]}")
            section.rows.append([name, None, None, None])
            continue
        ms = statistics.median(p[0] for p in probes)
        section.raw[name] = [p[0] for p in probes]
        section.rows.append([name, ms, str(probes[0][1]), statistics.median(bare)])
        if name == "our engine":
            section.targets.append(Target("Import of the engine", 150.0, ms, " ms"))
            loaded = sorted(set(UNWANTED) & probes[0][2])
            section.notes.append(f"unwanted in our engine: {', '.join(loaded) or 'nothing'}")
    section.notes.append('"without it" is the time NumPy alone takes to import there.')
    return [section]
