"""A package from outside of the tree adds a tab, an analysis, a metric and a section of reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

import pytest
from qd_studio.app.core import analyses, extensions
from qd_studio.app.core.rules import RuleError, evaluate, parse_rule
from qd_studio.app.plugins import Analysis, AnalysisRemark, ReportSection, Result
from qd_studio.app.report import render, sections

from tests.app.records import make_record
from tests.hygiene.tree import ROOT

SAMPLE = ROOT / "docs" / "plugin_sample"
FAULTS = {
    "raises": (lambda subject: 1 / 0, "ZeroDivisionError"),
    "returns something else": (lambda subject: {"count": 1}, "it returns dict, not a Result"),
    "has an undeclared number": (lambda subject: Result({"other": 1}), "does not declare"),
    "has a number that is none": (lambda subject: Result({"count": "many"}), "not a number"),
    "has a remark that is none": (lambda subject: Result({}, ["text"]), "no AnalysisRemark"),
}


@pytest.fixture
def installed(monkeypatch):
    """Makes these objects the only ones of their groups."""

    def forget():
        analyses.analyses.cache_clear()
        sections.sections.cache_clear()
        analyses.result_of.forget()

    def install(*values):
        def found(group, kind, wanted, taken):
            return [
                extensions.Found(x.id, f"{kind} {x.id!r}", x)
                for x in values
                if isinstance(x, wanted)
            ]

        monkeypatch.setattr(analyses, "found_in", found)
        monkeypatch.setattr(sections, "found_in", found)
        forget()

    yield install
    forget()


def analysis(run=None, **more):
    run = run or (lambda subject: Result({"count": 3}, [AnalysisRemark("slow <b>", 7)]))
    return Analysis(
        **{"id": "mine", "help": "Mine.", "numbers": {"count": "n"}, "run": run, **more}
    )


def test_numbers_and_remarks_are_metrics_of_rules(installed):
    installed(analysis())
    record = make_record()
    (failed,) = evaluate(record, ["mine.count>2"])
    assert failed.state == "failed" and str(failed.places[0]) == "scale.py:7: slow <b>"
    assert [f.state for f in evaluate(record, ["mine.cpu.count>3"])] == ["passed"]
    assert [f.state for f in evaluate(record, ["require mine.remarks==0"])] == ["failed"]
    assert [f.state for f in evaluate(record, ["mine.cuda.count>0"])] == ["unknown"]
    assert [f.state for f in evaluate(record, ["mine.count>+0%"], record)] == ["passed"]
    with pytest.raises(RuleError, match=r"there are mine\.count, mine\.remarks"):
        parse_rule("mine.cuont>0")


def test_reports_show_them_escaped(installed):
    installed(analysis())
    assert "### Analyses" in render(make_record(), ".md")
    page = render(make_record(), ".html")
    assert "<h3>Analyses</h3>" in page and "slow &lt;b&gt;" in page and "slow <b>" not in page


@pytest.mark.parametrize("why", FAULTS)
def test_an_analysis_that_fails_costs_itself_only(installed, why):
    run, words = FAULTS[why]
    installed(analysis(run))
    (found,) = evaluate(make_record(), ["mine.count>2"])
    assert found.state == "unknown" and words in found.message
    assert words in render(make_record(), ".md").replace("\\", "")


def test_a_name_that_is_taken_is_refused(installed):
    installed(analysis(numbers={"remarks": "taken"}))
    with pytest.raises(RuleError, match="'remarks' cannot be the name of a number"):
        parse_rule("mine.count>0")
    faulty = extensions.found_in("no such group", "analysis", Analysis, ())
    assert faulty == []


def test_a_section_is_in_every_format_and_its_fault_is_a_sentence(installed):
    def fail(record):
        raise RuntimeError("not <today>")

    installed(
        ReportSection(
            id="mine", title="Of <mine>", markdown=lambda r: ["- a"], html=lambda r: "<p>b</p>",
            json=lambda r: {"c": 1},
        )
    )  # fmt: skip
    assert "## Of \\<mine\\>\n\n- a\n" in render(make_record(), ".md")
    assert "<h2>Of &lt;mine&gt;</h2><p>b</p>" in render(make_record(), ".html")
    assert '"sections":{"mine":{"c":1}}' in render(make_record(), ".json")
    installed(ReportSection(id="mine", title="Mine", markdown=fail, html=fail, json=fail))
    assert "not \\<today\\>" in render(make_record(), ".md")
    assert "RuntimeError: not &lt;today&gt;" in render(make_record(), ".html")
    assert "report section 'mine' failed" in render(make_record(), ".json")


KERNEL = """from qd_studio import engine as qd


@qd.kernel
def half(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] / (x[i] + 2.0)
"""


@pytest.mark.slow
def test_the_sample_package_works_from_outside_of_the_tree(tmp_path):
    """As pip leaves an installed package: its folder, and the entry points next to it."""
    place, here = tmp_path / "site", tmp_path / "here"
    shutil.copytree(SAMPLE / "qd_studio_hints", place / "qd_studio_hints")
    here.mkdir()
    (here / "k.py").write_text(KERNEL)
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    info = place / "qd_studio_hints-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: qd-studio-hints\nVersion: 1.0\n")
    groups = project["entry-points"].items()
    lines = [f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items()) for g, e in groups]
    (info / "entry_points.txt").write_text("\n".join(lines))

    def studio(*words):
        command = [sys.executable, "-m", "qd_studio.app.cli", *words, "--backend", "cpu"]
        env = {**os.environ, "PYTHONPATH": str(place)}
        return subprocess.run(command, cwd=here, env=env, capture_output=True, text=True)

    done = studio("--report", "k.py", "--fail-on", "divisions.count>0", "--out", "-", "--out",
                  "r.html", "--out", "r.json")  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "FAILED rule divisions.count>0: k.py:half" in done.stderr
    assert "k.py:7: a division: <f32>" in done.stderr
    assert "## Largest kernels" in done.stdout and "### Analyses" in done.stdout
    assert "<h2>Largest kernels</h2>" in (here / "r.html").read_text()
    assert '"sections":{"busiest":' in (here / "r.json").read_text()
    assert "the text of the sample panel" in studio("show", "k.py", "--panel", "hints").stdout
    assert "divisions in the finished" in studio("show", "k.py", "--panel", "analyses").stdout
    tabs = (
        "from qd_studio.app.panels import tabs\n"
        "ids = [p.id for p in tabs()]; print('analyses' in ids, ids[-1])"
    )
    env = {**os.environ, "PYTHONPATH": str(place)}
    found = subprocess.run([sys.executable, "-c", tabs], env=env, capture_output=True, text=True)
    assert found.stdout == "True hints\n", found.stderr
