"""Verifier: valid samples of every opcode pass; each broken rule is reported at its op."""

from __future__ import annotations

import pytest
from qd_studio.engine import ir
from qd_studio.engine.errors import IRVerificationError
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import i32, void

from .samples import (
    AST,
    BROKEN,
    BROKEN_CALLS,
    BROKEN_FRAGMENTS,
    BROKEN_GRAPHS,
    BROKEN_TASKS,
    CALLS,
    GRAPH,
    LOWERED,
    OFFLOADED,
    VALID,
)


@pytest.mark.parametrize("text", [*VALID.values(), LOWERED])
def test_valid_samples_pass(text):
    assert ir.verify(ir.parse(text)) == []


def test_the_samples_hold_every_opcode():
    found = {op.name for text in VALID.values() for op in ir.all_ops(ir.parse(text))}
    assert found == {info.name for info in ir.CODES}


def _expect(text, id, message):
    func = ir.parse(text)
    errors = ir.verify(func)
    parts = message.split("|")
    hits = [e for e in errors if any(part in e.message for part in parts)]
    assert hits, errors
    assert id in [e.op.id if e.op else None for e in hits]
    with pytest.raises(IRVerificationError):
        ir.check(func, "some_pass")


@pytest.mark.parametrize(("old", "new", "id", "message"), BROKEN)
def test_broken_rules(old, new, id, message):
    assert LOWERED.count(old) == 1
    _expect(LOWERED.replace(old, new), id, message)


@pytest.mark.parametrize(("old", "new", "id", "message"), BROKEN_TASKS)
def test_broken_rules_of_tasks(old, new, id, message):
    assert OFFLOADED.count(old) == 1
    _expect(OFFLOADED.replace(old, new), id, message)


@pytest.mark.parametrize(("old", "new", "id", "message"), BROKEN_CALLS)
def test_broken_rules_of_calls(old, new, id, message):
    assert CALLS.count(old) == 1
    _expect(CALLS.replace(old, new), id, message)


@pytest.mark.parametrize(("old", "new", "id", "message"), BROKEN_FRAGMENTS)
def test_broken_rules_of_fragments(old, new, id, message):
    assert AST.count(old) == 1
    _expect(AST.replace(old, new), id, message)


@pytest.mark.parametrize(("old", "new", "id", "message"), BROKEN_GRAPHS)
def test_broken_rules_of_graph_regions(old, new, id, message):
    assert GRAPH.count(old) == 1
    _expect(GRAPH.replace(old, new), id, message)


def test_tasks_are_at_the_root_of_a_region_too():
    func = ir.parse(GRAPH)
    assert [op.id for op in func.tasks()] == [0, 5, 9]
    assert [len(block.ops) for block in func.roots()] == [2, 2, 1, 1, 1]
    assert all(func.is_root(block) for block in func.roots())
    assert not func.is_root(func.tasks()[0].regions[1])


def test_a_function_gives_one_result_at_most():
    func = ir.parse(CALLS.replace("noted() stage", "noted() -> (i32, i32) stage"))
    assert "function noted has more than one result" in [e.message for e in ir.verify(func)]


@pytest.mark.parametrize("stage", list(ir.STAGES))
def test_forbidden_ops_of_a_stage_are_reported(stage):
    for code in ir.STAGES[stage].forbidden:
        info = ir.CODES[code]
        func = ir.Func("k")
        func.stage = stage
        zero = func.new_op(C.CONST, i32, (), 0, block=func.body)
        args = (zero,) * len(info.operands)
        op = func.new_op(code, void if info.result == "void" else i32, args, None, block=func.body)
        func.body.ops += [zero, op]
        assert f"{info.name} has no place in this stage" in [e.message for e in ir.verify(func)]


def test_links_and_ids():
    func = ir.parse(LOWERED)
    loop = func.body.ops[2]
    inner = loop.regions[0]
    inner.ops[1].block = func.body
    assert _messages(func) == {4: ["does not know the block it is in"]}
    inner.ops[1].block = inner
    inner.owner = None
    assert _messages(func) == {2: ["region 0 does not know its owner"]}
    inner.owner = loop
    inner.ops[2].id = 1
    assert _messages(func) == {1: ["$1 has the id of another op"]}
    inner.ops[2].id = 5
    func.next_id = 9
    assert _messages(func) == {14: ["$14 is not below next_id 9"]}
    func.next_id = 15
    inner.ops.append(inner.ops[-1])
    assert "$8 is in two places" in _messages(func)[8]


def _messages(func):
    out = {}
    for op, message in ir.verify(func):
        out.setdefault(op.id, []).append(message)
    return out


def test_check_names_op_pass_and_place():
    func = ir.parse(LOWERED.replace("$7 = add $6, $3", "$7 = add $6, $8"))
    func.body.ops[2].regions[0].ops[4].loc = ir.get_loc("k.py", 12, 4, 12, 9, "small")
    with pytest.raises(IRVerificationError) as caught:
        ir.check(func, "die")
    error = caught.value
    assert (error.op_id, error.pass_name, error.stage, error.line) == (7, "die", "typed", 12)
    assert "after die at $7" in str(error)
    ir.check(ir.parse(LOWERED))
