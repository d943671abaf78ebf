"""Generated code in a form for people: LLVM IR, PTX and x86-64 assembly.

    found = readable_code(compiled, artefact, files)
    print("\\n".join(found.lines))

Nothing in it is guessed. A name of the user's is written where the text of the code, its debug
locations and the record show that the value is that; everything else keeps its raw name. Every line
of the raw text is in one line of the readable form, in the same order: on its own, or in a fold
of lines that say nothing about the kernel (attributes, metadata, directives, saved registers, loads
of arguments). The form of other languages is their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..record import Artefact, CompileRecord, FileRecord
from .common import ReadableCode, Row, facts_of

__all__ = ["LANGUAGES", "ReadableCode", "readable_code"]

LANGUAGES: Final = ("llvm", "ptx", "asm")
"""Languages of texts that have a readable form."""


def readable_code(
    compiled: CompileRecord, artefact: Artefact, files: Iterable[FileRecord] = (), *,
    whole: bool = False,
) -> ReadableCode:  # fmt: skip
    """A text of ``compiled`` in the form for people. whole: fold nothing."""
    lines = artefact.text.splitlines()
    rows = [Row(line) for line in lines]
    if artefact.language in LANGUAGES:
        rows = _rows(compiled, artefact, tuple(files))
    return _folded(lines, rows, whole)


def _rows(compiled: CompileRecord, artefact: Artefact, files: tuple[FileRecord, ...]) -> list[Row]:
    facts = facts_of(compiled, artefact, files)
    others = {x.name: x for x in compiled.artefacts}
    source = others.get("llvm_ir")
    if artefact.language == "llvm":
        from .llvm import rows

        if source is None or source is artefact or artefact.name == "llvm_ir":
            return rows(facts, artefact, None, None)
        return rows(facts, artefact, source, facts._replace(ops=source.ops))
    if artefact.language == "ptx":
        from .ptx import rows as of_ptx

        return of_ptx(facts, artefact, source)
    from .x86 import rows as of_x86

    return of_x86(facts, artefact, source)


def _folded(lines: list[str], rows: list[Row], whole: bool) -> ReadableCode:
    """Runs of noise as one line each; a single line of noise belongs to the line after it."""
    found: list[tuple[str, int, int, str, str]] = []
    i = 0
    while i < len(rows):
        end = _end_of_noise(lines, rows, i) if not whole else i
        if end > i + 1 or (end > i and (end == len(rows) or not lines[end].strip())):
            kinds = dict.fromkeys([row.noise for row in rows[i:end] if row.noise])
            count = f"{end - i} line{'s' * (end > i + 1)}"
            text = f"  ⋯ {count}: {', '.join(kinds)}"
            found.append((text, i, end, "", "\n".join(lines[i:end])))
            i = end
        else:
            found.append((rows[end].text, end, end + 1, rows[end].type, ""))
            i = end + 1
    return ReadableCode(*zip(*found, strict=True)) if found else ReadableCode((), (), (), (), ())


def _end_of_noise(lines: list[str], rows: list[Row], start: int) -> int:
    """The line after a run of noise; blank lines in it belong to it."""
    end = k = start
    while k < len(rows) and (rows[k].noise or (k > start and not lines[k].strip())):
        k += 1
        if rows[k - 1].noise:
            end = k
    return end
