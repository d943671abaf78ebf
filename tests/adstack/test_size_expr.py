"""Size expressions: nodes, text, formulas."""

import random

import pytest
from qd_studio.engine.adstack import formulas as F
from qd_studio.engine.adstack import size_expr as S
from qd_studio.engine.ir import Param
from qd_studio.engine.types import i32

from tests.adstack.random_exprs import random_expr

PARAMS = (
    Param("n", "scalar", i32),
    Param("a", "ndarray", i32, 1),
    Param("m", "ndarray", i32, 2, element_shape=(3,)),
    Param("c", "ndarray", i32, 0),
)


@pytest.mark.parametrize(
    "text",
    [
        "12",
        "-3",
        "(arg 0)",
        "(shape 1 0)",
        "(read 1 (var 0))",
        "(read 3)",
        "(add (mul 2 (arg 0)) (sub 1 (min 3 (max 4 (mod 5 (floordiv 6 7))))))",
        "(maxover 0 0 (shape 1 0) (read 2 (var 0) 1 (read 1 (var 0))))",
    ],
)
def test_a_text_is_read_and_written_the_same(text: str) -> None:
    assert S.text(S.parse(text)) == text


def test_random_expressions_survive_their_text() -> None:
    rng = random.Random(1)
    for _ in range(300):
        e = random_expr(rng)
        assert S.parse(S.text(e)) == e


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends too early"),
        ("(add 1)", "expected an expression"),
        ("(add 1 2 3)", "too many operands"),
        ("(add 1 2) 3", "there is more after it"),
        ("(pow 1 2)", "no operation 'pow'"),
        ("(arg -1)", "no number of a parameter"),
        ("(read 1 (var 0)", "it ends too early"),
        ("{", "what is"),
    ],
)
def test_a_wrong_text_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(S.SizeExprError, match=why):
        S.parse(text)


def test_equal_expressions_are_equal_and_kinds_differ() -> None:
    assert S.parse("(add 1 2)") == S.parse(" ( add 1  2 ) ")
    assert S.Arg(0) != S.Var(0)
    assert len({S.Arg(0), S.Var(0), S.Const(0), S.parse("(arg 0)")}) == 3


def test_leaves_and_variables() -> None:
    e = S.parse("(maxover 0 0 (shape 1 0) (maxover 2 (var 0) (arg 0) (read 1 (read 1 (var 2)))))")
    assert [S.text(leaf) for leaf in S.leaves(e)] == [
        "(shape 1 0)",
        "(arg 0)",
        "(read 1 (var 2))",
        "(read 1 (read 1 (var 2)))",
    ]
    assert S.bound_vars(e) == (0, 2)
    assert S.free_vars(e) == frozenset()
    assert S.free_vars(S.parse("(maxover 0 (var 0) 3 (var 1))")) == {0, 1}
    assert S.text(S.substitute(e, {S.Arg(0): S.Const(7)})) == S.text(e).replace("(arg 0)", "7")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "(maxover 0 0 (shape 1 0) (add (read 1 (var 0)) 1))",
            "max over i < a.shape[0] of a[i] + 1",
        ),
        ("(add 1 (maxover 0 2 (arg 0) (var 0)))", "1 + (max over 2 <= i < n of i)"),
        ("(maxover 0 0 3 (maxover 1 0 (var 0) (var 1)))", "max over i < 3, j < i of j"),
        ("(read 2 (arg 0) 1 2)", "m[n, 1][2]"),
        ("(read 3)", "c[None]"),
        ("(mul (add 1 2) (sub 3 (sub 4 5)))", "(1 + 2) * (3 - (4 - 5))"),
        ("(floordiv (mul 2 (arg 0)) (mod 7 2))", "2 * n // (7 % 2)"),
        ("(max 0 (max (arg 0) -1))", "max(0, n, -1)"),
    ],
)
def test_a_formula_is_in_the_users_names(text: str, shown: str) -> None:
    assert F.formula(S.parse(text), PARAMS) == shown


def test_variables_do_not_take_the_names_of_parameters() -> None:
    params = (Param("i", "scalar", i32), Param("k", "scalar", i32))
    e = S.parse("(maxover 0 0 (arg 0) (maxover 1 0 (var 0) (arg 1)))")
    assert F.formula(e, params) == "max over j < i, l < j of k"


def test_a_tree_has_a_row_for_each_operand() -> None:
    e = S.parse("(maxover 0 2 (shape 1 0) (add (add (read 1 (add (var 0) 1)) 1) (arg 0)))")
    row = F.tree(e, PARAMS)
    assert (row.label, row.formula) == (
        "max over i",
        "max over 2 <= i < a.shape[0] of a[i + 1] + 1 + n",
    )
    assert [(r.role, r.label) for r in row.rows] == [
        ("from", "2"),
        ("below", "a.shape[0]"),
        ("of", "+"),
    ]
    assert [r.label for r in row.rows[2].rows] == ["element of a", "1", "n"]
    assert [r.label for r in row.rows[2].rows[0].rows] == ["+"]
