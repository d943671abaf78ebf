"""Loops like those of matrix products, in tiles: the interpreter runs both forms.

The file tests have few iterations; here are tiles, also those at the ends of the axes.
"""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import interp
from qd_studio.engine.ir import codes, parse
from qd_studio.engine.passes import tile_products
from qd_studio.engine.pipeline_kind import PipelineKind

from .qdir import run_passes

NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
KERNEL = """kernel k(a: ndarray<{t}, 2>, b: ndarray<{t}, 2>, c: ndarray<{t}, 2>) stage=offloaded {{
  $0 : offloaded {{kind='range_for'}} header {{
    <i32> $1 = const 1
    <i32> $2 = external_tensor_shape_along_axis [(0, 2)]
    <i32> $26 = const 0
    <i32> $3 = external_tensor_shape_along_axis [(1, 2)]
    $4 : bounds $1, $2, $26, $3
  }} body {{
    <i32> $5 = loop_index $0 [0]
    <i32> $6 = loop_index $0 [1]
    <*{t}> $7 = arg_addr [(0, False)]
    <*{t}> $8 = arg_addr [(1, False)]
    <*{t}> $9 = arg_addr [(2, False)]
    <*{t}> $10 = alloca ['s']
    <i32> $25 = const 1
    <i32> $11 = external_tensor_shape_along_axis [({axis}, 0)]
    <u1> $30 = cmp_lt $25, $11
    <*{t}> $31 = external_ptr $9, $5, $6 ['unsafe']
    <{t}> $32 = const 3
    $33 : global_store $31, $32
    $34 : if $30 then {{
      <{t}> $35 = global_load $31
      $36 : local_store $10, $35
    }} else {{
    }}
    $12 : range_for $25, $11 body {{
      <i32> $13 = loop_index $12 [0]
      <*{t}> $14 = external_ptr $7, {a} ['unsafe']
      <{t}> $15 = global_load $14
      <*{t}> $16 = external_ptr $8, {b} ['unsafe']
      <{t}> $17 = global_load $16
      <{t}> $18 = mul $15, $17
      <{t}> $19 = local_load $10
      <{t}> $20 = add $19, $18
      $21 : local_store $10, $20
    }}
    <{t}> $22 = local_load $10
    <*{t}> $23 = external_ptr $9, $5, $6 ['unsafe']
    <{t}> $27 = global_load $23
    <{t}> $28 = add $27, $22
    $37 : if $30 then {{
      $24 : global_store $23, $28
    }} else {{
    }}
  }}
}}
"""


def results(func, shapes, t):
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-9, 9, shape).astype(NUMPY[t]) for shape in shapes]
    interp.run(func, arrays)
    return arrays[2]


@pytest.mark.parametrize(
    ("t", "a", "b", "n", "m", "depth"),
    [
        ("f64", "$5, $13", "$13, $6", 65, 130, 10),
        ("f32", "$5, $13", "$13, $6", 129, 128, 9),
        ("f32", "$13, $5", "$6, $13", 130, 130, 20),
        ("i32", "$5, $13", "$6, $13", 128, 140, 1),
        ("f32", "$5, $13", "$13, $6", 127, 140, 4),  # shorter than a tile
    ],
)
def test_tiles_do_what_the_loop_did(monkeypatch, t, a, b, n, m, depth):
    monkeypatch.setattr(tile_products, "_FEW", (1, 1))
    axis = a.split(", ").index("$13")
    text = KERNEL.format(t=t, a=a, b=b, axis=axis)
    size = max(n, m) + 1
    shapes = [(size, depth) if axis else (depth, size), (size, size), (n, m)]
    before, after = parse(text), parse(text)
    (remark,) = run_passes(after, ["tile_products"], {})
    assert "go through shared memory" in remark
    expected = results(before, shapes, t)
    assert np.array_equal(expected, results(after, shapes, t))
    for kind, lanes in ((PipelineKind.CPU, 64), (PipelineKind.WIDE_CPU, 128)):
        packed = parse(text)
        run_passes(packed, ["make_cpu_multithreaded_range_for"], {"cpu_max_num_threads": 2})
        (remark,) = run_passes(packed, ["pack_products"], {}, kind)
        assert f"and {lanes // np.dtype(NUMPY[t]).itemsize} columns together" in remark
        assert np.array_equal(expected, results(packed, shapes, t))


