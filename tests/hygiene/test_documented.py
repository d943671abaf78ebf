"""Every op and every pass says what it is, and every pass shows it in a file test."""

import ast
import inspect
import re
import sys
from collections import Counter

import pytest
import qd_studio.engine.passes  # noqa: F401 - registers every pass
from qd_studio.engine.config import OPTIONS
from qd_studio.engine.ir.codes import CODES
from qd_studio.engine.passes.registry import all_passes

from tests.hygiene.tree import ROOT, python_files

PASSES = all_passes()


def read_as_attributes(folder: str, names: set[str]) -> set[str]:
    """Those of `names` that modules in `folder` read as attributes, the option table left out."""
    table = {"config.py", "option_table.py", "options.py"}
    found: set[str] = set()
    for path in python_files(folder):
        source = path.read_text(encoding="utf-8")
        if path.name in table or (names - found).isdisjoint(re.findall(r"\.\s*(\w+)", source)):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return found & names


# Options that `resolve` itself acts on.
RESOLVED = {"arch", "require_version", "log_level"}


def test_options_said_to_work_are_read_and_the_others_are_not():
    read = read_as_attributes("engine", {opt.name for opt in OPTIONS.values()})
    working = {opt.name for opt in OPTIONS.values() if opt.effect == "now"} - RESOLVED
    assert sorted(working - read) == []
    assert sorted({opt.name for opt in OPTIONS.values() if opt.effect != "now"} & read) == []


def test_there_are_passes():
    assert {"die", "simplify", "offload"} <= {info.name for info in PASSES}


@pytest.mark.parametrize("info", CODES, ids=lambda info: info.name)
def test_every_op_says_what_it_means(info):
    assert info.doc
    assert info.traits or info.result != "void"


# What a pass leaves alone is stated in one of these words.
LEAVES = r"\b(stays?|keeps?|kept|leaves?|left|untouched|needs? no|not|never|only)\b"


@pytest.mark.parametrize("info", PASSES, ids=lambda info: info.name)
def test_every_pass_file_shows_before_after_and_what_it_leaves(info):
    doc = inspect.getdoc(sys.modules[info.fn.__module__]) or ""
    shown = [line for line in doc.splitlines() if line.startswith("    ")]
    beside = [line for line in shown if re.search(r"\S {3,}\S", line)]
    assert "::" in doc and (beside or re.search("(?i)before.*after", doc, re.S)), "no IR is shown"
    assert re.search(LEAVES, " ".join(set(doc.splitlines()) - set(shown)))


@pytest.mark.parametrize("info", PASSES, ids=lambda info: info.name)
def test_every_pass_has_a_summary_of_one_line(info):
    assert info.summary.endswith(".")
    assert len(info.summary) <= 100


def test_every_pass_has_file_tests_of_what_it_does_and_what_it_leaves():
    run = re.compile(r"^; run: *(.+)$", re.M)
    shown = Counter(
        name.strip().split("(")[0]
        for path in (ROOT / "tests" / "passes").rglob("*.qdir")
        for line in run.findall(path.read_text(encoding="utf-8"))
        for name in line.split(",")
    )
    short = {info.name: shown[info.name] for info in PASSES if shown[info.name] < 2}
    assert not short, f"passes with fewer than two file tests: {short}"
