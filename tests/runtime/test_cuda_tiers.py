"""CUDA: launches of first-tier code while full code is made, and the swap."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import background, code, nvptx
from qd_studio.engine.backends.cuda.executable import CudaExecutable
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.errors import CudaError

from tests.runtime.cudakit import start
from tests.runtime.test_cuda_ahead import executable, settle
from tests.runtime.test_tier_processes import ends

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")


@pytest.fixture(autouse=True)
def tiered(sim, monkeypatch):
    IN_PROCESS.clear()
    monkeypatch.setattr(background, "_QUIET", 0.01)
    yield start(tiered="auto")
    settle()


@pytest.fixture
def gate(monkeypatch):
    """Full code is loaded when this is set."""
    event = threading.Event()
    monkeypatch.setattr(background, "_quiet", lambda device: event.wait(20))
    yield event
    event.set()
    settle()


numbers = itertools.count(2)


def share_kernel():
    """A kernel that no cache has, and that gets LLVM's whole pipeline: it divides by what it does
    not know."""
    number = next(numbers)

    @qd.kernel
    def share(x: qd.types.ndarray(qd.i32, 1), y: qd.types.ndarray(qd.i32, 1), n: qd.i32):
        for i in x:
            y[i] = x[i] // n
        for i in x:
            y[i] += i % n
        for _ in range(1):
            y[0] += qd.static(number)

    return share


def check(kernel, n=7):
    x, y = np.arange(-50, 500, dtype=np.int32), np.zeros(550, np.int32)
    kernel(x, y, n)
    right = x // n + np.arange(550) % n
    assert (y[1:] == right[1:]).all()
    assert y[0] > right[0]


def test_a_kernel_begins_in_the_first_tier_and_goes_on_in_full_code(gate):
    share = share_kernel()
    check(share)
    found = executable(share)
    first = found.functions
    assert not found.is_full
    for n in range(1, 12):
        check(share, n)  # the stub is made meanwhile
    assert not found.is_full and found.functions is first
    gate.set()
    settle()
    assert found.is_full and found.functions is not first
    assert executable(share) is found
    qd.sync()
    # A launch that another thread has begun may still refer to it.
    assert code.attribute(found.device, first[0], "MAX_THREADS_PER_BLOCK") > 0
    for n in range(1, 12):
        check(share, n)
    assert found.arguments().runner.facts()["how"] == "auto"  # a graph, of full code alone


def test_without_tiers_the_call_waits_for_full_code(monkeypatch):
    monkeypatch.setattr(nvptx, "first_ptx", None)
    start(tiered="off")
    share = share_kernel()
    check(share)
    assert executable(share).is_full


def test_kernels_of_a_few_lines_have_no_tiers(monkeypatch):
    monkeypatch.setattr(nvptx, "first_ptx", None)

    @qd.kernel
    def plain(x: qd.types.ndarray(qd.f32, 1)):
        for _ in range(1):
            x[0] += 1.0

    plain(np.zeros(9, np.float32))
    assert executable(plain).is_full


def test_ptx_of_an_earlier_program_is_used_at_once(monkeypatch):
    share = share_kernel()
    check(share)
    settle()
    IN_PROCESS.clear()
    start(tiered="auto")
    monkeypatch.setattr(nvptx, "first_ptx", None)
    check(share)
    assert executable(share).is_full


def test_first_tier_code_that_does_not_fit_is_no_error(monkeypatch):
    fit = CudaExecutable._fit

    def never(self, k, function):
        if not self.is_full:
            raise CudaError("too many registers")
        fit(self, k, function)

    monkeypatch.setattr(CudaExecutable, "_fit", never)
    share = share_kernel()
    check(share)
    assert executable(share).is_full


def test_full_code_that_fails_leaves_the_first_tier(monkeypatch):
    monkeypatch.setattr(nvptx.FullJob, "plain", lambda self: (nvptx.__name__, ("no", *self[1:])))
    share = share_kernel()
    check(share)
    settle()
    check(share)
    assert not executable(share).is_full
    assert executable(share)._pending.lost


def test_full_code_waits_until_no_call_needs_the_driver(tiered, monkeypatch):
    monkeypatch.setattr(background, "_QUIET", 0.05)
    share = share_kernel()
    with tiered.awaited():
        check(share)
        time.sleep(0.2)
        assert not executable(share).is_full
    settle()
    assert executable(share).is_full


def test_a_program_that_ends_meanwhile_is_not_waited_for(gate):
    share = share_kernel()
    check(share)
    found = executable(share)
    qd.reset()
    gate.set()
    settle()
    assert not found.is_full


def test_launches_of_threads_go_on_while_code_is_swapped(gate):
    kernels = [share_kernel() for _ in range(3)]
    for kernel in kernels:
        check(kernel)
    failed, stop = [], threading.Event()

    def launching():
        try:
            while not stop.is_set():
                for n, kernel in enumerate(kernels, 2):
                    check(kernel, n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=launching) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.set()
    settle()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert all(executable(kernel).is_full for kernel in kernels)


@pytest.mark.parametrize("more", ["", "import os; os.kill(os.getpid(), 9)", "qd.reset()",
                                  "import os; pid = os.fork(); pid or os._exit(0); "
                                  "assert os.waitpid(pid, 0)[1] == 0"])  # fmt: skip
@pytest.mark.parametrize("ahead", [False, True], ids=["tiers", "ahead"])
def test_a_process_does_not_wait_for_what_is_in_the_making(tmp_path, ahead, more):
    """The helper process never answers."""
    program = tmp_path / "program.py"
    program.write_text(f"""
from tests import cuda_sim
with cuda_sim.simulated():
    import numpy as np
    from qd_studio import engine as qd
    from qd_studio.engine.backends.cpu import background
    from qd_studio.engine.backends.cuda import background as of_cuda
    background.BOOT = "import time; time.sleep(1000)"
    of_cuda._SHORT = 0.0  # a thread makes short code
    qd.init(arch=qd.cuda, offline_cache=False)

    @qd.kernel
    def share(x: qd.types.ndarray(qd.i32, 1), n: qd.i32):
        for i in x:
            x[i] = x[i] // n
        for i in x:
            x[i] += n

    x = np.arange(100, dtype=np.int32)
    if {ahead}:
        qd.compile_ahead(share, x, 3)
    else:
        share(x, 3)
        assert (x == np.arange(100) // 3 + 3).all()
        assert not next(iter(share.launchers.variants.values())).executable.is_full
    while background._process is None:
        pass
    print(background._process.pid, flush=True)
    {more}
""")
    paths = os.pathsep.join((os.getcwd(), os.environ.get("PYTHONPATH", "")))
    environment = os.environ | {"PYTHONPATH": paths, "QD_TIERED": "auto"}
    # Python 3.12 warns of any fork in a process that has threads.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", str(program)]
    done = subprocess.run(command, env=environment, timeout=60, capture_output=True, text=True)
    if "kill" in more:  # what only sleeps does not see it
        os.kill(int(done.stdout), signal.SIGKILL)
    assert ends(int(done.stdout))
    assert done.returncode == (-9 if "kill" in more else 0), done.stderr
    assert done.stderr == ""
