"""The effect of the last save: the newest finished look against the one before it. Pure.

A kernel that a save broke keeps its last good result, and the next save is compared with that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from ...engine.inspect.compare import KernelComparison, compare_records
from ...engine.inspect.record import FileRecord, KernelRecord, Record
from .lines import Line
from .memo import by_identity
from .pending import faded, kernel_state
from .views.compared import compiles_of, kernel_lines, parted_lines, summary

__all__ = ["Edits", "changes", "edit_lines", "looked", "with_edits"]

_SPLIT: Final = 160
"""Columns from which on the diff has two columns."""


@dataclass(frozen=True, slots=True)
class Edits:
    """before, now: records with the last good result of each kernel; None if there is none yet.

    broken: kernels for which the newest look has no result.
    """

    before: Record | None = None
    now: Record | None = None
    broken: frozenset[str] = frozenset()


def looked(edits: Edits, record: Record, again: bool = False) -> Edits:
    """A look is over: ``record`` is compared with the one before. again: the same look, with times
    of more launches."""
    past = edits.now
    good = {k.id: k for k in past.kernels} if past is not None else {}
    broken = frozenset([k.id for k in record.kernels if k.stale])
    kernels = [good.get(k.id) if k.stale else k for k in record.kernels]
    options = {f.path: f.config for f in past.files} if past is not None else {}
    files = [_with_options(f, options.get(f.path, ())) for f in record.files]
    now = replace(
        record,
        kernels=tuple([k for k in kernels if k is not None]),
        files=tuple(files),
        config=record.config or (past.config if past is not None else ()),
        errors=(),
    )
    return Edits(edits.before if again else past, now, broken)


def _with_options(file: FileRecord, options: tuple[object, ...]) -> FileRecord:
    """The file with the options of before, if this look did not get as far as to know them."""
    return file if file.config or not options else replace(file, config=options)


@by_identity(4)
def changes(before: Record, now: Record) -> dict[str, KernelComparison]:
    """The comparison of each kernel, by its id; those that were removed have that of before."""
    return {k.after or k.before: k for k in compare_records(before, now).kernels}


def with_edits(
    rows: Sequence[Line], edits: Edits, shown: Record, found: dict[str, KernelComparison]
) -> list[Line]:
    """The rows of a matrix, each with a line below it that states what the last save did."""
    out: list[Line] = []
    kernels = {k.id: k for k in shown.kernels}
    for row in rows:
        out.append(row)
        kernel = kernels.get(row.key) if isinstance(row.key, str) else None
        if kernel is not None and kernel.id in found and kernel.id not in edits.broken:
            line = Line((("     ", ""), *summary(found[kernel.id])), ("edit", kernel.id))
            out += faded([line], kernel_state(kernel))
    gone = [k.name for k in found.values() if k.change == "removed"]
    if gone:
        out.append(Line(((f"   removed: {', '.join(gone)}", "warn"),)))
    return out


@by_identity(8)
def edit_lines(
    before: Record, now: Record, kernel: str, backend: str, width: int, readable: bool = False
) -> Sequence[Line]:
    """The whole effect of a save on a kernel: what differs, and the diff where the IR parts.

    backend: whose diff; if it does not part there, that of the first on which it does. width: of
    the screen. readable: the IR is in that form.
    """
    found = changes(before, now).get(kernel)
    if found is None:
        return [Line((("There is no earlier result to compare with.", "dim"),))]
    out = list(kernel_lines(found))
    pair = _of(before, found.before), _of(now, found.after)
    parting = [b for b in found.backends if b.parting >= 0]
    parting.sort(key=lambda b: b.after != backend)
    if parting and pair[0] is not None and pair[1] is not None:
        compiles = compiles_of(parting[0], pair[0], pair[1])
        if compiles is not None:
            where = parting[0].passes[parting[0].parting].title()
            title = f"{parting[0].after}: the IR after {where}, before and after the save"
            column = (width - 8) // 2 if width >= _SPLIT else 0
            out += [Line(()), Line(((title, "head"),))]
            files = (before.files, now.files) if readable else None
            out += parted_lines(parting[0], *compiles, column, files=files)
    return out


def _of(record: Record, id: str) -> KernelRecord | None:
    return next((k for k in record.kernels if k.id == id), None)
