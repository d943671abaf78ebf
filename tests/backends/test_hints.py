"""Loops that LLVM must not, or must, vectorise in a certain way carry a property that says so."""

import subprocess
import sys

import numpy as np
import pytest
from qd_studio.engine import passes
from qd_studio.engine.backends import base
from qd_studio.engine.backends.llvm.hints import COLD, SCALAR, TOGETHER, UNROLLED
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import Builder, ForAttr, Func, Param, parse
from qd_studio.engine.ir import codes as C
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import ElementLayout, f32, i32, pointer_to, row_major

N = 1024


def strided(name, components, stride):
    """A field of vectors whose elements lie ``stride`` apart."""
    layout = ElementLayout((N, components), (0, 0), ((0, 1, 0, stride), (1, 1, 0, 1)))
    return Param(name, "field", f32, 1, element_shape=(components,), layout=layout)


def sweep(read, write, work, reads=1, writes=1):
    """A loop that loads and stores some components and does ``work`` additions."""
    func = Func("k", (read, write))
    b = Builder(func, func.body)
    bases = [b.emit(C.ARG_ADDR, (), (i, False), pointer_to(f32)) for i in range(2)]
    loop = b.range_for((b.const(0, i32), b.const(N, i32)), ForAttr())
    with b.inside(loop.regions[0]):
        i = b.loop_index(loop, 0)

        def at(number, component):
            indices = (bases[number], i, b.const(component, i32))
            return b.emit(C.EXTERNAL_PTR, indices, "unsafe", pointer_to(f32))

        value = b.load(at(0, 0))
        for c in range(1, reads):
            value = b.binary(C.ADD, value, b.load(at(0, c)))
        for _ in range(work):
            value = b.unary(C.SIN, value)
        for c in range(writes):
            b.store(at(1, c), value)
    return func


def text_of(func):
    passes.run(func, CompileConfig(), PipelineKind.CPU)
    backend = base.find("cpu")
    artifact = backend.lower(func, CompileConfig())
    backend.load(artifact)
    assert "vectorize.width" not in artifact.text("asm")  # the texts can be made
    return artifact.text("llvm_ir")


@pytest.mark.parametrize(
    ("func", "scalar"),
    [
        (sweep(strided("x", 1, 1), strided("y", 1, 1), 0), False),
        (sweep(strided("x", 3, 3), strided("y", 3, 3), 0, 3, 3), False),
        (sweep(strided("x", 4, 4), strided("y", 1, 1), 0), False),  # loads may leave some out
        (sweep(strided("x", 3, 3), strided("y", 3, 3), 0, 3, 2), True),  # stores may not
        (sweep(strided("x", 9, 9), strided("y", 9, 9), 0, 9, 9), True),
        (sweep(strided("x", 9, 9), strided("y", 9, 9), 20, 9, 9), False),  # much arithmetic
        (sweep(strided("x", 2, 7), strided("y", 2, 7), 0, 2, 2), True),
        (sweep(strided("x", 33, 33), strided("y", 33, 33), 60, 33, 33), True),  # far too many
    ],
)
def test_far_apart_data_and_little_arithmetic_stay_scalar(func, scalar):
    assert (SCALAR in text_of(func)) == scalar


@pytest.mark.parametrize("clamped", [True, False])
def test_the_edges_of_a_loop_are_cold(clamped):
    x, y = (Param(name, "field", f32, 1, layout=row_major((N,))) for name in "xy")
    func = Func("k", (x, y))
    b = Builder(func, func.body)
    source, target = [b.emit(C.ARG_ADDR, (), (i, False), pointer_to(f32)) for i in range(2)]
    loop = b.range_for((b.const(1, i32), b.const(N, i32)), ForAttr())
    with b.inside(loop.regions[0]):
        i = b.loop_index(loop, 0)
        index = b.binary(C.SUB, i, b.const(2, i32))
        if clamped:
            index = b.binary(C.MAX, index, b.const(0, i32))
        value = b.load(b.emit(C.EXTERNAL_PTR, (source, index), "unsafe", pointer_to(f32)))
        b.store(b.emit(C.EXTERNAL_PTR, (target, i), "unsafe", pointer_to(f32)), value)
    assert (COLD in text_of(func)) == clamped


