"""Values of size expressions on the host."""

import random

import numpy as np
import pytest
from qd_studio.engine.adstack import host_eval
from qd_studio.engine.adstack.host_eval import GUARD, Env, evaluate
from qd_studio.engine.adstack.size_expr import parse
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import Param
from qd_studio.engine.types import ElementLayout, i8, i32, i64, u1, u8, u64

from tests.adstack.random_exprs import PARAMS, plain_value, random_expr, random_values


def test_random_expressions_have_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    for round in range(300):
        monkeypatch.setattr(host_eval, "_PIECE", rng.choice([1, 3, 1 << 16]))
        e, values = random_expr(rng), random_values(rng)
        assert evaluate(e, Env(PARAMS, values)) == plain_value(e, values), (round, e)


def test_free_variables_take_numbers() -> None:
    assert evaluate(parse("(add (var 3) (arg 0))"), Env(PARAMS, [4, None, None]), {3: 10}) == 14
    with pytest.raises(ValueError, match="variable 3 has no value"):
        evaluate(parse("(var 3)"), Env(PARAMS, [4, None, None]))


def one(param: Param, value: object, text: str) -> int:
    return evaluate(parse(text), Env((param,), [value]))


def test_numbers_do_not_wrap() -> None:
    big = np.array([1 << 62, -(1 << 62), 5], dtype=np.int64)
    a = Param("a", "ndarray", i64, 1)
    assert one(a, big, "(maxover 0 0 3 (mul (read 0 (var 0)) 8))") == 1 << 65
    assert one(a, big, "(maxover 0 0 3 (sub (read 0 (var 0)) (read 0 1)))") == 1 << 63
    unsigned = np.array([(1 << 64) - 1, 7], dtype=np.uint64)
    u = Param("u", "ndarray", u64, 1)
    assert one(u, unsigned, "(maxover 0 0 2 (read 0 (var 0)))") == (1 << 64) - 1
    assert one(u, unsigned, "(maxover 0 0 2 (add 1 (read 0 (var 0))))") == 1 << 64
    ragged = "(maxover 0 0 2 (maxover 1 0 (add 1 (var 0)) (mul (read 0 (var 1)) 8)))"
    assert one(u, unsigned, ragged) == ((1 << 64) - 1) * 8


def test_narrow_elements_count_in_their_own_type() -> None:
    values = np.array([200, 3], dtype=np.uint8)
    assert (
        one(Param("a", "ndarray", u8, 1), values, "(maxover 0 0 2 (mul 2 (read 0 (var 0))))") == 400
    )
    signed = values.view(np.int8)
    assert one(Param("a", "ndarray", i8, 1), signed, "(maxover 0 0 2 (read 0 (var 0)))") == 3
    bits = np.array([False, True])
    assert one(Param("a", "ndarray", u1, 1), bits, "(maxover 0 0 2 (add 1 (read 0 (var 0))))") == 2


def test_axes_of_an_array_in_any_order_of_memory() -> None:
    user = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    a = Param("a", "ndarray", i32, 3, axes=(2, 0, 1))
    memory = np.ascontiguousarray(user.transpose(2, 0, 1))
    assert one(a, memory, "(read 0 1 2 3)") == 23
    assert one(a, memory, "(read 0 1 0 2)") == user[1, 0, 2]
    assert [one(a, memory, f"(shape 0 {axis})") for axis in range(3)] == [2, 3, 4]
    assert one(a, memory, "(maxover 0 0 3 (read 0 0 (var 0) 1))") == user[0, 2, 1]


def test_elements_of_vectors_have_the_last_index() -> None:
    a = Param("a", "ndarray", i32, 1, element_shape=(3,))
    values = np.arange(12, dtype=np.int32).reshape(4, 3)
    assert one(a, values, "(maxover 0 0 (shape 0 0) (read 0 (var 0) 1))") == 10


