"""Parameters: every kind is read back as it was, and bad ones are reported."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qd_studio.engine import ir
from qd_studio.engine.errors import IRParseError
from qd_studio.engine.ir import Param
from qd_studio.engine.ir.params import param_problem, param_text
from qd_studio.engine.types import PRIMITIVE_TYPES, ElementLayout, f32, i32, row_major

NAMES = (
    st.sampled_from(["x", "field", "p.vel[1]", "m[0, 1]", "self.grid", "d['a b']", "ö", "[", ""])
    | st.text(max_size=8)
)  # fmt: skip
SHAPE = st.lists(st.integers(1, 9), max_size=3).map(tuple)
ELEMENT = st.sampled_from([(), (3,), (2, 2), (1, 4)])
DTYPES = st.sampled_from(PRIMITIVE_TYPES)


def scalars():
    return st.tuples(NAMES, st.just("scalar"), DTYPES).map(lambda parts: Param(*parts))


@st.composite
def arrays(draw):
    ndim = draw(st.integers(0, 4))
    axes = draw(st.none() | st.permutations(range(ndim)).map(tuple)) if ndim else None
    return Param(
        draw(NAMES), "ndarray", draw(DTYPES), ndim, draw(st.booleans()),
        draw(st.sampled_from(["unsafe", "clamp"])), draw(ELEMENT), axes,
    )  # fmt: skip


@st.composite
def fields(draw):
    shape, element = draw(SHAPE), draw(ELEMENT)
    count = len(shape) + len(element)
    origin = tuple(draw(st.integers(-9, 9)) for _ in shape) + (0,) * len(element)
    layout = row_major((*shape, *element), origin)
    if draw(st.booleans()) and count:
        term = st.tuples(st.integers(0, count - 1), st.integers(1, 9), st.integers(0, 9),
                         st.integers(-3, 99))  # fmt: skip
        layout = layout._replace(terms=tuple(draw(st.lists(term, max_size=4))))
    return Param(
        draw(NAMES), "field", draw(DTYPES), len(shape), element_shape=element, layout=layout
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(scalars() | arrays() | fields(), max_size=4))
def test_parameters_are_read_back(params):
    func = ir.Func("k", tuple(params))
    text = ir.to_text(func)
    assert ir.parse(text).params == tuple(params)
    assert ir.equal(ir.parse(text), func)


def field(shape, terms=None, origin=None, element=(), **other):
    layout = row_major((*shape, *element), origin and (*origin, *[0] * len(element)))
    if terms is not None:
        layout = layout._replace(terms=terms)
    return Param("x", "field", f32, len(shape), element_shape=element, layout=layout, **other)


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (field((128, 128)), "field x: f32[128, 128]"),
        (field((), element=(3,)), "field x: f32[; 3]"),
        (field(()), "field x: f32[]"),
        (field((128, 8), origin=(-64, 0), element=(2,)), "field x: f32[-64:64, 8; 2]"),
        (field((4,), ((0, 1, 0, 3),)), "field x: f32[4] layout(0*3)"),
        (field((16,), ((0, 4, 0, 8), (0, 1, 4, 1))), "field x: f32[16] layout(0/4*8, 0%4*1)"),
        (field((1,), ()), "field x: f32[1] layout()"),
        (Param("x", "ndarray", f32, 1, element_shape=(3,)), "x: ndarray<f32, 1; 3>"),
        (
            Param("x", "ndarray", i32, 2, True, "clamp", (3, 3), (1, 0)),
            "x: ndarray<i32, 2; 3, 3, needs_grad, clamp, axes=(1, 0)>",
        ),
        (Param("my field", "scalar", i32), "'my field': i32"),
    ],
)
def test_text(param, text):
    assert param_text(param) == text
    assert param_problem(param) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("field x: f32[4, ]y]", "expected a parameter"),
        ("field x: f32[4 4]", "'4 4' is no extent"),
        ("field x: f32[4; y]", "'y' is no shape of an element"),
        ("field x: float[4]", "float"),
        ("field x: f32[4] layout(0+1)", "'0+1' is no digit of a layout"),
        ("x: ndarray<f32, 1; >", "expected a parameter"),
        ("x: ndarray<*f32, 1>", "expected a parameter"),
    ],
)
def test_mistakes_in_the_text(text, message):
    with pytest.raises(IRParseError, match="line 1, column 9") as error:
        ir.parse(f"kernel k({text}) stage=typed {{\n}}\n")
    assert message in error.value.message


@pytest.mark.parametrize(
    ("param", "message"),
    [
        (Param("x", "tensor", f32), "no known kind"),
        (Param("x", "scalar", f32, 1), "scalar with an array's properties"),
        (Param("x", "ndarray", f32, 1, element_shape=(0,)), "elements without components"),
        (Param("x", "ndarray", f32, 1, layout=row_major((3,))), "a field's layout"),
        (Param("x", "ndarray", f32, 1, boundary="wrap"), "boundary mode 'wrap'"),
        (Param("x", "ndarray", f32, 2, axes=(0, 0)), "axes (0, 0) is no order of 2 axes"),
        (Param("x", "field", f32, 1), "no layout"),
        (field((3,), boundary="clamp"), "properties of an array"),
        (field((3,), needs_grad=True), "properties of an array"),
        (field((3,))._replace(ndim=2), "has the shape (3,)"),
        (field((3,))._replace(element_shape=(3,)), "has the shape (3,)"),
        (field((3,))._replace(layout=ElementLayout((3,), (), ())), "has the origin ()"),
        (field((), element=(3,))._replace(layout=row_major((3,), (1,))), "has the origin (1,)"),
        (field((0,)), "has no elements"),
        (field((3,), ((1, 1, 0, 1),)), "impossible digit"),
        (field((3,), ((0, 0, 0, 1),)), "impossible digit"),
        (field((3,), ((0, 1, 0, 0),)), "impossible digit"),
        (field((3, 3), ((0, 1, 0, 1), (1, 1, 0, 2))), "several elements at one place"),
        (field((3, 3), ((0, 1, 0, 3),)), "loses indices of axis 1"),
        (field((16,), ((0, 8, 0, 4), (0, 1, 4, 1))), "loses indices of axis 0"),
        (field((16,), ((0, 1, 4, 1),)), "loses indices of axis 0"),
        (field((16,), ((0, 4, 0, 3), (0, 1, 4, 1))), "several elements at one place"),
    ],
)
def test_bad_parameters_are_reported(param, message):
    func = ir.Func("k", (Param("n", "scalar", i32), param))
    func.stage = "typed"
    assert [e for e in ir.verify(func) if e.op is None and message in e.message]


def test_layouts_with_gaps_and_blocks_are_good():
    for param in (
        field((5,), ((0, 4, 0, 8), (0, 1, 4, 1))),  # blocks of 4, the last one in part
        field((4, 3), ((1, 1, 0, 7), (0, 1, 0, 21))),  # cells shared with others, axes swapped
        field((1, 4), ((1, 1, 0, 1),)),  # an axis of one index needs no digit
        field((16, 16), ((0, 4, 0, 64), (1, 4, 0, 16), (0, 1, 4, 4), (1, 1, 4, 1))),
    ):
        assert param_problem(param) is None


OPS = """\
kernel k(field x: f32[-4:4; 2], v: ndarray<f32, 1; 3>) stage=typed {
  <i32> $0 = const 0
  <*f32> $1 = arg_addr [(0, False)]
  <*f32> $2 = external_ptr $1, $0, $0 ['unsafe']
  <*f32> $3 = arg_addr [(1, False)]
  <*f32> $4 = external_ptr $3, $0, $0 ['clamp']
  <i32> $5 = external_tensor_shape_along_axis [(0, 1)]
}
"""


def test_ops_on_fields_and_elements():
    assert ir.verify(ir.parse(OPS)) == []


@pytest.mark.parametrize(
    ("old", "new", "id", "message"),
    [
        ("$2 = external_ptr $1, $0, $0", "$2 = external_ptr $1, $0", 2, "takes 2 indices, not 1"),
        ("$4 = external_ptr $3, $0, $0", "$4 = external_ptr $3, $0", 4, "(3,) elements takes 2"),
        ("$2 = external_ptr $1, $0, $0 ['unsafe']", "$2 = external_ptr $1, $0, $0 ['clamp']", 2,
         "indices of a field are not clamped"),
        ("[(0, 1)]", "[(0, 0)]", 5, "parameter 0 is no ndarray but a field"),
        ("[(0, 1)]", "[(1, 1)]", 5, "parameter 1 has 1 axes, no axis 1"),
        ("arg_addr [(0, False)]", "arg_addr [(0, True)]", 1, "parameter 0 has no gradient"),
        ("<*f32> $1 =", "<*i32> $1 =", 1, "parameter 0 holds f32, not *i32"),
    ],
)  # fmt: skip
def test_bad_ops_on_fields_and_elements(old, new, id, message):
    assert OPS.count(old) == 1
    found = [
        (e.op.id if e.op else None, e.message) for e in ir.verify(ir.parse(OPS.replace(old, new)))
    ]
    assert any(number == id and message in text for number, text in found), found
