"""Failures of launches on CUDA: whose call raises them, what they name, what works afterwards."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import code
from qd_studio.engine.errors import CudaError

from tests import cuda_sim
from tests.runtime.cudakit import add, array, below, shift, start, total

real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
Result = real.CUresult
A1 = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def chain(x: A1, y: A1, n: qd.i32):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(n):
            v = v * v * 0.5
        y[i] += v


@qd.kernel
def other_chain(x: A1, y: A1, n: qd.i32):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(n):
            v = v * v * 0.25
        y[i] += v


def ways_of_failing():
    """Options, a call that is fine, a call that fails, and words of its error."""
    x = array(np.arange(300.0))

    @qd.kernel
    def beyond(y: A1, n: qd.i32):
        for i in range(n):
            y[i] = 1.0

    @qd.kernel
    def whole(y: A1, most: qd.f32) -> qd.f32:
        found = 0.0
        for i in y:
            assert y[i] < most, "a value is too large"
            found += y[i]
        return found

    @qd.kernel(graph=True)
    def replayed(y: A1, most: qd.Tensor):
        for i in range(y.shape[0]):
            assert y[i] < most[0], "a value is too large"
        for i in range(y.shape[0]):
            y[i] += 0.0

    @qd.kernel
    def steps(y: A1, most: qd.f32):
        for i in range(y.shape[0]):
            assert y[i] < most, "a value is too large"
        for i in range(y.shape[0]):
            y[i] += 0.0

    host = np.arange(300.0, dtype=np.float32)
    limits = {most: array([most]) for most in (1000.0, 200.0)}
    stream = qd.create_stream()
    return {
        "assert": (lambda: below(x, 1000.0), lambda: below(x, 200.0), "a value is too large"),
        "several tasks": (lambda: steps(x, 1000.0), lambda: steps(x, 200.0), "too large"),
        "result": (lambda: whole(x, 1000.0), lambda: whole(x, 200.0), "a value is too large"),
        "host array": (lambda: below(host, 1000.0), lambda: below(host, 200.0), "too large"),
        "graph": (
            lambda: replayed(x, limits[1000.0]), lambda: replayed(x, limits[200.0]), "too large"
        ),
        "stream": (
            lambda: below(x, 1000.0, qd_stream=stream),
            lambda: below(x, 200.0, qd_stream=stream),
            "too large",
        ),
        "index": (lambda: beyond(x, 300), lambda: beyond(x, 301), r"indices \[300\]"),
    }  # fmt: skip


WAYS = ("assert", "several tasks", "result", "host array", "graph", "stream", "index")


@pytest.mark.parametrize("way", WAYS)
def test_under_debug_a_failure_is_raised_by_its_own_call(sim, way):
    start(debug=True)
    fine, fails, words = ways_of_failing()[way]
    for _ in range(12):  # by the slow path, by a launch stub, as a graph
        fine()
        with pytest.raises(qd.QuadrantsAssertionError, match=words) as caught:
            fails()
        error = caught.value
        assert error.line > 0
        assert "y[i]" in error.source_line or "x[i]" in error.source_line
        assert "^^^" in str(error)
        assert f"kernel={error.kernel}" in str(error)
    fine()
    qd.sync()  # nothing is left to be raised, and the device works
    x = array(np.ones(300))
    add(x, x, 1.0)
    assert (x.to_numpy() == 2).all()


def test_under_debug_memory_that_is_not_there_is_the_error_of_its_own_call(sim):
    start(debug=True)
    x, y = array(np.ones(300)), array(np.zeros(300))
    z = array(np.ones(8), qd.i32)
    add(x, y, 1.0)
    shift(z, array(np.ones(8), qd.i32))
    sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
    with pytest.raises(CudaError, match="memory at an illegal address") as caught:
        add(x, y, 1.0)
    assert caught.value.kernel == "add"


def test_checked_indices_are_raised_by_their_own_call_also_without_debug(sim):
    start(check_out_of_bound=True)
    x = array(np.zeros(4))

    @qd.kernel
    def beyond(y: A1, n: qd.i32):
        for i in range(n):
            y[i] = 1.0

    beyond(x, 4)
    for _ in range(3):
        with pytest.raises(qd.QuadrantsAssertionError, match="beyond"):
            beyond(x, 9)
    sim.launched.clear()
    y = array(np.zeros(300))
    chain(y, y, 1)  # checked, too
    assert sim.launched
    assert x.to_numpy().tolist() == [1.0] * 4


@pytest.mark.filterwarnings("ignore:Debug mode is disabled")
def test_a_tape_that_checks_raises_at_the_call_that_breaks_the_rule(sim):
    start()
    x, y = (qd.field(qd.f32, shape=4, needs_grad=True) for _ in range(2))

    @qd.kernel
    def read():
        for i in x:
            y[i] += x[i] * x[i]

    @qd.kernel
    def spoil():
        x[1] = 0.0

    with qd.ad.Tape(validation=True):
        read()
        with pytest.raises(qd.QuadrantsAssertionError, match="global data access rule"):
            spoil()
    qd.sync()


def full_stack():
    """Arguments for which the gradients of `chain` and `other_chain` have too small stacks."""
    x, y = (qd.ndarray(qd.f32, (3,), needs_grad=True) for _ in range(2))
    return x, y, 5


SMALL_STACKS = {"ad_stack_experimental_enabled": True, "ad_stack_size": 2}


@pytest.mark.parametrize("wait", ["sync", "read", "result"])
def test_a_full_adstack_is_raised_by_whatever_waits(sim, wait):
    start(**SMALL_STACKS)
    x = array(np.arange(300.0))
    assert total(x) == sum(range(300))
    a, b, n = full_stack()
    for rounds in (1, 2, n):
        chain.grad(a, b, rounds)
    waits = {"sync": qd.sync, "read": x.to_numpy, "result": lambda: total(x)}
    with pytest.raises(qd.QuadrantsAssertionError, match="Adstack overflow") as caught:
        waits[wait]()
    assert "chain" in caught.value.kernel
    waits[wait]()  # it is raised once
    chain.grad(a, b, 1)
    qd.sync()


def test_under_debug_a_full_adstack_is_raised_by_its_own_call(sim):
    start(debug=True, **SMALL_STACKS)
    a, b, n = full_stack()
    for _ in range(3):
        chain.grad(a, b, 1)
        with pytest.raises(qd.QuadrantsAssertionError, match="Adstack overflow"):
            chain.grad(a, b, n)


def test_of_several_failures_all_are_in_the_error(sim):
    start(**SMALL_STACKS)
    chain.grad(*full_stack())
    other_chain.grad(*full_stack())
    with pytest.raises(qd.QuadrantsAssertionError, match="Adstack overflow") as caught:
        qd.sync()
    assert "chain" in caught.value.kernel
    assert "also failed meanwhile: " in caught.value.__notes__[0]
    assert "other_chain" in caught.value.__notes__[0]


def test_a_failure_that_was_never_waited_for_is_logged_at_the_end(sim, capsys):
    start(**SMALL_STACKS)
    chain.grad(*full_stack())
    qd.reset()
    said = "".join(capsys.readouterr())
    assert "something had failed before the program ended" in said
    assert "Adstack overflow" in said


def test_a_kernel_that_breaks_is_named_and_the_next_program_works(sim):
    device = start()
    x, y = array(np.ones(300)), array(np.zeros(300))
    for _ in range(3):
        add(x, y, 1.0)
    qd.sync()
    sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
    add(x, y, 1.0)
    with pytest.raises(CudaError) as caught:
        qd.sync()
    error = caught.value
    assert (error.kernel, error.code, error.fatal) == ("add", 700, True)
    assert "a kernel accessed memory at an illegal address while waiting for kernels" in str(error)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error)
    assert "qd.init(debug=True) checks indices" in error.hint
    for use in (lambda: add(x, y, 1.0), x.to_numpy, qd.sync, lambda: qd.ndarray(qd.f32, 4)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="memory at an illegal address"):
            use()
    assert not device.alive
    assert start().alive
    x, y = array(np.ones(300)), array(np.zeros(300))
    add(x, y, 1.0)
    assert (y.to_numpy() == 1).all()


def test_a_driver_that_gives_no_context_any_more(sim):
    with cuda_sim.simulated(recovers=False) as sim:
        start()
        x, y = array(np.ones(300)), array(np.zeros(300))
        sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
        add(x, y, 1.0)
        with pytest.raises(CudaError, match="while waiting for kernels"):
            qd.sync()
        for use in (lambda: add(x, y, 1.0), x.to_numpy, lambda: qd.ndarray(qd.f32, 4)):
            with pytest.raises(CudaError, match="while waiting for kernels"):
                use()
        for _ in range(2):
            with pytest.raises(CudaError, match="a new context on Simulated CUDA") as caught:
                start()
            assert caught.value.kernel == "add"
            assert "memory at an illegal address" in caught.value.message
            assert caught.value.hint == "start a new process; arch=qd.cpu works in this one"
        qd.init(arch=qd.cpu, offline_cache=False)
        x, y = array(np.ones(300)), array(np.zeros(300))
        add(x, y, 1.0)
        assert (y.to_numpy() == 1).all()
        qd.reset()


def fresh():
    """A kernel whose code no test has loaded yet."""

    @qd.kernel
    def never_loaded(x: A1, a: qd.f32):
        for i in x:
            x[i] = a

    return never_loaded


@pytest.mark.parametrize("later", ["launch", "load", "array", "graph"])
def test_whatever_call_reports_it_the_kernel_that_broke_is_named(sim, later):
    start()
    x, y = array(np.ones(300)), array(np.zeros(300))
    z = array(np.ones(8), qd.i32)

    @qd.kernel
    def two(x: A1):
        for i in range(x.shape[0]):
            x[i] += 1
        for i in range(x.shape[0]):
            x[i] += 2

    for _ in range(12):
        shift(z, array(np.ones(8), qd.i32))
        two(x)
    qd.sync()
    sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
    add(x, y, 1.0)
    sim.context.queue.finish()  # the device is through with it, and the next call says so
    uses = {
        "launch": lambda: shift(z, z), "load": lambda: fresh()(x, 1.0),
        "array": lambda: qd.ndarray(qd.f32, 5), "graph": lambda: two(x),
    }  # fmt: skip
    with pytest.raises(CudaError) as caught:
        uses[later]()
    error = caught.value
    assert (error.kernel, error.code) == ("add", 700)
    assert not error.line
    assert "the CUDA context is lost" in error.hint
    for use in (*uses.values(), qd.sync, x.to_numpy):
        with pytest.raises(CudaError) as again:
            use()
        assert again.value is error
    assert start().alive


def test_of_several_kernels_each_may_be_the_one_that_broke(sim):
    start()
    x, y = array(np.ones(300)), array(np.zeros(300))
    z = array(np.ones(8), qd.i32)
    sim.die(Result.CUDA_ERROR_LAUNCH_FAILED)
    add(x, y, 1.0)
    shift(z, array(np.ones(8), qd.i32))
    with pytest.raises(CudaError, match="launched since the last wait: add, shift") as caught:
        qd.sync()
    assert caught.value.kernel is None


def test_a_launch_that_the_driver_refuses(sim):
    start()

    @qd.kernel
    def refused(x: qd.types.ndarray(qd.f32, 1)):
        qd.loop_config(name="the_loop")
        for i in x:
            x[i] += 1.25

    x = array(np.zeros(300))
    for _ in range(3):
        refused(x)
    sim.fail("cuLaunchKernel", Result.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    with pytest.raises(CudaError) as caught:
        refused(x)
    error = caught.value
    assert error.kernel == "refused"
    assert "its task 0 (the_loop) with" in str(error)
    assert "for i in x" in error.source_line
    assert "more registers or shared memory than its block can have while launching" in str(error)
    assert "block_dim" in error.hint
    refused(x)
    assert (x.to_numpy() == 5).all()


def test_a_kernel_too_large_for_its_block(sim, monkeypatch):
    start()
    monkeypatch.setattr(code, "attribute", lambda *_: 96)

    @qd.kernel
    def large(x: qd.types.ndarray(qd.f32, 1)):
        for i in x:
            x[i] += 0.375

    with pytest.raises(CudaError) as caught:
        large(array(np.ones(4)))
    error = caught.value
    assert error.kernel == "large"
    assert "has blocks of" in str(error)
    assert "at most 96 of them" in str(error)
    assert "qd.loop_config(block_dim=96) or less" in error.hint
    assert "for i in x" in error.source_line


def test_code_that_the_driver_refuses(sim):
    start()
    sim.configuration.ptx = (6, 0)
    with pytest.raises(CudaError) as caught:
        add(array(np.ones(4)), array(np.ones(4)), 1.0)
    text = str(caught.value)
    assert "the driver is too old for the PTX while loading its code" in text
    assert "Unsupported .version" in text
    sim.configuration.ptx = (9, 0)
    add(array(np.ones(4)), array(np.ones(4)), 1.0)
