"""The report as JUnit XML, which CI systems show as test results.

A suite a file: a case for each kernel on each backend, and a case for each rule and kernel. What
makes ``qd-studio --report`` exit with 1 is a failure here, and nothing else is; absent backends,
and rules that say nothing of a kernel, are skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from ...engine.inspect.compare import Comparison
from ...engine.inspect.record import BackendRecord, KernelRecord, Record
from ..core import format as fmt
from ..core.failing import Failing, failing
from ..core.lines import plain
from ..core.rules import FAILING, Finding
from ..core.visible import visible, visible_line

__all__ = ["Case", "render", "suites"]

_NOT_IN_XML: Final = re.compile("[\ufffe\uffff]")


class Case(NamedTuple):
    """A test. state: passed, failure, error or skipped. kind: of an error its class, of a rule its
    state."""

    of: str
    name: str
    file: str
    line: int
    seconds: float = 0.0
    state: str = "passed"
    message: str = ""
    text: str = ""
    kind: str = ""


def render(
    record: Record, findings: Sequence[Finding] = (), comparison: Comparison | None = None
) -> str:
    """The whole document."""
    found = suites(record, findings)
    body = [line for name, cases in found.items() for line in _suite(name, cases, record)]
    counts = Counter(case.state for cases in found.values() for case in cases)
    extra: list[str] = []
    if comparison is not None:
        from ..core.views.compared import comparison_lines

        text = plain(comparison_lines(comparison))
        extra = ["<testsuite name=\"baseline\" tests=\"0\">",
                 f"<system-out>{_text(text)}</system-out>", "</testsuite>"]  # fmt: skip
    head = f'<testsuites name="qd-studio" {_counted(counts)}>'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head, *body, *extra, "</testsuites>"]
    return "\n".join(lines) + "\n"


def suites(record: Record, findings: Sequence[Finding] = ()) -> dict[str, list[Case]]:
    """The cases of each file; those of no file have the name ""."""
    failed = failing(record)
    suites: dict[str, list[Case]] = {}
    outside = [f for f in failed if not f.kernel]
    for found in outside:
        file = found.error.file if found.error is not None else ""
        suites.setdefault(file, []).append(_failed(Case(file, "import", file, 0), [found]))
    files = {k.id: k.file for k in record.kernels}
    for kernel in record.kernels:
        suites.setdefault(kernel.file, []).extend(_kernel(kernel, failed))
    for finding in findings:
        suites.setdefault(files.get(finding.kernel, ""), []).append(_rule(record, finding))
    return suites


def _counted(counts: Counter[str]) -> str:
    return (
        f'tests="{sum(counts.values())}" failures="{counts["failure"]}" '
        f'errors="{counts["error"]}" skipped="{counts["skipped"]}"'
    )


def _attribute(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("\ufffd", visible_line(text)))


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", visible(text)))


def _suite(name: str, cases: Sequence[Case], record: Record) -> Iterable[str]:
    counts = Counter(case.state for case in cases)
    seconds = sum(case.seconds for case in cases)
    yield (
        f"<testsuite name={_attribute(name or 'rules')} {_counted(counts)} "
        f'time="{seconds:.6f}" timestamp={_attribute(record.created[:19])}>'
    )
    for case in cases:
        yield from _case(case)
    yield "</testsuite>"


def _case(case: Case) -> Iterable[str]:
    place = f" file={_attribute(case.file)}" if case.file else ""
    place += f' line="{case.line}"' if case.line else ""
    head = (
        f"<testcase classname={_attribute(case.of)} name={_attribute(case.name)}{place} "
        f'time="{case.seconds:.6f}"'
    )
    if case.state == "passed" and not case.text:
        yield f"{head}/>"
        return
    yield f"{head}>"
    text = _text(case.text)
    if case.state == "passed":
        yield f"<system-out>{text}</system-out>"
    else:
        kind = f" type={_attribute(case.kind)}" if case.kind and case.state != "skipped" else ""
        yield f"<{case.state} message={_attribute(case.message)}{kind}>{text}</{case.state}>"
    yield "</testcase>"


def _kernel(kernel: KernelRecord, failed: Sequence[Failing]) -> Iterable[Case]:
    own = [f for f in failed if f.kernel == kernel.id]
    whole = Case(kernel.id, "kernel", kernel.file, kernel.line)
    early = [f for f in own if not f.backend]
    if early or not kernel.backends:
        yield _failed(whole, early) if early else whole
    for backend in kernel.backends:
        yield _backend(kernel, backend, [f for f in own if f.backend == backend.backend])


def _backend(kernel: KernelRecord, backend: BackendRecord, failed: Sequence[Failing]) -> Case:
    seconds = backend.compile.cold_ms / 1e3 if backend.compile is not None else 0.0
    case = Case(kernel.id, backend.backend, kernel.file, kernel.line, seconds)
    if failed:
        return _failed(case, failed)
    if backend.status != "ok":
        reason = fmt.first_line(fmt.backend_reason(kernel, backend)) or backend.status
        return case._replace(state="skipped", message=reason)
    facts = [f"launch {fmt.launch_time(x)} ({x.workload})" for x in backend.launches]
    if backend.agreement is not None and backend.backend != "interp":
        facts.append(f"agreement: {fmt.agreement(backend.agreement)}")
    if backend.unlaunched:
        facts.append(f"compiled, not launched: {backend.unlaunched}")
    return case._replace(text="\n".join(facts))


def _failed(case: Case, failed: Sequence[Failing]) -> Case:
    first = failed[0]
    texts = [fmt.error_text(f.error) if f.error is not None else f.text for f in failed]
    raising = (f.error for f in failed if f.error is not None)
    file, line = next(((e.file, e.line) for e in raising if e.line), (case.file, case.line))
    raised = first.error is not None
    return case._replace(
        state="error" if raised else "failure", message=first.text, file=file, line=line,
        kind=first.error.kind if first.error is not None else "check",
        text="\n".join(dict.fromkeys(texts)),
    )  # fmt: skip


def _rule(record: Record, found: Finding) -> Case:
    kernel = next((k for k in record.kernels if k.id == found.kernel), None)
    own = (kernel.file, kernel.line) if kernel is not None else ("", 0)
    file, line = next(((p.file, p.line) for p in found.places if p.line), own)
    case = Case(found.kernel or "rules", f"rule {found.rule}", file, line)
    if found.state in FAILING:
        return case._replace(
            state="failure", message=found.message, kind=found.state, text=found.text()
        )
    if found.state != "passed":
        message = f"{found.state}: {found.message}"
        return case._replace(state="skipped", message=message, kind=found.state)
    return case._replace(text=found.message)
