"""Captures on a simulated CUDA device: times, agreement, graphs, checks, what is reported of it."""

import importlib.util

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.backends.opencl import hardware
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import targets

if importlib.util.find_spec("cuda") is None:
    pytest.skip("the bindings of CUDA are not installed", allow_module_level=True)

from tests.cuda_sim import simulated


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setattr(targets, "_opened", {})
    with simulated() as state:
        yield state
        qd.reset()
        for opened in targets._opened.values():
            opened.end()


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * a + 1.0


@qd.kernel
def total(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@scale.workload(n=[64])
def arguments(n):
    return np.ones(n, np.float32), 2.0


@scale.check
def doubled(before, after, result):
    assert (after[0] == 3).all()


def captured(kernel, *names, **options):
    found = inspect.capture_kernel(kernel, names, CompileConfig(**options), budget_s=0.01)
    assert found.errors == ()
    return found.backends


@pytest.mark.parametrize("arch", ["cpu", "cuda"])
def test_launches_agree_and_are_timed_by_events(arch):
    qd.init(arch=arch)
    cpu, cuda = captured(scale, "cpu", "cuda")
    assert (cuda.status, cuda.unlaunched, cuda.errors) == ("ok", "", ())
    assert cuda.agreement.state == "ok" and cuda.agreement.check == "passed"
    (launch,) = cuda.launches
    assert "two events" in launch.method and launch.host_us > 0 and launch.median_us >= 0
    # A caller waits at least until the call returned; the other backend's times are the same clock.
    assert len(launch.waits_us) == launch.n and launch.wall_us >= launch.host_us
    assert cpu.launches[0].waits_us == cpu.launches[0].samples_us
    assert launch.memory_bytes >= 64 * 4
    assert cpu.launches[0].host_us is None and cpu.device is None
    assert (cuda.device.capability, cuda.device.driver) == ("9.0", "13.0")
    assert cuda.device.name and cuda.device.multiprocessors > 0 and cuda.device.total_bytes > 0
    by_name = {layer.name: layer for layer in cuda.caches}
    assert by_name["ptx"].state == "miss"
    assert by_name["driver"].state == "bypass" and "again" in by_name["driver"].reason


def test_results_and_graphs_of_ordinary_launches_are_reported():
    qd.init(arch="cpu")
    (cuda,) = captured(total, "cuda")
    assert cuda.status == "ok" and cuda.agreement.state == "ok"
    flow = cuda.flow
    if flow is not None:  # launches of several tasks go through a graph where that is faster
        assert flow.how in ("auto", "launches")
        tasks = [node for node in flow.nodes if node.kind == "task"]
        assert sorted(n.task for n in tasks) == [t.index for t in cuda.compile.tasks]
        assert all(0 <= a < len(flow.nodes) and 0 <= b < len(flow.nodes) for a, b in flow.edges)


def test_another_target_than_that_of_the_device_is_compiled_only():
    qd.init(arch="cpu")
    same, other = captured(scale, "cuda:sm_90", "cuda:sm_75")
    assert same.launches and same.unlaunched == ""
    assert other.unlaunched == "compiled for sm_75, the device is sm_90a" and not other.launches
    assert other.compile.machine.arch == "sm_75"


def test_fields_of_the_user_stay_as_they_are():
    qd.init(arch="cuda")
    f = qd.field(qd.f32, shape=(40,))
    f.fill(2.0)

    @qd.kernel
    def grow():
        for i in f:
            f[i] = f[i] * 3.0 + 1.0 * i

    cpu, cuda = captured(grow, "cpu", "cuda")
    for backend in (cpu, cuda):
        assert (backend.status, backend.agreement.state) == ("ok", "ok"), backend.reason
    assert (f.to_numpy() == 2).all()


def test_what_fails_on_the_device_fails_in_the_record():
    qd.init(arch="cpu")

    @qd.kernel
    def never(x: qd.types.NDArray[qd.f32, 1]):
        for i in range(x.shape[0]):
            assert x[i] > 1e9, "too small"

    @never.workload(n=[4])
    def _(n):
        return (np.zeros(n, np.float32),)

    (cuda,) = captured(never, "cuda", debug=True)
    assert cuda.status == "error" and cuda.errors[0].message.startswith("too small")
    assert cuda.errors[0].line > 0


def test_the_device_is_found_and_reported():
    found = inspect.cuda_machine()
    assert (found.problem, found.driver) == ("", "13.0")
    (one,) = found.devices
    assert (one.capability, one.arch, one.chosen) == ("9.0", "sm_90a", True)
    assert {piece.name for piece in found.components} >= {"ptxas", "libdevice", "nvjitlink"}
    assert all(bool(piece.path) != bool(piece.hint) for piece in found.components)


def test_a_device_or_a_file_that_is_not_there_is_reported(monkeypatch):
    monkeypatch.setenv("QD_LIBDEVICE", "/nowhere/libdevice.bc")
    monkeypatch.setenv("QD_VISIBLE_DEVICE", "7")
    found = inspect.cuda_machine()
    assert "QD_VISIBLE_DEVICE=7" in found.problem and len(found.devices) == 1
    assert ("QD_VISIBLE_DEVICE", "7") in found.variables
    libdevice = next(piece for piece in found.components if piece.name == "libdevice")
    assert libdevice.path == "" and "/nowhere/libdevice.bc" in libdevice.purpose
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    hidden = inspect.cuda_machine()
    assert "QD_ENABLE_CUDA=0" in hidden.problem and hidden.devices == ()


@qd.kernel(graph=True)
def halve(x: qd.types.NDArray[qd.f32, 1], left: qd.types.NDArray[qd.i32, 0]):
    while qd.graph.do_while(left):
        for i in x:
            x[i] *= 0.5
        left[()] -= 1
    for i in x:
        x[i] += 1.0


@halve.workload(n=[32])
def rounds(n):
    x, left = qd.ndarray(qd.f32, n), qd.ndarray(qd.i32, ())
    x.fill(8.0)
    left.fill(3)
    return x, left


def test_graphs_state_their_nodes_and_replays():
    qd.init(arch="cuda")
    cpu, cuda, other = captured(halve, "cpu", "cuda", "cuda:sm_80")
    assert cuda.status == "ok" and cuda.agreement.state == "ok", cuda.reason
    kinds = [(node.kind, node.parent, node.param) for node in cuda.flow.nodes]
    assert kinds[0] == ("do_while", -1, "left") and kinds[1][:2] == ("task", 0)
    assert kinds[-1][:2] == ("task", -1) and (0, len(kinds) - 1) in cuda.flow.edges
    assert cuda.flow.how == "graph" and cuda.flow.replays > 0
    assert any(node.block for node in cuda.flow.nodes)
    assert (cpu.flow.how, cpu.flow.why) == ("host", "the cpu backend has no graphs")
    assert [(n.kind, n.parent) for n in cpu.flow.nodes] == [k[:2] for k in kinds]
    assert (other.flow.how, other.flow.why) == (
        "none", "compiled for sm_80, the device is sm_90a; on a device it is a graph",
    )  # fmt: skip


def test_without_the_option_no_graph_is_reported():
    qd.init(arch="cuda", graph=False)
    (cuda,) = captured(halve, "cuda", graph=False)
    assert cuda.status == "ok" and cuda.flow.how != "graph"


Reals = qd.types.ndarray(qd.f32, 1, needs_grad=True)


@qd.kernel
def powers(x: Reals, y: Reals, n: qd.types.NDArray[qd.i32, 1]):
    for i in range(n.shape[0]):
        s = x[i]
        for _ in range(n[i]):
            s = s * x[i]
        y[i] = s


@powers.workload(n=[300, 40000])
def ragged(n):
    x, y = (qd.ndarray(qd.f32, n, needs_grad=True) for _ in range(2))
    x.fill(0.9)
    times = qd.ndarray(qd.i32, n)
    times.from_numpy(np.arange(n, dtype=np.int32) % 7)
    return x, y, times


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ["cpu", "cuda"])
def test_gradients_with_stacks_are_launched_wherever_the_program_runs(arch):
    qd.init(arch=arch, ad_stack_experimental_enabled=True)
    config = CompileConfig(ad_stack_experimental_enabled=True)
    # Two devices that are not the program's, and each has addresses of its own.
    names = ("cpu", "cuda") if hardware.unavailable() else ("cpu", "cuda", "opencl")
    capture = inspect.KernelCapture(powers, names, config)
    capture.compile()
    capture.launch(0.01)
    spec_keys = inspect.gradient_features(capture, make=True)
    gradient = inspect.GradientCapture(capture, spec_keys)
    gradient.compile()
    backends = gradient.launch(0.01).backends
    assert tuple(backend.backend for backend in backends) == names
    for backend in backends:
        assert (backend.status, backend.agreement.state) == ("ok", "ok"), backend.reason
        assert backend.autodiff.sized and backend.autodiff.bytes > 0
        assert backend.autodiff.reducers[0].value == 6
