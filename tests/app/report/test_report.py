"""Reports render the record completely and safely; gates trip when they should."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from qd_studio.app import batch, report
from qd_studio.app.core.gates import RuleError, evaluate, parse_rule
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect import store

from tests.app.pages import unpacked
from tests.app.records import make_record

RECORD = make_record()
ERROR = rec.ErrorRecord(
    kind="QuadrantsNameError", message='Name "y" is not defined', stage="frontend", file="a.py",
    line=3, col=8, end_line=3, end_col=9, function="k", source="    x = y + 1", hint="Define it.",
)  # fmt: skip


class Checker(HTMLParser):
    """Counts open tags and collects names and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.urls: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [v for k, v in attrs if k in ("src", "href") and v]
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass


def test_json_is_the_record():
    text = report.to_json(RECORD)
    assert store.loads(text.encode()) == RECORD


def test_markdown_tells_the_main_facts():
    text = report.to_markdown(RECORD)
    assert "scale.py:scale" in text and "cuda: no driver found" in text
    assert "100 us ± 1.00" in text and "12.0 GB/s" in text
    assert "`fast_math=False` (init)" in text
    assert "alg_simp" in text and "Scale \\<x\\>" in text
    widths = {row.count("|") for row in re.findall(r"^\| kernel.*|^\| scale.*", text, re.M)}
    assert len(widths) == 1, "every row of the matrix has as many cells as its header"


def test_html_is_self_contained_balanced_and_escaped():
    text = unpacked(RECORD)
    checker = Checker()
    checker.feed(text)
    assert checker.stack == []
    assert "script" not in checker.tags and "b" not in checker.tags
    assert all(url.startswith("#") for url in checker.urls)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "&lt;script&gt;" in text
    assert "alg_simp" in text and "x * 1 is x" in text and "no driver found" in text


def test_html_diff_marks_the_changed_operand():
    text = unpacked(RECORD)
    assert re.search(r"class=d-removed.*<mark>\$\d+</mark>", text)
    assert re.search(r"<tr class=d-added><td>7<td>\+<td>", text), (
        "the diff keeps the user's line numbers"
    )


def test_errors_are_in_every_format():
    record = msgspec.structs.replace(RECORD, kernels=(), errors=(ERROR,))
    for suffix in report.SUFFIXES:
        text = report.render(record, suffix)
        assert "is not defined" in text and "QuadrantsNameError" in text
    assert "x = y + 1" in report.to_markdown(record)


def test_an_error_of_several_backends_is_told_once_with_their_names():
    other = msgspec.structs.replace(ERROR, message="no recursion", rendered="no recursion")
    backends = tuple(
        rec.BackendRecord(backend=name, status="error", errors=(error,))
        for name, error in (("cpu", ERROR), ("opencl", other), ("cuda", ERROR))
    )
    kernel = msgspec.structs.replace(RECORD.kernels[0], backends=backends, errors=())
    record = msgspec.structs.replace(RECORD, kernels=(kernel,))
    text = report.to_markdown(record)
    assert text.count("x = y + 1") == 1
    assert f"**Error ({ERROR.stage}) on cpu, cuda**" in text
    assert f"**Error ({ERROR.stage}) on opencl**" in text
    page = report.to_html(record)
    assert page.count("x = y + 1") == 1 and "</strong> on cpu, cuda" in page


def test_what_was_only_compiled_is_not_called_ok():
    (kernel, *_) = RECORD.kernels
    (first, *_) = kernel.backends
    only = msgspec.structs.replace(first, backend="amdgpu", status="ok", unlaunched="no runtime")
    kernel = msgspec.structs.replace(kernel, backends=(first, only))
    assert batch._outcome(kernel) == f"{first.backend} ok, amdgpu compiled"


def test_rendering_twice_gives_the_same_bytes():
    for suffix in report.SUFFIXES:
        assert report.render(RECORD, suffix) == report.render(RECORD, suffix)


def test_write_chooses_by_suffix_and_refuses_others(tmp_path):
    report.write(RECORD, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["version"] == rec.VERSION
    with pytest.raises(ValueError, match=r"\.md"):
        report.write(RECORD, tmp_path / "r.pdf")
    assert not (tmp_path / "r.pdf").exists()


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ("ir.statements>1000", "passed"),
        ("ir.statements<1000", "failed"),
        ("agreement!=ok", "passed"),
        ("agreement==ok", "failed"),
        ("compile.error", "passed"),
        ("cache.offline!=hit", "failed"),
        ("cache.offline!=loaded", "failed"),
        ("cache.offline.cpu==miss", "failed"),
        ("cache.fastcache!=off", "passed"),
        ("cache.fastcache==loaded", "passed"),
        ("cache.ptx!=hit", "skipped"),
        ("launch.cpu.median_us>50", "failed"),
        ("launch.cuda.median_us>1", "skipped"),
    ],
)
def test_absolute_rules(rule, state):
    states = {f.state for f in evaluate(RECORD, [rule])}
    assert states == {state}


@pytest.mark.parametrize(
    ("now", "mad", "state"),
    [(100.0, 1.0, "passed"), (150.0, 1.0, "failed"), (150.0, 40.0, "passed")],
)
def test_times_gate_against_a_baseline_beyond_noise(now, mad, state):
    found = evaluate(
        make_record(cpu_us=now, mad_us=mad), ["launch.cpu.median_us>+20%"], make_record()
    )
    assert [f.state for f in found] == [state]
    assert ("within noise" in found[0].message) == (now == 150.0 and mad == 40.0)


def test_gate_findings_stand_in_the_reports():
    found = evaluate(RECORD, ["launch.cpu.median_us>50"])
    assert "1 failed of 1" in report.to_markdown(RECORD, found)
    assert "1 failed of 1" in report.to_html(RECORD, found)
    assert json.loads(report.to_json(RECORD, found))["extra"]["gates"][0]["state"] == "failed"


@pytest.mark.parametrize(
    "rule",
    [
        "", "a >< 3", "ir.statements>+x%", "ir.x==+5%", "agreement>ok", "no.such>1",
        "cache.offline!=laoded",
    ],
)  # fmt: skip
def test_unreadable_rules_say_what_to_write(rule):
    with pytest.raises(RuleError):
        parse_rule(rule)


def test_a_misspelt_count_is_an_error_and_not_a_gate_that_never_trips():
    with pytest.raises(RuleError, match=r"there is no ir\.statments; there are .*ir\.statements"):
        evaluate(RECORD, ["ir.statments>5"])


def test_relative_rule_without_a_baseline_is_an_error():
    with pytest.raises(RuleError, match="--baseline"):
        evaluate(RECORD, ["ir.statements>+5%"])
