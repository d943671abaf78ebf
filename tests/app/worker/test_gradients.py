"""Gradients of a file's kernels, in a worker: which there are, and that they come and go."""

import pytest
from qd_studio.app.worker import events
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits

from tests.app.worker.live import HEAD, Live

TWO = (
    HEAD
    + """
qd.init(arch=qd.cpu, ad_stack_experimental_enabled={enabled}, cpu_max_num_threads=2)

a = qd.field(qd.f64, shape=8, needs_grad={fields})
b = qd.field(qd.f64, shape=8, needs_grad={fields})


@qd.kernel
def square():
    for i in a:
        b[i] = a[i] * a[i]


@qd.kernel
def power(x: qd.types.NDArray[qd.f32, 1], n: qd.types.NDArray[qd.i32, 1],
          loss: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        y = x[i]
        for j in range(n[i] + 1):
            y = y * x[i]
        loss[0] += y


@power.workload(n=[16, 100])
def numbers(n):
    x = qd.ndarray(qd.f32, (n,), needs_grad={arrays})
    x.from_numpy(np.linspace(0.5, 1.0, n, dtype=np.float32))
    k = qd.ndarray(qd.i32, (n,))
    k.from_numpy((np.arange(n) % 5).astype(np.int32))
    return x, k, qd.ndarray(qd.f32, (1,), needs_grad={arrays})


@qd.kernel
def plain(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] += 1.0
"""
)


def text(fields=True, arrays=True, enabled=True):
    return TWO.format(fields=fields, arrays=arrays, enabled=enabled)


def names(record):
    return [k.name for k in record.kernels]


def test_gradients_are_next_to_their_kernels_and_follow_what_is_saved(path):
    path.write_text(text())
    with Live(path) as live:
        record = live.complete()
        assert names(record) == ["square", "square.grad", "power", "power.grad", "plain"]
        by_name = {k.name: k for k in record.kernels}
        assert by_name["power"].gradient == by_name["power.grad"].id == "kernels.py:power.grad"
        assert by_name["power.grad"].primal == by_name["power"].id
        assert by_name["plain"].gradient == ""
        live.forget()
        record = live.after(path, text(fields=False))
        assert names(record) == ["square", "power", "power.grad", "plain"]
        assert not any(k.stale for k in record.kernels)
        listed = [e for e in live.of(events.KernelUpdated) if e.kernel.name == "power.grad"]
        assert listed[-1].final


@pytest.mark.parametrize("only", ["power", "power.grad"])
def test_a_gradient_can_be_asked_for_by_its_name(path, only):
    path.write_text(text())
    limits = Limits(measure_s=0.01)
    record = collect([path], backends=("cpu",), only=[only], launch=False, limits=limits)
    compiled = [k.name for k in record.kernels if k.backends and k.backends[0].compile]
    assert compiled == ["power", "power.grad"]


DEADLY = text().replace(
    "def numbers(n):",
    """def numbers(n):
    import os, pathlib, signal
    log = pathlib.Path(__file__).with_suffix(".log")
    calls = log.read_text() if log.exists() else ""
    log.write_text(calls + "x")
    # Twice for the kernel's two cases; then the first time for its gradient.
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
""",
)


@pytest.mark.slow
def test_a_worker_that_ends_in_a_gradient_costs_only_that(path):
    path.write_text(DEADLY)
    limits = Limits(measure_s=0.01)
    record = collect([path], backends=("cpu",), limits=limits)
    by_name = {k.name: k for k in record.kernels}
    assert list(by_name) == ["square", "square.grad", "power", "power.grad", "plain"]
    gradient = by_name["power.grad"]
    assert [e.stage for e in gradient.errors] == ["workload"]
    assert gradient.backends[0].compile is not None
    assert by_name["power"].backends[0].launches and by_name["plain"].backends[0].launches
    assert by_name["square.grad"].backends[0].agreement is not None
