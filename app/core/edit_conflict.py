"""The other side of a conflict: the IR as it is now, where the source of edited IR has changed."""

from __future__ import annotations

import os
from typing import Final

from ...engine.inspect.edit_file import IrEdit, edit_text
from ...engine.inspect.record import KernelRecord
from .state import names_of
from .views.edited import UNEDITED

__all__ = ["newer_path", "newer_text"]

_SUFFIX: Final = ".qdir"


def newer_path(path: str) -> str:
    """A free path next to an edited file, for the IR as it is now."""
    stem = path.removesuffix(_SUFFIX)
    number = 1
    while os.path.exists(found := f"{stem}.now{number if number > 1 else ''}{_SUFFIX}"):
        number += 1
    return found


def newer_text(kernel: KernelRecord, edit: IrEdit) -> str | None:
    """The IR at the point of an edit as it is now; None if the compile does not come there."""
    backend = kernel.backend(edit.backend + UNEDITED)
    compiled = backend.compile if backend is not None else None
    if compiled is None or not compiled.snapshots:
        return None
    at = None
    if edit.after is not None:
        names = names_of(compiled)
        if edit.after not in names:
            return None
        at = names.index(edit.after)
    return edit_text(compiled, at, kernel.id, kernel.file, edit.backend)
