"""Tasks are prepared in batches; the IR is that of all tasks prepared together."""

import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir, passes
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.passes import task_batches

F32 = qd.types.ndarray(qd.f32, 1)
I32 = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def several(x: F32, y: F32, n: I32):
    for k in qd.static(range(12)):
        for i in x:
            y[i] = y[i] * (0.25 * k + 0.1) + x[i] / 2.0
        for i in range(k % 4, 9):
            n[i % 3] += i + k
        for i in range(1, x.shape[0] - 1):
            y[i] = x[i + 1] * 2 + x[qd.min(i + k, x.shape[0] - 1)]
        y[k] = 0.5 * k


@qd.kernel
def carried(x: F32, y: F32, n: I32):
    total = 0.0
    for k in qd.static(range(6)):
        for i in x:
            total += x[i] * k
        for i in x:
            y[i] = x[i] * (k + 0.5)
        n[k] = qd.i32(total)
    unread = 0.0
    for i in x:
        unread += x[i]


@qd.kernel
def drawn(x: F32, y: F32, n: I32):
    for k in qd.static(range(6)):
        for i in x:
            x[i] = qd.random(qd.f32) + k


@qd.kernel
def differentiated(x: F32, y: F32, n: I32):
    for k in qd.static(range(12)):
        for i in x:
            y[i] += x[i] * x[i] * (0.25 * k + 0.1)
        for i in range(n.shape[0] - k % 3):
            a = x[i]
            for t in range(n[i] + k % 2):
                a = qd.sin(a) * (0.3 * k + 0.2)
                if a > 0.5 * k:
                    y[t] += a * a
            y[i] += a


def prepared(kernel):
    config = CompileConfig(cpu_max_num_threads=4, ad_stack_experimental_enabled=True)
    floats = ndarray_key(qd.f32, 1, needs_grad=kernel is differentiated.grad)
    ints = ndarray_key(qd.i32, 1)
    func = build.build(kernel.decl, (floats, floats, ints), config).func
    return passes.run(func, config, BACKEND.pipeline(config), share_tasks=True)


@pytest.mark.parametrize(("kernel", "batches"), [
    (several, 37), (carried, 7), (drawn, 1), (differentiated.grad, 24),
])  # fmt: skip
def test_the_ir_is_that_of_one_batch(kernel, batches, monkeypatch):
    qd.init(arch=qd.cpu)
    sizes = []
    in_batches = task_batches.in_batches

    def counted(func, prepare):
        def one():
            sizes.append(len(func.tasks()))
            prepare()

        in_batches(func, one)

    monkeypatch.setattr(task_batches, "in_batches", counted)
    monkeypatch.setattr(task_batches, "_OPS", 1 << 30)
    together = prepared(kernel)
    assert len(sizes) == 1
    monkeypatch.setattr(task_batches, "_OPS", 1)
    apart = prepared(kernel)
    assert len(sizes) == 1 + batches
    assert sum(sizes[1:]) == sizes[0]
    ir.verify(apart)
    assert ir.difference(together, apart, ids=False, locs=True) is None
