"""Placing fields: trees, builders, gradients, and what can go wrong."""

from functools import partial

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang.fields.builder import placed_fields

pytestmark = pytest.mark.usefixtures("memory")


# Trees


def test_nodes_know_where_they_are():
    f = qd.field(qd.f32)
    block = qd.root.dense(qd.ij, (2, 3))
    pixel = block.dense(qd.j, 4)
    assert pixel.place(f) is pixel
    assert (block.shape, pixel.shape, f.shape, f.snode.shape) == ((2, 3), (2, 12), (2, 12), (2, 12))
    assert (f.parent(), f.parent(2), f.snode.parent()) == (pixel, block, pixel)
    assert f.parent(3) is qd.root
    assert f.parent(4) is None
    assert block.parent() is qd.root
    assert qd.root.parent() is None
    assert (qd.root.shape, repr(qd.root)) == ((), "qd.root")
    assert repr(pixel) == "<qd.SNode of type dense>"
    assert repr(f.snode) == "<qd.SNode of type place>"


def test_extents_for_several_axes():
    assert qd.root.dense(qd.ijk, 2).shape == (2, 2, 2)
    assert qd.root.dense(qd.ij, [np.int32(2), 3]).shape == (2, 3)


def test_lists_are_placed_too():
    a, b, c = qd.field(qd.f32), qd.field(qd.f32), qd.field(qd.f32)
    qd.root.dense(qd.i, 3).place([a, (b,)], c)
    assert a.shape == b.shape == c.shape == (3,)


def test_fields_at_the_root_have_no_axes():
    a, v = qd.field(qd.f32), qd.Vector.field(2, qd.i32)
    qd.root.place(a, v)
    a[None], v[None] = 2, [3, 4]
    assert (a.shape, a[()], v[None].to_list()) == ((), 2, [3, 4])


def test_a_field_after_the_first_use_starts_a_new_tree():
    a = qd.field(qd.f32, shape=2)
    node = qd.root.dense(qd.i, 3)
    a[0] = 1
    b = qd.field(qd.f32, shape=2)
    b[1] = 2
    assert (a[0], b[1]) == (1, 2)
    late = qd.field(qd.f32)
    for build in (lambda: node.place(late), lambda: node.dense(qd.i, 2), node.lazy_grad):
        with pytest.raises(qd.QuadrantsRuntimeError, match="FieldsBuilder finalized"):
            build()
    qd.root.dense(qd.i, 3).place(late)
    assert late.shape == (3,)


def test_fields_builder():
    builder, w = qd.FieldsBuilder(), qd.field(qd.f32)
    builder.dense(qd.i, 3).place(w)
    assert w.shape == (3,)
    for use in (lambda: w[0], w.to_numpy, w.memory_layout):
        with pytest.raises(qd.QuadrantsRuntimeError, match=r"not finalized.*finalize\(\)"):
            use()
    tree = builder.finalize()
    w.fill(4)
    assert w[2] == 4
    for again in (builder.finalize, lambda: builder.dense(qd.i, 2), lambda: builder.place(w)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="FieldsBuilder finalized"):
            again()
    other = qd.FieldsBuilder()
    z = qd.field(qd.f32)
    other.place(z)
    second = other.finalize(raise_warning=False)
    assert second.id == tree.id + 1
    tree.destroy()
    assert tree.destroyed
    for use in (lambda: w[0], lambda: w.fill(1), w.flat):
        with pytest.raises(qd.QuadrantsRuntimeError, match="SNode tree has been destroyed"):
            use()
    with pytest.raises(qd.QuadrantsRuntimeError, match="SNode tree has been destroyed"):
        tree.destroy()
    assert z[None] == 0


def test_an_empty_builder_is_no_harm(capsys):
    assert qd.FieldsBuilder().finalize(raise_warning=False).blocks == []
    assert "no fields" not in capsys.readouterr().err
    qd.FieldsBuilder().finalize()
    assert "no fields were placed" in capsys.readouterr().err
    qd.root.dense(qd.i, 3)
    assert qd.field(qd.f32, shape=1)[0] == 0


