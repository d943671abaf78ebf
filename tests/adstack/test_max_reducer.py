"""Maxima over ranges, found by themselves before a launch."""

import random

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.adstack import reducer_kernels as kernels
from qd_studio.engine.adstack.host_eval import Env, evaluate
from qd_studio.engine.adstack.max_reducer import in_rounds, recognise, substituted
from qd_studio.engine.adstack.size_expr import Const, parse, text
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import Param
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime.sizer import FETCH
from qd_studio.engine.types import i8, i32, i64, row_major, u8, u64

from .launchkit import Case

PARAMS = (
    Param("a", "ndarray", i32, 1), Param("b", "ndarray", i32, 2), Param("n", "scalar", i32),
    Param("w", "ndarray", i64, 1), Param("f", "field", i32, 1, layout=row_major((6,), (-2,))),
    Param("t", "ndarray", u8, 2, axes=(1, 0)), Param("u", "ndarray", u64, 1),
    Param("v", "ndarray", i8, 1, element_shape=(2,)),
)  # fmt: skip


def values(seed=0):
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, 6, 6, np.int32), rng.integers(-4, 9, (4, 6), np.int32), 4,
        rng.integers(-5, 1 << 40, 6), rng.integers(0, 50, 6, np.int32),
        rng.integers(0, 9, (5, 6), np.uint8), rng.integers(0, 99, 6, np.uint64),
        rng.integers(-9, 9, (6, 2), np.int8),
    ]  # fmt: skip


A = "(maxover 0 0 (shape 0 0) (read 0 (var 0)))"


def shown(source):
    """For each spec: how many axes, and the positions of those that it depends on."""
    specs = recognise([parse(source)])
    nodes = [spec.node for spec in specs]
    return [(len(s.axes), [nodes.index(d) for d in s.depends]) for s in specs]


@pytest.mark.parametrize("source, specs", [
    ("(shape 0 0)", []),
    (f"(add 1 {A})", [(1, [])]),
    ("(maxover 0 0 4 (maxover 1 0 (shape 1 1) (read 1 (var 0) (var 1))))", [(2, [])]),
    # The second range is known when the first maximum is.
    (f"(maxover 1 0 {A} (read 0 (mod (var 1) 6)))", [(1, []), (1, [0])]),
    # A closed maximum in the body.
    (f"(maxover 1 0 4 (add (read 0 (var 1)) {A}))", [(1, []), (1, [0])]),
    # A range that depends on a variable around it.
    ("(maxover 0 0 4 (maxover 1 0 (read 0 (var 0)) (read 0 (var 1))))", []),
    # The closed part inside of one that is not captured.
    (f"(maxover 2 0 4 (maxover 3 0 (read 0 (var 2)) (add (var 3) {A})))", [(1, [])]),
    # Other indices than variables and numbers.
    ("(maxover 0 0 4 (read 0 (floordiv (var 0) 2)))", [(1, [])]),
    ("(maxover 0 0 6 (read 0 (read 0 (var 0))))", [(1, [])]),
    # 64 bits.
    ("(maxover 0 0 6 (read 3 (var 0)))", [(1, [])]),
])  # fmt: skip
def test_what_is_captured(source, specs):
    assert shown(source) == specs


@pytest.mark.parametrize("axes, captured", [(8, [8]), (9, [])])
def test_up_to_eight_axes(axes, captured):
    body = "(read 0 (mod (add (var 0) (var 7)) 6))"
    for k in reversed(range(axes)):
        body = f"(maxover {k} 0 2 {body})"
    specs = recognise([parse(body)])
    assert [len(s.axes) for s in specs if s.node == parse(body)] == captured


def test_equal_maxima_are_found_once_and_in_rounds():
    sizes = [parse(f"(add 1 {A})"), parse(f"(maxover 1 0 {A} (read 0 (mod (var 1) 6)))"), parse(A)]
    specs = recognise(sizes)
    assert len(specs) == 2
    assert [[s.node for s in one] for one in in_rounds(specs)] == [[parse(A)], [sizes[1]]]
    assert text(substituted(sizes[0], {parse(A): 7})) == "(add 1 7)"


