"""The kernels for which LLVM's whole pipeline is worth its time, and the others."""

import re

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.cuda import nvptx, targets
from qd_studio.engine.backends.cuda.nvptx import pipeline
from qd_studio.engine.backends.llvm import toolchain

from .ptxkit import artifact

F32 = qd.types.NDArray[qd.f32, 1]
F16 = qd.types.NDArray[qd.f16, 2]
MATRIX = qd.types.NDArray[qd.f32, 2]
pytestmark = pytest.mark.usefixtures("program")


@qd.kernel
def plain(x: F32, y: F32):
    for i in x:
        y[i] = 2.0 * x[i] + y[i]


@qd.kernel
def looping(x: F32, n: qd.i32):
    for i in x:
        total = 0.0
        for k in range(n):
            total = total * x[i] + qd.cast(k, qd.f32)
        x[i] = total


@qd.kernel
def neighbours(x: F32, y: F32):
    for i in x:
        total = 0.0
        for k in range(y.shape[0]):
            total += y[k]
        x[i] = total


@qd.kernel
def indexed(x: F32, n: qd.i32):
    for i in x:
        held = qd.Vector([0.0] * 80)
        for k in range(n):
            held[k % 80] += x[i]
        x[i] = held[n % 80]


@qd.kernel
def waves(x: F32):
    for i in x:
        x[i] = qd.sin(x[i]) + qd.tanh(x[i])


@qd.kernel
def stencil(a: MATRIX, b: MATRIX):
    for i, j in qd.ndrange((1, a.shape[0] - 1), (1, a.shape[1] - 1)):
        b[i, j] = a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] - 4.0 * a[i, j]


@qd.kernel
def torus(a: MATRIX, b: MATRIX):
    for i, j in a:
        n, m = a.shape
        b[i, j] = a[(i + 1) % n, j] + a[(i - 1) % n, j] + a[i, (j + 1) % m] + a[i, (j - 1) % m]


@qd.kernel
def product(a: MATRIX, b: MATRIX, c: MATRIX):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@qd.kernel
def half_product(a: F16, b: F16, c: MATRIX):
    for i, j in c:
        total = 0.0
        for k in range(a.shape[1]):
            total += qd.cast(a[i, k], qd.f32) * qd.cast(b[k, j], qd.f32)
        c[i, j] = total


@qd.real_func
def twice(x: qd.f32) -> qd.f32:
    return x * 2.0


@qd.kernel
def calling(x: F32):
    for i in x:
        x[i] = twice(x[i])


def arrays(dtype, *shapes):
    return [qd.ndarray(dtype, shape) for shape in shapes]


def text_of(kernel):
    line, square = 64, (64, 64)
    args = {
        plain: lambda: arrays(qd.f32, line, line), looping: lambda: [*arrays(qd.f32, line), 3],
        neighbours: lambda: arrays(qd.f32, line, line),
        indexed: lambda: [*arrays(qd.f32, line), 3],
        waves: lambda: arrays(qd.f32, line), calling: lambda: arrays(qd.f32, line),
        stencil: lambda: arrays(qd.f32, square, square),
        torus: lambda: arrays(qd.f32, square, square),
        product: lambda: arrays(qd.f32, square, square, square),
        half_product: lambda: arrays(qd.f16, square, square) + arrays(qd.f32, square),
    }  # fmt: skip
    return artifact(kernel, *args[kernel](), arch="sm_90a").texts["llvm_ir"]


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        (plain, "device"), (looping, "device"), (neighbours, "whole"), (indexed, "whole"),
        (waves, "whole"), (product, "product"), (half_product, "whole"),
        (calling, "whole"), (stencil, "whole"), (torus, "whole"),
    ],
    ids=lambda x: x if isinstance(x, str) else x.decl.name,
)  # fmt: skip
def test_the_pipeline_of_a_kernel(kernel, wanted):
    assert pipeline(text_of(kernel), 2) == wanted


def test_levels():
    text = text_of(plain)
    assert [pipeline(text, level) for level in range(4)] == ["whole", "device", "device", "whole"]


def test_variables_are_in_registers_and_loops_unrolled():
    made = nvptx.make_ptx(text_of(looping), "sm_90a", 2)
    assert "__local_depot" not in made
    assert len(re.findall(r"\bfma\.", made)) > 2


def test_both_libraries_make_the_same_ptx():
    text = text_of(looping)
    made = []
    with toolchain.LOCK:
        for machine in (targets.machine("sm_90a", 2), targets.own_machine("sm_90a", 2)):
            module = machine.parse(text)
            module.ref.data_layout = str(machine.ref.target_data)
            module.optimise(2, "device")
            made.append(module.assembly())
    assert made[0] == made[1] == nvptx.make_ptx(text, "sm_90a", 2)
