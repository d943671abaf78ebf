"""Fields in kernels over every layout: the CPU, the interpreter and NumPy agree."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qd_studio import engine as qd

from tests.lang import opaque

pytestmark = pytest.mark.sampled(3)

ARCHES = ["cpu", "interp"]
N, M = 6, 8


@pytest.fixture(params=[*ARCHES, "device"])
def arch(request):
    with opaque.program(request.param) as arch:
        yield arch


# Scalar fields of shape (N, M), each with the first index of its axes


def placed(*levels, dtype=qd.i32, offset=None, beside=()):
    f = qd.field(dtype)
    node = qd.root
    for axes, dims in levels:
        node = node.dense(axes, dims)
    others = [qd.field(t) for t in beside]
    half = len(others) // 2
    node.place(*others[:half], f, *others[half:], offset=offset)
    for other in others:
        other.fill(1)
    return f


SCALARS = {
    "shape": lambda: qd.field(qd.i32, shape=(N, M)),
    "order": lambda: qd.field(qd.i32, shape=(N, M), order="ji"),
    "offset": lambda: qd.field(qd.i32, shape=(N, M), offset=(-3, 2)),
    "order and offset": lambda: qd.field(qd.i32, shape=(N, M), order="ji", offset=(5, -1)),
    "dense": lambda: placed((qd.ij, (N, M))),
    "rows": lambda: placed((qd.i, N), (qd.j, M)),
    "columns": lambda: placed((qd.j, M), (qd.i, N)),
    "blocks": lambda: placed((qd.ij, (3, 2)), (qd.ij, (2, 4))),
    "blocks of columns": lambda: placed((qd.ij, (3, 2)), (qd.j, 4), (qd.i, 2)),
    "blocks and offset": lambda: placed((qd.ij, (2, 4)), (qd.ij, (3, 2)), offset=(-4, 7)),
    "three levels": lambda: placed((qd.i, 3), (qd.j, 2), (qd.ij, (2, 2)), (qd.j, 2)),
    "interleaved": lambda: placed((qd.ij, (N, M)), beside=(qd.f64, qd.i8)),
    "interleaved blocks": lambda: placed(
        (qd.i, 3), (qd.ij, (2, M)), beside=(qd.u1, qd.f32, qd.i64)
    ),
    "component": lambda: qd.Vector.field(3, qd.i32, shape=(N, M)).get_scalar_field(1),
    "member": lambda: qd.types.struct(a=qd.i8, b=qd.i32, c=qd.f64).field(shape=(N, M)).b,
    "gradient": lambda: qd.field(qd.f64, shape=(N, M), needs_grad=True).grad,
    "small type": lambda: placed((qd.ij, (2, 2)), (qd.ij, (3, 4)), dtype=qd.i16, beside=(qd.f64,)),
}


def origin(f):
    return f.memory_layout().origin[:2]


@qd.kernel
def blur(f: qd.template(), g: qd.template(), di: qd.i32, dj: qd.i32, i0: qd.i32, j0: qd.i32):
    for i, j in f:
        total = 0
        for a, b in qd.static(qd.ndrange((-1, 2), (-1, 2))):
            x = qd.max(qd.min(i + a, i0 + N - 1), i0)
            y = qd.max(qd.min(j + b, j0 + M - 1), j0)
            total += (3 * a + b + 5) * qd.cast(f[x, y], qd.i32)
        g[i + di, j + dj] = total


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("other", ["shape", "blocks and offset", "interleaved"])
def test_a_stencil_from_one_layout_to_another(arch, name, other):
    f, g = SCALARS[name](), SCALARS[other]()
    (i0, j0), (k0, l0) = origin(f), origin(g)
    values = np.random.default_rng(1).integers(-9, 9, (N, M))
    f.from_numpy(values)
    blur(f, g, k0 - i0, l0 - j0, i0, j0)
    padded = np.pad(values, 1, mode="edge")
    wanted = sum(
        (3 * a + b + 5) * padded[1 + a : 1 + a + N, 1 + b : 1 + b + M]
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
    )
    np.testing.assert_array_equal(g.to_numpy(), wanted)
    np.testing.assert_array_equal(f.to_numpy(), values)


@qd.kernel
def scatter(f: qd.template(), at: qd.types.NDArray[qd.i32, 2], i0: qd.i32, j0: qd.i32):
    for k in range(at.shape[0]):
        f[i0 + at[k, 0], j0 + at[k, 1]] += k


@pytest.mark.parametrize("name", [n for n in SCALARS if n != "small type"])
def test_scattered_additions(arch, name):
    f = SCALARS[name]()
    at = np.random.default_rng(2).integers(0, [N, M], (700, 2), dtype=np.int32)
    scatter(f, at, *origin(f))
    wanted = np.zeros((N, M))
    np.add.at(wanted, (at[:, 0], at[:, 1]), np.arange(700))
    np.testing.assert_array_equal(f.to_numpy(), wanted)


# Vectors, matrices, structs


def vector_placed(layout_of_place):
    v = qd.Vector.field(3, qd.f32)
    layout_of_place(v)
    return v


def apart(v):
    for k in range(3):
        qd.root.dense(qd.ij, (N, M)).place(v.get_scalar_field(k))


VECTORS = {
    "AOS": lambda: qd.Vector.field(3, qd.f32, shape=(N, M)),
    "SOA": lambda: qd.Vector.field(3, qd.f32, shape=(N, M), layout=qd.Layout.SOA),
    "SOA in order": lambda: qd.Vector.field(
        3, qd.f32, shape=(N, M), layout=qd.Layout.SOA, order="ji", offset=(1, -2)
    ),
    "blocks": lambda: vector_placed(
        lambda v: qd.root.dense(qd.ij, (2, 4)).dense(qd.ij, (3, 2)).place(v, offset=(3, 3))
    ),
    "interleaved": lambda: vector_placed(
        lambda v: qd.root.dense(qd.ij, (N, M)).place(qd.field(qd.f64), v, qd.field(qd.i8))
    ),
    "apart": lambda: vector_placed(apart),
    "member": lambda: qd.types.struct(a=qd.f64, v=qd.types.vector(3, qd.f32)).field(
        shape=(N, M)
    ).v,
}  # fmt: skip


@qd.kernel
def work_on_vectors(v: qd.template(), m: qd.template(), k: qd.i32):
    for i, j in v:
        v[i, j] = qd.Vector([i, j, 1.0]) * 2 + 1
    for i, j in v:
        v[i, j][k] += 10
        v[i, j].z -= 0.5
        m[i, j] = v[i, j].outer_product(v[i, j])
        m[i, j][1, k] = -1


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("layout", [qd.Layout.AOS, qd.Layout.SOA])
def test_vectors_and_matrices(arch, name, layout):
    v = VECTORS[name]()
    i0, j0 = origin(v)
    m = qd.Matrix.field(3, 3, qd.f32, shape=(N, M), layout=layout, offset=(i0, j0))
    work_on_vectors(v, m, 1)
    i, j = np.meshgrid(range(i0, i0 + N), range(j0, j0 + M), indexing="ij")
    wanted = np.stack([2 * i + 1, 2 * j + 11, np.full((N, M), 2.5)], -1)
    np.testing.assert_array_equal(v.to_numpy(), wanted)
    outer = wanted[..., :, None] * wanted[..., None, :]
    outer[..., 1, 1] = -1
    np.testing.assert_array_equal(m.to_numpy(), outer)


PARTICLE = qd.types.struct(
    x=qd.types.vector(2, qd.f32), mass=qd.f64, tag=qd.i8,
    inner=qd.types.struct(c=qd.types.matrix(2, 2, qd.f32), on=qd.u1),
)  # fmt: skip


@qd.kernel
def work_on_structs(p: qd.template()):
    for i in p:
        p[i].x = [i, -i]
        p[i].mass = 0.5 * i
        p[i].tag = i % 3
        p[i].inner.on = i % 2 == 0
        p[i].inner.c = [[i, 1], [2, 3]]
    for i in p:
        p[i].x += p[i].inner.c @ p[i].x
        if p[i].inner.on:
            p[i].mass += p[i].inner.c[0, 0]


@pytest.mark.parametrize("layout", [qd.Layout.AOS, qd.Layout.SOA])
@pytest.mark.parametrize("offset", [0, -3])
def test_structs(arch, layout, offset):
    p = PARTICLE.field(shape=(9,), layout=layout, offset=(offset,))
    work_on_structs(p)
    i = np.arange(offset, offset + 9)
    got = p.to_numpy()
    x = np.stack([i, -i], -1)
    c = np.stack([np.stack([i, np.ones(9)], -1), np.tile([2, 3], (9, 1))], -2)
    np.testing.assert_array_equal(got["x"], x + np.einsum("nab,nb->na", c, x))
    np.testing.assert_array_equal(got["mass"], 0.5 * i + np.where(i % 2 == 0, i, 0))
    np.testing.assert_array_equal(got["tag"], i % 3)
    np.testing.assert_array_equal(got["inner"]["on"], i % 2 == 0)
    np.testing.assert_array_equal(got["inner"]["c"], c)


# Generated trees


@st.composite
def trees(draw):
    levels = []
    for _ in range(draw(st.integers(1, 4))):
        some = draw(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=2, unique=True))
        levels.append((some, [draw(st.sampled_from([1, 2, 3, 4])) for _ in some]))
    if {a for axes, _ in levels for a in axes} != {0, 1}:
        levels.append(([0, 1], [2, 3]))
    return levels, draw(st.integers(0, 2)), draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3)))


@qd.kernel
def mix(f: qd.template(), g: qd.template(), i0: qd.i32, j0: qd.i32):
    for i, j in f:
        f[i, j] = 7 * i - j
    for i, j in f:
        g[i, j] = f[i0 + (i - i0 + 1) % f.shape[0], j0 + (j - j0 + 2) % f.shape[1]]


@given(trees())
@settings(max_examples=15)
def test_generated_trees(tree):
    levels, beside, offset = tree
    wanted = None
    for arch in ARCHES:
        qd.init(arch=getattr(qd, arch))
        f, g = (
            placed(
                *[(qd.axes(*a), d) for a, d in levels], offset=offset,
                beside=(qd.f64, qd.i8)[:beside],
            )
            for _ in range(2)
        )  # fmt: skip
        mix(f, g, *offset)
        if wanted is None:
            i, j = (np.arange(o, o + n) for o, n in zip(offset, f.shape, strict=True))
            wanted = 7 * i[:, None] - j[None, :]
        np.testing.assert_array_equal(f.to_numpy(), wanted)
        rolled = np.roll(wanted, (-1, -2), (0, 1))
        np.testing.assert_array_equal(g.to_numpy(), rolled)
    qd.reset()


@pytest.mark.sampled(2)
@pytest.mark.not_on_device("it runs programs of its own")
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_writes_a_little_out_of_range_do_no_damage(backend):
    """There is unused memory around the fields of each block, and around arrays of the host."""
    command = [sys.executable, str(Path(__file__).with_name("spills.py")), backend]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stdout) == (0, "kept\n"), found.stderr


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("name", ["cpu", "interp", "opencl"])
@pytest.mark.not_on_device("it chooses its backends")
def test_denormals_are_kept(name, fast_math):
    """Numbers below the smallest normal one are stored; OpenCL may flush them under fast_math."""
    if name == "opencl" and fast_math:
        pytest.skip("devices may flush f32 under fast_math")
    qd.init(arch=getattr(qd, name), fast_math=fast_math, offline_cache=False, log_level="error")

    @qd.kernel
    def stores(a: qd.types.NDArray[qd.f32, 1], b: qd.types.NDArray[qd.f64, 1], half: qd.f32):
        for i in range(4):
            a[i] = a[i] * half
            b[i] = b[i] * 0.5

    a, b = np.full(4, 8e-45, np.float32), np.full(4, 5e-323)
    want = (a * np.float32(0.5), b * 0.5)
    stores(a, b, 0.5)
    assert (a == want[0]).all() and (b == want[1]).all() and a.all() and b.all()
    single = qd.field(qd.f32, ())
    single[None] = 1e-45
    assert single[None] == float(np.float32(1e-45)) > 0
