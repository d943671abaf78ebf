"""The two tiers of the CPU: quickly made code first, full code from a helper process."""

import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background, baseline, first_tier, host
from qd_studio.engine.backends.cpu.code import CodeJob, full_code
from qd_studio.engine.backends.cpu.executable import CpuExecutable
from qd_studio.engine.backends.llvm import toolchain
from qd_studio.engine.backends.llvm.kernel_text import TextSource
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.runtime.compile import compile_kernel

from tests.fuzz.tiers import interrupted, no_helper

pytestmark = pytest.mark.skipif(not background.available(), reason="no helper process here")


@qd.kernel
def scale(a: qd.types.ndarray(qd.f32, 1), s: qd.f32):
    for i in a:
        a[i] = a[i] * s + 1.0


@qd.kernel
def collect(a: qd.types.ndarray(qd.i64, 1), n: qd.i32) -> qd.i64:
    found = qd.i64(0)
    qd.loop_config(serialize=True)  # it reads what earlier iterations wrote
    for i in range(n):
        k = 0
        while k < 50:
            a[i % a.shape[0]] += k * i
            k += 1
        found += a[i % a.shape[0]]
    return found


@qd.kernel
def counted(a: qd.types.ndarray(qd.i32, 1)):
    for _ in a:
        qd.atomic_add(a[0], 1)


@pytest.fixture(autouse=True)
def nothing_in_memory():
    """Forget what other tests have compiled."""
    IN_PROCESS.clear()


@pytest.fixture
def tiered():
    """A program with both tiers, whose helper makes nothing by itself."""
    with no_helper():
        qd.init(arch=qd.cpu, tiered=True, offline_cache=False, fast_math=False)
        yield
        qd.reset()


def executable(kernel):
    """The executable of the only variant of a kernel."""
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


def collected(n, shape=7):
    """What `collect` leaves."""
    a = np.zeros(shape, np.int64)
    found = 0
    for i in range(n):
        a[i % shape] += 1225 * i
        found += int(a[i % shape])
    return a, found


def test_the_first_launches_run_quick_code_and_later_ones_full_code(tiered):
    a = qd.ndarray(qd.f32, shape=100)
    for _ in range(3):
        scale(a, 0.5)
    found = executable(scale)
    assert isinstance(found, first_tier.TieredExecutable)
    assert not found.is_full
    quick = weakref.ref(found._first)
    found._pending.finish()
    for _ in range(3):
        scale(a, 0.5)
    assert found.is_full
    assert quick() is None  # and its memory is free
    assert "launch stub" in scale._hot.__code__.co_filename
    expected = np.zeros(100, np.float32)
    for _ in range(6):
        expected = expected * np.float32(0.5) + np.float32(1)
    assert np.array_equal(a.to_numpy(), expected)


def test_a_launch_of_quick_code_keeps_no_argument_alive(tiered):
    enabled = gc.isenabled()
    gc.disable()
    try:
        a = np.zeros(100, np.float32)
        scale(a, 0.5)
        assert not executable(scale).is_full
        gone = weakref.ref(a)
        del a
        assert gone() is None
    finally:
        if enabled:
            gc.enable()


def test_a_stub_of_quick_code_goes_on_with_full_code(tiered):
    a = qd.ndarray(qd.f32, shape=100)
    expected = np.zeros(100, np.float32)

    def launch(times):
        for _ in range(times):
            scale(a, 0.5)
            expected[:] = expected * np.float32(0.5) + np.float32(1)

    launch(12)
    found, stub = executable(scale), scale._hot
    assert not found.is_full
    assert "launch stub" in stub.__code__.co_filename
    assert stub.__globals__["enter"] == found._enter
    found._pending.finish()
    launch(3)
    assert found.is_full and scale._hot is stub
    assert stub.__globals__["enter"] is found._full
    assert np.array_equal(a.to_numpy(), expected)


