"""Graph kernels in the inspector: launched, compared with the interpreter, checked."""

from qd_studio import engine as qd
from qd_studio.engine.inspect import capture_kernel


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
