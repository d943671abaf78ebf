"""Sums as `linear_form` sees them, where they share parts."""

import random

import pytest
from qd_studio.engine.ir import Builder, Func, Param
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes.linear_form import Form, form_of
from qd_studio.engine.types import i32

DEEPEST = 8
"""Sums within each other that are looked into."""


class Watched:
    """Stands for an op, and counts how often its operands are asked for."""

    def __init__(self, code, args=()):
        self.code, self.type, self.attr = code, i32, None
        self.asked = 0
        self._args = args

    @property
    def args(self):
        self.asked += 1
        return self._args


def test_a_part_that_sums_share_is_looked_into_once():
    leaf = Watched(C.ARG_LOAD)
    chain = [Watched(C.ADD, (leaf, leaf))]
    for _ in range(DEEPEST - 1):
        chain.append(Watched(C.ADD, (chain[-1], chain[-1])))
    assert form_of(chain[-1]) == Form(0, {leaf: 1 << DEEPEST})
    assert [op.asked for op in chain] == [1] * DEEPEST


def test_a_part_at_several_depths_is_looked_into_once_at_each():
    ops = [Watched(C.ARG_LOAD), Watched(C.ARG_LOAD)]
    for _ in range(DEEPEST):
        ops.append(Watched(C.ADD, (ops[-1], ops[-2])))
    assert form_of(ops[-1]) == Form(0, {ops[0]: 21, ops[1]: 34})
    assert max(op.asked for op in ops) <= DEEPEST
    assert sum(op.asked for op in ops) < 3 * DEEPEST


def sums(seed):
    """Values that share parts, in the order in which they are made."""
    rng = random.Random(seed)
    func = Func("k", tuple(Param(f"p{k}", "scalar", i32, 0) for k in range(3)), ())
    b = Builder(func, func.body)
    ops = [b.emit(C.ARG_LOAD, (), k, i32) for k in range(3)]
    for _ in range(rng.randint(1, 24)):
        code = rng.choice([C.ADD, C.ADD, C.SUB, C.SUB, C.MUL, C.BIT_SHL, C.MAX])
        near = ops[-4:] if rng.random() < 0.8 else ops
        x, y = rng.choice(near), rng.choice(near)
        if rng.random() < 0.4 or code == C.BIT_SHL:
            y = b.const(rng.choice([0, 1, 2, 5]), i32)
        ops.append(b.emit(code, (x, y), None, i32))
    return ops


def by_definition(op, depth=DEEPEST):
    """The same without any memory, from the top each time."""
    if op.code == C.CONST:
        return op.attr, {}
    if depth and op.code in (C.ADD, C.SUB):
        parts = [(op.args[0], 1), (op.args[1], 1 if op.code == C.ADD else -1)]
    elif depth and op.code in (C.MUL, C.BIT_SHL) and op.args[1].code == C.CONST:
        n = op.args[1].attr
        parts = [(op.args[0], n if op.code == C.MUL else 1 << n)]
    else:
        return 0, {op: 1}
    constant, terms = 0, {}
    for part, factor in parts:
        inner, found = by_definition(part, depth - 1)
        constant += factor * inner
        for term, times in found.items():
            terms[term] = terms.get(term, 0) + factor * times
            if not terms[term]:
                del terms[term]
    return constant, terms


@pytest.mark.parametrize("seed", range(40))
def test_shared_parts_change_no_answer_nor_its_order(seed):
    for op in sums(seed):
        constant, terms = form_of(op)
        expected, factors = by_definition(op)
        assert (constant, list(terms.items())) == (expected, list(factors.items()))
