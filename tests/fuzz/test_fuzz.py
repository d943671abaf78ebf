"""Generated kernels agree in every configuration; and the machinery finds what does not.

`python -m tests.fuzz --count 2000` runs the big job; these are the first seeds of it.
"""

from __future__ import annotations

import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir
from qd_studio.engine.ir import codes as C
from qd_studio.engine.types import i32

from . import campaign, runner
from .campaign import make
from .cases import arguments, case_of
from .configs import TIER_VARIANTS, VARIANTS
from .frontends import build, built_case, containers, load
from .generate import generate
from .lower import lower
from .model import count
from .runner import Tally, difference, interpret
from .source import program_source

BATCHES = [range(start, start + 6) for start in range(0, 18, 6)]


@pytest.fixture(autouse=True)
def _quiet(capsys):
    """Divisions by zero are meant: their warnings say nothing here."""
    yield
    capsys.readouterr()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seeds", BATCHES, ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_kernels_agree_in_all_configurations(seeds):
    tally, failures = campaign.run(seeds, tell=lambda text: None)
    assert not failures, "\n".join(failures)
    assert tally.programs + tally.skipped == len(seeds)
    ran = {name for name in tally.by_config if not name.startswith("interp at")}
    exact_only = {v.name for v in VARIANTS if v.fast}
    assert {v.name for v in VARIANTS} - exact_only <= ran


def test_frontend_and_direct_lowering_agree(tmp_path):
    qd.init(arch=qd.cpu, fast_math=False, log_level="error")
    programs = [generate(seed, pairs=False) for seed in range(3000, 3120)]
    module = load(programs, tmp_path, "many")
    agreed = 0
    for p in programs:
        held = containers(p, module)
        made, direct, case = build(held), lower(p), case_of(p)
        assert not ir.verify(made.func)
        try:
            expected = interpret(case, direct)
        except Exception as error:
            assert "step limit" in str(error)
            continue
        assert not difference(
            case, expected, interpret(built_case(held, made), made.func), case.rtol
        ), p.seed
        agreed += 1
    assert agreed > 100


def test_programs_depend_on_the_seed_alone():
    for seed in range(5):
        assert generate(seed) == generate(seed)
        assert arguments(generate(seed))[0].tobytes() == (arguments(generate(seed))[0].tobytes())
    assert len({program_source(generate(seed, "k")) for seed in range(50)}) == 50


def test_the_generator_reaches_the_language():
    """What is never generated is never tested: every construct occurs among the first seeds."""
    programs = [make(seed, level) for seed in range(400) for level in campaign.LEVELS]
    assert {p.mode for p in programs} == {"int", "exact", "tame"}
    found = set()
    for p in programs:
        func = lower(p)
        found |= {op.code for op in ir.walk(func.body)}
    never = {C.LINEARIZE, C.SHIFT_PTR, C.GLOBAL_TMP, C.LAUNCH_SEED, C.RAND, C.OFFLOADED, C.BOUNDS,
             C.PRINT, C.INV, C.ARRAY_ALLOCA, C.BLOCK_SYNC, C.MEM_FENCE, C.CALL,
             C.CALL_ARG, C.AD_STACK_CLAIM, C.SUBGROUP_SHUFFLE, C.SUBGROUP_BALLOT,
             C.SUBGROUP_SYNC, C.GRAPH_REGION, C.ADDRESS, C.CLOCK, C.FRAGMENT_LOAD,
             C.FRAGMENT_MMA, C.FRAGMENT_STORE, C.ATOMIC_ADD_VECTOR, C.ASYNC_COPY, C.ASYNC_GROUP,
             C.ASYNC_WAIT, C.WARPGROUP_MMA, C.WARPGROUP_WAIT}  # fmt: skip
    # Gradients and graphs have generators of their own: `slopes`, and that of `test_graph_fuzz`.
    never |= {code for code in range(C.COUNT) if C.STACK[code] or code == C.AD_STACK_ALLOCA}
    assert {C.NAME[c] for c in range(C.COUNT) if c not in found and c not in never} == set()
    text = "\n".join(program_source(p) for p in programs)
    for piece in (
        "while ", "break", "continue", "qd.static", "qd.grouped", "serialize=True", "qd.func",
        " if ", "assert ", "qd.ndrange", "else:", "return ", "not ", " and ", "qd.atomic_cas",
        "qd.atomic_exchange", "+= ", "[None]", "qd.u1", "qd.Vector([", "qd.Matrix([",
        "qd.types.struct(", ".dot(", ".sum()", ".transpose()", " @ ", ".xy",
        "@dataclasses.dataclass", "rec.", "@qd.data_oriented", "self.", "qd.template()", "as_: ",
        "av: ", "-> qd.types.vector(",
    ):  # fmt: skip
        assert piece in text, piece


def test_a_wrong_pass_is_found_and_made_small(monkeypatch):
    """The smaller instead of the larger in finished code: some program shows it, a small one."""
    honest = runner.compiled

    def wrong(source, variant):
        func = honest(source, variant)
        for op in ir.walk(func.body):
            if op.code == C.MAX and op.type is i32:
                op.code = C.MIN
        return func

    monkeypatch.setattr(runner, "compiled", wrong)
    for seed in range(2, 200, 3):
        p = make(seed, "ir")
        failure = runner.check(case_of(p), lower(p), Tally(), VARIANTS[:1], stages=False)
        if failure:
            break
    assert failure is not None and failure.config == "all passes"
    small = campaign.shrunk(p, failure, "ir", None)
    assert count(small.body) <= min(4, count(p.body))
    assert "max(" in program_source(small)
    assert "seed" in campaign.report(p, failure, "ir", None)


def test_a_wrong_backend_is_reported_from_a_wrong_pass(monkeypatch):
    p = next(p for p in map(generate, range(200)) if p.mode == "int" and len(p.arrays) == 1)
    honest = runner.execute

    def wrong(case, finished, variant):
        found = honest(case, finished, variant)
        found.arrays[0].flat[0] ^= 1
        return found

    monkeypatch.setattr(runner, "execute", wrong)
    failure = runner.check(case_of(p), lower(p), Tally(), VARIANTS[:1], stages=False)
    assert failure is not None and failure.what.endswith("backend at fault)")


@pytest.mark.parametrize(
    "seeds", [range(6, 9), range(20, 24)], ids=lambda r: f"{r.start}-{r.stop - 1}"
)
def test_kernels_agree_in_first_tier_code_that_is_interrupted(seeds):
    tally, failures = campaign.run(
        seeds, tell=lambda text: None, small=False, variants=TIER_VARIANTS, thorough=True
    )
    assert not failures, "\n".join(failures)
    assert tally.programs + tally.skipped == len(seeds)
    assert TIER_VARIANTS[0].name in tally.by_config
