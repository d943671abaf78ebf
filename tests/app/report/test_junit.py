"""JUnit XML: failures are those of the exit code, and text of users stays text."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from msgspec.structs import replace
from qd_studio.app import report
from qd_studio.app.core.failing import failures
from qd_studio.app.core.rules import evaluate
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.compare import compare_records

from tests.app.records import make_record
from tests.inspect.test_compare import timed

ERROR = rec.ErrorRecord(
    kind="QuadrantsNameError", message="no <y> &\x1b[31m\ufffe", stage="frontend", file="scale.py",
    line=6,
)  # fmt: skip


def cases(record, findings=(), comparison=None):
    root = ET.fromstring(report.to_junit(record, findings, comparison))
    counts = {name: int(root.get(name)) for name in ("tests", "failures", "errors", "skipped")}
    return counts, {(c.get("classname"), c.get("name")): c for c in root.iter("testcase")}


def test_kernels_backends_and_rules_are_cases():
    record = make_record()
    findings = evaluate(record, ["ir.loads>0", "ir.loads>5", "cache.ptx!=hit"])
    counts, found = cases(record, findings)
    assert counts == {"tests": 6, "failures": 2, "errors": 0, "skipped": 2}
    assert "launch 100 us" in found["scale.py:scale", "cpu"].find("system-out").text
    assert found["scale.py:scale", "cuda"].find("skipped").get("message").endswith("driver found")
    failed = found["scale.py:scale", "rule ir.loads>0"]
    assert failed.get("line") == "7" and "scale.py:7: <f32> $" in failed.find("failure").text
    assert found["scale.py:scale", "rule ir.loads>5"].find("failure") is None
    assert found["scale.py:scale", "rule cache.ptx!=hit"].find("skipped") is not None


def test_errors_are_errors_and_their_text_is_text():
    record = make_record()
    (kernel,) = record.kernels
    broken = replace(kernel.backends[0], status="error", errors=(ERROR,), compile=None)
    record = replace(
        record, errors=(replace(ERROR, stage="import"),),
        kernels=(replace(kernel, backends=(broken, *kernel.backends[1:])),),
    )  # fmt: skip
    counts, found = cases(record)
    assert counts["errors"] == 2 == len(failures(record)) and counts["failures"] == 0
    error = found["scale.py:scale", "cpu"].find("error")
    assert error.get("type") == "QuadrantsNameError" and "<y> &\u241b" in error.get("message")


def test_a_check_that_fails_is_a_failure():
    record = make_record()
    (kernel,) = record.kernels
    cpu = kernel.backends[0]
    agreement = replace(cpu.agreement, check="failed", check_message="sum is 3")
    backends = (replace(cpu, agreement=agreement), *kernel.backends[1:])
    record = replace(record, kernels=(replace(kernel, backends=backends),))
    counts, found = cases(record)
    assert counts["failures"] == 1 == len(failures(record))
    assert "sum is 3" in found["scale.py:scale", "cpu"].find("failure").get("message")


def test_a_baseline_is_compared_in_every_format():
    before, after = timed(100), timed(80, text="other")
    found = compare_records(before, after)
    root = ET.fromstring(report.to_junit(after, (), found))
    assert "code differs" in root.find("testsuite[@name='baseline']/system-out").text
    assert "## Compared with the baseline" in report.to_markdown(after, (), found)
    assert "launch 100 us -\\> 80.0 us (better)" in report.to_markdown(after, (), found)
    assert "<h2>Compared with the baseline</h2>" in report.to_html(after, (), found)
    assert '"baseline":{"state":"differs"' in report.to_json(after, (), found)
    for suffix in report.SUFFIXES:
        assert "aseline" not in report.render(after, suffix)
