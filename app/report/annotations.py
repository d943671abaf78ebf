"""Failures at their source lines: workflow commands of GitHub Actions, and SARIF.

An annotation is a failure of JUnit XML (`junit`), which is what makes ``qd-studio --report`` exit
with 1, or a warning: a rule about a time that could not be judged. What several backends say alike
is one annotation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...engine.inspect.record import Record
from ..core.rules import Finding
from ..core.visible import visible, visible_line
from .junit import Case, suites

__all__ = ["Annotation", "commands", "located", "sarif"]

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Annotation(NamedTuple):
    """level: error or warning. file: relative to the checkout, with slashes; empty if unknown.
    line: 0 if unknown. rule: the rule, or the class of the error."""

    level: str
    file: str
    line: int
    title: str
    message: str
    rule: str


def located(record: Record, findings: Sequence[Finding] = ()) -> list[Annotation]:
    """All annotations, in the order of the report: errors, then warnings."""
    groups: dict[tuple[str, int, str, str, str], list[Case]] = {}
    for case in (case for cases in suites(record, findings).values() for case in cases):
        level = _level(case)
        if level:
            key = level, case.line, case.file, case.text or case.message, case.of
            groups.setdefault(key, []).append(case)
    found = [
        Annotation(level, _in_checkout(file), line, _title(cases), text, _rule(cases[0]))
        for (level, line, file, text, _), cases in groups.items()
    ]
    return sorted(found, key=lambda a: a.level)


def _level(case: Case) -> str:
    if case.state in ("failure", "error"):
        return "error"
    return "warning" if case.kind == "not judged" else ""


def _title(cases: Sequence[Case]) -> str:
    """Of errors such as ``k.py:step: cpu, cuda: QuadrantsTypeError``."""
    first = cases[0]
    names = ", ".join(dict.fromkeys(case.name for case in cases))
    kind = f": {first.kind}" if first.state == "error" else ""
    return f"{os.path.basename(first.of)}: {names}{kind}"


def _rule(case: Case) -> str:
    return case.name if case.name.startswith("rule ") else case.kind


def _in_checkout(file: str) -> str:
    """The path from the root of the checkout, as GitHub needs it; outside of it the whole path."""
    if not file:
        return ""
    root = os.path.realpath(os.environ.get("GITHUB_WORKSPACE") or os.getcwd())
    path = os.path.realpath(file)
    inside = path.startswith(os.path.join(root, ""))
    return (os.path.relpath(path, root) if inside else path).replace(os.sep, "/")


def commands(record: Record, findings: Sequence[Finding] = ()) -> str:
    """A workflow command of GitHub Actions in each line."""
    lines: list[str] = []
    for found in located(record, findings):
        place = {"file": found.file, "line": str(found.line or "")}
        properties = {**(place if found.file else {}), "title": found.title}
        given = ",".join(f"{name}={_property(v)}" for name, v in properties.items() if v)
        lines.append(f"::{found.level} {given}::{_data(found.message)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible_line(text)).replace(":", "%3A").replace(",", "%2C")


def sarif(record: Record, findings: Sequence[Finding] = ()) -> str:
    """SARIF 2.1.0, for code scanning and editors."""
    from urllib.parse import quote

    import msgspec

    found = located(record, findings)
    results: list[dict[str, Any]] = []
    for one in found:
        text = visible(f"{one.title}\n{one.message}")
        result: dict[str, Any] = {"ruleId": one.rule, "level": one.level, "message": {"text": text}}
        if one.file:
            scheme = "file://" if os.path.isabs(one.file) else ""
            place: dict[str, Any] = {"artifactLocation": {"uri": scheme + quote(one.file)}}
            if one.line:
                place["region"] = {"startLine": one.line}
            result["locations"] = [{"physicalLocation": place}]
        results.append(result)
    rules = [{"id": name} for name in dict.fromkeys(one.rule for one in found)]
    driver = {"name": "qd-studio", "version": record.tool.version, "rules": rules}
    log = {"$schema": _SCHEMA, "version": "2.1.0",
           "runs": [{"tool": {"driver": driver}, "results": results}]}  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(log)).decode() + "\n"