@pytest.mark.parametrize(("b", "few"), [("$13, $6", 32), ("$6, $13", 4)])
def test_fewer_tiles_are_enough_where_neighbours_load_from_different_rows(b, few):
    func = parse(KERNEL.format(t="f32", a="$5, $13", b=b, axis=1))
    run_passes(func, ["tile_products"], {})
    for task in func.body.ops:
        ops = task.regions[0].ops
        (counted,) = [op for op in ops if op.code == codes.SUB and op.args[0].code == codes.MUL]
        assert counted.args[1].attr == few - 1


@pytest.mark.parametrize("t", ["f32", "i32"])
@pytest.mark.parametrize(("n", "m", "depth"), [(5, 10, 6), (70, 300, 35), (3, 40, 9)])
def test_packed_rows_of_loops_in_loops(t, n, m, depth):
    """The columns are those of a loop inside; LLVM's results have the bits of the loop."""
    T = getattr(qd, t)
    A = qd.types.NDArray[T, 2]

    def product(a: A, b: A, c: A):
        for i in range(c.shape[0]):
            x = a[i, 0]
            for j in range(1, c.shape[1]):
                s = qd.cast(0, T)
                most = qd.cast(-99, T)
                for k in range(a.shape[1]):
                    d = a[i, k] - b[k, j]
                    s += d * d + b[0, j]
                    most = max(most, d * x)
                c[i, j] = s - most

    found = []
    for skipped in ("", "pack_products"):
        qd.init(arch=qd.cpu, fast_math=False, tiered="off", skip_passes=skipped)
        kernel = qd.kernel(product)
        rng = np.random.default_rng(n)
        shapes = (n, depth), (depth, m), (n, m)
        a, b, c = [rng.integers(-99, 99, shape).astype(NUMPY[t]) for shape in shapes]
        if t != "i32":
            a /= 7
        kernel(a, b, c)
        found.append(c)
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("widest", [8, 0])
@pytest.mark.parametrize("t", ["i8", "f32", "f64"])
@pytest.mark.parametrize(("n", "m", "depth"), [(5, 19, 130), (137, 280, 135)])
def test_packed_products_of_turned_matrices(t, widest, n, m, depth):
    """Rows of an array may be along each axis; a processor with AVX-512 has two shapes."""
    T = getattr(qd, t)
    A = qd.types.NDArray[T, 2]

    def products(a: A, turned: A, b: A, other: A, apart: A, c: A, d: A, e: A):
        for i, j in c:
            for k in range(a.shape[1]):
                c[i, j] += turned[k, i] * other[j, k]
        for i, j in d:
            for k in range(a.shape[1]):
                d[i, j] += a[i, k] * b[k, j]
        for i, j in e:
            s = qd.cast(0, T)
            for k in range(a.shape[1]):
                s += a[i, k] * apart[j, 2 * k + 1]
            e[i, j] = s

    rng = np.random.default_rng(n)
    dtype = np.dtype(t.replace("i", "int").replace("f", "float"))
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for shape in ((n, depth), (depth, m)))
    other = b.T.copy()
    apart = np.repeat(other, 2, axis=1)
    found = []
    for skipped in ("", "pack_products"):
        qd.init(arch=qd.cpu, fast_math=False, tiered="off", skip_passes=skipped,
                max_vector_width=widest, cpu_max_num_threads=1)  # fmt: skip
        made = [np.ones((n, m), dtype) for _ in range(3)]
        qd.kernel(products)(a, a.T.copy(), b, other, apart, *made)
        found.append(made)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0][1], a @ b + dtype.type(1))