def test_a_stub_of_quick_code_is_interrupted_as_any_launch(tiered, monkeypatch):
    # On a busy computer the first launches might take longer than the compile of full code.
    monkeypatch.setattr(background, "_FIXED", 60.0)
    for limit in ("_LEAST", "_MOST"):
        monkeypatch.setattr(first_tier, limit, 60.0)
    a = qd.ndarray(qd.i64, shape=7)
    for _ in range(12):
        collect(a, 3)
    assert "launch stub" in collect._hot.__code__.co_filename
    assert not executable(collect).is_full
    a.fill(0)
    with interrupted(100):
        found = collect(a, 200)
    expected, total = collected(200)
    assert found == total
    assert np.array_equal(a.to_numpy(), expected)
    assert executable(collect).is_full


@pytest.mark.parametrize("operations", [0, 3, 100, 1000, 4000])
def test_an_interrupted_launch_leaves_nothing_behind(tiered, operations):
    a = qd.ndarray(qd.i64, shape=7)
    with interrupted(operations):
        found = collect(a, 200)
    expected, total = collected(200)
    assert found == total
    assert np.array_equal(a.to_numpy(), expected)
    assert executable(collect).is_full


def test_a_long_launch_does_not_stay_in_quick_code(tiered):
    a = qd.ndarray(qd.i64, shape=7)
    collect(a, 10)
    assert not executable(collect).is_full
    a.fill(0)
    n = 3_000_000
    # Each element holds a sum of numbers that are all in one class modulo its size.
    expected = sum(1225 * i * ((n - 1 - i) // 7 + 1) for i in range(n))
    assert (collect(a, n) - expected) % 2**64 == 0
    assert executable(collect).is_full


@qd.kernel
def nested(a: qd.types.ndarray(qd.i32, 1), n: qd.i32):
    for i in a:
        for j in range(3):
            for k in range(4):
                if k > j:
                    a[i] += k
        for k in range(1000):
            a[i] += k
        if n > 0:
            for k in range(2):
                a[i] += k
        for k in range(n):
            a[i] += k


def test_short_loops_do_not_look_at_the_clock(tiered, monkeypatch):
    weights = []
    make = first_tier.tier_code

    def noted(kernel, *others):
        weights.extend(weight for _, weight in kernel.stops)
        return make(kernel, *others)

    monkeypatch.setattr(first_tier, "tier_code", noted)
    a = np.zeros(5, np.int32)
    nested(a, 3)
    # Of the outer loop, over j, of 1,000 iterations, in the branch, of unknown length.
    assert sum(weight > 0 for weight in weights) == 5
    assert a[0] == sum(k for j in range(3) for k in range(4) if k > j) + 999 * 500 + 1 + 3


def test_large_arrays_are_written_by_full_code_alone(tiered, monkeypatch):
    monkeypatch.setattr(first_tier, "_COPIED", 4 * 99)
    a = qd.ndarray(qd.f32, shape=100)
    scale(a, 0.5)
    assert executable(scale).is_full


def test_launches_that_take_as_long_as_the_compile_end_the_first_tier(tiered):
    a = qd.ndarray(qd.f32, shape=100)
    scale(a, 0.5)
    executable(scale)._pending.spent = 10.0
    scale(a, 0.5)
    assert executable(scale).is_full


def test_a_late_launch_is_undone_before_another_thread_can_run(tiered):
    a = qd.ndarray(qd.i64, shape=7)
    collect(a, 3)
    found, before, seen = executable(collect), a.to_numpy(), []
    enter = found._enter_first

    def watched(*args):
        code = enter(*args)
        seen.append(a.to_numpy())
        return code

    object.__setattr__(found, "_enter_first", watched)
    with interrupted(100):
        collect(a, 200)
    assert executable(collect).is_full
    assert len(seen) == 1 and np.array_equal(seen[0], before)
    assert not np.array_equal(a.to_numpy(), before)


def test_other_threads_at_work_keep_launches_out_of_the_first_tier(tiered, monkeypatch):
    monkeypatch.undo()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            sum(range(100))

    from qd_studio.engine.backends.cpu.first_tier import _waits

    assert _waits(threading.__file__)
    assert not _waits(np.__file__)
    assert not _waits(__file__)
    thread = threading.Thread(target=work)
    alone = first_tier.__dict__["_alone"]
    assert alone()  # the fixture's
    thread.start()
    try:
        import importlib.util

        spec = importlib.util.find_spec(first_tier.__name__)
        fresh = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fresh)
        deadline = time.monotonic() + 10  # at first the thread is still being started
        while fresh._alone() and time.monotonic() < deadline:
            time.sleep(0)
        assert not fresh._alone()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("kind", ["calls", "off", "plain", "profiled"])
def test_kernels_that_have_no_first_tier(kind):
    options = {
        "off": {"tiered": False}, "plain": {"external_optimization_level": 0},
        "profiled": {"kernel_profiler": True},
    }.get(kind, {})  # fmt: skip
    with no_helper():
        qd.init(arch=qd.cpu, offline_cache=False, **{"tiered": True, **options})

        @qd.real_func
        def twice(x: qd.i32) -> qd.i32:
            return 2 * x

        @qd.kernel
        def calls(a: qd.types.ndarray(qd.i32, 1)):
            for i in a:
                a[i] = twice(i)

        kernel = calls if kind == "calls" else counted
        kernel(qd.ndarray(qd.i32, shape=3))
        assert not isinstance(executable(kernel), first_tier.TieredExecutable)
        qd.reset()


@qd.kernel
def moved(a: qd.types.ndarray(qd.f32, 1), b: qd.types.ndarray(qd.i64, 1), n: qd.i32):
    for i in a:
        if i < n and a[i] > 0.5:
            a[i] = qd.cast(b[i] * n, qd.f32)


@qd.kernel
def root(a: qd.types.ndarray(qd.f32, 1), n: qd.i32):
    for i in range(n):
        a[i] = qd.sqrt(a[i])


@pytest.mark.parametrize(
    ("kernel", "options", "quick"),
    [
        # Of floats that are only moved, compared and converted there is one result.
        ("moved", {"tiered": "exact"}, True), ("scale", {"tiered": "exact"}, False),
        ("root", {"tiered": "exact", "fast_math": False}, True),
        ("scale", {"tiered": "auto"}, True), ("moved", {"tiered": False}, False),
    ],
)  # fmt: skip
def test_kernels_whose_tiers_return_the_same_bits_have_them_with_exact(kernel, options, quick):
    with no_helper():
        qd.init(arch=qd.cpu, offline_cache=False, **options)
        a, b = qd.ndarray(qd.f32, shape=10), qd.ndarray(qd.i64, shape=10)
        chosen = {"moved": moved, "scale": scale, "root": root}[kernel]
        chosen(*{"moved": (a, b, 3), "scale": (a, 2.0), "root": (a, 3)}[kernel])
        assert isinstance(executable(chosen), first_tier.TieredExecutable) == quick
        qd.reset()


def test_many_threads_launch_while_the_code_changes():
    qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
    a = qd.ndarray(qd.i32, shape=10)
    a.fill(0)

    @qd.kernel
    def counted(a: qd.types.ndarray(qd.i32, 1)):
        for _ in a:
            qd.atomic_add(a[0], 1)

    def work():
        for _ in range(300):
            counted(a)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (variant,) = counted.launchers.variants.values()
    variant.compiled.artifact.machine_code()
    counted(a)
    assert a.to_numpy()[0] == 4 * 300 * 10 + 10
    qd.reset()


@pytest.mark.parametrize("ready", [False, True])
def test_code_in_memory_whose_full_code_is_pending_or_ready_is_launched(ready):
    """A second program finds the code of the first."""
    a = np.ones(10, np.float32)
    with no_helper():
        for expected in (3.0, 7.0):
            qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
            scale(a, 2.0)
            assert a[0] == expected
            found = executable(scale)
            assert (type(found) is CpuExecutable) == (ready and expected == 7.0)
            if ready and expected == 3.0:
                found._pending.finish()
            qd.reset()


def test_a_program_without_tiers_completes_the_code_that_another_began():
    a = np.ones(10, np.float32)
    with no_helper():
        qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
        scale(a, 2.0)
        qd.init(arch=qd.cpu, tiered=False, offline_cache=False)
        scale(a, 2.0)
        assert type(executable(scale)) is CpuExecutable
        assert a[0] == 7.0
        qd.reset()


def test_a_program_may_end_while_its_code_is_made():
    for _ in range(5):
        qd.init(arch=qd.cpu, tiered=True, offline_cache=False)
        a = qd.ndarray(qd.f32, shape=10)
        scale(a, 2.0)
        assert a.to_numpy()[3] == 1.0
        qd.reset()


def test_what_a_capture_reports_is_full_code():
    with no_helper():
        qd.init(arch=qd.cpu, tiered=True)
        scale(qd.ndarray(qd.f32, shape=10), 2.0)
        variant = next(iter(scale.launchers.variants.values()))
        found = compile_kernel(variant._request)
        assert type(found.executable) is CpuExecutable
        assert found.artifact.code
        assert not executable(scale).is_full
        qd.reset()


# --- the helper process


def job(text="define i32 @k(ptr %kernarg) {\n  ret i32 0\n}\n"):
    return CodeJob(TextSource(text), ("k",), toolchain.host_target(), 2, "whole", False)


def settled(pending, seconds=60.0):
    end = time.monotonic() + seconds
    while not pending.ready and not pending.lost and time.monotonic() < end:
        time.sleep(0.01)
    return pending.ready


def test_code_that_is_passed_on_waits_for_no_fork():
    """A fork has taken the first lock, and waits until a result is passed on."""
    pending = background.Pending(job())
    found = []
    pending.then(lambda: found.append(pending.finish()))
    thread = threading.Thread(target=lambda: pending.settle(b"code"), daemon=True)
    with background.COMPLETING:
        thread.start()
        thread.join(10)
        assert found == [b"code"]
    thread.join()


def test_the_helper_makes_the_same_code_as_the_process():
    pending = background.submit(job())
    called = threading.Event()
    pending.then(called.set)
    assert settled(pending)
    assert pending.finish() == full_code(job())
    assert called.wait(10)


def test_what_the_helper_refuses_is_said_once_and_raised_when_it_is_needed(capfd):
    first, second = background.submit(job("nonsense")), background.submit(job("nonsense"))
    assert not settled(first)
    assert not settled(second)
    assert capfd.readouterr().err.count("a kernel keeps its unoptimised code") <= 1
    with pytest.raises(qd.QuadrantsInternalError, match="LLVM refuses"):
        first.finish()


def test_a_helper_that_dies_loses_no_kernel():
    assert settled(background.submit(job()))
    os.kill(background._process.pid, signal.SIGKILL)
    pending = background.submit(job())
    settled(pending)
    # It may have died of the job.
    assert pending.finish() == full_code(job()._replace(pipeline="straight"))
    assert settled(background.submit(job()))
    background._deaths = 0


@pytest.mark.skipif(not host.maps_objects(), reason="LLVM makes the first-tier code")
def test_the_entry_function_of_two_specializations_is_compiled_once():
    qd.init(arch=qd.cpu, offline_cache=False, tiered=True)

    @qd.kernel
    def scaled_once(x: qd.types.ndarray()):
        for i in x:
            x[i] = x[i] * 2

    baseline._kept.cache_clear()
    for dtype in ("f4", "f8"):
        a = np.ones(9, dtype)
        scaled_once(a)
        assert (a == 2).all()
    assert baseline._kept.cache_info().hits == 1