BODIES = [
    "(read 0 (var 0))",
    "(max 0 (add 1 (read 0 (var 0))))",
    "(read 0 (floordiv (var 0) 2))",
    "(read 0 (read 0 (var 0)))",
    "(mul (read 0 (var 0)) (sub (var 0) (arg 2)))",
    "(add (read 3 (var 0)) (read 3 (sub 5 (var 0))))",
    "(add (read 4 (sub (var 0) 2)) (read 0 (var 0)))",
    "(mod (read 1 2 (var 0)) 3)",
    "(floordiv (read 1 (arg 2) (var 0)) (sub (var 0) 2))",
    "(min (read 5 (var 0) 4) (read 6 (var 0)))",
    "(sub (read 7 (var 0) 1) 3)",
    "(var 0)",
    "(shape 1 0)",
]


@pytest.mark.parametrize("body", BODIES)
def test_kernels_find_what_numpy_finds(cpu, monkeypatch, body):
    monkeypatch.setattr(kernels, "SMALL", 0)
    args = values()
    args[2] = 3
    spec = recognise([parse(f"(maxover 0 0 6 {body})")])[0]
    env = Env(PARAMS, args)
    want = evaluate(spec.node, env)
    assert kernels.reduce_by_numpy(spec, env, {}) == want
    used = []

    def reducer():
        used.append(kernels.Reducer(spec, PARAMS, program.current().stacks._compile))
        return used[-1]

    assert kernels.reduce_by_kernel(spec, env, {}, reducer) == want
    assert used[0].run(kernels._at_launch(spec, env, {}), env, {}) == want, "not NumPy again"


def test_two_axes_in_a_kernel(cpu, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 0)
    spec = recognise([parse("(maxover 0 1 4 (maxover 1 0 (arg 2) (read 1 (var 0) (var 1))))")])[0]
    env = Env(PARAMS, values())
    reducer = kernels.Reducer(spec, PARAMS, program.current().stacks._compile)
    assert kernels.reduce_by_kernel(spec, env, {}, lambda: reducer) == int(
        values()[1][1:, :4].max()
    )


@pytest.mark.parametrize("body, index", [
    ("(read 0 (add (var 0) 1))", "i \\+ 1"),
    ("(read 0 (read 3 (var 0)))", "w\\[i\\]"),
    ("(read 0 (var 0))", "i"),
])  # fmt: skip
def test_an_index_outside_is_an_error_never_a_read(cpu, monkeypatch, body, index):
    monkeypatch.setattr(kernels, "SMALL", 0)
    spec = recognise([parse(f"(maxover 0 0 {7 if index == 'i' else 6} {body})")])[0]
    args = values()
    args[3][2] = 1 << 33
    env = Env(PARAMS, args)
    reducer = kernels.Reducer(spec, PARAMS, program.current().stacks._compile)
    with pytest.raises(QuadrantsRuntimeError, match=f"of a\\[{index}\\]"):
        kernels.reduce_by_kernel(spec, env, {}, lambda: reducer)


@pytest.mark.parametrize("body, args", [
    ("(add (read 3 (var 0)) 1)", {3: np.full(6, (1 << 63) - 1)}),
    ("(mul (read 3 (var 0)) (read 3 (var 0)))", {3: np.arange(6) + (1 << 40)}),
    ("(read 6 (var 0))", {6: np.full(6, (1 << 64) - 1, np.uint64)}),
])  # fmt: skip
def test_what_does_not_fit_64_bits_is_found_exactly(cpu, monkeypatch, body, args):
    monkeypatch.setattr(kernels, "SMALL", 0)
    given = values()
    for k, value in args.items():
        given[k] = value
    spec = recognise([parse(f"(maxover 0 0 6 {body})")])[0]
    env = Env(PARAMS, given)
    reducer = kernels.Reducer(spec, PARAMS, program.current().stacks._compile)
    assert reducer.run(kernels._at_launch(spec, env, {}), env, {}) is None
    want = evaluate(spec.node, env)
    assert want >= 1 << 63
    assert kernels.reduce_by_kernel(spec, env, {}, lambda: reducer) == want