def test_builders_end_with_their_program():
    builder, node = qd.FieldsBuilder(), qd.root.dense(qd.i, 3)
    qd.init(arch=qd.cpu)
    for build in (builder.finalize, lambda: builder.dense(qd.i, 2), lambda: node.dense(qd.i, 2)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="ended"):
            build()


# Mistakes; after each, fields still work


@pytest.fixture
def still_fine():
    yield
    f = qd.field(qd.f32, shape=2)
    f[1] = 3
    assert f.to_numpy().tolist() == [0, 3]


def test_errors_name_the_line_that_made_the_field():
    struct = qd.types.struct(a=qd.f32).field()
    for field in (qd.field(qd.f32), qd.Vector.field(2, qd.f32), struct.a):
        with pytest.raises(RuntimeError, match=r"test_placing\.py\", line"):
            field[0]


def test_a_field_that_is_not_placed(still_fine):
    f, v = qd.field(qd.f32, name="mass"), qd.Vector.field(2, qd.f32)
    uses = (lambda: f[0], lambda: f.shape, f.parent, f.to_numpy, lambda: f.fill(1), f.memory_layout)
    for use in uses:
        with pytest.raises(
            RuntimeError, match=r"not placed: mass \(File .*test_placing\.py\", line"
        ):
            use()
    with pytest.raises(RuntimeError, match=r"(?s)specifying a shape.*qd\.root\.dense"):
        v[0]
    qd.root.dense(qd.i, 3).place(v.get_scalar_field(0))
    with pytest.raises(RuntimeError, match="not placed"):
        v[0]
    assert v.get_scalar_field(0)[0] == 0


def test_others_work_while_a_field_waits():
    waiting, f = qd.field(qd.f32), qd.field(qd.f32, shape=1)
    f[0] = 1
    qd.root.dense(qd.i, 2).place(waiting)
    assert waiting[1] == 0


def test_placing_twice(still_fine):
    f, g = qd.field(qd.f32, shape=2), qd.field(qd.f32)
    with pytest.raises(RuntimeError, match="This variable has been placed"):
        qd.root.dense(qd.i, 3).place(g, f)
    assert not g.is_placed()
    with pytest.raises(RuntimeError, match="This variable has been placed"):
        qd.root.dense(qd.i, 3).place(g, g)
    qd.root.dense(qd.i, 3).place(g)
    assert g.shape == (3,)


def test_memory_that_there_is_not(still_fine):
    before = qd.field(qd.i32, shape=2)
    huge = qd.field(qd.f64, shape=(1 << 22, 1 << 22))
    before[1] = 5
    for _ in range(2):
        with pytest.raises(qd.QuadrantsRuntimeError, match=r"memory for a field .* of 14"):
            huge[0, 0]
    assert before[1] == 5
    builder, x, y = qd.FieldsBuilder(), qd.field(qd.f32), qd.Vector.field(2, qd.f64)
    builder.place(x)
    builder.dense(qd.ij, (1 << 22, 1 << 22)).place(y)
    with pytest.raises(qd.QuadrantsRuntimeError, match="not enough memory for fields of 28"):
        builder.finalize()
    assert x[None] == 0
    with pytest.raises(qd.QuadrantsRuntimeError, match="not enough memory"):
        y.fill(0)


def field(dtype=qd.f32, **options):
    """What makes such a field, of two axes unless the options say otherwise."""
    return partial(qd.field, dtype, **{"shape": (2, 3), **options})


