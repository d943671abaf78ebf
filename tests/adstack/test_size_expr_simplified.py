"""Simplified size expressions have the same values, and are short."""

import random

import pytest
from qd_studio.engine.adstack.intervals import Facts
from qd_studio.engine.adstack.simplifier import simplify
from qd_studio.engine.adstack.size_expr import ONE, Binary, Const, Var, parse, text
from qd_studio.engine.ir import Param
from qd_studio.engine.types import ElementLayout, i32, u8

from tests.adstack.random_exprs import PARAMS, plain_value, random_expr, random_values

FIELD = Param("f", "field", i32, 1, layout=ElementLayout((4,), (0,), ((0, 1, 0, 1),)))
BYTES = Param("u", "ndarray", u8, 1)
KNOWN = (*PARAMS, FIELD, BYTES)


@pytest.mark.parametrize("floor", [None, 1, 0, -2, 5])
@pytest.mark.parametrize("full", [True, False])
def test_values_are_kept(full: bool, floor: int | None) -> None:
    """Where a range is empty, a value may become larger, never smaller."""
    rng = random.Random(3 + full)
    for _ in range(150):
        e = random_expr(rng, rng.choice([2, 3, 5]), full=full)
        short = simplify(e, rng.choice([(), PARAMS]), floor)
        for _ in range(4):
            values = random_values(rng)
            was, now = plain_value(e, values), plain_value(short, values)
            if floor is not None:
                was, now = max(was, floor), max(now, floor)
            assert (now == was) if full else (now >= was), f"{text(e)}\n{text(short)}\n{values}"


def test_bounds_and_directions_hold() -> None:
    rng = random.Random(4)
    for _ in range(300):
        e = random_expr(rng, 3, (20,), full=True)
        facts = Facts(PARAMS).inside(20, Const(-1), Const(5))
        low, high = facts.bounds(e)
        way = facts.direction(e, 20)
        values = random_values(rng)
        found = [plain_value(e, values, {20: v}) for v in range(-1, 5)]
        assert low <= min(found) <= max(found) <= high, text(e)
        if way is not None and way >= 0:
            assert found == sorted(found), text(e)
        if way is not None and way <= 0:
            assert found == sorted(found, reverse=True), text(e)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("(add (add 1 (arg 0)) 2)", "(add (arg 0) 3)"),
        ("(sub (add (arg 0) 3) (arg 0))", "3"),
        ("(mul 2 (add (arg 0) 1))", "(add (mul 2 (arg 0)) 2)"),
        ("(max 0 (max (shape 1 0) (max -3 (shape 1 0))))", "(shape 1 0)"),
        ("(min (arg 0) (min 4 (min 7 (arg 0))))", "(min 4 (arg 0))"),
        ("(max (arg 0) (add 1 (arg 0)))", "(add (arg 0) 1)"),
        ("(max 0 (read 4 1))", "(read 4 1)"),
        ("(mod (floordiv (mul 3 5) 4) 2)", "1"),
        # A range of one number, of none, and a body that does not depend on it.
        ("(maxover 0 (arg 0) (add 1 (arg 0)) (mul (var 0) 2))", "(mul 2 (arg 0))"),
        ("(maxover 0 3 3 (read 1 (var 0)))", "0"),
        ("(maxover 0 0 (arg 0) 7)", "7"),
        ("(maxover 0 0 (arg 0) (shape 1 0))", "(shape 1 0)"),
        ("(maxover 0 0 5 (read 3 2))", "(read 3 2)"),
        ("(maxover 0 0 (shape 1 0) (maxover 1 0 (arg 0) (read 1 (var 0))))", None),
        # Which may be smaller than the 0 of an empty range, or read what is not there.
        ("(maxover 0 0 (arg 0) (read 3 2))", None),
        ("(maxover 0 0 (arg 0) (max 0 (read 1 2)))", None),
        ("(maxover 0 0 (arg 0) (max 0 (read 3 2)))", "(max 0 (read 3 2))"),
        # The last number, the first one.
        ("(maxover 0 0 (shape 1 0) (add (var 0) 1))", "(shape 1 0)"),
        ("(maxover 0 0 (arg 0) (add (var 0) 1))", "(max 0 (arg 0))"),
        ("(maxover 0 0 (shape 1 0) (max 0 (sub (shape 1 0) (var 0))))", "(shape 1 0)"),
        ("(maxover 0 0 9 (mul (var 0) (sub 9 (var 0))))", None),
        ("(maxover 0 1 9 (maxover 1 (var 0) 9 (mul (var 0) (var 1))))", "64"),
        # What chains are made of; a range that may be empty counts as 0.
        ("(maxover 0 0 (arg 0) (mul (shape 1 0) (maxover 1 0 (var 0) (read 1 (var 1)))))",
         "(mul (shape 1 0) (maxover 0 0 (arg 0) (maxover 1 0 (var 0) (read 1 (var 1)))))"),
        ("(maxover 0 0 9 (maxover 1 0 (read 3 (mod (var 0) 4)) (max 0 (read 1 (var 1)))))",
         "(maxover 1 0 (maxover 0 0 9 (read 3 (mod (var 0) 4))) (max 0 (read 1 (var 1))))"),
        ("(maxover 0 0 9 (maxover 1 0 (read 3 (mod (var 0) 4)) (read 1 (var 1))))", None),
        # A trip count that the ranges around it keep from being negative.
        ("(maxover 0 0 (shape 1 0) (max 0 (sub (shape 1 0) (floordiv (var 0) 1))))", "(shape 1 0)"),
    ],
)  # fmt: skip
def test_what_is_simplified(long: str, short: str | None) -> None:
    assert text(simplify(parse(long), KNOWN)) == (long if short is None else short)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("(add 1 (max 0 (arg 0)))", "(add (arg 0) 1)"),
        ("(maxover 0 0 (shape 1 0) (add 1 (max 0 (read 1 (var 0)))))",
         "(maxover 0 0 (shape 1 0) (add (read 1 (var 0)) 1))"),
        ("(add 2 (max 0 (arg 0)))", "(add (max 0 (arg 0)) 2)"),
        ("(mul (max 0 (arg 0)) (max 0 (read 1 0)))", "(mul (max 0 (arg 0)) (read 1 0))"),
        ("(max 1 (sub 0 (shape 1 0)))", "1"),
        ("(maxover 0 0 (arg 0) (add 1 (max 0 (sub (var 0) 0))))", "(arg 0)"),
    ],
)  # fmt: skip
def test_what_is_below_the_floor_goes(long: str, short: str) -> None:
    assert text(simplify(parse(long), KNOWN, floor=1)) == short


def test_a_range_around_a_variable_of_the_same_number() -> None:
    e = parse(
        "(maxover 0 0 4 (maxover 0 (var 0) (add 3 (var 0)) (read 1 (mod (var 0) (shape 1 0)))))"
    )
    for values in ([0, random_values(random.Random(n))[1]] for n in range(3)):
        assert plain_value(simplify(e), values) == plain_value(e, values)


def test_a_difference_knows_the_ranges() -> None:
    facts = Facts(PARAMS).inside(0, Const(0), parse("(arg 0)"))
    assert facts.bounds(Binary("sub", parse("(arg 0)"), Var(0)))[0] == 1
    nested = facts.inside(1, Var(0), parse("(arg 0)"))
    assert nested.bounds(parse("(sub (var 1) (var 0))"))[0] == 0
    assert nested.is_less(Var(1), parse("(arg 0)"))
    assert not nested.is_less(Binary("add", Var(1), ONE), parse("(arg 0)"))
