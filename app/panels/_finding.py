"""A search over everything that a record holds: sources, IR after every pass, code, errors, log.

A line of IR usually survives many passes. It counts once for a kernel: at the run after which it
appears first, on the first backend that has it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, Record
from ..core.format import text_title
from ..core.lines import Line
from ..core.memo import by_identity
from ..core.state import names_of
from .code import in_order

__all__ = ["MOST", "Hit", "find", "hit_lines"]

MOST: Final = 1000
"""Hits that are listed."""


class Hit(NamedTuple):
    """A line that has the text.

    kernel: id, empty in the log. place: where in the kernel. changes: fields of the `Selection`
    that show it. row: its index in a list that the selection alone does not lead to; -1 for none.
    """

    kernel: str
    name: str
    place: str
    text: str
    changes: Mapping[str, Any]
    row: int = -1


@by_identity(4)
def find(record: Record, text: str) -> list[Hit]:
    """The lines with ``text``, case ignored, at most `MOST` and one more."""
    needle = text.lower()
    return list(islice(_hits(record, needle), MOST + 1)) if needle.strip() else []


def _hits(record: Record, needle: str) -> Iterator[Hit]:
    for file in record.files:
        kernels = [k for k in record.kernels if k.file == file.path]
        if kernels:
            yield from _source_hits(file.text, kernels, needle)
    for kernel in record.kernels:
        for error in (*kernel.errors, *(e for b in kernel.backends for e in b.errors)):
            if needle in error.message.lower():
                line = error.line if error.file == kernel.file else 0
                changes = {"tab": "source", "line": line or kernel.line}
                yield Hit(kernel.id, kernel.name, "error", error.message, changes)
        known: set[str] = set()
        for hits in (_ir_hits, _code_hits):
            for backend in kernel.backends:
                if backend.compile is not None:
                    yield from hits(kernel, backend, backend.compile, needle, known)
    for row, line in enumerate(record.log):
        if needle in line.text.lower():
            yield Hit("", "log", line.stream, line.text, {}, row)


def _source_hits(text: str, kernels: Sequence[KernelRecord], needle: str) -> Iterator[Hit]:
    """Lines of a file; those outside of all kernels count for the first one."""
    for number, line in enumerate(text.splitlines(), 1):
        if needle in line.lower():
            inside = (k for k in kernels if k.line <= number <= max(k.line, k.end_line))
            kernel = next(inside, kernels[0])
            changes = {"tab": "source", "line": number}
            yield Hit(kernel.id, kernel.name, f"line {number}", line.strip(), changes)


@by_identity(32)
def _first_runs(compiled: CompileRecord) -> dict[str, tuple[int, int]]:
    """For each text of a line of IR, the run after which it appears first (its place among the
    runs), and the op of the line."""
    out: dict[str, tuple[int, int]] = {}
    done: set[int] = set()
    for at, run in enumerate(compiled.runs):
        for number in (run.before, run.after) if not at else (run.after,):
            if number in done or not 0 <= number < len(compiled.snapshots):
                continue
            done.add(number)
            shot = compiled.snapshots[number]
            for line, op in zip(shot.lines, shot.ids, strict=True):
                text = line.strip()  # a pass that moves a line may indent it otherwise
                if text not in out:
                    out[text] = at, op
    return out


def _ir_hits(
    kernel: KernelRecord,
    backend: BackendRecord,
    compiled: CompileRecord,
    needle: str,
    known: set[str],
) -> Iterator[Hit]:
    names = names_of(compiled)
    for text, (at, op) in _first_runs(compiled).items():
        if needle in text.lower() and text not in known:
            known.add(text)
            run = compiled.runs[at]
            times = f" r{run.round}" if run.round else ""
            changes = {
                "backend": backend.backend, "tab": "passes", "run": names[at], "op": op,
                "whole": True, "readable": False,
            }  # fmt: skip
            place = f"{backend.backend} {run.stage} {run.name}{times}"
            yield Hit(kernel.id, kernel.name, place, text, changes)


def _code_hits(
    kernel: KernelRecord,
    backend: BackendRecord,
    compiled: CompileRecord,
    needle: str,
    known: set[str],
) -> Iterator[Hit]:
    for index, artefact in enumerate(in_order(compiled.artefacts)):
        if artefact.text in known:  # the same as for a backend before
            continue
        known.add(artefact.text)
        changes = {"backend": backend.backend, "tab": "code", "artefact": index}
        for row, text in enumerate(artefact.text.splitlines()):
            if needle in text.lower():
                place = f"{backend.backend} {text_title(artefact.name)} {row + 1}"
                yield Hit(kernel.id, kernel.name, place, text.strip(), changes, row)


@by_identity(4)
def hit_lines(record: Record, text: str) -> list[Line]:
    """A row a hit, keyed by its index."""
    found = find(record, text)
    shown = found[:MOST]
    name = min(24, max((len(h.name) for h in shown), default=0))
    place = min(34, max((len(h.place) for h in shown), default=0))
    out = [
        Line(
            (
                (f"{h.name[:name]:<{name}} ", "title"), (f"{h.place[:place]:<{place}} ", "dim"),
                (h.text.expandtabs(8), ""),
            ),
            i,
            h.text,
        )
        for i, h in enumerate(shown)
    ]  # fmt: skip
    if len(found) > MOST:
        out.append(Line(((f"There are more than {MOST:,}: type more of the text.", "warn"),)))
    return out