RUNTIME, SYNTAX = qd.QuadrantsRuntimeError, qd.QuadrantsSyntaxError
MISTAKES = [
    (field(shape=(0,)), RUNTIME, "field should be positive, got 0 in dim.* 0"),
    (field(shape=(3, -1)), RUNTIME, "got -1 in dim.* 1"),
    (field(shape=1 << 31), RUNTIME, r"2\*\*31 or more"),
    (field(shape=(1 << 30, 1 << 30)), RUNTIME, "not enough memory"),
    *[
        (make, TypeError, "an extent of a field must be an integer")
        for shape in ((2.0,), 1.5, "ab", [None])
        for make in (field(shape=shape), lambda shape=shape: qd.root.dense(qd.i, shape))
    ],
    (field(shape=(1,) * 13), RuntimeError, "The maximum dimensionality is 12"),
    (lambda: qd.axes(12), RuntimeError, "The maximum dimensionality is 12"),
    *[
        (field(dtype), ValueError, "Invalid data type")
        for dtype in ("f32", None, complex, 3, qd.types.struct(a=qd.i32))
    ],
    (field(order="ik"), SYNTAX, "Invalid axis k"),
    (field(order="i"), SYNTAX, r"shape and order must be the same \(2 != 1\)"),
    (field(order="ii"), SYNTAX, "axes in order must be different"),
    (field(offset=(1,)), SYNTAX, r"shape and offset must be the same \(2 != 1\)"),
    (field(shape=None, order="ij"), SYNTAX, "shape cannot be None when order is set"),
    (field(shape=None, offset=1), SYNTAX, "shape cannot be None when offset is set"),
    (field(foo=1), TypeError, "unexpected keyword argument 'foo'"),
    (field(layout=qd.Layout.SOA), TypeError, "unexpected keyword argument 'layout'"),
    (lambda: qd.Vector.field(2, qd.f32, shape=2, layout="soa"), TypeError, r"be qd\.Layout"),
    (
        lambda: qd.Vector.field(2, [qd.f32, qd.i32], shape=1),
        RUNTIME, "must have the same compute type",
    ),
    (
        lambda: qd.Vector.field(2, [qd.f32] * 3, shape=1),
        AssertionError, "2 components need as many data types",
    ),
    (lambda: qd.root.dense(qd.ijk, (2, 3)), RUNTIME, "3 axes need as many extents"),
    (lambda: qd.root.dense(0, 3), qd.QuadrantsTypeError, "no axes"),
    (lambda: qd.root.dense(qd.i, 3).place(3), ValueError, "3 cannot be placed"),
    (
        lambda: qd.root.dense(qd.ij, 3).place(qd.field(qd.f32), offset=(1,)),
        RUNTIME, "one number for each of the field's 2 axes",
    ),
    (lambda: qd.field(qd.f32, shape=1).snode.dense(qd.i, 3), RUNTIME, "cannot hold others"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "text"), MISTAKES)
def test_mistakes_say_what_is_wrong(make, error, text, still_fine):
    with pytest.raises(error, match=text):
        make()


def test_as_many_axes_as_there_may_be():
    assert qd.field(qd.f32, shape=(1,) * 12)[(0,) * 12] == 0


def test_data_types_of_components():
    assert qd.Vector.field(2, [qd.f64, qd.f64], shape=1).dtype is qd.f64
    assert qd.Matrix.field(2, 2, [[qd.i8] * 2] * 2, shape=1).dtype is qd.i8


@pytest.mark.parametrize(
    "name", ["pointer", "bitmasked", "dynamic", "hash", "bit_struct", "quant_array"]
)
def test_sparse_and_quantised_nodes_are_named(name, still_fine):
    with pytest.raises(qd.QuadrantsUnsupportedError, match=f"{name} is not supported") as info:
        getattr(qd.root, name)(qd.i, 4)
    assert info.value.feature == name
    with pytest.raises(qd.QuadrantsUnsupportedError, match=name):
        getattr(qd.root.dense(qd.i, 2), name)(qd.i, 4)


# Gradients


@pytest.mark.parametrize("kind", ["grad", "dual"])
def test_companions(kind):
    needs = {f"needs_{kind}": True}
    f = qd.field(qd.f32, shape=(2, 3), order="ji", offset=(1, 2), **needs)
    v = qd.Vector.field(2, qd.f64, shape=3, layout=qd.Layout.SOA, **needs)
    s = qd.types.struct(a=qd.f32, v=qd.types.vector(2, qd.f32)).field(shape=3, **needs)
    for field in (f, v, s):
        companion = getattr(field, kind)
        assert getattr(field, f"has_{kind}")()
        assert companion is getattr(field, kind)
        assert companion.shape == field.shape
        companion.fill(3)
    assert f.to_numpy().sum() == v.to_numpy().sum() == s.a.to_numpy().sum() == 0
    assert getattr(f, kind).memory_layout() == f.memory_layout()
    assert getattr(f, kind).layout == f.layout
    assert getattr(s.v, kind)[2].to_list() == [3, 3]
    assert getattr(s, kind).a is getattr(s.a, kind)
    assert getattr(getattr(f, kind), kind) is None
    other = "dual" if kind == "grad" else "grad"
    assert not getattr(f, f"has_{other}")()
    with pytest.raises(RuntimeError, match="Field has no allocation"):
        getattr(f, other)[1, 2]


