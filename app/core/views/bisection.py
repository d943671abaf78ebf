"""The result of a bisection as lines: for ``qd-studio bisect`` and for its screen."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ....engine.inspect.record_bisection import Bisection, ChangedOp, Commit
from ..format import counted
from ..lines import Line, Span, ir_spans, wrapped
from .source_lines import source_at

__all__ = ["bisection_lines"]

_EVIDENCE = {
    "ir": "the interpreter runs the IR before it right, and after it wrong",
    "race": "after it, iterations of a parallel loop compete; before it they do not",
    "exposed": "all IR is right; without this run and those after it, so is the code",
    "code": "all IR is right, and the code is wrong even without optional passes",
    "differences": "the gradient after it is not what differences of the kernel say",
    "metric": "",
}


def bisection_lines(
    found: Bisection, texts: Mapping[str, str] | None = None, width: int = 0
) -> Iterator[Line]:
    """The culprit, what it did, and how that is known.

    texts: of source files, by path. width: sentences are broken to fit it; 0: they are not.
    """
    name = found.kernel + (f" on {found.backend}" if found.backend else "")
    style = {"found": "bad", "agrees": "ok"}.get(found.state, "warn")
    wrong = f"worse in {found.metric}" if found.metric else "wrong"
    wrong = "other results" if found.evidence == "results" else wrong
    none = f"not worse in {found.metric}" if found.metric else "nothing is wrong"
    word = {"found": f"{wrong} because of ", "agrees": none, "unknown": "unknown"}
    head: list[Span] = [(f"{name}: ", "title"), (word[found.state], style)]
    if found.state == "found":
        head.append((found.title(), style))
    yield Line(tuple(head))
    facts = [
        ("figures", f"{found.good} -> {found.bad}" if found.good and found.bad else ""),
        ("sides", " | ".join(found.sides)),
        ("what matters", ", ".join(found.settings)),
        *_commit(found.commit),
        ("reason", found.reason),
        ("evidence", _EVIDENCE.get(found.evidence, "") if found.part == "pass" else ""),
        ("after it", found.difference),
        ("on the backend", found.observed if found.observed != found.difference else ""),
        ("with", found.workload),
    ]
    for label, text in facts:
        if text:
            line = Line(((f"  {label:<15}", "dim"), (text, "")))
            yield from wrapped(line, width) if width else (line,)
    for change in found.changes:
        yield from _change(change, texts or {})
    if found.more:
        yield Line(((f"  and {found.more} more changes of the same run", "dim"),))
    if found.state != "unknown":
        took = counted(found.trials, "run" if found.states else "trial")
        took += f" over {counted(found.states, 'state')} of the IR" if found.states else ""
        if found.seconds:
            took += f", {found.seconds:.1f} s"
        yield Line(((f"  {took}", "dim"),))


def _commit(commit: Commit | None) -> list[tuple[str, str]]:
    if commit is None:
        return []
    return [
        ("author", f"{commit.author}, {commit.date}"),
        ("files", ", ".join(commit.files)),
        ("or one of", "; ".join(commit.left)),
    ]


def _change(change: ChangedOp, texts: Mapping[str, str]) -> Iterator[Line]:
    if change.line:
        where = f"{os.path.basename(change.file)}:{change.line}"
        source = source_at(texts, change.file, change.line).strip()
        yield Line(((f"  {where}  ", "accent"), (source, "")), line=change.line)
    if change.op < 0 and change.before[:1].isdigit():
        yield Line((("    ", ""), (f"{change.before} -> {change.after}", "")))
        return
    if change.before == change.after:
        yield Line((("    > ", "move"), *ir_spans(change.before), ("  moved", "dim")), row="move")
        return
    for mark, text, row in (("-", change.before, "del"), ("+", change.after, "add")):
        if text:
            yield Line(((f"    {mark} ", row), *ir_spans(text)), copy=text, row=row)
