"""No pass changes what a random function computes, and every pass leaves good IR."""

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, to_text, verify
from qd_studio.engine.passes import PassCx, registry, simplify, unreachable_code_elimination
from qd_studio.engine.passes.full_simplify import ROUND
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import f32, f64, i32

from .qdir import assert_same_outcome, run_passes
from .random_ir import FLOATS, INTS, random_func

NAMES = [*dict.fromkeys(ROUND), "per_task_cse", "full_simplify"]
SEEDS = range(12)


def check(seed, types, names, config, exact=True, fields=False, stacks=False):
    before = random_func(seed, types, fields=fields, stacks=stacks)
    text = to_text(before)
    assert not verify(before), text
    after = parse(text)
    run_passes(after, names, config)
    try:
        assert_same_outcome(before, after, exact, seeds=2)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{text}\n---- after\n{to_text(after)}") from error


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("types", [INTS, FLOATS, (*INTS, *FLOATS)], ids=["ints", "floats", "all"])
def test_each_pass_keeps_every_bit_without_fast_math(name, types):
    for seed in SEEDS:
        check(seed, types, [name], {"fast_math": False})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_fast_math_does_not_touch_integers(name):
    for seed in SEEDS:
        check(100 + seed, INTS, [name], {"fast_math": True})


def test_options_that_move_more_code():
    config = {"fast_math": False, "flatten_if": True, "move_loop_invariant_outside_if": True}
    for seed in SEEDS:
        check(200 + seed, (*INTS, *FLOATS), ["full_simplify"], config)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_each_pass_keeps_fields_and_elements(name):
    for seed in SEEDS:
        check(500 + seed, (i32, f32), [name], {"fast_math": False}, fields=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_each_pass_keeps_what_adstacks_hold(name):
    for seed in range(16):
        check(600 + seed, (i32, f32, f64), [name], {"fast_math": False}, stacks=True)


@pytest.mark.parametrize("kind", ["plain", "fields", "stacks"])
@pytest.mark.parametrize("target", [PipelineKind.INTERP, PipelineKind.CPU])
def test_the_whole_pipeline_keeps_every_bit_without_fast_math(target, kind):
    config = CompileConfig().replace(fast_math=False)
    for seed in SEEDS:
        types = (*INTS, *FLOATS) if kind == "plain" else (i32, f32, f64)
        before = random_func(400 + seed, types, fields=kind == "fields", stacks=kind == "stacks")
        before.stage = "ast"
        before.autodiff = "none"  # its stacks are those of a kernel that was differentiated
        for op in before.body.ops:
            # The loops depend on their order, so none may run in parallel.
            if op.code == C.RANGE_FOR:
                op.attr = op.attr._replace(strictly_serialized=True)
        after = parse(to_text(before))
        passes.run(after, config, target, (passes.VerifyEach(),))
        assert_same_outcome(before, after, exact=True, seeds=2)


# detect_read_only changes an attribute of tasks and nothing else.
STATED = [p for p in passes.all_passes() if p.keeps and p.name != "detect_read_only"]
KEPT = {kept for p in STATED for kept in p.keeps}
KEPT |= {"per_task_cse", "unreachable_code_elimination"}
# Run before a pass, they leave it nothing to do.
LEAVES_NOTHING = {"merge_global_ptrs": {"per_task_cse"}}
KEEPERS = {*[p.name for p in STATED], "merge_global_ptrs", "per_task_cse", "simplify"}


@pytest.mark.parametrize("kind", ["plain", "fields", "stacks"])
@pytest.mark.parametrize("name", sorted(KEEPERS))
def test_a_pass_keeps_what_it_says_without_work(name, kind):
    changed, stated = 0, set()
    for seed in range(60):
        types = INTS if seed % 2 else FLOATS
        func = random_func(seed, types, fields=kind == "fields", stacks=kind == "stacks")
        cx = PassCx(func, CompileConfig())

        before = sorted(KEPT - {name} - LEAVES_NOTHING.get(name, set()))

        def has_work(func=func, cx=cx, before=before):
            while any([cx.run_pass(kept) for kept in before]):  # noqa: C419
                pass
            return cx.run_pass(name)

        while has_work():
            changed += 1
            stated.update(cx._keeps)
            again = [registry.get(kept).fn for kept in cx._keeps]
            assert not [fn for fn in again if fn(func, PassCx(func, CompileConfig()))]
    assert changed and (stated or name == "simplify")  # each of these functions has ifs


@pytest.mark.parametrize(("combined", "kept"), [("add", True), ("sub", False)])
def test_simplify_keeps_rules_where_loads_become_one(combined, kept):
    func = parse(f"""
kernel k(x: ndarray<i32, 1>) stage=typed {{
  <i32> $0 = const 0
  <*i32> $1 = arg_addr [(0, False)]
  <*i32> $2 = external_ptr $1, $0 ["unsafe"]
  <i32> $3 = global_load $2
  <i32> $4 = global_load $2
  <i32> $5 = {combined} $3, $4
  $6 : global_store $2, $5
}}
""")
    cx = PassCx(func, CompileConfig())
    for name in ROUND:
        assert cx.run_pass(name) == (name == "simplify")
    assert cx.was_idle("die") and cx.was_idle("constant_fold")
    assert cx.was_idle("alg_simp") == cx.was_idle("unreachable_code_elimination") == kept
    assert cx.run_pass("alg_simp") == (not kept)


def _simplified(func):
    simplify._Sweep(func, PassCx(func, CompileConfig()), None, True).block(func.body)


def _without_dead_code(func):
    unreachable_code_elimination._Sweep(func.roots()).block(func.body)


class _WholeSweeps(passes.Instrument):
    """Compares passes that first look whether there is work with sweeps over everything."""

    def __init__(self):
        self.sweeps = {"simplify": _simplified, "unreachable_code_elimination": _without_dead_code}
        self.changed = dict.fromkeys(self.sweeps, 0)

    def before(self, run, func):
        if run.name in self.sweeps:
            copy = parse(to_text(func))
            self.sweeps[run.name](copy)
            self.expected = to_text(copy)
        return True

    def after(self, run, func):
        if run.name in self.sweeps:
            assert to_text(func) == self.expected
            self.changed[run.name] += run.changed


@pytest.mark.parametrize("kind", ["plain", "fields"])
def test_passes_find_all_of_their_work(kind):
    whole = _WholeSweeps()
    for seed in range(40):
        func = random_func(700 + seed, INTS, fields=kind == "fields")
        func.stage = "ast"
        passes.run(func, CompileConfig(), PipelineKind.CPU, (whole,))
    assert all(whole.changed.values()), whole.changed


def test_a_second_run_of_the_group_has_nothing_to_do():
    for seed in SEEDS:
        func = random_func(300 + seed, (*INTS, *FLOATS))
        run_passes(func, ["full_simplify"], {})
        text = to_text(func)
        run_passes(func, ["full_simplify"], {})
        assert to_text(func) == text


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_remarks_of_simplify_are_those_without_its_first_look(first, monkeypatch):
    looks, found = [], []
    may_hit = simplify._may_hit

    def looked(cx):
        looks.append(may_hit(cx))
        return looks[-1]

    for look in (looked, lambda cx: True):
        monkeypatch.setattr(simplify, "_may_hit", look)
        found.append([])
        for seed in range(first, first + 30):
            func = random_func(seed, (i32, f32, f64), 12 + seed % 30)
            func.noalias = seed % 5 > 0
            found[-1].append(run_passes(func, ["merge_global_ptrs", "simplify", "simplify"], {}))
    assert found[0] == found[1]
    assert True in looks and False in looks
    assert any(found[0])
