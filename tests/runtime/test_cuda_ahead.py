"""CUDA: code that is made in the background before a call needs it."""

import itertools
import os
import sys
import threading
import time

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background as helping
from qd_studio.engine.backends.cuda import background, nvptx
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.errors import QuadrantsInternalError

from tests.runtime.cudakit import start

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")


numbers = itertools.count(2)


def scale_kernel():
    """A kernel that no cache has, and what it adds."""
    number = next(numbers)

    @qd.kernel
    def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
        for i in x:
            x[i] = x[i] * a + qd.static(float(number))

    return scale, number


def settle():
    """Wait for all code in the making."""
    late = time.monotonic() + 20
    threads = background._loader, background._ahead
    while (
        helping._queue or helping._running or background._here
        or any(thread.running for thread in threads)
    ):  # fmt: skip
        assert time.monotonic() < late
        time.sleep(0.002)


def executable(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


@pytest.fixture(params=["thread", "helper"])
def gate(request, sim, monkeypatch):
    """PTX in the background is made when this is set."""
    event, ask, made = threading.Event(), helping._Process.ask, nvptx.make_ptx

    def asked(process, pending):
        assert event.wait(20)
        return ask(process, pending)

    def waiting(*args, **options):
        assert threading.current_thread() is threading.main_thread() or event.wait(20)
        return made(*args, **options)

    if request.param == "helper":
        monkeypatch.setattr(background, "_SHORT", 0.0)
    monkeypatch.setattr(helping._Process, "ask", asked)
    monkeypatch.setattr(nvptx, "make_ptx", waiting)
    settle()
    yield event
    event.set()
    settle()


def begun():
    """Wait until a job has begun."""
    late = time.monotonic() + 20
    while helping._running is None and not background._here:
        assert time.monotonic() < late
        time.sleep(0.002)


def test_a_call_waits_for_the_code(gate):
    start()
    x, (scale, number) = qd.ndarray(qd.f32, 4), scale_kernel()
    qd.compile_ahead(scale, x, 3.0)
    assert isinstance(executable(scale), background.LaterExecutable)
    assert executable(scale).meta.name == "scale"
    begun()
    threading.Timer(0.1, gate.set).start()
    began = time.monotonic()
    scale(x, 3.0)
    assert time.monotonic() - began > 0.05
    scale(x, 3.0)
    scale(x, 3.0)
    assert (x.to_numpy() == 13 * number).all()
    assert type(executable(scale).loaded).__name__ == "CudaExecutable"


def test_the_driver_has_it_before_the_call(gate, sim):
    device = start()
    x, (scale, number) = qd.ndarray(qd.f32, 4), scale_kernel()
    gate.set()
    qd.compile_ahead(scale, x, 3.0)
    settle()
    assert len(device.ahead) == 1
    loads = sim.calls["cuModuleLoadDataEx"]
    scale(x, 3.0)
    assert sim.calls["cuModuleLoadDataEx"] == loads
    assert (x.to_numpy() == number).all()


def test_other_kernels_are_compiled_meanwhile(gate):
    start()
    x, (first, one), (second, two) = qd.ndarray(qd.f32, 4), scale_kernel(), scale_kernel()
    qd.compile_ahead(first, x, 3.0)
    second(x, 3.0)
    assert (x.to_numpy() == two).all()
    gate.set()
    first(x, 3.0)
    assert (x.to_numpy() == 3 * two + one).all()


@pytest.mark.parametrize("gate", ["helper"], indirect=True)
def test_its_job_comes_before_full_code_of_first_tiers(gate):
    start(tiered="auto")
    x, (first, _), (second, _) = qd.ndarray(qd.f32, 4), scale_kernel(), scale_kernel()
    pending = [helping.submit(nvptx.FullJob(text, "sm_90", 2)) for text in ("a", "b")]
    begun()
    qd.compile_ahead(first, x, 3.0)
    qd.compile_ahead(second, x, 3.0)
    assert [job.spent > 0 for job in helping._queue] == [False, True, True]
    for other in pending:
        helping._take(other)


@pytest.mark.parametrize("gate", ["helper"], indirect=True)
def test_a_call_makes_what_has_not_begun(gate):
    start()
    x, (first, _), (second, number) = qd.ndarray(qd.f32, 4), scale_kernel(), scale_kernel()
    qd.compile_ahead(first, x, 3.0)
    begun()
    qd.compile_ahead(second, x, 3.0)
    second(x, 3.0)
    assert (x.to_numpy() == number).all()
    assert not gate.is_set()


@pytest.mark.parametrize("gate", ["thread"], indirect=True)
def test_threads_take_short_turns_meanwhile(gate):
    before = sys.getswitchinterval()
    start()
    x, (first, _), (second, _) = qd.ndarray(qd.f32, 4), scale_kernel(), scale_kernel()
    qd.compile_ahead(first, x, 3.0)
    qd.compile_ahead(second, x, 3.0)
    assert sys.getswitchinterval() < 0.001 <= before
    gate.set()
    settle()
    assert sys.getswitchinterval() == before


@pytest.mark.parametrize("gate", ["thread"], indirect=True)
def test_a_process_that_ends_begins_nothing(gate, monkeypatch):
    class Ended:
        def is_alive(self):
            return False

    job = nvptx.FullJob("", "sm_90", 2)
    with monkeypatch.context() as patch:
        patch.setattr(threading, "main_thread", Ended)
        pending = background.begin_ahead(job)
        for thread in list(background._here.values()):
            thread.join(20)
    assert not pending.ready and not pending.here  # it is left to the helper, or made by a thread


def test_the_program_may_end_before(gate):
    start()
    qd.compile_ahead(scale_kernel()[0], qd.ndarray(qd.f32, 4), 3.0)
    qd.reset()
    gate.set()
    settle()
    device = start()
    assert not device.ahead
    x, (scale, number) = qd.ndarray(qd.f32, 4), scale_kernel()
    scale(x, 3.0)
    assert (x.to_numpy() == number).all()


def test_an_error_of_llvm_is_raised_by_the_call(sim, monkeypatch):
    def refuse(*_, **__):
        raise QuadrantsInternalError("LLVM refuses the generated code")

    start()
    x, (scale, _) = qd.ndarray(qd.f32, 4), scale_kernel()
    monkeypatch.setattr(nvptx, "make_ptx", refuse)
    monkeypatch.setattr(nvptx.FullJob, "plain", lambda self: (nvptx.__name__, ("no", *self[1:])))
    qd.compile_ahead(scale, x, 3.0)
    for _ in range(2):
        with pytest.raises(QuadrantsInternalError, match="refuses"):
            scale(x, 3.0)


def test_it_is_kept_on_disk(gate, tmp_path):
    options = {"arch": qd.cuda, "offline_cache_file_path": str(tmp_path)}
    qd.init(**options)
    x, (scale, number) = qd.ndarray(qd.f32, 4), scale_kernel()
    qd.compile_ahead(scale, x, 3.0)
    assert "in the background" in scale.launchers.observed.layers[2].reason
    gate.set()
    scale(x, 3.0)
    settle()
    qd.reset()
    IN_PROCESS.clear()
    qd.init(**options)
    x = qd.ndarray(qd.f32, 4)
    qd.compile_ahead(scale, x, 3.0)
    found = scale.launchers.observed.layers[1]
    assert (found.state, found.source) == ("hit", "disk")
    scale(x, 3.0)
    assert (x.to_numpy() == number).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_waits_for_threads(gate):
    start()
    x, (scale, number) = qd.ndarray(qd.f32, 4), scale_kernel()
    qd.compile_ahead(scale, x, 3.0)
    begun()
    if background._here:
        threading.Timer(0.1, gate.set).start()
    pid = os.fork()
    if not pid:
        os._exit(1 if background._ahead.running or background._here else 0)
    assert os.waitpid(pid, 0)[1] == 0
    gate.set()
    scale(x, 3.0)
    assert np.array_equal(x.to_numpy(), np.full(4, number, np.float32))
