"""Tasks that differ in numbers only: their text is that of tasks emitted one by one, and first-tier
code, which they share, computes what the interpreter does."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends.cpu import background
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.backends.llvm import alike, toolchain
from qd_studio.engine.backends.llvm import kernel as llvm_kernel
from qd_studio.engine.backends.llvm.deadline import with_deadline
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.passes import task_copies

from tests.fuzz.tiers import interrupted, no_helper

pytestmark = pytest.mark.not_on_device("it is about functions for processors")

F32 = qd.types.ndarray(qd.f32, 1)
I32 = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def coefficients(x: F32, y: F32, n: I32):
    for k in qd.static(range(20)):
        for i in x:
            y[i] = y[i] * (0.25 * k + 0.1) + x[i] - (1.0 - k)


@qd.kernel
def stored(x: F32, y: F32, n: I32):
    for k in qd.static(range(20)):
        for i in x:
            if x[i] > 0.5 * k:
                y[i] = 1.5 * k
            for _ in range(3):
                x[i] = x[i] + 0.125 * k


@qd.kernel
def closed(x: F32, y: F32, n: I32):
    """Numbers that the text depends on: of a power, a quotient of integers, and integers."""
    for k in qd.static(range(20)):
        for i in x:
            y[i] = x[i] ** (2.5 + k)
        for i in n:
            n[i] = (n[i] + 3 * k) % (k + 2)


@qd.kernel
def mixed(x: F32, y: F32, n: I32):
    for k in qd.static(range(20)):
        for i in range(k % 3, x.shape[0] - 1):
            y[i] = x[i + 1] * (k + 0.1)
        for i in x:
            qd.atomic_add(n[i % 3], i)
            x[i] = qd.f32(qd.f64(x[i]) * (0.7 * k) + 0.1) * 0.5
        y[k % 7] = y[0] + 0.5 * k


@qd.kernel
def integers(x: F32, y: F32, n: I32):
    for k in qd.static(range(20)):
        for i in n:
            n[i] = n[(i + 3) % 9] * (5 + k) - (n[i] ^ (7 * k))
        for i in n:
            if n[i] < 100 * k:
                n[i] = n[0] if n[i] > 3 + k else 17 * k
        for i in range(4):
            n[i + k % 3] = n[(i * 2 + k) % 9] + k


@qd.kernel
def copied(x: F32, y: F32, n: I32):
    """So many that passes make copies of tasks; those of a quotient differ in the text, too."""
    for k in qd.static(range(20)):
        for i in x:
            y[i] = x[i] * (0.3 + 0.01 * k) + y[i]
        for i in y:
            x[i] = x[i] / (1.3 + 0.01 * (k % 4)) - (2.3 + 0.1 * k)


@qd.kernel
def hinted(x: F32, y: F32, n: I32):
    """Copies of loops with metadata of their own."""
    for k in qd.static(range(32)):
        for i, j in qd.ndrange(3, 3):
            y[3 * i + j] = x[3 * i + j] * (0.3 + k) + y[3 * i + j]
        for i, j in qd.ndrange(1, 8):
            y[i + j] = x[i + j] * (0.3 + k)


FIELDS = []


@qd.kernel
def spread(x: F32, y: F32, n: I32):
    """Fields that are read, written or both, one of them by its own loop alone."""
    for k in qd.static(range(20)):
        for i in x:
            FIELDS[k // 2][i] = FIELDS[k][i + 1] * (0.3 + k) + x[i]
        for i in range(k % 2, 8):
            FIELDS[(7 * k + 3) % 19][i] += FIELDS[k][i]
            n[i] = n[i] + k
        for i in y:
            y[i] += FIELDS[19 - k][i] + FIELDS[k][(i + k) % 8]


@qd.kernel
def plain(x: F32, y: F32, n: I32):
    """No numbers that differ: tasks differ in fields alone."""
    for k in qd.static(range(20)):
        for i in x:
            FIELDS[k][i] = x[i] + FIELDS[(3 * k + 1) % 20][i]
    for k in qd.static(range(20)):
        for i in y:
            y[i] += FIELDS[k][i]


KERNELS = [integers, coefficients, stored, closed, mixed, copied, hinted, spread, plain]


def place():
    """New fields, which a program needs."""
    FIELDS[:] = [qd.field(qd.f32, 12) for _ in range(20)]
    for k, field in enumerate(FIELDS):
        field.from_numpy(np.linspace(0.1 * k, 1.0, 12, dtype=np.float32))


@pytest.fixture(autouse=True)
def program():
    IN_PROCESS.clear()
    yield
    IN_PROCESS.clear()


def lowered(kernel, copies=True, **options):
    place()
    config = CompileConfig(cpu_max_num_threads=4, **options)
    floats, ints = ndarray_key(qd.f32, 1), ndarray_key(qd.i32, 1)
    func = build.build(kernel.decl, (floats, floats, ints), config).func
    passes.run(func, config, BACKEND.pipeline(config), share_tasks=True)
    if not copies:
        task_copies.write_out(func)
    return llvm_kernel.lower_kernel(func, config.fast_math, threads=4)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fast_math", [False, True])
def test_the_text_is_that_of_tasks_one_by_one(kernel, fast_math, monkeypatch):
    qd.init(arch=qd.cpu)
    found = lowered(kernel, fast_math=fast_math)
    monkeypatch.setattr(llvm_kernel, "_MANY", 1 << 30)
    expected = lowered(kernel, copies=False, fast_math=fast_math)
    assert bool(found.source.copies) == (kernel is not closed)
    assert not expected.source.copies
    assert not any(body.shared for body in expected.bodies)
    assert found.text == expected.text
    assert found.source.lines == found.text.count("\n")
    assert found.ids == expected.ids
    assert found.meta == expected.meta


@pytest.mark.parametrize(
    ("kernel", "most"),
    [
        (coefficients, 2),
        (stored, 2),
        (mixed, 8),
        (integers, 30),
        (copied, 4),
        (spread, 30),
        (plain, 4),
    ],
)
def test_first_tier_code_of_tasks_that_are_alike_is_one_function(kernel, most):
    qd.init(arch=qd.cpu)
    found = lowered(kernel)
    text = with_deadline(found, 1, True)
    toolchain.machine(toolchain.host_target(), 0).parse(text, verify=True)
    functions = re.findall(r"define internal void @\w+\(", text)
    assert len(functions) <= most < len(found.meta.tasks)


def test_copies_that_passes_have_made_are_found_without_a_comparison(monkeypatch):
    qd.init(arch=qd.cpu)
    describe, compared = alike.describe, []
    monkeypatch.setattr(alike, "describe", lambda *of: compared.append(of) or describe(*of))
    found = lowered(copied)
    assert len(found.meta.tasks) == 40
    assert len(compared) == 3


def test_numbers_that_the_text_depends_on_keep_tasks_apart():
    qd.init(arch=qd.cpu)
    assert not any(body.shared for body in lowered(closed).bodies)


def results(kernel):
    place()
    x, y, n = qd.ndarray(qd.f32, 9), qd.ndarray(qd.f32, 9), qd.ndarray(qd.i32, 9)
    x.from_numpy(np.linspace(-1.0, 3.0, 9, dtype=np.float32))
    y.from_numpy(np.ones(9, dtype=np.float32))
    n.from_numpy(np.arange(9, dtype=np.int32))
    kernel(x, y, n)
    return [a.to_numpy() for a in (x, y, n)]


@pytest.mark.sampled(2)
@pytest.mark.skipif(not background.available(), reason="no helper process here")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("operations", [None, 0, 10, 2000])
def test_first_tier_code_computes_what_the_interpreter_does(kernel, operations):
    """Also where a launch of it is stopped in the middle, and full code runs."""
    qd.init(arch="interp", fast_math=False, offline_cache=False)
    expected = results(kernel)
    IN_PROCESS.clear()
    with no_helper():
        qd.init(arch=qd.cpu, tiered=True, fast_math=False, offline_cache=False)
        with nullcontext() if operations is None else interrupted(operations):
            got = results(kernel)
        qd.reset()
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_array_equal(have, want)
