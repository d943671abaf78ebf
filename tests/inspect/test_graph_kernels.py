"""Graph kernels in the inspector: launched, compared with the interpreter, checked."""

from qd_studio import engine as qd
from qd_studio.app.core.views import flow
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import capture_kernel, targets


def test_a_graph_with_checkpoints_is_launched_and_checked():
    qd.init(arch=qd.cpu)

    @qd.kernel(graph=True, checkpoints=True)
    def k(
        x: qd.types.NDArray[qd.i32, 1],
        left: qd.types.NDArray[qd.i32, 0],
        stop: qd.types.NDArray[qd.i32, 0],
    ):
        while qd.graph.do_while(left):
            with qd.checkpoint(3, yield_on=stop):
                for i in x:
                    x[i] += 1
            for _ in range(1):
                left[()] -= 1

    x, left, stop = qd.ndarray(qd.i32, 4), qd.ndarray(qd.i32, ()), qd.ndarray(qd.i32, ())
    left.fill(3)
    seen = []

    @k.workload()
    def some():
        return x, left, stop

    @k.check
    def check(inputs, outputs, result):
        seen.append(result)

    record = capture_kernel(k)
    (cpu,) = [found for found in record.backends if found.backend == "cpu"]
    assert cpu.status == "ok"
    assert cpu.agreement.state == "ok"
    assert seen
    assert set(seen) == {qd.GraphStatus()}
    qd.reset()


def test_how_the_tasks_run_is_said_for_each_backend(monkeypatch):
    qd.init(arch=qd.cpu)

    @qd.kernel(graph=True)
    def k(x: qd.types.NDArray[qd.i32, 1], left: qd.types.NDArray[qd.i32, 0]):
        while qd.graph.do_while(left):
            for i in x:
                x[i] += 1
            for _ in range(1):
                left[()] -= 1

    device = targets.Target("cuda", "", True, False, "no driver")
    real = targets.target_of
    monkeypatch.setattr(
        "qd_studio.engine.inspect.capture.target_of",
        lambda config, name: device if name == "cuda" else real(config, name),
    )
    names = ("cpu", "interp", "opencl", "cuda", "amdgpu", "spirv")
    found = {b.backend: b for b in capture_kernel(k, names, launch=False).backends}
    said = {name: flow.title(b.flow) for name, b in found.items() if b.flow is not None}
    for name in ("cpu", "interp"):
        assert said[name] == f"the host goes from task to task: the {name} backend has no graphs"
    if real(CompileConfig(), "opencl").launches:
        assert said["opencl"] == "the host goes from task to task: the opencl backend has no graphs"
    assert said["cuda"] == "nothing is launched here: no driver; on a device it is a graph"
    for name in ("amdgpu", "spirv"):
        assert said[name].startswith("nothing is launched here: ")
        assert "graph of the device" not in said[name] and found[name].unlaunched in said[name]
    qd.reset()
