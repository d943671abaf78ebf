"""Streams and events: on every backend the same results, on CUDA beside the default stream."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import QuadrantsRuntimeError

from tests import cuda_sim

ARCHES = ("cpu", "interp", "cuda")


@qd.kernel
def add(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        x[i] += a


@qd.kernel(graph=True)
def graph(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] += 1


@qd.kernel
def branches(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    with qd.stream_parallel():
        for i in range(x.shape[0]):
            x[i] += 1
        for i in range(x.shape[0]):
            x[i] *= 2
    with qd.stream_parallel():
        for i in range(y.shape[0]):
            y[i] += 3


@qd.kernel
def beyond(x: qd.types.NDArray[qd.f32, 1], n: qd.i32):
    for i in range(n):
        x[i] = 1.0


@pytest.fixture
def sim(monkeypatch):
    pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    with cuda_sim.simulated() as state:
        qd.init(arch=qd.cuda, enable_fallback=False)
        yield state
        qd.reset()


@pytest.fixture(params=ARCHES)
def program(request):
    if request.param == "cuda":
        request.getfixturevalue("sim")
        yield request.param
        return
    qd.init(arch=getattr(qd, request.param))
    yield request.param
    qd.reset()


def test_kernels_on_a_stream_compute_what_they_say(program):
    x, y = qd.ndarray(qd.f32, 100), qd.ndarray(qd.f32, 100)
    with qd.create_stream() as stream:
        assert bool(stream.handle) == (program == "cuda")
        for _ in range(4):  # launch stubs too
            add(x, 1.0, qd_stream=stream)
        add(y, 5.0)
        add(x, a=2.0, qd_stream=stream)
        stream.synchronize()
    assert x.to_numpy().tolist() == [6.0] * 100
    assert y.to_numpy().tolist() == [5.0] * 100


def test_no_stream_is_the_default_one(program):
    x = qd.ndarray(qd.f32, 4)
    add(x, 1.0, qd_stream=None)
    assert x.to_numpy().tolist() == [1.0] * 4


def test_a_stream_waits_for_an_event_of_another(program):
    x = qd.ndarray(qd.f32, 50)
    with qd.create_stream() as one, qd.create_stream() as two, qd.create_event() as event:
        add(x, 1.0, qd_stream=one)
        event.record(one)
        event.wait(two)
        add(x, 2.0, qd_stream=two)
        event.record(two)
        event.wait()
        add(x, 4.0)
        event.record()
        event.synchronize()
        assert x.to_numpy().tolist() == [7.0] * 50


def test_host_arrays_are_copied_there_and_back(program):
    x = np.ones(10, np.float32)
    with qd.create_stream() as stream:
        add(x, 2.0, qd_stream=stream)
        add(x, 2.0, qd_stream=stream)
    assert x.tolist() == [5.0] * 10


def test_methods_take_a_stream(program):
    @qd.data_oriented
    class Counter:
        def __init__(self):
            self.x = qd.ndarray(qd.f32, 3)

        @qd.kernel
        def step(self, a: qd.f32):
            for i in range(3):
                self.x[i] += a

    counter = Counter()
    with qd.create_stream() as stream:
        counter.step(1.0, qd_stream=stream)
        Counter.step(counter, 2.0, qd_stream=stream)
        stream.synchronize()
    assert counter.x.to_numpy().tolist() == [3.0] * 3


def test_what_cannot_have_a_stream_says_so(program):
    x = qd.ndarray(qd.f32, 4)
    loss = qd.field(qd.f32, (), needs_grad=True)

    @qd.kernel
    def write():
        loss[None] = 2.0

    with qd.create_stream() as stream:
        with pytest.raises(RuntimeError, match="qd_stream is not compatible with graph=True"):
            graph(x, qd_stream=stream)
        with pytest.raises(RuntimeError, match="qd_stream is not compatible with autodiff"):
            add.grad(x, 1.0, qd_stream=stream)
        with (
            pytest.raises(RuntimeError, match="qd_stream is not compatible with autograd Tape"),
            qd.ad.Tape(loss),
        ):
            write(qd_stream=stream)
        with pytest.raises(TypeError, match=r"qd\.create_stream\(\), not 5"):
            add(x, 1.0, qd_stream=5)


def test_what_was_destroyed_cannot_be_used(program):
    x = qd.ndarray(qd.f32, 4)
    stream, event = qd.create_stream(), qd.create_event()
    stream.destroy()
    stream.destroy()
    event.destroy()
    for use in (
        stream.synchronize,
        event.record,
        event.wait,
        event.synchronize,
        lambda: add(x, 1.0, qd_stream=stream),
    ):
        with pytest.raises(QuadrantsRuntimeError, match="it was destroyed"):
            use()


def test_streams_end_with_their_program(program):
    stream, event = qd.create_stream(), qd.create_event()
    qd.reset()
    with pytest.raises(QuadrantsRuntimeError, match="its program has ended"):
        stream.synchronize()
    with pytest.raises(QuadrantsRuntimeError, match="its program has ended"):
        event.record()
    with pytest.raises(QuadrantsRuntimeError, match=r"qd\.init"):
        qd.create_stream()
    assert (stream.handle, event.handle) == (0, 0)


def test_branches_of_a_kernel_join(program):
    x, y = qd.ndarray(qd.f32, 64), qd.ndarray(qd.f32, 64)
    for _ in range(3):
        branches(x, y)
        add(x, 1.0)
    assert x.to_numpy().tolist() == [21.0] * 64
    assert y.to_numpy().tolist() == [9.0] * 64


def test_other_libraries_are_reported_the_handle(sim):
    stream = qd.create_stream()
    assert stream.__cuda_stream__() == (0, stream.handle)

    class Foreign:
        def __cuda_stream__(self):
            return 0, stream.handle

    class Torch:
        cuda_stream = stream.handle

    x = qd.ndarray(qd.f32, 8)
    add(x, 1.0, qd_stream=Foreign())
    add(x, 1.0, qd_stream=Torch())
    stream.synchronize()
    assert x.to_numpy().tolist() == [2.0] * 8


def test_nothing_has_happened_before_a_stream_is_waited_for(sim):
    x = qd.ndarray(qd.f32, 8)
    qd.sync()
    stream = qd.create_stream()
    add(x, 1.0, qd_stream=stream)
    qd.sync()
    assert x.to_numpy().tolist() == [0.0] * 8  # `qd.sync` is for the default stream
    stream.synchronize()
    assert x.to_numpy().tolist() == [1.0] * 8


@pytest.mark.parametrize("options", [{"debug": True}, {"check_out_of_bound": True}])
def test_a_failure_on_a_stream_is_raised_by_its_own_call(sim, options):
    qd.reset()
    qd.init(arch=qd.cuda, enable_fallback=False, **options)
    x = qd.ndarray(qd.f32, 8)
    x.fill(3.0)
    stream, other = qd.create_stream(), qd.create_stream()
    add(x, 1.0, qd_stream=other)
    with pytest.raises(AssertionError, match="Out of bound access"):
        beyond(x, 9, qd_stream=stream)
    for one in (stream, other):
        beyond(x, 8, qd_stream=one)
        one.synchronize()


def test_reset_destroys_what_is_left(sim):
    streams = [qd.create_stream() for _ in range(3)]
    events = [qd.create_event() for _ in range(2)]
    device = streams[0]._program.device
    assert len(device.streams.alive) == 3
    assert len(device.streams.events) >= len(events)
    qd.reset()
    assert not device.streams.alive
    assert not device.streams.events
