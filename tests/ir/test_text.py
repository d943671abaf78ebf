"""Text form: what is printed is read back, for every opcode and every kind of attribute."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qd_studio.engine import ir
from qd_studio.engine.errors import IRParseError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.attrs import RECORDS
from qd_studio.engine.ir.codes import REGION_NAMES
from qd_studio.engine.ir.loc import _roots
from qd_studio.engine.types import (
    INTEGER_TYPES,
    PRIMITIVE_TYPES,
    REAL_TYPES,
    f16,
    f32,
    i32,
    pointer_to,
    u1,
    void,
)

from .samples import ACCESSES, AST, LOWERED, OFFLOADED, VALID

NAMES = [info.name for info in ir.CODES]
TEXT = st.text(max_size=12)
LITERAL = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
_FIELD = {"str": TEXT, "int": st.integers(0, 1 << 40), "bool": st.booleans()}


def constants(t):
    if not t.is_real:
        return st.integers(0 if t is u1 else t.min, 1 if t is u1 else t.max)
    width = {f16: 16, f32: 32}.get(t, 64)
    return st.floats(width=width) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan])


def records(cls):
    fields = {}
    for name, annotation in cls.__annotations__.items():
        kind = getattr(annotation, "__forward_arg__", annotation)
        axes = st.lists(st.integers(0, 7), max_size=4).map(tuple)
        fields[name] = _FIELD[kind] if kind in _FIELD else axes | st.none()
    return st.builds(cls, **fields)


def attributes(code, t):
    kind = ir.CODES[code].attr
    if kind == "value":
        return constants(t)
    if kind in RECORDS:
        return records(RECORDS[kind])
    tuples = st.lists(LITERAL, max_size=4).map(tuple)
    return {"none": st.none(), "int": st.integers(), "str": TEXT, "tuple": tuples}[kind]


LOCS = st.builds(
    ir.get_loc, TEXT, st.integers(1, 999), st.integers(0, 99), st.integers(0, 999),
    st.integers(0, 99), TEXT,
)  # fmt: skip


@st.composite
def functions(draw, name):
    """A function of any form that holds the opcode; not all of them are valid IR."""
    func = ir.Func("k", (ir.Param("a", "scalar", i32),), draw(st.sampled_from([(), (f32, i32)])))
    func.stage = draw(st.sampled_from(list(ir.STAGES)))
    func.noalias = draw(st.booleans())
    func.global_tmp_size = draw(st.integers(0, 99))
    func.loc = draw(LOCS)
    code = C.NAME.index(name)
    builder = ir.Builder(func, func.body, draw(LOCS))
    types = draw(st.lists(st.sampled_from(PRIMITIVE_TYPES), max_size=3))
    parents = [builder.const(draw(constants(t)), t) for t in types]
    operands = ir.CODES[code].operands
    count = len(operands) + (draw(st.integers(0, 3)) if any("*" in o for o in operands) else 0)
    if not parents:
        parents.append(builder.const(0, i32))
    result = ir.CODES[code].result
    t = draw(st.sampled_from(PRIMITIVE_TYPES))
    t = {"void": void, "pointer": pointer_to(t)}.get(result, t)
    for _ in range(draw(st.integers(1, 2))):
        args = tuple(draw(st.sampled_from(parents)) for _ in range(count))
        root = draw(LOCS)
        builder.loc = ir.get_loc("lib.py", 3, 1, 4, 2, "helper", root)
        regions = len(REGION_NAMES.get(code, ()))
        op = builder.emit(code, args, draw(attributes(code, t)), t, regions)
        for region in op.regions[: draw(st.integers(0, 2))]:
            with builder.inside(region):
                builder.const(1, draw(st.sampled_from(INTEGER_TYPES)))
                builder.emit(C.CONTINUE, (), None, void)
    return func


@pytest.mark.parametrize("examples", [5, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_every_opcode_is_read_back(name, examples):
    @given(functions(name))
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    def check(func):
        back = ir.parse(ir.to_text(func, locs=True))
        assert ir.difference(back, func, locs=True) is None
        assert ir.to_text(back, locs=True) == ir.to_text(func, locs=True)
        assert ir.equal(ir.parse(ir.to_text(func)), func)

    check()


@pytest.mark.parametrize("t", PRIMITIVE_TYPES, ids=str)
def test_constants_keep_their_bits(t):
    special = (0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e-45, 65504.0, 0.1)
    values = special if t in REAL_TYPES else (t.min, t.max, 0, 1)

    def check(value):
        func = ir.Func("k")
        made = ir.Builder(func, func.body).const(value, t)
        (read,) = ir.parse(ir.to_text(func)).body.ops
        bits = [np.array(op.attr, t.np).tobytes() for op in (made, read)]
        assert type(made.attr) is type(read.attr)
        assert bits[0] == bits[1] or (made.attr != made.attr and read.attr != read.attr)

    with np.errstate(all="ignore"):
        for value in values:
            check(0 if t is u1 and value == 0 else value)
        given(constants(t))(settings(deadline=None, derandomize=True, database=None)(check))()


@pytest.mark.parametrize("text", [*VALID.values(), LOWERED])
def test_texts_print_as_they_are(text):
    func = ir.parse(text)
    assert ir.to_text(func) == text
    assert func.next_id == max(op.id for op in ir.all_ops(func)) + 1


def test_comments_and_blank_lines_are_skipped():
    text = "; run: die\n\n" + LOWERED.replace("  $14", "\n  ; the end\r\n  $14")
    assert ir.equal(ir.parse(text), ir.parse(LOWERED))


def test_locations_are_the_interned_ones():
    func = ir.Func("k", loc=ir.get_loc("a.py", 4))
    outer = ir.get_loc("a.py", 7, 4, 7, 12, "k")
    builder = ir.Builder(func, func.body, ir.get_loc("b 'c'.py", 1, func="f", parent=outer))
    builder.const(1, i32)
    (op,) = ir.parse(ir.to_text(func, locs=True)).body.ops
    assert op.loc is func.body.ops[0].loc
    assert op.loc.root is outer
    assert ir.parse(ir.to_text(func, locs=True)).loc is func.loc


def test_locations_end_with_what_uses_them():
    outer = ir.get_loc("once.py", 7, 4, 7, 12, "k")
    inner = ir.get_loc("once.py", 2, func="f", parent=outer)
    assert ir.get_loc("once.py", 2, func="f", parent=outer) is inner
    seen = weakref.ref(outer), weakref.ref(inner)
    del outer
    gc.collect()
    assert ir.get_loc("once.py", 7, 4, 7, 12, "k") is inner.root
    del inner
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


REPEATED = """kernel f(x: ndarray<f32, 1>) stage=offloaded {
  $0 : offloaded {loop_name='it'} header {
    $1 : bounds
  } body {
    <i32> $2 = const 0
    <*f32> $3 = arg_addr [(0, False)]
    <*f32> $4 = external_ptr $3, $2 ['unsafe']
    <f32> $5 = global_load $4
    $6 : global_store $4, $5
  }
  $7 : offloaded $0 @0
}
loc @0 = 'a.py' 3:4 3:9 'f' -
"""


def test_a_task_that_repeats_another_is_read_as_a_copy():
    func = ir.parse(REPEATED)
    first, second = func.tasks()
    assert not ir.verify(func)
    assert (second.id, second.args, second.loc.line) == (7, (), 3)
    assert second.attr == first.attr and second.attr.loop_name == "it"
    one, two = ([op for r in task.regions for op in ir.walk(r)] for task in (first, second))
    assert [op.code for op in one] == [op.code for op in two]
    assert [op.id for op in two] == [8, 9, 10, 11, 12, 13] and func.next_id == 14
    assert not set(one) & {a for op in two for a in op.args}
    assert ir.equal(ir.parse(ir.to_text(func, locs=True)), func)


@pytest.mark.parametrize("other", ["$7", "$6", "$8", "$0, $0"])
def test_what_a_task_repeats_is_a_task_with_ops(other):
    text = REPEATED.replace("offloaded $0", f"offloaded {other}")
    text = text.replace("@0\n}", "@0\n  $8 : offloaded $7\n}")
    with pytest.raises(IRParseError, match="a task repeats one that has its ops"):
        ir.parse(text)


WITH_NUMBERS = REPEATED.replace("store $4, $5", "store $4, $9").replace(
    "  } body {\n", "  } body {\n    <f32> $9 = const 0.1\n    <f64> $10 = const 2.5\n"
)


def test_a_task_that_repeats_another_may_have_other_numbers():
    func = ir.parse(WITH_NUMBERS.replace("offloaded $0", "offloaded $0 {0.1: 0.3, 2.5: -1e+30}"))
    assert not ir.verify(func)
    one, two = (
        [op.attr for op in ir.walk(task.regions[1]) if op.name == "const"] for task in func.tasks()
    )
    assert one[1:] == [2.5, 0] and two[1:] == [-1e30, 0]
    assert [f"{numbers[0]:.7g}" for numbers in (one, two)] == ["0.1", "0.3"]
    assert ir.equal(ir.parse(ir.to_text(func, locs=True)), func)


@pytest.mark.parametrize("numbers, message", [
    ("{0.2: 0.3}", "no constant 0.2"), ("{0: 1}", "no constant 0"), ("{}", "expected {NUMBER"),
    ("{0.1}", "expected {NUMBER"), ("{0.1: x}", "expected {NUMBER"), ("{0.1: nan}", "expected {"),
    ("{0.1: 0.3", "unexpected|expected"), ("[0.1]", "unexpected|expected"),
])  # fmt: skip
def test_numbers_of_a_task_that_repeats_another_are_checked(numbers, message):
    with pytest.raises(IRParseError, match=message):
        ir.parse(WITH_NUMBERS.replace("offloaded $0", f"offloaded $0 {numbers}"))


MALFORMED = (
    ("", 1, 0, "found nothing"),
    ("func f() {", 1, 0, "expected 'kernel NAME('"),
    ("kernel f(a: i31) stage=ast {\n}", 1, 0, "unknown type 'i31'"),
    ("kernel f(a) stage=ast {\n}", 1, 9, "expected a parameter"),
    ("kernel f() {\n}", 1, 10, "expected ' stage=STAGE"),
    ("kernel f() stage=ast {", 1, 0, "before the end of the text"),
    ("kernel f() stage=ast {\n  oops\n}", 2, 2, "expected '<TYPE> $ID = OPCODE'"),
    ("kernel f() stage=ast {\n  <i32> $0 = nope\n}", 2, 13, "unknown opcode 'nope'"),
    ("kernel f() stage=ast {\n  <i3> $0 = const 1\n}", 2, 3, "unknown type 'i3'"),
    ("kernel f() stage=ast {\n  <i32> $0 : const 1\n}", 2, 11, "an op with a type takes '='"),
    ("kernel f() stage=ast {\n  <i32> $0 = const\n}", 2, 18, "a data type and a value"),
    ("kernel f() stage=ast {\n  <i8> $0 = const 300\n}", 2, 18, "300 is out of range for i8"),
    ("kernel f() stage=ast {\n  <u1> $0 = const 1\n}", 2, 18, "'1' is not a value of type u1"),
    ("kernel f() stage=ast {\n  <i32> $0 = neg $7\n}", 2, 2, "no op has the id $7"),
    ("kernel f() stage=ast {\n  <i32> $0 = rand junk\n}", 2, 17, "unexpected text after rand"),
    ("kernel f() stage=ast {\n  <i32> $0 = rand\n  <i32> $0 = rand\n}", 3, 9, "two ops have"),
    ("kernel f() stage=ast {\n  <i32> $0 = arg_load [1\n}", 2, 22, "this [ is not closed"),
    ("kernel f() stage=ast {\n  <i32> $0 = arg_load [x]\n}", 2, 22, "not a Python literal"),
    ("kernel f() stage=ast {\n  $0 : assert {size=1}\n}", 2, 15, "has no field 'size'"),
    ("kernel f() stage=ast {\n  $0 : while then {\n  }\n}", 2, 12, "expected 'body {'"),
    ("kernel f() stage=ast {\n  <i32> $0 = rand @4\n}", 2, 2, "@4 is not in the table"),
    ("kernel f() stage=ast {\n}\nloc @0 = 'a' 1:2\n", 3, 9, "expected 'FILE' LINE:COL"),
    ("kernel f() stage=ast {\n}\nmore", 3, 0, "or the end of the text"),
)


@pytest.mark.parametrize(("text", "line", "column", "message"), MALFORMED)
def test_errors_have_a_position(text, line, column, message):
    with pytest.raises(IRParseError) as caught:
        ir.parse(text, "f.qdir")
    error = caught.value
    assert message in error.message
    assert (error.file, error.line) == ("f.qdir", line)
    assert column in (error.col, 0)


def test_differences_are_reported():
    base = ir.parse(AST)
    assert ir.equal(base, ir.parse(AST))
    for old, new in (
        ("const 0.5", "const -0.5"), ("['a']", "['b']"), ("stage=ast", "stage=lowered"),
        ("sub $0, $5", "sub $5, $0"), ("$19 : continue", "$19 : break"), ("n: i32", "n: i64"),
        ("    } else {\n      $20 : break\n", "    } else {\n"), ("$90 :", "$99 :"),
    ):  # fmt: skip
        assert old in AST
        other = ir.parse(AST.replace(old, new))
        assert not ir.equal(base, other), new
        assert ir.difference(base, other)
    renumbered = ir.parse(AST.replace("$90 :", "$99 :"))
    assert ir.equal(base, renumbered, ids=False)
    zero, minus = (ir.parse(ACCESSES.replace("const 0", c)) for c in ("const 0", "const 1"))
    assert not ir.equal(zero, minus)
    assert ir.equal(ir.parse(OFFLOADED), ir.parse(OFFLOADED), locs=True)


def test_zero_signs_and_nans():
    head = "kernel f() stage=ast {\n  <f32> $0 = const "
    texts = [f"{head}{value}\n}}" for value in ("0.0", "-0.0", "nan")]
    plus, minus, nan = map(ir.parse, texts)
    assert not ir.equal(plus, minus)
    assert ir.equal(nan, ir.parse(texts[2]))


def test_places_that_no_op_uses_are_freed():
    held = ir.get_loc("held.py", 1)
    count = 3 * max(_roots._limit, 2000)  # more than the kernels of this process hold
    for line in range(1, count):
        ir.get_loc("freed.py", line)
    assert ir.get_loc("held.py", 1) is held
    assert len(_roots._refs) <= _roots._limit < count
