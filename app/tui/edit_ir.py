"""Edit the IR that is shown in the user's editor, and run it next to the unedited kernel."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from ...engine.inspect.edit_file import EditFileError, edit_text, read_edit
from ..core.state import backend_of, compiled_of, kernel_of, run_of
from .editor import NoEditorError, editor_command
from .free_path import free_path
from .screens.edited import EditedScreen

if TYPE_CHECKING:
    from ...engine.inspect.record import PassRun
    from .app import StudioApp

__all__ = ["edit_ir"]

_HEADER = 8
"""The line of the file at which the editor opens: the first op."""


async def edit_ir(app: StudioApp) -> None:
    """Edit the IR after the selected pass, or once more the file of the screen that is shown."""
    here = app.screen
    if isinstance(here, EditedScreen):
        path, before = Path(here.path), None
    else:
        made = _file_of(app)
        if made is None:
            return
        path, before = made
    try:
        command, _ = editor_command(os.environ, str(path), _HEADER)
        with app.batch_update(), app.suspend():  # nothing is drawn over the editor
            await app.run_in_front(command)
        text = path.read_text(encoding="utf-8")
    except (NoEditorError, SuspendNotSupported, OSError, UnicodeDecodeError) as error:
        app.notify(str(error), severity="error", timeout=5)
        return
    if text == before:
        path.unlink(missing_ok=True)
        app.notify("The IR was not edited.", timeout=3)
        return
    try:
        edit = read_edit(text, str(path))
    except EditFileError as error:
        app.notify(str(error), severity="error", timeout=8)
        return
    if isinstance(here, EditedScreen):
        here.start(edit)
    else:
        app.push_screen(EditedScreen(edit))


def _file_of(app: StudioApp) -> tuple[Path, str] | None:
    """The file with the IR after the selected pass, and its text; None, after a notice, if there is
    none."""
    kernel = kernel_of(app.record, app.sel)
    backend = backend_of(app.record, app.sel)
    compiled = compiled_of(app.record, app.sel)
    if kernel is None or backend is None or compiled is None or not compiled.snapshots:
        app.notify("There is no IR to edit: the kernel was not compiled.", timeout=3)
        return None
    if not os.path.exists(kernel.file):
        app.notify(f"{kernel.file} does not exist here: the IR could not be run.", timeout=5)
        return None
    if backend.backend == "interp":
        app.notify("The interpreter's IR is launched on no backend: select another one.", timeout=4)
        return None
    if kernel.primal:
        app.notify("The IR of a gradient cannot be run apart from its kernel.", timeout=4)
        return None
    run = run_of(compiled, app.sel) if app.sel.run is not None else None
    text = edit_text(compiled, _index(compiled.runs, run), kernel.id, kernel.file, backend.backend)
    name = f"{kernel.name}-{run.name if run is not None else compiled.runs[-1].name}"
    path = free_path(re.sub(r"[^\w.-]+", "_", name), ".qdir")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        app.notify(f"cannot write {path}: {error.strerror}", severity="error", timeout=5)
        return None
    return path, text


def _index(runs: tuple[PassRun, ...], run: PassRun | None) -> int | None:
    if not runs:
        return None
    return len(runs) - 1 if run is None else next(i for i, r in enumerate(runs) if r is run)
