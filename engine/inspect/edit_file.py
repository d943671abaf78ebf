"""Files of IR that a person edits: the listing after a pass, and what it was taken from.

::

    ; IR of qd-studio, to edit and run: qd-studio edit THIS_FILE
    ; kernel: nbody.py:accelerations
    ; file: /src/nbody.py
    ; backend: cpu
    ; after: ["simplify_III", 1, 0, "cfg_optimization", 0]
    ; taken from: 5f1c0de5b6f0a1b2
    kernel accelerations(x: ndarray<f32, 1>, ...) {
      <i32> $1 = const 1
      ...

Lines that begin with ``;`` are comments. ``after`` names a run of a pass, as `RunName` does; it is
empty for the IR before any pass. ``taken from`` is a digest of the listing before it was edited,
without regard to the numbers of ops: it shows whether the source has changed since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final, cast

import msgspec

from .compare import canonical_text
from .record import CompileRecord, PassRun, RunName, RunNames, Snapshot

__all__ = ["EditFileError", "IrEdit", "edit_text", "last_of_group", "listing_digest", "read_edit"]

_FIRST: Final = "; IR of qd-studio, to edit and run: qd-studio edit THIS_FILE"
_WORDS: Final = ("kernel", "file", "backend", "after", "taken from")


class EditFileError(ValueError):
    """A file that is no IR to edit; the text says why and what to do."""


class IrEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Edited IR. path: of the file. text: all of it. kernel: id. file: of the kernel's source.

    after: the run after which the IR is replaced; None for before any pass. digest: of the
    listing that was edited. force: also where the IR is another one now.
    """

    path: str
    text: str
    kernel: str
    file: str
    backend: str
    after: RunName | None
    digest: str
    force: bool = False


def listing_digest(lines: Iterable[str]) -> str:
    """A digest of a listing; the same for listings that differ in the numbers of ops at most."""
    return hashlib.sha256(canonical_text(lines).encode("utf-8", "replace")).hexdigest()[:16]


def last_of_group(runs: Sequence[PassRun], index: int) -> int:
    """The last of the runs of one pass over the tasks of a kernel; IR is replaced after all."""
    here = runs[index]
    if here.task is None:
        return index
    at = index
    for run in runs[index + 1 :]:
        same = (run.stage, run.round, run.name) == (here.stage, here.round, here.name)
        if not same or run.task is None or run.task <= (runs[at].task or 0):
            break
        at += 1
    return at


def edit_text(
    compiled: CompileRecord, index: int | None, kernel: str, file: str, backend: str
) -> str:
    """The text to edit: the IR after run ``index``, or before any pass if that is None."""
    name: RunName | None = None
    if index is None:
        shot = _first(compiled)
    else:
        index = last_of_group(compiled.runs, index)
        name = RunNames.of(compiled.runs)[index]
        shot = compiled.snapshots[compiled.runs[index].after]
    head = {
        "kernel": kernel, "file": file, "backend": backend,
        "after": json.dumps(name) if name is not None else "",
        "taken from": listing_digest(shot.lines),
    }  # fmt: skip
    lines = [_FIRST, *(f"; {word}: {head[word]}" for word in _WORDS), *shot.lines]
    return "\n".join(lines) + "\n"


def _first(compiled: CompileRecord) -> Snapshot:
    return compiled.snapshots[compiled.runs[0].before if compiled.runs else 0]


def read_edit(text: str, path: str, force: bool = False) -> IrEdit:
    """The edit that a file holds. Raises EditFileError."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith(";"):
            break
        word, colon, value = line[1:].strip().partition(": ")
        if colon or word.endswith(":"):
            found.setdefault(word.rstrip(":"), value.strip())
    missing = [word for word in _WORDS if word not in found]
    if missing:
        raise EditFileError(
            f"{path} has no line '; {missing[0]}: ...': make such a file with "
            "'qd-studio show FILE --panel ir --kernel K --form edit'"
        )
    if found["backend"] == "interp":
        raise EditFileError(
            f"{path}: the IR of the interpreter is launched on no backend: take that of another one"
        )
    after = _name(found["after"], path)
    return IrEdit(
        path=path, text=text, kernel=found["kernel"], file=found["file"],
        backend=found["backend"], after=after, digest=found["taken from"], force=force,
    )  # fmt: skip


def _name(text: str, path: str) -> RunName | None:
    if not text:
        return None
    try:
        value: object = json.loads(text)
        stage, round_, task, name, count = cast("list[object]", value)
    except (ValueError, TypeError):
        stage = round_ = task = name = count = None
    if (
        isinstance(stage, str) and isinstance(round_, int) and isinstance(name, str)
        and isinstance(count, int) and (task is None or isinstance(task, int))
    ):  # fmt: skip
        return stage, round_, task, name, count
    raise EditFileError(f"{path}: '; after: {text}' names no run of a pass")