def test_ranges_longer_than_the_guard_are_found_piece_by_piece(monkeypatch):
    monkeypatch.setattr(kernels, "GUARD", 4)
    for seed in range(4):
        env = Env(PARAMS, values(seed))
        for body in BODIES[:4]:
            spec = recognise([parse(f"(maxover 0 0 6 {body})")])[0]
            assert kernels.reduce_by_numpy(spec, env, {}) == evaluate(spec.node, env)


def random_body(rng, depth=0):
    """Arithmetic of elements whose indices are inside."""
    kind = rng.randrange(8 if depth < 3 else 4)
    inner = "(mod {} 6)"
    if kind == 0:
        return str(rng.randrange(-3, 9))
    if kind == 1:
        return rng.choice(["(var 0)", "(var 1)", "(arg 2)", "(shape 1 1)"])
    if kind < 4:
        index = inner.format(random_body(rng, depth + 2))
        return rng.choice([
            f"(read 0 {index})", f"(read 3 {index})", f"(read 1 (mod {index} 4) {index})",
            f"(read 4 (sub {index} 2))", f"(read 5 {index} (mod {index} 5))", f"(read 6 {index})",
        ])  # fmt: skip
    op = rng.choice(["add", "sub", "mul", "max", "min", "floordiv", "mod"])
    return f"({op} {random_body(rng, depth + 1)} {random_body(rng, depth + 1)})"


def test_random_bodies(cpu, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 0)
    rng = random.Random(11)
    exact = 0
    for seed in range(25):
        node = f"(maxover 0 0 (arg 2) (maxover 1 1 6 {random_body(rng)}))"
        (spec, *_) = recognise([parse(node)])
        env = Env(PARAMS, values(seed))
        want = evaluate(parse(node), env)
        reducer = kernels.Reducer(spec, PARAMS, program.current().stacks._compile)
        found = reducer.run(kernels._at_launch(spec, env, {}), env, {})
        assert found in (want, None), node
        exact += found is not None
        assert kernels.reduce_by_kernel(spec, env, {}, lambda r=reducer: r) == want, node
    assert exact > 12


def test_counts_of_dispatches(arch):
    owner = program.current()
    assert owner.get_max_reducer_dispatch_count() == 0
    case = Case(qd, [1, 2, 3])
    case.check()
    assert owner.get_max_reducer_dispatch_count() == 1
    case.check()
    assert owner.get_max_reducer_dispatch_count() == 1
    case.a[1] = 9
    case.check()
    assert owner.get_max_reducer_dispatch_count() == 2
    owner.reset_max_reducer_dispatch_count()
    assert owner.get_max_reducer_dispatch_count() == 0
    case.check(1)
    assert owner.get_max_reducer_dispatch_count() == 1, "another scalar argument"


def test_a_size_without_a_maximum_is_not_dispatched(arch):
    case = Case(qd, [2, 2], "(add 3 (arg 4))")
    case.check(1)
    assert program.current().get_max_reducer_dispatch_count() == 0


def test_a_range_longer_than_the_guard(cpu):
    n = (1 << 24) + 5
    a = qd.ndarray(qd.i32, (n,))
    a[n - 2] = 77
    spec = recognise([parse(A)])[0]
    stacks = program.current().stacks
    reducer = kernels.Reducer(spec, PARAMS[:1], stacks._compile)
    env = Env(PARAMS[:1], [a._live()], "", FETCH)
    assert kernels.reduce_by_kernel(spec, env, {}, lambda: reducer) == 77
    assert kernels.reduce_by_numpy(spec, env, {}) == 77
    assert substituted(parse(A), {parse(A): 77}) == Const(77)
    with pytest.raises(QuadrantsRuntimeError, match="exceeds the 16777216 guard"):
        evaluate(parse(A), env)
