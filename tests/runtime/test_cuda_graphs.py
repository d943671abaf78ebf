"""Graphs on CUDA: what is built, what a replay does, loops on the device and on the host."""

import gc
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import logs
from qd_studio.engine.backends.cuda import conditional, graphs, toolkit

from tests import cuda_sim

real = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
Result = real.CUresult
A1 = qd.types.NDArray[qd.f32, 1]
I0 = qd.types.NDArray[qd.i32, 0]
MANY = 5000
"""Cells of loops that one block should not run by itself."""


def four(graph):
    @qd.kernel(graph=graph)
    def k(x: A1, y: A1, a: qd.f32):
        for i in range(x.shape[0]):
            y[i] += a * x[i]
        for i in range(x.shape[0]):
            x[i] += 1
        for i in range(x.shape[0]):
            y[i] += a
        for i in range(x.shape[0]):
            y[i] += x[i]

    return k


@qd.kernel(graph=True)
def loop(x: A1, n: I0):
    while qd.graph.do_while(n):
        for i in range(x.shape[0]):
            x[i] += 1
        for _ in range(1):
            n[()] -= 1


@qd.kernel(graph=True)
def nested(x: A1, n: I0, m: I0):
    for i in range(x.shape[0]):
        x[i] = 0
    while qd.graph.do_while(n):
        for _ in range(1):
            m[()] = 3
        while qd.graph.do_while(m):
            for i in range(x.shape[0]):
                x[i] += 1
            for _ in range(1):
                m[()] -= 1
        for _ in range(1):
            n[()] -= 1
    while qd.graph.do_while(m):
        for i in range(x.shape[0]):
            x[i] += 0.5


@qd.kernel(graph=True)
def failing(x: A1, n: I0):
    while qd.graph.do_while(n):
        for i in range(x.shape[0]):
            x[i] += 1
            assert x[i] < 3, "a value is too large"
        for _ in range(1):
            n[()] -= 1


@qd.kernel(graph=True)
def sections(x: A1, y: A1):
    with qd.graph.parallel_context():
        with qd.graph.parallel():
            for i in range(x.shape[0]):
                x[i] += 1
        with qd.graph.parallel():
            for i in range(y.shape[0]):
                y[i] += 2
    for i in range(x.shape[0]):
        x[i] += y[i]


@pytest.fixture
def start(monkeypatch):
    """Starts a program on a simulated device of this capability."""
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)
    opened = []

    def begin(capability=(9, 0), **options):
        context = cuda_sim.simulated(capability=capability)
        opened.append(context)
        state = context.__enter__()
        qd.init(arch=qd.cuda, enable_fallback=False, **options)
        return state

    logs._said.clear()
    yield begin
    qd.reset()
    for context in reversed(opened):
        context.__exit__(None, None, None)


