"""``qd-studio --report``: measure, judge, write, and say what failed."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from . import farming, streams
from . import options as options_of
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_NOT_JUDGED, EXIT_USAGE, Failure

if TYPE_CHECKING:
    from ..engine.inspect.compare import Comparison
    from ..engine.inspect.record import Record
    from .core.rules import Finding

__all__ = ["FORMATS", "report"]

FORMATS: Final = {
    "md": ".md", "html": ".html", "json": ".json", "junit": ".xml", "sarif": ".sarif",
    "annotations": ".annotations",
}  # fmt: skip
"""The suffixes of the formats, by the word for ``--format``."""
STDOUT: Final = "-"


def report(options: argparse.Namespace, words: Sequence[str], settings: dict[str, Any]) -> int:
    """Write the report and return the exit code. settings: `options.settings`."""
    from .batch import PyprojectError, rules_for
    from .core.failing import failures
    from .core.rules import FAILING, RuleError, evaluate, parse_rule

    places = _places(options)
    baseline = options_of.saved(options.baseline) if options.baseline else None
    try:
        rules = [*rules_for(options.files), *options.fail_on]
        rules += [f"require {rule}" for rule in options.require]
        for rule in rules:
            if parse_rule(rule).relative and baseline is None:
                raise RuleError(f"rule {rule!r} compares with a baseline; give --baseline FILE")
    except (PyprojectError, RuleError) as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    settings["check"] = any(parse_rule(rule).metric.startswith("check.") for rule in rules)
    spec = farming.spec_of(options)
    if spec is None:
        record = options_of.measured(options.files, list(words), settings)
    else:
        record = farming.measured(options.files, list(words), settings, spec)
    try:
        findings = evaluate(record, rules, baseline, options_of.asked(options))
    except RuleError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    comparison = None
    if baseline is not None:
        from ..engine.inspect.compare import compare_records

        comparison = compare_records(baseline, record)
    _write(places, record, findings, comparison)
    failed = [[line] for line in failures(record)]
    failed += [f.text().splitlines() for f in findings if f.state in FAILING]
    for first, *rest in failed:
        streams.talk_line(f"FAILED {first}")
        for line in rest:
            streams.talk_line(line)
    for f in findings:
        if f.state in ("skipped", "not judged"):
            streams.talk_line(f"{f.state} {f.text()}")
    if failed:
        return EXIT_FAILED
    unjudged = any(f.state == "not judged" for f in findings)
    return EXIT_NOT_JUDGED if unjudged else options_of.nothing_ran(record)


def _places(options: argparse.Namespace) -> list[tuple[str, str]]:
    """(path, suffix of the format) of everything to write."""
    wanted = FORMATS.get(options.format or "", "")
    out: list[tuple[str, str]] = []
    for path in options.out or [STDOUT]:
        if path == STDOUT:
            out.append((path, wanted or ".md"))
            continue
        suffix = os.path.splitext(path)[1]
        if suffix not in FORMATS.values():
            suffix = wanted
        if not suffix:
            known = ", ".join(FORMATS.values())
            raise Failure(
                EXIT_USAGE, f"--out {path}: the suffix must be one of {known}; or give --format"
            )
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise Failure(EXIT_ENVIRONMENT, f"--out {path}: there is no such folder")
        out.append((path, suffix))
    if sum(path == STDOUT for path, _ in out) > 1:
        raise Failure(EXIT_USAGE, "--out -: standard output holds one report; give - once")
    return out


def _write(
    places: Sequence[tuple[str, str]],
    record: Record,
    findings: Sequence[Finding],
    comparison: Comparison | None,
) -> None:
    from .report import render, write

    for path, suffix in places:
        if path == STDOUT:
            streams.write(render(record, suffix, findings, comparison), suffix == ".json")
            continue
        try:
            write(record, path, findings, comparison, suffix)
        except OSError as error:
            raise Failure(EXIT_ENVIRONMENT, f"cannot write {path}: {error.strerror}") from None
        streams.talk(f"wrote {path}")
