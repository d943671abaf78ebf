"""The corpus: each program runs here as on the reference, on the CPU and in the interpreter.

Compared with what was recorded; where QD_REFERENCE_PYTHON names a Python that has Quadrants, the
reference itself is run.
"""

import os
from functools import cache

import pytest

from tests.reference import conformance, corpus
from tests.reference.compare import expectations, verdict
from tests.reference.differences import DIFFERENCES

CASES = [case for program in corpus.programs() for case in corpus.cases(program)]
REFERENCE = os.environ.get("QD_REFERENCE_PYTHON")


@cache
def results(program: str, arch: str) -> dict:
    return corpus.ours(program, arch)


@cache
def reference(program: str) -> dict:
    names = [case.name for case in corpus.cases(program)]
    return expectations(program, REFERENCE, names)


def fault(case: corpus.Case, arch: str) -> str | None:
    got = results(case.program, arch).get(case.name)
    return verdict(case, reference(case.program).get(case.name), got)


def is_later(case: corpus.Case, arch: str = "cpu") -> bool:
    """Whether a case needs a name that this version does not have yet."""
    error = results(case.program, arch).get(case.name, {}).get("error", {})
    return "NotYetError" in error.get("classes", ()) or "qd has no attribute" in error.get(
        "text", ""
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_as_the_reference(case):
    found = fault(case, "cpu")
    if found and is_later(case):
        pytest.skip("a name that this version does not have yet")
    assert found is None


def faults(program: str, arch: str) -> dict[str, str]:
    """What is wrong with the cases of a program that can run."""
    found = {case.name: fault(case, arch) for case in corpus.cases(program)}
    later = {case.name for case in corpus.cases(program) if is_later(case, arch)}
    return {name: text for name, text in found.items() if text and name not in later}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("program", corpus.programs())
def test_the_interpreter_agrees(program):
    assert not faults(program, "interp")


@pytest.mark.cuda(share=True)
@pytest.mark.parametrize("program", corpus.programs())
def test_cuda_agrees(program, monkeypatch):
    # Other roundings of sines and of powers; those of f32 in `tools` end in doubles: where its
    # bodies start one last place of f32 elsewhere, their speeds differ by up to 7e-6.
    monkeypatch.setattr(corpus, "TIGHT", 2e-5 if program == "tools" else 1e-9)
    found = faults(program, "cuda")
    if program == "tools":  # NumPy takes capsules of the host's memory alone
        assert "Unsupported device" in found.pop("case_dlpack_of_an_ndarray", "Unsupported device")
    assert not found


def test_stated_results_of_the_conformance_suite_are_those_of_the_reference():
    assert conformance.faults() == {}


def test_there_are_enough_cases_of_both_kinds():
    assert sum(case.name.startswith("case_") for case in CASES) > 500
    assert sum(case.name.startswith("mistake_") for case in CASES) > 150


def test_differences_name_cases_that_exist():
    assert not set(DIFFERENCES) - {case.key for case in CASES}


def test_what_is_recorded_belongs_to_the_cases():
    stale = [
        f"{program}.{name}"
        for program in corpus.programs()
        for name in corpus.recorded(program)["cases"]
        if name not in {case.name for case in corpus.cases(program)}
    ]
    assert not stale
    files = {path.stem for path in corpus.RECORDED.glob("*.json")} - {"conformance"}
    left = files - set(corpus.programs())
    assert not left


def test_options_are_of_cases_that_exist():
    import ast

    for program in corpus.programs():
        text = (corpus.HERE / "programs" / f"{program}.py").read_text(encoding="utf-8")
        names = {case.name for case in corpus.cases(program)} | {"*"}
        assert not set(corpus.options_of(ast.parse(text))) - names, program


# That the comparison bites.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2), (1, 1.0), (True, 1), (0.1, 0.1000001), (1.0, 1.00001), (float("nan"), 1.0),
        ([1, 2], [1, 2, 3]), ((1,), [1]), ({"a": 1}, {"a": 2}), (None, 0), ("1", 1),
    ],
)  # fmt: skip
def test_unequal_values_are_seen(one, other):
    case = corpus.Case("p", "case_x", "", "")
    left, right = ({"value": corpus.plain(v), "output": ""} for v in (one, other))
    assert corpus.difference(case, left, right)
    assert corpus.difference(case, left, left) is None


def error(*classes, line="x = 1", text="it says so"):
    return {"error": {"classes": [*classes, "Exception"], "line": line, "text": text}}


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        (error("QuadrantsTypeError", "TypeError"), error("QuadrantsTypeError")),
        (error("QuadrantsTypeError", "TypeError"), error("TypeError")),
        (error("ValueError"), error("TypeError")),
        (error("ValueError"), error("ValueError", line="y = 2")),
        (error("ValueError"), error("ValueError", text="another")),
        (error("ValueError"), {"value": 1, "output": ""}),
        ({"value": 1, "output": ""}, error("ValueError")),
        ({"value": 1, "output": ""}, {"value": 1, "output": "x"}),
        ({"died": -6}, {"value": 1, "output": ""}),
    ],
)
def test_unlike_ends_are_seen(expected, given):
    case = corpus.Case("p", "mistake_x", "it says so", "")
    assert corpus.difference(case, expected, given)
    assert corpus.difference(case, expected, expected) is None
