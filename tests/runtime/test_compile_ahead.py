"""`qd.compile_ahead`, the load of LLVM in a thread, and the line about a long compile."""

import json
import os
import pty
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu import host
from qd_studio.engine.backends.opencl import tiered as opencl_tiers
from qd_studio.engine.cache import last_run
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.errors import (
    QuadrantsCompilationError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
)
from qd_studio.engine.runtime import ahead, slow_compile

from tests.fuzz.tiers import interrupted, no_helper

# A fork of a process with threads is what is tested; later versions of Python warn of it.
PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning"]


@pytest.fixture(params=["off", "on"])
def tiered(request):
    qd.init(arch=qd.cpu, offline_cache=False, tiered=request.param)


def scale_kernel():
    @qd.kernel
    def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32, name: qd.template()) -> qd.f32:
        qd.static_print("compiled", name)
        for i in x:
            x[i] = x[i] * a + 1.0
        return x[0]

    return scale


def settled(kernel, seconds=30.0):
    """Wait until a kernel is loaded."""
    end = time.monotonic() + seconds
    while not kernel.launchers.variants and time.monotonic() < end:
        time.sleep(0.01)
    return set(kernel.launchers.variants.values())


@pytest.mark.not_on_device("it looks at code for processors")
def test_a_later_call_compiles_nothing_more(tiered, capfd):
    scale = scale_kernel()
    x = qd.ndarray(qd.f32, 4)
    assert qd.compile_ahead(scale, x, 2.0, name="later") is None
    made = settled(scale)
    assert len(made) == 1
    assert scale(x, 3.0, "later") == 1.0
    assert set(scale.launchers.variants.values()) == made
    (variant,) = made
    assert type(variant.executable).__name__ == "CpuExecutable"
    assert capfd.readouterr().out.count("compiled later") == 1


def test_a_call_at_once(tiered):
    scale = scale_kernel()
    x = qd.ndarray(qd.f32, 4)
    qd.compile_ahead(scale, x, 2.0, "at once")
    assert scale(x, 2.0, "at once") == 1.0
    assert scale(x, 2.0, "at once") == 3.0


