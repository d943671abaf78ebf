"""Layouts of fields, and where parameters come from, as a record reports them."""

import pytest
from qd_studio.engine.frontend.specialization import ParamBinding
from qd_studio.engine.inspect.layouts import binding_records, layout_record
from qd_studio.engine.ir import Builder, Func, Param
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import ElementLayout, f32, f64, i8, pointer_to
from qd_studio.engine.types.layout import row_major


def test_a_plain_field():
    found = layout_record(row_major((4, 6)), 2, f32)
    assert (found.shape, found.element_shape, found.arrangement) == ((4, 6), (), "")
    assert (found.digits, found.strides) == (("i", "j"), (24, 4))
    assert (found.bytes, found.span) == (96, 96)


def test_the_order_of_axes_is_that_of_memory():
    found = layout_record(ElementLayout((4, 6), (0, 0), ((1, 1, 0, 4), (0, 1, 0, 1))), 2, f64)
    assert (found.digits, found.strides) == (("j", "i"), (32, 8))


@pytest.mark.parametrize(
    ("terms", "arrangement", "digits"),
    [
        (((0, 1, 0, 3), (1, 1, 0, 1)), "AOS", ("i", "c")),
        (((1, 1, 0, 8), (0, 1, 0, 1)), "SOA", ("c", "i")),
    ],
)
def test_parts_of_an_element_are_together_or_apart(terms, arrangement, digits):
    found = layout_record(ElementLayout((8, 3), (0, 0), terms), 1, i8)
    assert (found.shape, found.element_shape) == ((8,), (3,))
    assert (found.arrangement, found.digits) == (arrangement, digits)


def test_fields_between_each_other_take_more_than_they_hold():
    """Two fields in one dense node: a cell holds a vector of two and a scalar."""
    found = layout_record(ElementLayout((4, 2), (0, 0), ((0, 1, 0, 3), (1, 1, 0, 1))), 1, f32)
    assert (found.bytes, found.span) == (32, 44)


def test_nested_dense_levels_split_an_index():
    terms = ((0, 4, 0, 16), (1, 4, 0, 32), (0, 1, 4, 4), (1, 1, 4, 1))
    found = layout_record(ElementLayout((8, 8), (-2, 0), terms), 2, f32)
    assert found.digits == ("j/4", "i/4", "i%4", "j%4")
    assert found.strides == (128, 64, 16, 4)
    assert found.origin == (-2, 0)


def test_matrices_have_rows_and_columns():
    found = layout_record(row_major((5, 2, 2)), 1, f32)
    assert (found.digits, found.strides) == (("i", "r", "c"), (16, 8, 4))


def test_parameters_know_where_they_come_from():
    class Declared:
        def __init__(self, name):
            self.name = name

    func = Func("k", (
        Param("x", "ndarray", f32, 1), Param("tank.u", "ndarray", f32, 2),
        Param("p.vel[1]", "scalar", f32), Param("x.grad", "ndarray", f32, 1),
        Param("mass", "field", f32, 1, layout=row_major((4,))),
    ))  # fmt: skip
    build = Builder(func, func.body)
    build.emit(C.ARG_LOAD, (), 2, f32)
    build.emit(C.ARG_ADDR, (), (4, False), pointer_to(f32))
    build.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (0, 1))
    bindings = (
        ParamBinding(0),
        ParamBinding(1, ("u",)),
        ParamBinding(2, (), 3),
        ParamBinding(0, ("grad",)),
        ParamBinding(-1),
    )
    found = binding_records(func, bindings, [Declared("x"), Declared("tank"), Declared("p")], (4,))
    assert [(p.name, p.origin, p.argument) for p in found] == [
        ("x", "argument", "x"), ("tank.u", "member", "tank"), ("p.vel[1]", "part", "p"),
        ("x.grad", "gradient", "x"), ("mass", "field", ""),
    ]  # fmt: skip
    assert [p.written for p in found] == [False] * 4 + [True]
    assert [p.used for p in found] == [False, True, True, False, True]
    assert found[4].layout.bytes == 16
