"""What the CUDA graph document says: graphs, their replay, loops on the device.

Each test runs in the interpreter, on the CPU and with CUDA: on a simulated device with conditional
nodes, and on one that has none. Variants run what says ``cpu`` on a device, where there is one.
"""

import dataclasses
import importlib.util

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import logs

from tests import cuda_sim

from .graphkit import flag, ints

A1, A0 = qd.types.NDArray[qd.i32, 1], qd.types.NDArray[qd.i32, 0]


def _has_cuda():
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


needs_bindings = pytest.mark.skipif(not _has_cuda(), reason="cuda-python is not installed")
DEVICES = {"cuda": (9, 0), "cuda older": (7, 5)}


@pytest.fixture
def device(request, monkeypatch):
    """A simulated device of the capability asked for."""
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with cuda_sim.simulated(capability=getattr(request, "param", (9, 0))) as sim:
        yield sim
        qd.reset()


@pytest.fixture(
    params=["interp", "cpu", *[pytest.param(name, marks=needs_bindings) for name in DEVICES]]
)
def arch(request, monkeypatch):
    name = request.param
    if name not in DEVICES:
        qd.init(arch=getattr(qd, name), enable_fallback=False)
        yield name
        qd.reset()
        return
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with cuda_sim.simulated(capability=DEVICES[name]):
        qd.init(arch=qd.cuda, enable_fallback=False)
        yield name
        qd.reset()


@qd.kernel(cuda_graph=True)
def two_loops(x: A1, y: A1):
    for i in x:
        x[i] += 1
    for i in y:
        y[i] += x[i]


@qd.kernel(graph_while="counter")
def counted(x: A1, counter: A0):
    for i in x:
        x[i] += 1
    for _ in range(1):
        counter[()] -= 1


def meta_of(kernel):
    (variant,) = set(kernel.launchers.variants.values())
    return variant.executable.meta


def test_two_loops_are_one_graph_with_the_same_results_at_each_replay(arch):
    x, y = ints(1, 2, 3), ints(0, 0, 0)
    total = np.zeros(3, np.int32)
    for n in range(1, 5):
        two_loops(x, y)
        total += np.array([1, 2, 3], np.int32) + n
        assert (y.to_numpy() == total).all()
    assert meta_of(two_loops).graph
    assert len(meta_of(two_loops).tasks) == 2


@needs_bindings
@pytest.mark.not_on_device("it has a device of its own")
def test_nodes_are_added_one_by_one_and_replayed_without_a_rebuild(device):
    qd.init(arch=qd.cuda)
    x, y = ints(1, 2), ints(0, 0)
    for _ in range(4):
        two_loops(x, y)
    added = device.calls.get("cuGraphAddKernelNode", 0) + device.calls.get("cuGraphAddNode", 0)
    assert added >= 2
    assert device.calls.get("cuStreamBeginCapture_v2", 0) == 0
    assert device.calls["cuGraphInstantiate"] == 1
    assert device.calls["cuGraphLaunch"] == 4
    assert list(y.to_numpy()) == [2 + 3 + 4 + 5, 3 + 4 + 5 + 6]


def test_harmless_where_there_are_no_graphs(arch, monkeypatch):
    qd.reset()
    monkeypatch.setenv("QD_GRAPH", "0")
    qd.init(arch=qd.cuda if arch in DEVICES else getattr(qd, arch), enable_fallback=False)
    x, y, counter = ints(1, 2), ints(0, 0), flag(3)
    two_loops(x, y)
    counted(x, counter)
    assert list(y.to_numpy()) == [2, 3]
    assert list(x.to_numpy()) == [5, 6]
    assert not meta_of(two_loops).graph
    assert not meta_of(counted).graph


def test_each_launch_loops_again(arch):
    x, counter = ints(0, 0), flag(0)
    for n in (3, 1, 5):
        counter.fill(n)
        counted(x, counter)
    assert list(x.to_numpy()) == [9, 9]
    other, second = ints(100), flag(2)
    counted(other, second)
    assert list(other.to_numpy()) == [102]


def test_graph_while_implies_graph(arch):
    counted(ints(1), flag(1))
    assert meta_of(counted).graph
    assert meta_of(counted).flow[0].kind == "do_while"


@dataclasses.dataclass
class Solver:
    n: qd.i32
    x: A1
    residual: A1
    again: A0


def test_members_of_structs_are_found_among_the_flattened_parameters(arch):
    @qd.kernel(graph_while="solver.again")
    def solve(step: qd.i32, solver: Solver, rate: qd.i32):
        for i in range(solver.n):
            solver.x[i] += step
        for i in range(solver.n):
            solver.residual[i] = solver.x[i] * rate
        for _ in range(1):
            solver.again[()] = 1 if solver.x[0] < 10 else 0

    solver = Solver(2, ints(0, 1), ints(0, 0), flag(1))
    solve(4, solver, 3)
    assert list(solver.x.to_numpy()) == [12, 13]
    assert list(solver.residual.to_numpy()) == [36, 39]
    meta = meta_of(solve)
    assert meta.params[meta.flow[0].param].name == "solver.again"


def test_a_host_loop_does_the_same_and_says_so(arch, capsys, monkeypatch):
    from qd_studio.engine.runtime import status

    monkeypatch.setattr(status, "_warned", set())
    monkeypatch.setattr(logs, "_said", set())
    # A small loop is one kernel on any device; this one is too large for that.
    size = 100_000 if arch == "cuda older" else 2
    x, counter = qd.ndarray(qd.i32, size), flag(4)
    counted(x, counter)
    assert (x.to_numpy() == 4).all()
    said = capsys.readouterr().err
    if arch == "cuda older":
        assert "warning" in said
        assert "runs its loops on the host" in said
    elif arch != "cuda":
        assert said.count("the host runs the loops") == 1
    counted(x, flag(1))
    assert "host" not in capsys.readouterr().err


@needs_bindings
@pytest.mark.filterwarnings("ignore:(?s).*CUDA_PATH.*:UserWarning")  # that the two differ
def test_paths_of_the_environment_are_tried_first(tmp_path, monkeypatch):
    from qd_studio.engine.backends.cuda import toolkit

    home = tmp_path / "own toolkit"
    (home / "lib64").mkdir(parents=True)
    own = home / "lib64" / "libcudadevrt.a"
    own.write_bytes(b"")
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert toolkit.library("libcudadevrt") == str(own)
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("CUDA_PATH", str(home))
    assert toolkit.library("libcudadevrt") == str(own)


def test_the_adjoint_is_no_graph(arch):
    x = qd.field(qd.f32, shape=3, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel(cuda_graph=True)
    def square():
        for i in x:
            x[i] = x[i] * 1.0
        for i in x:
            loss[None] += x[i] * x[i]

    @qd.kernel(cuda_graph=True)
    def energy():
        for i in x:
            loss[None] += x[i] * x[i]

    x.from_numpy(np.array([1, 2, 3], np.float32))
    energy()
    assert loss[None] == 14
    loss.grad[None] = 1
    energy.grad()
    assert list(x.grad.to_numpy()) == [2, 4, 6]
    assert meta_of(energy).graph
    assert not meta_of(energy.grad).graph