def test_no_gradients():
    f = qd.field(qd.f32, shape=2)
    assert not f.has_grad()
    for use in (lambda: f.grad[0], lambda: f.grad.fill(1), f.grad.to_numpy):
        with pytest.raises(qd.QuadrantsRuntimeError, match=r"(?s)no gradients.*needs_grad=True"):
            use()
    i = qd.field(qd.i32, shape=2)
    assert (i.grad, i.has_grad()) == (None, False)
    for make in (
        lambda: qd.field(qd.i32, shape=2, needs_grad=True),
        lambda: qd.Vector.field(2, qd.i32, shape=2, needs_dual=True),
        lambda: qd.types.struct(a=qd.f32, b=qd.i32).field(shape=2, needs_grad=True),
    ):
        with pytest.raises(qd.QuadrantsRuntimeError, match="i32 is not supported for field with"):
            make()


def test_gradients_are_placed_by_hand():
    x = qd.field(qd.f32)
    qd.root.dense(qd.i, 3).place(x, x.grad)
    assert (x.has_grad(), x.grad.shape) == (True, (3,))
    y = qd.field(qd.f32, needs_grad=True)
    qd.root.dense(qd.i, 3).place(y)
    qd.root.dense(qd.i, 3).place(y.grad)
    assert y.grad.parent() is not y.parent()
    assert y[0] == y.grad[0] == 0


def test_gradients_that_were_asked_for_must_be_placed():
    x = qd.field(qd.f32, needs_grad=True)
    qd.root.dense(qd.i, 3).place(x)
    other = qd.field(qd.f32, shape=1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)grad field\(s\) are not placed.*lazy_grad"):
            x[0]
        assert other[0] == 0
    qd.root.dense(qd.i, 3).place(x.grad)
    assert x[0] == 0


def test_lazy_grad():
    x, y, v = qd.field(qd.f32), qd.field(qd.i32), qd.Vector.field(2, qd.f32)
    done = qd.field(qd.f32)
    node = qd.root.dense(qd.i, 3)
    node.dense(qd.j, 2).place(x, y, v, offset=(1, 1))
    qd.root.dense(qd.i, 2).place(done, done.grad)
    qd.root.lazy_grad()
    qd.root.lazy_dual()
    assert [f.has_grad() for f in (x, y, v, done)] == [True, False, True, True]
    assert [f.has_dual() for f in (x, y, v, done)] == [True, False, True, True]
    assert x.grad.parent() is x.parent()
    assert x.grad.parent()._cell_size_bytes == 40
    v.grad[3, 2] = [5, 6]
    assert v.grad[3, 2].to_list() == [5, 6]
    assert not x.grad.to_numpy().any()


def test_gradients_of_components_are_components_of_the_gradients():
    v = qd.Vector.field(2, qd.f32)
    part = v.get_scalar_field(1).grad
    assert part.part_of == (v.grad, (1,))
    qd.root.dense(qd.i, 2).place(v, v.grad)
    v.grad[1] = [3, 4]
    assert part[1] == 4


def test_all_gradients_of_a_program():
    assert placed_fields("grad") == []
    x = qd.field(qd.f32, shape=2, needs_grad=True)
    v = qd.Vector.field(2, qd.f32, shape=2, needs_grad=True, needs_dual=True)
    builder, y = qd.FieldsBuilder(), qd.field(qd.f64)
    builder.dense(qd.i, 2).place(y, y.grad)
    tree = builder.finalize()
    x.grad.fill(1)
    qd.field(qd.f32)
    assert set(placed_fields("grad")) == {x.grad, *v.grad.components, y.grad}
    assert set(placed_fields("dual")) == set(v.dual.components)
    assert set(placed_fields()) == {x, *v.components, y}
    tree.destroy()
    assert set(placed_fields()) == {x, *v.components}
    qd.init(arch=qd.cpu)
    assert placed_fields() == []
