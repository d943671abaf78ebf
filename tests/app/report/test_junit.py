"""JUnit XML and annotations: failures are those of the exit code, text of users stays text."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET

from msgspec.structs import replace
from qd_studio.app import report
from qd_studio.app.core.failing import failures
from qd_studio.app.core.rules import evaluate
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.compare import compare_records

from tests.app.records import make_record
from tests.inspect.test_compare import BUSY, timed

ERROR = rec.ErrorRecord(
    kind="QuadrantsNameError", message="no <y> &\x1b[31m\ufffe", stage="frontend", file="scale.py",
    line=6,
)  # fmt: skip


def cases(record, findings=(), comparison=None):
    root = ET.fromstring(report.render(record, ".xml", findings, comparison))
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
    root = ET.fromstring(report.render(after, ".xml", (), found))
    assert "code differs" in root.find("testsuite[@name='baseline']/system-out").text
    assert "## Compared with the baseline" in report.render(after, ".md", (), found)
    assert "launch 100 us -\\> 80.0 us (better)" in report.render(after, ".md", (), found)
    assert "<h2>Compared with the baseline</h2>" in report.render(after, ".html", (), found)
    assert '"baseline":{"state":"differs"' in report.render(after, ".json", (), found)
    for suffix in report.SUFFIXES:
        assert "aseline" not in report.render(after, suffix)


def broken(*errors, names=("cpu", "cuda")):
    """A record whose kernel has these errors on backends of these names."""
    record = make_record()
    (kernel,) = record.kernels
    first = replace(kernel.backends[0], status="error", errors=errors, compile=None)
    backends = tuple(replace(first, backend=name) for name in names)
    return replace(record, kernels=(replace(kernel, backends=backends),))


def unescaped(text):
    """As GitHub's runner reads them."""
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def commands(record, findings=()):
    """(level, properties, message) of each line, as GitHub's runner reads them."""
    found = []
    for line in report.render(record, ".annotations", findings).splitlines():
        _, head, message = line.split("::", 2)
        level, _, rest = head.partition(" ")
        pairs = dict(pair.split("=", 1) for pair in rest.split(","))
        found.append((level, {k: unescaped(v) for k, v in pairs.items()}, unescaped(message)))
    return found


def test_annotations_are_at_the_lines_of_failures(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    record = make_record()
    ((level, properties, message),) = commands(record, evaluate(record, ["ir.loads>0"]))
    title = "scale.py:scale: rule ir.loads>0"
    assert (level, properties) == ("error", {"file": "scale.py", "line": "7", "title": title})
    assert "ir.loads is 1" in message and "scale.py:7: <f32> $" in message
    assert commands(make_record()) == []
    # An error in a function of another file is shown there, once for all backends.
    path = tmp_path / "lib" / "a, b%3A 100%.py"
    error = replace(ERROR, file=str(path), message="50%\n::error::no\r\u2028\x1b[31m")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    ((level, properties, message),) = commands(broken(error))
    assert (properties["file"], properties["line"]) == ("lib/a, b%3A 100%.py", "6")
    assert properties["title"] == "scale.py:scale: cpu, cuda: QuadrantsNameError"
    assert "50%\n::error::no" in message and "\x1b" not in message
    assert len(commands(broken(error, replace(error, line=9)))) == 1  # what JUnit has as one case
    ((_, properties, _),) = commands(replace(make_record(), errors=(replace(ERROR, file=""),)))
    assert list(properties) == ["title"]
    case = ET.fromstring(report.render(broken(error), ".xml")).find(".//testcase")
    assert (case.get("file"), case.get("line")) == (str(path), "6")


def test_a_time_that_was_not_judged_is_a_warning():
    before, after = timed(100), timed(115, BUSY)
    findings = evaluate(after, ["launch.cpu.median_us>+10%"], before)
    assert [f.state for f in findings] == ["not judged"]
    ((level, properties, _),) = commands(after, findings)
    assert level == "warning" and properties["title"].endswith(f": rule {findings[0].rule}")


def test_sarif_has_the_same_places(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    outside = replace(ERROR, file=os.path.abspath("/elsewhere/a b.py"), kind="OSError")
    record = replace(broken(replace(ERROR, file=str(tmp_path / "k.py"))), errors=(outside,))
    (run,) = json.loads(report.render(record, ".sarif"))["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["OSError", ERROR.kind]
    places = [r["locations"][0]["physicalLocation"] for r in run["results"]]
    assert [p["artifactLocation"]["uri"] for p in places] == ["file:///elsewhere/a%20b.py", "k.py"]
    assert [p["region"]["startLine"] for p in places] == [6, 6]
    assert {r["level"] for r in run["results"]} == {"error"}
