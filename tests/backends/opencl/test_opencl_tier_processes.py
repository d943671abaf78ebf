"""PoCL: processes that end, fork or are killed while full code is made."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from qd_studio.engine.backends.opencl import hardware

from tests.runtime.test_tier_processes import ends

HAS = not hardware.unavailable() and hardware.usual().is_pocl
pytestmark = [pytest.mark.opencl, pytest.mark.skipif(not HAS, reason="there is no PoCL here")]

PROGRAM = """
import os, sys, threading, time
import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background as helping
from qd_studio.engine.backends.opencl import background, build

# Other tests run: with its low priority the helper process would need minutes.
helping.BOOT = helping.BOOT.replace("os.chdir", "os.nice = int; os.chdir")
{before}

@qd.kernel
def scale(a: qd.types.ndarray(qd.f32, 1), s: qd.f32):
    for i in a:
        a[i] = a[i] * s + 1.0

def begun():
    while helping._running is None or helping._process is None:
        time.sleep(0.01)

qd.init(arch=qd.opencl, log_level="warn", ad_stack_experimental_enabled=True)
a = qd.ndarray(qd.f32, 10)
scale(a, 2.0)
assert a.to_numpy()[0] == 1
executable = next(iter(scale.launchers.variants.values())).executable
{more}
"""


def run(more, before="", tiered="auto", **options):
    environment = {**os.environ, "QD_TIERED": tiered, "QD_OPENCL_MAPPING": "chunks"}
    text = PROGRAM.format(more=textwrap.dedent(more), before=before)
    return subprocess.run(
        # A fork of a process with threads is tested, too; later versions of Python warn of it.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text],
        capture_output=True, text=True, env=environment, timeout=120, **options,
    )  # fmt: skip


def entries():
    return [
        name for path, _, files in os.walk(os.environ["XDG_CACHE_HOME"]) for name in files
        if f"{os.sep}offline" in path
    ]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tiered", ["auto", "off"])
@pytest.mark.parametrize(
    "more", ["", "begun()", "qd.reset()", "begun(); qd.reset()"],
    ids=["at once", "while PoCL compiles", "reset", "reset while PoCL compiles"],
)  # fmt: skip
def test_the_end_of_a_program_leaves_full_code_in_the_cache(more, tiered):
    if tiered == "off":
        more = more.replace("begun()", "pass")
    done = run(more, tiered=tiered)
    assert (done.returncode, done.stderr) == (0, "")
    late = time.monotonic() + 240
    while not entries():
        assert time.monotonic() < late
        time.sleep(0.05)
    # Nothing is built, and no linker was called.
    done = run(
        """
        import resource
        print(type(executable).__name__)
        assert not resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        """,
        before="build.built = build.build = None",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "OpenclExecutable\n", "")


OTHERS = {
    "prints": """
@qd.kernel
def other(x: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        print(x[i])
    for i in x:
        x[i] += 1.0
""",
    "prints alone": """
@qd.kernel
def other(x: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        print(x[i])
""",
    "graph": """
@qd.kernel(graph=True)
def other(x: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        x[i] *= 3.0
""",
    "flow": """
count = qd.ndarray(qd.i32, ())
count.fill(2)

@qd.kernel(graph=True)
def repeated(x: qd.types.ndarray(qd.f32, 1), left: qd.types.ndarray(qd.i32, 0)):
    while qd.graph_do_while(left):
        for i in x:
            x[i] *= 3.0
        for _ in range(1):
            left[None] -= 1

def other(x):
    repeated(x, count)
""",
    "adstacks": """
y = qd.field(qd.f32, shape=4, needs_grad=True)
total = qd.field(qd.f32, shape=(), needs_grad=True)

@qd.kernel
def grown(n: qd.i32):
    for i in y:
        z = y[i]
        for _ in range(n):
            z = qd.sin(z)
        total[None] += z

def other(x):
    grown.grad(3)
""",
    "real function": """
@qd.real_func
def twice(a: qd.f32) -> qd.f32:
    return 2.0 * a

@qd.kernel
def other(x: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        x[i] = twice(x[i])
""",
}
"""Kernels that have no first tier."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", OTHERS)
def test_the_helper_makes_the_binaries_of_kernels_without_tiers(kind, tmp_path):
    file = tmp_path / "program.py"
    text = PROGRAM.format(
        before="build.binary_of = None",
        more=OTHERS[kind] + "\nother(a)\nqd.sync()\nprint(len(helping._ordered))\n",
    )

    def ran(text):
        file.write_text(text)
        environment = {**os.environ, "QD_TIERED": "1", "QD_OPENCL_MAPPING": "chunks"}
        done = subprocess.run(
            [sys.executable, str(file)], env=environment, timeout=120, capture_output=True,
            text=True,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return int(done.stdout.split()[-1])

    expected = ran(text)
    assert expected > 1
    late = time.monotonic() + 240
    while len(entries()) < expected:
        assert time.monotonic() < late
        time.sleep(0.05)
    # Nothing is built, and no linker is called.
    ran(
        text.replace("build.binary_of", "build.built = build.build")
        + "import resource\nassert not resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt\n"
    )


def test_the_helper_compiles_a_program_once():
    """Asked for a binary, PoCL would compile it for groups of any size, too."""
    done = run("print(executable.making.pending.job().plain()[1], flush=True)\nos._exit(0)")
    more = f"""
from qd_studio.engine.backends.opencl import build, full
made = build.binary_of

def recorded(context, program):
    code = made(context, program)
    for path, _, files in os.walk(os.environ["POCL_CACHE_DIR"]):
        for name in files:
            if name.endswith(".so"):
                print(os.path.basename(path), hash(open(os.path.join(path, name), "rb").read()))
    return code

build.binary_of = recorded
full.made(*{done.stdout})
"""
    command = [sys.executable, "-c", "import os\n" + more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = dict(line.split() for line in done.stdout.splitlines())
    assert len(found) == 2 and "0-0-0" in found and len(set(found.values())) == 1


@pytest.mark.parametrize("more", ["", "qd.reset()", "os.kill(os.getpid(), 15)"])
def test_a_process_does_not_wait_for_what_is_in_the_making(more):
    """The helper process never answers."""
    done = run(
        f"begun()\nprint(helping._process.pid, flush=True)\n{more}",
        before='helping.BOOT = "import time; time.sleep(1000)"',
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-15 if "kill" in more else 0, "")
    # It was left with the entry, or the program was killed: it does not see that.
    os.kill(int(done.stdout), signal.SIGKILL)
    assert ends(int(done.stdout))


def test_a_helper_that_is_killed_leaves_no_files(tmp_path, monkeypatch):
    """PoCL leaves its folder in a process that is killed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = run(
        """
        while not os.listdir(os.environ["TMPDIR"]):
            time.sleep(0.01)
        sys.last_type = KeyboardInterrupt
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_during_a_compile_leaves_the_parent_working():
    done = run(
        """
        begun()
        child = os.fork()
        if not child:
            assert not background._thread.waiting and not background._thread.running
            assert helping._process is None
            try:
                scale(a, 2.0)
            except qd.QuadrantsRuntimeError as error:
                os._exit(7 * ("forked" in str(error)))
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        while not executable.is_full:
            time.sleep(0.01)
        scale(a, 2.0)
        print(a.to_numpy()[0])
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")
