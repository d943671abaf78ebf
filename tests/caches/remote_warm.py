"""The start of a program of 50 kernels, warm from its own folder and from the shared cache.

`python -m tests.caches.remote_warm` prints wall and CPU seconds from `init` to the last call, and
of whole processes; a fresh folder is used for each start from the shared cache.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .cache_server import CacheServer
from .remote_kit import SECRET

KERNELS = 50
PROGRAM = """
import json, sys, time
import numpy
from qd_studio import engine as qd
import kernels
started = time.perf_counter(), time.process_time()
qd.init(arch=qd.cpu)
x = qd.ndarray(qd.f32, 64)
total = sum(getattr(kernels, f"k{n}")(x, 1.0) for n in range(COUNT))
spent = time.perf_counter() - started[0], time.process_time() - started[1]
states = [(s.layer, s.state, s.source) for n in range(COUNT)
          for s in getattr(kernels, f"k{n}").launchers.observed.layers]
print(json.dumps([*spent, total, states]))
""".replace("COUNT", str(KERNELS))
KERNEL = """
@qd.kernel{mark}
def k{n}(x: qd.types.NDArray[qd.f32, 1], a: qd.f32) -> qd.f32:
    for i in x:
        v = x[i] * a + {n}.0
        for j in range({n} % 7 + 2):
            v = qd.sqrt(v * v + j) + qd.sin(v) * {n}.5
        if v > {n}.0:
            x[i] = v * 0.5
    total = 0.0
    for i in range(8):
        total += x[i] * {n}.0
    return total
"""


class Starts:
    """mark: of the kernels, such as ``(fastcache=True)``."""

    def __init__(self, home: Path, url: str, mark: str = "") -> None:
        self.home, self.url = home, url
        text = "".join(KERNEL.format(n=n, mark=mark) for n in range(KERNELS))
        (home / "kernels.py").write_text("from qd_studio import engine as qd\n" + text)
        (home / "program.py").write_text(PROGRAM)

    def run(self, root: str, remote: bool) -> dict:
        """One start: seconds from init to the last call, and of the process."""
        env = {**os.environ, "QD_OFFLINE_CACHE_FILE_PATH": str(self.home / root)}
        if remote:
            env |= {"QD_REMOTE_CACHE": self.url, "QD_REMOTE_CACHE_KEY": SECRET}
        before = os.times()
        done = subprocess.run(
            [sys.executable, "program.py"], cwd=self.home, env=env, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        after = os.times()
        wall, cpu, total, states = json.loads(done.stdout)
        cpu_of_process = sum(after[2:4]) - sum(before[2:4])
        return {
            "wall": wall, "cpu": cpu, "process_wall": after.elapsed - before.elapsed,
            "process_cpu": cpu_of_process, "total": total, "states": states,
            "said": done.stderr,
        }  # fmt: skip


def measure(home: Path, mark: str, repeats: int = 5) -> dict:
    """The least seconds of each kind of start; hits: the sources of hits from the shared cache."""
    with CacheServer() as server:
        starts = Starts(home, server.url, mark)
        cold = starts.run("local", True)
        local, remote = [], []
        for _ in range(repeats):  # in turn, so that both see the same load
            local.append(starts.run("local", False))
            shutil.rmtree(home / "fresh", ignore_errors=True)
            remote.append(starts.run("fresh", True))
    numbers = ("wall", "cpu", "process_wall", "process_cpu")
    return {
        "cold": {name: cold[name] for name in numbers},
        "local": {name: min(run[name] for run in local) for name in numbers},
        "remote": {name: min(run[name] for run in remote) for name in numbers},
        "same": len({run["total"] for run in (cold, *local, *remote)}) == 1,
        "hits": min(sum(s[1:] == ["hit", "remote"] for s in run["states"]) for run in remote),
        "said": "".join(run["said"] for run in (cold, *local, *remote)),
    }


if __name__ == "__main__":
    for mark in ("", "(fastcache=True)"):
        with tempfile.TemporaryDirectory() as name:
            found = measure(Path(name), mark)
        print(mark or "plain", json.dumps(found, indent=1))
        for name, value in found["remote"].items():
            print(f"  {name}: {value / found['local'][name]:.2f} of the local warm start")
