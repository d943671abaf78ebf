"""Where the elements of fields lie: dense nesting, orders, offsets, interleaving, AOS and SOA."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qd_studio import engine as qd
from qd_studio.engine.backends.array_memory import host_copy

from tests.lang import opaque

DTYPES = [qd.u1, qd.i8, qd.u16, qd.f16, qd.i32, qd.f32, qd.f64]


pytestmark = pytest.mark.usefixtures("memory")


host_only = opaque.host_only("memory")


def indices(field):
    layout = field.memory_layout()
    axes = [range(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True)]
    return list(itertools.product(*axes))


def element_bytes(field):
    """For each scalar the bytes of the block that it takes, as the compiled code finds them."""
    start = field.address() - field.block.memory.address
    layout, size = field.memory_layout(), field.dtype.size
    return [start + layout.offset(i) * size for i in indices(field)], size


def check(*fields):
    """The three views of a field agree, and no two scalars share a byte."""
    taken: dict[int, set[int]] = {}
    for field in fields:
        starts, size = element_bytes(field)
        assert min(starts) >= 0
        assert max(starts) + size <= field.block.size
        assert all(at % size == 0 for at in starts)
        for at in starts:
            mine = taken.setdefault(id(field.block), set())
            bytes_of = set(range(at, at + size))
            assert not mine & bytes_of
            mine |= bytes_of
    for number, field in enumerate(fields):
        layout = field.memory_layout()
        values = (np.arange(np.prod(layout.shape, dtype=int)) * 7 + number) % 100
        values = values.astype(field.dtype.np).reshape(layout.shape)
        field.from_numpy(values)
        flat = host_copy(field.flat())
        assert flat.shape == (layout.span,)
        assert [flat[layout.offset(i)] for i in indices(field)] == values.ravel().tolist()
        np.testing.assert_array_equal(field.to_numpy(), values)
        ndim = len(field.shape)
        for index in indices(field):
            at = field[index[:ndim]]
            one = at[index[ndim:]] if field.element_shape else at
            assert one == values[tuple(np.subtract(index, layout.origin))]
    for number, field in enumerate(fields):  # writing one did not change another
        first = field.to_numpy().ravel()
        wanted = (np.arange(first.size) * 7 + number) % 100
        np.testing.assert_array_equal(first, wanted.astype(field.dtype.np))


@st.composite
def trees(draw):
    """A chain of dense nodes, and what is placed in the last."""
    axes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
    levels = []
    for _ in range(draw(st.integers(1, 3))):
        some = draw(st.lists(st.sampled_from(axes), min_size=1, max_size=len(axes), unique=True))
        levels.append((some, [draw(st.integers(1, 3)) for _ in some]))
    kinds = st.sampled_from([(), (2,), (3,), (2, 2)])
    placed = draw(st.lists(st.tuples(st.sampled_from(DTYPES), kinds), min_size=1, max_size=3))
    shift = draw(st.booleans())
    return levels, placed, shift


@given(trees())
def test_generated_trees(tree):
    levels, placed, shift = tree
    builder = qd.FieldsBuilder()
    node = builder
    for axes, dims in levels:
        node = node.dense(qd.axes(*axes), dims)
    made = []
    for dtype, shape in placed:
        kind = (None, qd.types.vector, qd.types.matrix)[len(shape)]
        made.append(qd.field(kind(*shape, dtype) if kind else dtype))
    node.place(*made, offset=tuple(range(-2, len(node.shape) - 2)) if shift else None)
    finished = builder.finalize()
    used = sorted({a for axes, _ in levels for a in axes})
    sizes = dict.fromkeys(used, 1)
    for axes, dims in levels:
        for axis, n in zip(axes, dims, strict=True):
            sizes[axis] *= n
    assert made[0].shape == tuple(sizes.values())
    check(*made)
    finished.destroy()


@pytest.mark.parametrize("order", ["ijk", "kji", "jik", "kij"])
def test_order_is_that_of_memory(order):
    f = qd.field(qd.i32, shape=(2, 3, 4), order=order)
    check(f)
    perm = tuple("ijk".index(c) for c in order)
    values = np.arange(24).reshape(2, 3, 4)
    f.from_numpy(values)
    assert host_copy(f.flat()).tolist() == values.transpose(perm).ravel().tolist()
    assert f.layout == (None if order == "ijk" else perm)


@pytest.mark.parametrize("layout", [qd.Layout.AOS, qd.Layout.SOA])
@pytest.mark.parametrize("n", [1, 5, 16])
def test_layouts_of_vectors(layout, n):
    v = qd.Vector.field(3, qd.f32, shape=(n, 2), layout=layout)
    check(v)
    spans = v.memory_layout()
    step = spans.offset((0, 0, 1))
    assert step == 1 if layout is qd.Layout.AOS else step >= 2 * n
    m = qd.Matrix.field(2, 3, qd.f64, shape=n, layout=layout, offset=4)
    check(m)


@pytest.mark.parametrize("layout", [qd.Layout.AOS, qd.Layout.SOA])
def test_layouts_of_structs(layout):
    inner = qd.types.struct(flag=qd.u1, w=qd.f64)
    t = qd.types.struct(a=qd.i8, v=qd.types.vector(3, qd.f32), s=inner)
    f = t.field(shape=(3, 2), layout=layout, offset=(0, -1))
    check(f.a, f.v, f.s.flag, f.s.w)
    blocks = {id(x.block) for x in (f.a, f.v, f.s.flag, f.s.w)}
    assert len(blocks) == (1 if layout is qd.Layout.AOS else 4)


def test_cells_hold_the_fields_side_by_side():
    a, b, c = qd.field(qd.u8), qd.field(qd.f64), qd.field(qd.f32)
    node = qd.root.dense(qd.i, 4)
    node.place(a, b, c)
    check(a, b, c)
    assert node._cell_size_bytes == 24
    assert [f.snode._offset_bytes_in_parent_cell for f in (a, b, c)] == [0, 8, 16]


def test_nested_nodes_run_on_where_they_can():
    dense, gaps = qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.i, 3).dense(qd.i, 2).place(dense)
    assert dense.memory_layout().is_row_major()
    outer, other = qd.root.dense(qd.i, 3), qd.field(qd.f32)
    outer.dense(qd.i, 2).place(gaps)
    outer.place(other)
    assert gaps.memory_layout().terms == ((0, 2, 0, 3), (0, 1, 2, 1))
    check(dense)
    check(gaps, other)


def test_axes_are_in_the_order_of_their_numbers():
    f = qd.field(qd.i32)
    qd.root.dense(qd.axes(1, 0), (2, 3)).place(f)
    assert f.shape == (3, 2)
    assert f.memory_layout().is_row_major()


def test_components_placed_one_by_one():
    v = qd.Vector.field(3, qd.f32)
    for i in range(3):
        qd.root.dense(qd.i, 5).place(v.get_scalar_field(i))
    check(v)
    w = qd.Vector.field(2, qd.f32)
    qd.root.dense(qd.i, 4).place(w.get_scalar_field(0))
    qd.root.dense(qd.j, 4).dense(qd.i, 1).place(w.get_scalar_field(1))
    with pytest.raises(RuntimeError, match="components of a vector"):
        w.fill(1)


def test_a_component_is_the_memory_of_its_field():
    m = qd.Matrix.field(2, 2, qd.i32, shape=3)
    part = m.get_scalar_field(1, 0)
    assert part.part_of == (m, (1, 0))
    part.from_numpy(np.array([5, 6, 7]))
    assert m.to_numpy()[:, 1, 0].tolist() == [5, 6, 7]
    m[2] = [[1, 2], [3, 4]]
    assert part[2] == 3


def test_copies_of_a_block_are_read_like_the_block():
    a, b = qd.field(qd.f32), qd.field(qd.i16)
    qd.root.dense(qd.ij, (2, 3)).place(a, b)
    a.from_numpy(np.arange(6).reshape(2, 3))
    copied = np.empty(a.block.size, np.uint8)
    a.block.memory.read(0, copied)
    a.fill(0)
    flat = a.flat(copied)
    assert [flat[a.memory_layout().offset(i)] for i in indices(a)] == [0, 1, 2, 3, 4, 5]


def test_blocks_start_on_a_cache_line():
    for shape in ((), 1, (3, 5)):
        assert qd.field(qd.u8, shape=shape).address() % 64 == 0
