"""Kernels of many loops: headers are computed once, and the entry is a part of its own."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.llvm import parts, toolchain
from qd_studio.engine.backends.llvm.text import PLAIN
from qd_studio.engine.cache.in_process import IN_PROCESS

from tests.backends.targetkit import artifact

pytestmark = pytest.mark.not_on_device("it is about functions for processors")

F32 = qd.types.ndarray(qd.f32, 1)
FLAG = qd.types.ndarray(qd.i32, 0)


@qd.kernel
def loops(x: F32, y: F32):
    for i in x:
        x[i] += 1.0
    for i in y:
        y[i] = x[i] * 2.0
    for i in x:
        x[i] = x[i] * y[i]
    for i in range(y.shape[0] - 1):
        y[i] += x[i + 1]


@qd.kernel(graph=True)
def rounds(x: F32, y: F32, left: FLAG):
    while qd.graph.do_while(left):
        for i in x:
            x[i] += 1.0
        for i in y:
            y[i] += x[i]
        left[()] -= 1
    for i in x:
        x[i] *= 2.0
    for i in y:
        y[i] += x[i]


@pytest.fixture(autouse=True)
def program():
    IN_PROCESS.clear()
    yield
    IN_PROCESS.clear()


def arrays(*more):
    made = [qd.ndarray(qd.f32, 9), qd.ndarray(qd.f32, 9)]
    for array in made:
        array.from_numpy(np.arange(9, dtype=np.float32))
    return *made, *more


def test_a_header_is_computed_once():
    qd.init(arch=qd.cpu, offline_cache=False)
    text = artifact("cpu", loops, *arrays(), cpu_max_num_threads=4).texts["llvm_ir"]
    entry = text.partition("define i32 @loops(")[2].partition("\n}\n")[0]
    assert entry.count("call void %parallel") == 4
    # Of x, of y, and of all of y but one: the shares of four threads.
    assert entry.count(" sdiv ") == 2 * 3
    toolchain.machine(toolchain.host_target(), 2).parse(text, verify=True)


def test_bounds_of_one_number_with_and_without_a_sign_are_not_the_same():
    """A conversion between both emits nothing, so that both are one operand."""

    @qd.kernel
    def signs(n: qd.i32, x: qd.types.ndarray(qd.i32, 1)):
        for i in range(qd.cast(qd.cast(n, qd.u32) < qd.u32(7), qd.i32) + (n < 7)):
            x[i] += 1
        for i in range((n < 7) + 2):
            x[i] += 10

    qd.init(arch=qd.cpu, offline_cache=False, cpu_max_num_threads=4)
    x = qd.ndarray(qd.i32, 8)
    signs(-2, x)
    assert list(x.to_numpy()) == [11, 10, 10, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("kernel", [loops, rounds])
def test_what_is_known_holds_where_it_is_used(kernel):
    qd.init(arch=qd.cpu, offline_cache=False)
    left = qd.ndarray(qd.i32, ())
    args = arrays() if kernel is loops else arrays(left)
    text = artifact("cpu", kernel, *args, cpu_max_num_threads=4).texts["llvm_ir"]
    toolchain.machine(toolchain.host_target(), 2).parse(text, verify=True)


@pytest.mark.parametrize("kernel", [loops, rounds])
def test_the_entry_is_a_part_without_optimisation(kernel, monkeypatch):
    expected = [a.to_numpy() for a in run(kernel)]
    left = qd.ndarray(qd.i32, ())
    for name in ("_LINES", "_MANY"):
        monkeypatch.setattr(parts, name, 2)
    from qd_studio.engine.backends.cpu import code

    monkeypatch.setattr(code, "_LARGE", 1)
    args = arrays() if kernel is loops else arrays(left)
    text = artifact("cpu", kernel, *args, cpu_max_num_threads=4).texts["llvm_ir"]
    first, *others = parts.split(text, kernel.__name__)
    heads = [line for line in first.split("\n") if line.startswith("define ")]
    assert len(heads) > 4 and all(line.endswith(PLAIN) for line in heads)
    assert not any(PLAIN in part for part in others)
    IN_PROCESS.clear()
    for one, other in zip(run(kernel), expected, strict=True):
        np.testing.assert_array_equal(one.to_numpy(), other)


def run(kernel):
    qd.init(arch=qd.cpu, offline_cache=False, tiered=False, cpu_max_num_threads=4)
    args = arrays()
    if kernel is rounds:
        left = qd.ndarray(qd.i32, ())
        left.fill(3)
        kernel(*args, left)
    else:
        kernel(*args)
    return args
