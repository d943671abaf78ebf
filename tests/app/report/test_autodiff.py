"""Gradient kernels in Markdown and HTML."""

import re

import msgspec
from qd_studio.app import report
from qd_studio.app.core.failing import failures
from qd_studio.app.core.views.errors import errors_of
from qd_studio.app.core.views.matrix_cells import sign_of
from qd_studio.engine.inspect import record as rec

from tests.app import gradients
from tests.app.gradients import AUTODIFF, make_record, with_autodiff
from tests.app.pages import unpacked
from tests.app.report.test_report import Checker

RECORD = make_record()


def test_markdown_has_a_section_for_the_gradient_only():
    text = report.render(RECORD, ".md")
    assert text.count("### Autodiff") == 1
    assert text.index("### Autodiff") > text.index("## power.py:power.grad")
    assert "On cpu, reverse: 2 stacks, 624 B of heap with n=1000." in text
    row = next(line for line in text.splitlines() if "takes the most" in line)
    for wanted in ("33", "8", "528 B", gradients.FORMULA, "the loop over j at line 9"):
        assert wanted in row
    assert "the loop over \\<k\\> at line 10" in text
    assert "`largest n[i]` = 31" in text and "- predicate: not captured" in text
    stacks = text[text.index("### Autodiff") :].splitlines()
    cells = {line.count("|") for line in stacks if re.match(r"\| (task|0) \|", line)}
    assert len(cells) == 1


def test_html_is_well_formed_escaped_and_links_lead_somewhere():
    text = unpacked(RECORD)
    checker = Checker()
    checker.feed(text)
    assert not checker.stack and "script" not in checker.tags
    assert "the loop over &lt;k&gt; at line 10" in text and "<k>" not in text
    assert text.count("<h3>Autodiff</h3>") == 1
    anchors = set(re.findall(r'id="([^"]+)"', text))
    links = [url for url in checker.urls if url.startswith("#")]
    assert len(links) > len(AUTODIFF.links) and all(url[1:] in anchors for url in links)


def test_an_overflow_stands_out():
    overflow = msgspec.structs.replace(AUTODIFF, overflow="Adstack overflow: <y> is full")
    record = with_autodiff(RECORD, overflow)
    page = report.render(record, ".html")
    assert '<p class="bad">Overflow: Adstack overflow: &lt;y&gt; is full' in page
    assert "**Overflow**: Adstack overflow: \\<y\\> is full" in report.render(record, ".md")


def test_a_kernel_that_cannot_be_differentiated_fails_nothing():
    error = rec.ErrorRecord(kind="QuadrantsCompilationError", message="no", stage="frontend")
    failed = rec.BackendRecord(backend="cpu", status="error", errors=(error,), reason="no")
    primal, gradient = RECORD.kernels
    record = msgspec.structs.replace(
        RECORD, kernels=(primal, msgspec.structs.replace(gradient, backends=(failed,)))
    )
    assert failures(record) == []
    assert errors_of(record) == [error] and errors_of(record, gradients=False) == []
    assert sign_of(record.kernels[1]) == "absent"
    assert "no" in report.render(record, ".md")
    assert 'class="none reason">no<' in report.render(record, ".html")
    same = msgspec.structs.replace(record.kernels[1], primal="")
    assert failures(msgspec.structs.replace(record, kernels=(primal, same)))
    worse = msgspec.structs.replace(error, kind="QuadrantsInternalError", stage="passes")
    for fault in (worse, msgspec.structs.replace(error, stage="launch")):
        broken = msgspec.structs.replace(failed, errors=(fault,))
        kernel = msgspec.structs.replace(gradient, backends=(broken,))
        broken_record = msgspec.structs.replace(record, kernels=(primal, kernel))
        assert failures(broken_record)
        assert errors_of(broken_record, gradients=False) == [fault]
        assert sign_of(kernel) == "error"
