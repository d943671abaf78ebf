"""PoCL: launches of code that is not optimised while full code is made, and the swap."""

import itertools
import os
import threading
import time

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cpu import background as helping
from qd_studio.engine.backends.opencl import background, build, full, hardware, tiered
from qd_studio.engine.backends.opencl.executable import OpenclExecutable
from qd_studio.engine.cache.in_process import IN_PROCESS

HAS = not hardware.unavailable() and hardware.usual().is_pocl
pytestmark = [pytest.mark.opencl, pytest.mark.skipif(not HAS, reason="there is no PoCL here")]

numbers = itertools.count(2)


def start(**options):
    IN_PROCESS.clear()
    defaults = {"offline_cache": False, "tiered": "auto", "opencl_mapping": "chunks"}
    qd.init(arch=qd.opencl, **{**defaults, **options})


@pytest.fixture
def gate(monkeypatch):
    """Full code in the background is made when this is set."""
    event = threading.Event()
    monkeypatch.setattr(background, "_wait_for_quiet", lambda: event.wait(30))
    start()
    yield event
    event.set()
    settle()


def settle():
    """Wait for all code in the making."""
    late = time.monotonic() + 60
    while helping._queue or helping._running or background._thread.running:
        assert time.monotonic() < late
        time.sleep(0.005)