def facts(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable.graph_facts()


def kinds(kernel):
    return [node["kind"] for node in facts(kernel)["nodes"]]


def counter(value):
    made = qd.ndarray(qd.i32, ())
    made.fill(value)
    return made


def expected(rounds, x, y):
    for a in rounds:
        y = y + a * x
        x = x + 1
        y = y + a + x
    return x, y


@pytest.mark.parametrize("graph", [True, False])
def test_a_replay_takes_other_arrays_and_numbers_as_it_is(start, graph):
    start()
    kernel = four(graph)
    zeros = np.zeros(100)
    rounds = [float(i // 3) for i in range(20)]
    x, y = qd.ndarray(qd.f32, 100), qd.ndarray(qd.f32, 100)
    for a in rounds:
        kernel(x, y, a)
    want = expected(rounds, zeros, zeros)
    assert x.to_numpy().tolist() == want[0].tolist()
    assert y.to_numpy().tolist() == want[1].tolist()
    for size in (100, 1, 3000):  # reallocated, and of other sizes
        u, v = qd.ndarray(qd.f32, size), qd.ndarray(qd.f32, size)
        u.fill(2.0)
        kernel(u, v, 1.5)
        want = expected([1.5], np.full(size, 2.0), np.zeros(size))
        assert v.to_numpy().tolist() == want[1].tolist()
        del u, v
        gc.collect()
    found = facts(kernel)
    assert found["how"] == ("graph" if graph else "auto")
    assert [node["kind"] for node in found["nodes"]] == ["kernel"] * 4
    assert found["edges"] == [[0, 1], [1, 2], [2, 3]]
    assert found["rebuilds"] == 0
    assert found["replays"] == 23 if graph else found["replays"] > 10


@pytest.mark.parametrize("graph", [True, False])
def test_threads_that_have_no_context_replay_too(start, graph):
    """Each thread begins without a current context, and changes what the nodes hold."""
    start()
    kernel = four(graph)
    x, y = qd.ndarray(qd.f32, 40), qd.ndarray(qd.f32, 40)
    rounds = [0.5] * 12
    for a in rounds:
        kernel(x, y, a)
    failed = []

    def work(a):
        try:
            kernel(x, y, a)
        except qd.QuadrantsRuntimeError as error:
            failed.append(error)

    for a in (2.0, 3.0, 3.0):
        thread = threading.Thread(target=work, args=(a,))
        thread.start()
        thread.join()
    assert not failed
    want = expected([*rounds, 2.0, 3.0, 3.0], np.zeros(40), np.zeros(40))
    assert y.to_numpy().tolist() == want[1].tolist()


def test_ordinary_kernels_become_graphs_only_when_they_are_used_often(start):
    start()
    kernel = four(False)
    x, y = qd.ndarray(qd.f32, 8), qd.ndarray(qd.f32, 8)
    kernel(x, y, 1.0)
    assert facts(kernel) is None
    for _ in range(10):
        kernel(x, y, 1.0)
    assert facts(kernel)["how"] == "auto"


def test_equal_parameters_are_not_copied_again(start):
    sim = start()
    kernel = four(True)
    x, y = qd.ndarray(qd.f32, 8), qd.ndarray(qd.f32, 8)
    for _ in range(3):
        kernel(x, y, 1.0)
    for a, copies in ((1.0, 0), (2.0, 1), (2.0, 0)):
        before = dict(sim.calls)
        kernel(x, y, a)
        assert sim.calls["cuGraphLaunch"] == before["cuGraphLaunch"] + 1
        assert sim.calls["cuMemcpyHtoDAsync"] == before["cuMemcpyHtoDAsync"] + copies


@pytest.mark.parametrize("size", [50, MANY])
def test_loops_run_on_the_device(start, size):
    start()
    x = qd.ndarray(qd.f32, size)
    for rounds in (4, 1, 7):
        x.fill(0)
        n = counter(rounds)
        loop(x, n)
        assert x.to_numpy().tolist() == [float(rounds)] * size
        assert n.to_numpy() == 0
    found = facts(loop)
    assert found["how"] == "graph"
    assert found["why"] == ""
    assert {"host"} - set(found["iterations"]) == {"host"}
    if size == MANY:
        assert kinds(loop) == ["while", "kernel", "kernel", "condition"]
        assert found["iterations"] == {"0": 12}


@pytest.mark.parametrize("size", [50, MANY])
@pytest.mark.parametrize("capability", [(9, 0), (8, 0)])
def test_loops_in_loops_begin_again_each_time(start, capability, size, capsys):
    start(capability)
    x = qd.ndarray(qd.f32, size)
    for rounds in (4, 1, 2):
        nested(x, counter(rounds), counter(9))
        assert x.to_numpy().tolist() == [3 * rounds + 0.5] * size
    said = capsys.readouterr().err
    if size == MANY:
        assert said.count("qd.graph.do_while runs its loops on the host") == (capability < (9, 0))
        if capability >= (9, 0):
            assert "arm" in kinds(nested)
        else:
            assert "compute capability 8.0, and 9.0 is needed" in said
            assert facts(nested)["iterations"]["host"] > 0


def test_a_loop_whose_tasks_fail_ends(start):
    start(debug=True)
    for size in (40, MANY):
        x = qd.ndarray(qd.f32, size)
        with pytest.raises(AssertionError, match="a value is too large"):
            failing(x, counter(100))
        x.fill(-10)
        failing(x, counter(3))
        qd.sync()
        assert x.to_numpy().tolist() == [-7.0] * size


def test_loops_run_on_the_host_without_the_device_library(start, monkeypatch, capsys):
    start()

    def none(ptx, arch):
        raise conditional.Unavailable("libcudadevrt.a was not found")

    monkeypatch.setattr(conditional, "link", none)
    monkeypatch.setattr(conditional, "_functions", {})
    monkeypatch.setattr(conditional, "_reasons", {})
    x = qd.ndarray(qd.f32, MANY)
    loop(x, counter(5))
    loop(x, counter(2))
    assert x.to_numpy().tolist() == [7.0] * MANY
    said = capsys.readouterr().err
    assert said.count("libcudadevrt.a was not found") == 1


def test_the_driver_may_refuse_a_graph(start, capsys):
    sim = start()
    sim.fail("cuGraphInstantiate", Result.CUDA_ERROR_INVALID_VALUE)
    x = qd.ndarray(qd.f32, MANY)
    for _ in range(3):
        loop(x, counter(4))
    assert x.to_numpy().tolist() == [12.0] * MANY
    said = capsys.readouterr().err
    assert said.count("kernel loop is launched task by task") == 1
    assert facts(loop)["how"] == "host"


def test_without_graphs_the_results_are_the_same(start):
    start(graph=False)
    x, y = qd.ndarray(qd.f32, 30), qd.ndarray(qd.f32, 30)
    nested(x, counter(2), counter(0))
    assert x.to_numpy().tolist() == [6.5] * 30
    kernel = four(True)
    for _ in range(12):
        kernel(x, y, 1.0)
    found = facts(kernel)
    assert found is None or found["how"] == "host"
    sections(x, y)
    loop(x, counter(3))
    assert np.isfinite(x.to_numpy()).all()


def test_sections_are_branches_that_join(start):
    start()
    x, y = qd.ndarray(qd.f32, 20), qd.ndarray(qd.f32, 20)
    for _ in range(3):
        sections(x, y)
    assert x.to_numpy().tolist() == [15.0] * 20
    assert facts(sections)["edges"] == [[0, 2], [1, 2]]


def test_graphs_are_given_back(start):
    sim = start()
    kernel = four(True)
    x, y = qd.ndarray(qd.f32, 8), qd.ndarray(qd.f32, 8)
    kernel(x, y, 1.0)
    (variant,) = set(kernel.launchers.variants.values())
    graph = variant.executable.arguments().runner._whole.graph
    assert graph.handle is not None
    del variant
    qd.reset()
    assert graph.handle is None
    assert sim is not None


@pytest.mark.filterwarnings("ignore:(?s).*CUDA_PATH.*:UserWarning")  # that the two differ
def test_where_the_device_library_is_looked_for(monkeypatch, tmp_path):
    home, path = tmp_path / "home", tmp_path / "path"
    for root in (home, path):
        (root / "lib64").mkdir(parents=True)
        (root / "lib64" / "libcudadevrt.a").write_bytes(b"")
    monkeypatch.setenv("CUDA_HOME", str(home))
    monkeypatch.setenv("CUDA_PATH", str(path))
    found = toolkit.libraries("libcudadevrt")
    assert found[:2] == tuple(str(root / "lib64" / "libcudadevrt.a") for root in (home, path))
    own = tmp_path / "own.a"
    own.write_bytes(b"")
    monkeypatch.setenv("QD_LIBCUDADEVRT", str(own))
    assert toolkit.libraries("libcudadevrt") == (str(own),)


def test_without_the_device_library_the_reason_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(toolkit, "_found", lambda name, roots: ())
    monkeypatch.delenv("QD_LIBCUDADEVRT", raising=False)
    with pytest.raises(conditional.Unavailable, match="pip install nvidia-cuda-runtime"):
        conditional.libraries()
    monkeypatch.setenv("QD_LIBCUDADEVRT", str(tmp_path / "none.a"))
    with pytest.raises(conditional.Unavailable, match=r"QD_LIBCUDADEVRT is .*none.a"):
        conditional.libraries()


def test_a_launch_that_was_interrupted_is_prepared_again(start, monkeypatch):
    """Nothing that a launch has begun to change is taken for changed."""
    start()
    x, n = qd.ndarray(qd.f32, (MANY,)), counter(2)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(graphs.Graph, "_make", interrupted)
        loop(x, n)
    loop(x, n)
    assert (x.to_numpy() == 2).all()