@pytest.mark.not_on_device("it looks at full code of PoCL")
@pytest.mark.parametrize("at_once", [False, True])
def test_full_code_for_pocl_is_made_without_a_call(at_once):
    qd.init(arch=qd.opencl, tiered=True, offline_cache=False, opencl_mapping="chunks")

    @qd.kernel
    def scale(x: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            x[i] = x[i] * 2.0 + 1.0 + at_once  # else the driver has the program of the other case

    x = qd.ndarray(qd.f32, 4)
    qd.compile_ahead(scale, x)
    (variant,) = set(scale.launchers.variants.values())
    assert type(variant.executable).__name__ == "TieredExecutable"
    if at_once:
        scale(x)
        assert x[0] == 2.0
    end = time.monotonic() + 60
    while not variant.executable.is_full and time.monotonic() < end:
        time.sleep(0.01)
    assert variant.executable.is_full
    scale(x)
    assert x[0] == (6.0 if at_once else 1.0)


def test_errors_of_the_compile_are_raised_by_the_call():
    qd.init(arch=qd.cpu, offline_cache=False)

    @qd.kernel
    def wrong(x: qd.types.NDArray[qd.f32, 1]):
        for i in x:
            x[i] = missing  # noqa: F821

    x = qd.ndarray(qd.f32, 4)
    assert qd.compile_ahead(wrong, x) is None
    for _ in range(2):
        with pytest.raises(QuadrantsCompilationError, match="missing") as found:
            wrong(x)
        assert found.value.span.file == __file__


def test_arguments_that_do_not_fit_are_an_error_at_once():
    qd.init(arch=qd.cpu, offline_cache=False)
    with pytest.raises(QuadrantsTypeError, match=r"needs a kernel, not int"):
        qd.compile_ahead(1)
    with pytest.raises(QuadrantsSyntaxError, match="Missing argument 'a'"):
        qd.compile_ahead(scale_kernel(), 1)
    with pytest.raises(TypeError):
        qd.compile_ahead(scale_kernel(), 1, 2.0, "array")


@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_methods_and_all_backends(arch):
    qd.init(arch=getattr(qd, arch), offline_cache=False)

    @qd.data_oriented
    class Counter:
        def __init__(self, step):
            self.step = step

        @qd.kernel
        def count(self, n: qd.i32) -> qd.i32:
            return n + self.step

    counter = Counter(3)
    qd.compile_ahead(counter.count, 1)
    qd.compile_ahead(Counter.count, Counter(4), n=1)
    if arch != "cpu":
        assert Counter.count.of(counter).launchers.variants
    assert counter.count(1) == 4


def test_reset_forgets_what_is_being_compiled():
    for _ in range(3):
        qd.init(arch=qd.cpu, offline_cache=False)
        scale = scale_kernel()
        qd.compile_ahead(scale, qd.ndarray(qd.f32, 4), 2.0, "reset")
    x = qd.ndarray(qd.f32, 4)
    assert scale(x, 2.0, "reset") == 1.0
    end = time.monotonic() + 20
    while ahead._thread is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert ahead._thread is None


@pytest.mark.parametrize("context", ["noted", "waiting"])
@pytest.mark.parametrize(("last", "place"), [(0, "(number"), (10**6, "of 1000000)")])
def test_a_compile_of_over_a_second_is_announced_once_on_a_terminal(
    last, place, context, monkeypatch, capsys
):
    monkeypatch.setattr(last_run, "compiled_last_time", lambda: last)
    monkeypatch.setattr(slow_compile, "_AFTER", 0.01)
    monkeypatch.setattr(slow_compile, "_shown", False)
    for terminal, announced in ((False, False), (True, True), (True, False)):
        monkeypatch.setattr(slow_compile, "_is_terminal", lambda on=terminal: on)
        with getattr(slow_compile, context)("slow"):
            time.sleep(0.1)
        with slow_compile.noted("quick"):
            pass
        said = capsys.readouterr().err
        assert ("compiling kernel 'slow' (" in said and place in said) if announced else not said


@pytest.mark.not_on_device("launches of first-tier code are interrupted on processors alone")
@pytest.mark.parametrize("arch", ["cpu", "opencl"])
def test_a_launch_that_waits_for_full_code_is_announced(arch, monkeypatch):
    """Its first-tier code was made at once, which is no slow compile."""
    waited = []

    @contextmanager
    def waiting(kernel):
        waited.append(kernel)
        yield

    monkeypatch.setattr(base, "WAITS", [waiting])
    monkeypatch.setattr(opencl_tiers, "_MOST", 0)
    IN_PROCESS.clear()
    with no_helper(), interrupted(0):
        qd.init(arch=getattr(qd, arch), tiered=True, offline_cache=False)
        scale = scale_kernel()
        assert scale(qd.ndarray(qd.f32, 4), 2.0, "waits") == 1.0
        (variant,) = set(scale.launchers.variants.values())
        assert variant.executable.is_full
        qd.reset()
    assert waited == ["scale"]


# ---- processes

BEGIN = """
import os, sys, threading, time
from qd_studio import engine as qd
{before}

@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32) -> qd.f32:
    for i in x:
        x[i] = x[i] * a + 1.0
    return x[0]

began = time.monotonic()
qd.init(arch=qd.cpu)
x = qd.ndarray(qd.f32, 8)
{more}
"""

STUCK = """
from qd_studio.engine.backends.cpu import background
background.BOOT = "import time; time.sleep(60)"
"""

FORK = """
pid = os.fork()
assert scale(x, 2.0) == 1.0
if not pid:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""

CASES = {
    "exit": (STUCK, "qd.compile_ahead(scale, x, 1.0)\nqd.sync()\ntime.sleep(0.3)"),
    "reset": (STUCK, "qd.compile_ahead(scale, x, 1.0)\ntime.sleep(0.3)\nqd.reset()"),
    "call": (
        STUCK + "os.environ['QD_TIERED'] = 'on'",
        "qd.compile_ahead(scale, x, 1.0)\ntime.sleep(0.3)\nassert scale(x, 1.0) == 1.0",
    ),
    "call at once": (
        STUCK + "os.environ['QD_TIERED'] = 'on'",
        "qd.compile_ahead(scale, x, 1.0)\nassert scale(x, 1.0) == 1.0",
    ),
    "fork": ("", "qd.compile_ahead(scale, x, 1.0)" + FORK),
    "fork later": ("", "qd.compile_ahead(scale, x, 1.0)\ntime.sleep(0.1)" + FORK),
    "killed helper": (
        "",
        "qd.compile_ahead(scale, x, 1.0)\n"
        "from qd_studio.engine.backends.cpu import background\n"
        "while background._process is None: time.sleep(0.001)\n"
        "os.kill(background._process.pid, 9)\nassert scale(x, 1.0) == 1.0",
    ),
    "exit while loading": ("", ""),
    "fork while loading": ("", FORK),
    "reset while loading": ("", "qd.init(arch=qd.cpu)\nx = qd.ndarray(qd.f32, 8)" + FORK),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_program_goes_on_during_background_work(case, tmp_path):
    before, more = CASES[case]
    (tmp_path / "program.py").write_text(BEGIN.format(before=before, more=more))
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "caches")}
    done = subprocess.run(
        [*PYTHON, str(tmp_path / "program.py")], env=environment, timeout=30,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if case == "killed helper":
        assert "compiles in the background died" in done.stderr or not done.stderr
    else:
        assert done.stderr == ""


LOADED = """
import json
llvm = "qd_studio.engine.backends.llvm.library" in sys.modules
json.dump([llvm, [t.name for t in threading.enumerate()]], sys.stdout)
"""


@pytest.mark.slow
def test_llvm_loads_with_a_program_only_where_no_cache_can_have_its_kernels(tmp_path):
    def ran(more):
        (tmp_path / "program.py").write_text(BEGIN.format(before="", more=more))
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "caches"), "QD_TIERED": "off"}
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py")], env=environment, timeout=30,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    wait = "[t.join() for t in threading.enumerate() if t.name in ('qd-preload', 'qd-imports')]\n"
    assert json.loads(ran(wait + LOADED)) == [True, ["MainThread"]]
    ran("scale(x, 1.0)")
    assert json.loads(ran(LOADED)) == [False, ["MainThread"]]
    assert json.loads(ran("scale(x, 1.0)" + LOADED)) == [False, ["MainThread"]]


@pytest.mark.skipif(not host.maps_objects(), reason="elsewhere LLVM makes first-tier code")
def test_a_program_with_first_tier_code_loads_no_llvm_if_the_caches_have_the_native_code(tmp_path):
    def ran(more):
        (tmp_path / "program.py").write_text(BEGIN.format(before="", more=more))
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "caches"), "QD_TIERED": "auto"}
        done = subprocess.run(
            [sys.executable, str(tmp_path / "program.py")], env=environment, timeout=30,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    wait = "[t.join() for t in threading.enumerate() if t.name in ('qd-preload', 'qd-imports')]\n"
    assert ran(wait + LOADED)[0]
    assert not ran("assert scale(x, 1.0) == 1.0" + LOADED)[0]


@pytest.mark.slow
def test_a_terminal_shows_a_long_compile(tmp_path):
    before = (
        "from qd_studio.engine.runtime import slow_compile\nslow_compile._AFTER = 0.02\n"
        "from qd_studio.engine.backends.cpu import code\nmade = code.full_code\n"
        "code.full_code = lambda job: time.sleep(0.3) or made(job)"
    )
    (tmp_path / "program.py").write_text(BEGIN.format(before=before, more="scale(x, 1.0)"))
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "caches")}
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], env=environment, check=True, stderr=theirs
    )
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.count("compiling kernel 'scale' (number 1 of this run)") == 1


def test_arrays_of_numpy_serve_as_arguments():
    qd.init(arch=qd.cpu, offline_cache=False)
    scale = scale_kernel()
    x = np.zeros(4, np.float32)
    qd.compile_ahead(scale, x, 2.0, "numpy")
    assert scale(x, 2.0, "numpy") == 1.0
    assert not np.any(x != 1.0)
