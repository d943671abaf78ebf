"""Programs with two tiers: their ends, forks, signals, and what they leave in the cache."""

import os
import subprocess
import sys
import textwrap
import time

import pytest
from qd_studio.engine.backends.cpu import background

pytestmark = pytest.mark.skipif(not background.available(), reason="no helper process here")

PROGRAM = """
import os, sys, time
from qd_studio import engine as qd

@qd.kernel
def scale(a: qd.types.ndarray(qd.f32, 1), s: qd.f32):
    for i in a:
        a[i] = a[i] * s + 1.0

@qd.kernel
def more(b: qd.types.ndarray(qd.f64, 1)):
    for i in b:
        b[i] = b[i] * 3.0

{before}
qd.init(arch=qd.cpu, log_level="warn")
a = qd.ndarray(qd.f32, shape=10)
scale(a, 2.0)
{more}
print(a.to_numpy()[0])
"""


def run(tmp_path, more="", before="", **variables):
    """Run the program with tiers; the finished process and its seconds."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(before=before, more=textwrap.dedent(more)))
    environment = {**os.environ, "QD_TIERED": "1", **variables}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, env=environment, timeout=120
    )
    return done, time.monotonic() - began


def entries():
    """The entries of the offline cache on disk."""
    found = []
    for folder, _, files in os.walk(os.environ["XDG_CACHE_HOME"]):
        if f"{os.sep}offline" in folder:
            found += files
    return found


def test_a_program_that_ends_at_once_leaves_its_full_code(tmp_path):
    done, _ = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1.0")
    assert entries()
    done, _ = run(
        tmp_path,
        """
        (variant,) = set(scale.launchers.variants.values())
        assert type(variant.executable).__name__ == "CpuExecutable"
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1.0")


def test_a_fork_during_a_compile_leaves_both_processes_working(tmp_path):
    done, _ = run(
        tmp_path,
        """
        pid = os.fork()
        scale(a, 2.0)
        (variant,) = set(scale.launchers.variants.values())
        variant.compiled.artifact.machine_code()
        scale(a, 2.0)
        assert a.to_numpy()[0] == 7.0
        if not pid:
            from qd_studio.engine.backends.cpu import background
            more(qd.ndarray(qd.f64, shape=10))
            (variant,) = set(more.launchers.variants.values())
            assert type(variant.executable).__name__ == "CpuExecutable"
            assert background._thread is background._process is None
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "7.0\n"


STUCK = """
from qd_studio.engine.backends.cpu import background
background.BOOT = "import time; time.sleep(1000)"
"""
"""The helper never answers."""

PENDING = """
(variant,) = set(scale.launchers.variants.values())
pending = variant.executable._pending
"""


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ("qd.sync()\nassert not pending.ready", 0, ""),
        pytest.param("qd.reset()\nqd.init(arch=qd.cpu)", 0, "", marks=pytest.mark.slow),
        ("os.kill(os.getpid(), 2)\ntime.sleep(60)", -2, "KeyboardInterrupt"),
        pytest.param("raise OSError('mine')", 1, "OSError: mine", marks=pytest.mark.slow),
    ],
    ids=["exit", "init", "interrupt", "exception"],
)  # fmt: skip
def test_nothing_waits_for_the_helper(tmp_path, more, status, said):
    more += "\na = qd.ndarray(qd.f32, shape=10)"
    done, _ = run(tmp_path, PENDING + more, before=STUCK)
    assert done.returncode == status, done.stderr
    assert said in done.stderr if said else not done.stderr, done.stderr


def test_the_helper_ends_with_a_killed_process(tmp_path):
    file = tmp_path / "program.py"
    more = """
from qd_studio.engine.backends.cpu import background
while background._process is None and background._running is None:
    time.sleep(0.01)
while background._process is None:
    time.sleep(0.01)
print(background._process.pid, flush=True)
time.sleep(100)
"""
    file.write_text(PROGRAM.format(before="", more=more))
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "QD_TIERED": "1"},
    )  # fmt: skip
    helper = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(1000):
        try:
            os.kill(helper, 0)
            with open(f"/proc/{helper}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    break
        except OSError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the helper lives on")