def test_fields_are_read_through_their_layout() -> None:
    layout = ElementLayout(
        (4, 6), (0, 0), ((0, 2, 0, 12), (1, 3, 0, 6), (0, 1, 2, 3), (1, 1, 3, 1))
    )
    user = np.arange(24, dtype=np.int32).reshape(4, 6)
    memory = np.zeros(layout.span, dtype=np.int32)
    for index in np.ndindex(4, 6):
        memory[layout.offset(index)] = user[index]
    f = Param("f", "field", i32, 2, layout=layout)
    for index in np.ndindex(4, 6):
        assert one(f, memory, f"(read 0 {index[0]} {index[1]})") == user[index]
    assert one(f, memory, "(maxover 0 0 4 (read 0 (var 0) (add 1 (var 0))))") == user[3, 4]


def test_fields_whose_first_index_is_not_zero() -> None:
    layout = ElementLayout((3, 2), (-1, 5), ((0, 1, 0, 2), (1, 1, 0, 1)))
    f = Param("f", "field", i32, 2, layout=layout)
    memory = np.arange(6, dtype=np.int32)
    assert one(f, memory, "(read 0 -1 5)") == 0
    assert one(f, memory, "(maxover 0 -1 2 (read 0 (var 0) 6))") == 5
    with pytest.raises(QuadrantsRuntimeError, match=r"f\[-2, 5\] with the index -2 on axis 0"):
        one(f, memory, "(read 0 -2 5)")


def test_an_index_outside_of_an_array_is_an_error() -> None:
    a = Param("a", "ndarray", i32, 1)
    values = np.array([1, 3], dtype=np.int32)
    with pytest.raises(QuadrantsRuntimeError) as caught:
        one(a, values, "(maxover 0 0 (shape 0 0) (read 0 (read 0 (var 0))))")
    assert "max over i < a.shape[0] of a[a[i]]; it reads a[a[i]] with the index 3" in str(
        caught.value
    )
    with pytest.raises(QuadrantsRuntimeError, match=r"i < 2, j < 3 of .*; it reads a\[j\] with"):
        one(a, values, "(maxover 0 0 2 (maxover 1 0 3 (add (var 0) (read 0 (var 1)))))")
    assert one(a, values[:0], "(maxover 0 0 3 (read 0 (var 0)))") == 0  # it is never read
    for wrong in ("2", "-1", "(add 1 (read 0 0))"):
        with pytest.raises(QuadrantsRuntimeError, match="index"):
            one(a, values, f"(read 0 {wrong})")


def test_an_empty_range_is_zero_and_reads_nothing() -> None:
    a = Param("a", "ndarray", i32, 1)
    empty = np.zeros(0, dtype=np.int32)
    assert one(a, empty, "(maxover 0 0 (shape 0 0) (read 0 (var 0)))") == 0
    assert one(a, empty, "(maxover 0 5 2 -7)") == 0
    assert one(a, empty, "(maxover 0 0 2 -7)") == -7


def test_the_walk_refuses_more_than_its_guard() -> None:
    assert GUARD == 1 << 24
    a = Param("a", "ndarray", i32, 1)
    values = np.broadcast_to(np.int32(3), (GUARD + 1,))
    text = "(maxover 0 0 (shape 0 0) (add (read 0 (var 0)) 1))"
    with pytest.raises(QuadrantsRuntimeError) as caught:
        one(a, values, text)
    said = str(caught.value)
    assert f"MaxOverRange iteration count {GUARD + 1} exceeds the 16777216 guard" in said
    assert "refusing to enumerate" in said
    assert "max over i < a.shape[0] of a[i] + 1" in said
    assert one(a, values[:GUARD], text) == 4


def test_a_ragged_range_inside_of_another_is_guarded_too() -> None:
    a = Param("a", "ndarray", i64, 1)
    values = np.array([1, GUARD + 1], dtype=np.int64)
    with pytest.raises(QuadrantsRuntimeError, match="guard"):
        one(a, values, "(maxover 0 0 2 (maxover 1 0 (read 0 (var 0)) (mod (var 1) 3)))")