SUMS = """\
kernel k(field x: f32[1024]) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 1024
  <i32> $2 = const 4
  <*f32> $3 = arg_addr [(0, False)]
  $4 : range_for $0, $1 body {
    <i32> $5 = loop_index $4 [0]
    <*f32> $6 = external_ptr $3, $5 ['unsafe']
    <f32> $7 = global_load $6
    <*f32> $8 = alloca ['s']
    $9 : range_for $0, $2 body {
      <i32> $10 = loop_index $9 [0]
      <f32> $11 = mul $7, $10
      <f32> $12 = exp $11
      <f32> $13 = atomic_add $8, $12
    }
    <f32> $14 = local_load $8
    $15 : global_store $6, $14
  }
}
"""


@pytest.mark.parametrize(("function", "count", "unrolled"), [
    ("exp", 4, True), ("exp", 40, False), ("sqrt", 4, False),
])  # fmt: skip
def test_a_short_loop_of_exponentials_is_unrolled(function, count, unrolled):
    source = SUMS.replace("= exp", f"= {function}").replace("const 4", f"const {count}")
    assert (UNROLLED in text_of(parse(source))) == unrolled


BLOCKS = """\
kernel k(field x: f32[64, 64] layout(0/8*512, 1/8*64, 0%8*8, 1%8*1)) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 64
  <*f32> $2 = arg_addr [(0, False)]
  $3 : range_for $0, $1, $0, $1 body {
    <i32> $4 = loop_index $3 [0]
    <i32> $5 = loop_index $3 [1]
    <*f32> $6 = external_ptr $2, $4, $5 ['unsafe']
    <f32> $7 = cast_value $5
    $8 : global_store $6, $7
  }
}
"""


def test_a_row_of_a_block_is_vectorised_as_a_whole():
    assert text_of(parse(BLOCKS)).count(TOGETHER) == 1
    func = parse(BLOCKS)
    func.params = (func.params[0]._replace(layout=row_major((64, 64))),)
    assert TOGETHER not in text_of(func)


def test_other_loops_carry_nothing():
    loop = """\
kernel k(x: ndarray<f32, 1>, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = arg_load [1]
  <*f32> $2 = arg_addr [(0, False)]
  $3 : range_for $0, $1 body {
    <i32> $4 = loop_index $3 [0]
    <i32> $5 = external_tensor_shape_along_axis [(0, 0)]
    <i32> $6 = mod $4, $5
    <*f32> $7 = external_ptr $2, $6 ['unsafe']
    <f32> $8 = cast_value $4
    $9 : global_store $7, $8
  }
}
"""
    assert "llvm.loop" not in text_of(parse(loop))


def test_loops_that_reduce_by_a_maximum_of_floats(tmp_path):
    """LLVM's two estimates of some of them as vectors disagree if they use its ``maxnum``, and then
    it ends the process."""
    program = tmp_path / "largest.py"
    program.write_text(LARGEST, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-300:]
    of_calls, *last = map(float, done.stdout.split())
    assert of_calls == pytest.approx(np.cos(0.5) ** 0.5 + np.tanh(np.cos(0.5)))
    assert last == [105.0, 106.0]


LARGEST = """
import numpy as np
from qd_studio import engine as qd

qd.init(arch=qd.cpu, default_fp=qd.f64, offline_cache=False, fast_math=False, tiered=False)
A1 = qd.types.ndarray(qd.f64, 1)
N1 = qd.types.ndarray(qd.i32, 1)


@qd.kernel
def largest(p: A1, y: A1, o: N1, n: qd.i32):
    for i in range(y.shape[0]):
        v = w = 0.1
        for j in range(n):
            b = p[o[(j + 4) % 4]]
            v = qd.max(v, qd.cos(b) ** b)
        for j in range(n):
            b = p[o[(j + 4) % 4]]
            w = qd.max(w, qd.tanh(qd.cos(b)))
        y[i] += v + w


y = np.zeros(4)
largest(np.full(4, 0.5), y, np.zeros(4, np.int32), 3)
print(y[0])


@qd.kernel
def last(x: A1):
    for i, j in qd.ndrange(300, 6):
        qd.atomic_max(x[0], j + 100.0)
    for i, j in qd.ndrange(300, 7):
        qd.atomic_max(x[1], j + 100.0)


x = np.zeros(2)
last(x)
print(*x)
"""