def executable(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable


def share_kernel():
    """A kernel of several tasks that no cache has."""
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


def check(kernel, n=7, size=550):
    x, y = np.arange(-50, size - 50, dtype=np.int32), np.zeros(size, np.int32)
    kernel(x, y, n)
    right = x // n + np.arange(size) % n
    assert (y[1:] == right[1:]).all()
    assert y[0] > right[0]


def test_a_kernel_begins_in_the_first_tier_and_goes_on_in_full_code(gate):
    share = share_kernel()
    check(share)
    found = executable(share)
    first = found.program
    for n in range(1, 12):
        check(share, n)  # the stub is made meanwhile
    assert not found.is_full and found.program is first
    pool = found.arguments()
    held = pool.free[-1]
    gate.set()
    settle()
    assert found.is_full and found.program is not first
    assert found.program is found.making.program()
    assert pool.enter is pool._full_enter  # a launch has no step more than without tiers
    assert held.kernels[0][0] != pool.kernels()[0][0] and len(held.kernels) == 3
    for n in range(1, 12):
        check(share, n)


def add_kernel():
    number = next(numbers)

    @qd.kernel
    def add(x: qd.types.ndarray(qd.f32, 1)):
        for i in x:
            x[i] += qd.static(float(number))

    return add, number


def code_loaded():
    """Files with machine code that PoCL has made and loaded."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        return {line.split()[-1] for line in lines if line.rstrip().endswith(".so")}


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="/proc is not there")
@pytest.mark.parametrize("make", [lambda: add_kernel()[0], share_kernel], ids=["task", "tasks"])
def test_after_the_swap_a_launch_compiles_nothing(gate, make):
    kernel = make()
    args = [qd.ndarray(qd.f32, 9)] if kernel.__name__ == "add" else [
        qd.ndarray(qd.i32, 9), qd.ndarray(qd.i32, 9), 3]  # fmt: skip
    before = code_loaded()
    kernel(*args)
    qd.sync()
    first = code_loaded()
    assert first - before
    gate.set()
    settle()
    assert executable(kernel).is_full
    made = code_loaded()
    assert made - first
    kernel(*args)
    qd.sync()
    assert not code_loaded() - made


def test_compiling_full_code_touches_no_memory_of_the_program(gate):
    add, number = add_kernel()
    x = qd.ndarray(qd.f32, 9)
    add(x)
    found = executable(add)
    full.compile_launches(found.device.context, found.program, found.tasks, found.layout.size)
    found.making.pending.finish()
    program = found.making.loaded()
    found.compile(program)
    found.complete(program)
    assert (x.to_numpy() == number).all()


def test_a_buffer_on_another_stream_gets_full_code_too(gate):
    add, number = add_kernel()
    x, stream = qd.ndarray(qd.f32, 9), qd.create_stream()
    add(x, qd_stream=stream)
    stream.synchronize()
    gate.set()
    settle()
    found = executable(add)
    assert found.is_full
    for _ in range(4):
        add(x, qd_stream=stream)
        add(x)
        stream.synchronize()
        qd.sync()
    assert (x.to_numpy() == 9 * number).all()


def test_work_that_is_not_known_to_be_small_waits_for_full_code(gate, monkeypatch):
    monkeypatch.setattr(build, "build_first", None)
    monkeypatch.setattr(tiered, "_MOST", 1000)
    share = share_kernel()
    check(share)
    assert executable(share).is_full  # and there was no first tier
    assert not background._thread.waiting


def test_a_launch_that_is_not_small_ends_the_first_tier(gate, monkeypatch):
    share = share_kernel()
    check(share)
    found = executable(share)
    least = found.making.work.of(found.arguments().free[-1].ints)
    monkeypatch.setattr(tiered, "_MOST", 4 * least)
    check(share, size=1000)
    assert not found.is_full
    check(share, size=100_000)
    assert found.is_full


def test_a_launch_that_reads_its_bounds_from_memory_has_no_first_tier(gate):
    add = next(numbers)

    @qd.kernel
    def count(x: qd.types.ndarray(qd.i32, 1)):
        for i in x:
            left = x[i]
            while left > 0:
                x[i] += qd.static(add)
                left -= 1

    x = np.full(5, 3, np.int32)
    count(x)
    assert (x == 3 + 3 * add).all()
    assert type(executable(count)) is OpenclExecutable


@pytest.mark.parametrize(
    ("options", "real", "tiers"),
    [
        ({"tiered": "off"}, False, False),
        ({"tiered": "exact"}, False, True),
        ({"tiered": "exact"}, True, False),
        ({"tiered": "exact", "fast_math": False}, True, True),
        ({"tiered": "auto"}, True, True),
        ({"kernel_profiler": True}, True, False),
        ({"opencl_mapping": "lanes"}, True, False),
    ],
    ids=str,
)
def test_the_kernels_that_have_tiers(options, real, tiers, gate):
    start(**options)
    kernel = add_kernel()[0] if real else share_kernel()
    if real:
        kernel(np.zeros(4, np.float32))
    else:
        check(kernel)
    assert isinstance(executable(kernel), tiered.TieredExecutable) == tiers


def test_what_waits_for_full_code_gets_it_from_the_next_launch_on(gate):
    share = share_kernel()
    check(share)
    found = executable(share)
    assert not found.making.settled(wait=False)
    assert found.making.settled(wait=True) and not found.is_full
    check(share)
    assert found.is_full


def test_a_program_loads_what_the_helper_has_made_for_the_last_one(gate, monkeypatch):
    share = share_kernel()
    check(share)
    assert executable(share).making.finish()
    qd.init(arch=qd.opencl, offline_cache=False, tiered="auto", opencl_mapping="chunks")
    monkeypatch.setattr(build, "built", None)
    check(share)
    assert type(executable(share)) is OpenclExecutable


def test_full_code_builds_if_the_first_tier_does_not(gate, monkeypatch):
    def refused(*args):
        raise qd.QuadrantsCompilationError("no")

    monkeypatch.setattr(build, "build_first", refused)
    share = share_kernel()
    check(share)
    assert executable(share).is_full


def test_many_threads_launch_while_the_code_is_replaced(gate):
    share = share_kernel()
    check(share)
    errors = []

    def launch():
        try:
            for n in range(1, 40):
                check(share, n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=launch) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    settle()
    assert executable(share).is_full and not errors


def test_a_program_that_ends_leaves_the_thread_nothing_to_do(gate):
    share = share_kernel()
    check(share)
    found = executable(share)
    start()
    gate.set()
    settle()
    assert not found.is_full
    check(share)  # as code of the first program that this one may use


def test_the_thread_waits_until_calls_have_their_code(monkeypatch):
    monkeypatch.setattr(background, "_needed", 0.0)
    monkeypatch.setattr(background, "_QUIET", 0.05)
    assert background._is_quiet()
    with background.awaited():
        time.sleep(0.06)
        assert not background._is_quiet()
    assert not background._is_quiet()

    class Event:
        command_execution_status = 1

    event = Event()
    background.launched(event)
    time.sleep(0.06)
    assert not background._is_quiet()
    event.command_execution_status = -5  # a launch that has failed is over as well
    time.sleep(0.06)
    assert background._is_quiet() and not background._launches


# --- work ---------------------------------------------------------------------------------------


def work(kernel, *args):
    kernel(*args)
    found = executable(kernel)
    return found.making.work.of(found.arguments().free[-1].ints)


def array(*shape):
    return qd.ndarray(qd.i32, shape)


X = qd.types.ndarray(qd.i32, 1)


def loops():
    """(kernel, arguments, iterations of the line that counts)."""

    @qd.kernel
    def plain(x: X):
        for i in x:
            x[i] += 1

    @qd.kernel
    def axes(x: qd.types.ndarray(qd.i32, 2)):
        for i, j in qd.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
            x[i, j] += 1

    @qd.kernel
    def inner(x: X, n: qd.i32):
        for i in x:
            for j in range(n):
                x[i] += j

    @qd.kernel
    def triangle(x: X):
        for i in x:
            for j in range(i):
                x[i] += j

    @qd.kernel
    def parts(x: X, n: qd.i32):
        for i in range(n):
            for j in range(i * 1000, min((i + 1) * 1000, x.shape[0])):
                x[j] += 1

    @qd.kernel
    def backwards(x: X, n: qd.i32):
        for i in range(x.shape[0], n):
            x[0] += i

    return [
        (plain, (array(100_000),), 100_000),
        (plain, (array(1),), 1),
        (axes, (array(102, 1002),), 100_000),
        (inner, (array(1000), 100), 100_000),
        (triangle, (array(400),), 160_000),
        (parts, (array(100_000), 100), 100_000),
        (backwards, (array(100_000), 7), 0),
    ]


@pytest.mark.parametrize("number", range(7))
def test_the_work_of_a_launch_is_that_of_its_iterations(number, gate, monkeypatch):
    monkeypatch.setattr(tiered, "_MOST", 1 << 60)
    kernel, args, count = loops()[number]
    found = work(kernel, *args)
    assert count <= found <= 30 * count + 2000
