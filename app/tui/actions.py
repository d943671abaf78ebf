"""The actions of the app that are available on any screen; `commands` has the keys."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.app import SuspendNotSupported

from ..core.state import backend_of, kernel_of
from ..core.views.errors import errors_of
from ..core.visible import visible_line
from .free_path import free_path
from .screens.base import StudioScreen
from .styles import COUNTERPARTS, SUCCESSORS
from .widgets.lines import LineView

if TYPE_CHECKING:
    from ...engine.inspect.record import Record
    from .app import StudioApp

__all__ = ["Actions", "export_name"]

Value = str | int | float | bool
# Rich refers to fonts on a server; a picture of someone's code should ask no server for anything.
_FONTS = re.compile(r"\s*@font-face\s*\{[^}]*\}")
_NO_WORKER = "This is a saved session: nothing can be compiled here."


class Actions:
    """Mixed into `StudioApp`."""

    @property
    def _app(self) -> StudioApp:
        return cast("StudioApp", self)

    @property
    def _view(self) -> LineView | None:
        screen = self._app.screen
        return screen.view if isinstance(screen, StudioScreen) else None

    def _thread(self, work: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=partial(work, *args), name="studio-action", daemon=True).start()

    def _say(self, text: str, severity: Any = "information") -> None:
        """A toast, from any thread."""
        self._app.call_from_thread(
            self._app.notify, text, severity=severity, timeout=5, markup=False
        )

    # --- where -----------------------------------------------------------------------------

    def action_leave(self) -> None:
        """One level out: of the search, of its marks, within the screen, of the screen; at the top,
        of what the worker does."""
        screen = self._app.screen
        if isinstance(screen, StudioScreen) and (
            screen.close_search() or screen.clear_search() or screen.back()
        ):
            return
        if len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        elif self._app.busy:
            self.action_cancel()

    def action_tour_next(self) -> None:
        from .tour import Tour

        app = self._app
        if app.tour is None or not app.tour.text(app.key_name):
            app.tour = Tour()
        else:
            app.tour.next(app.where)
        app.tour_moved()

    def action_tour_end(self) -> None:
        if self._app.tour is not None:
            self._app.tour.end()
            self._app.tour_moved()

    def _open_list(self, kind: str) -> None:
        from .screens import lists, options

        cls = {"help": lists.HelpScreen, "log": lists.LogScreen, "config": options.OptionsScreen}
        cls = cls[kind]
        if not isinstance(self._app.screen, cls):
            self._app.push_screen(cls())

    def action_help(self) -> None:
        self._open_list("help")

    def action_log(self) -> None:
        self._open_list("log")

    def action_config(self) -> None:
        self._open_list("config")

    # --- search and copy -------------------------------------------------------------------

    def action_find(self) -> None:
        from .screens.finding import FindScreen

        screen = self._app.screen
        if isinstance(screen, FindScreen):
            screen.ask()
        else:
            self._app.push_screen(FindScreen())

    def action_jump(self) -> None:
        from .labels import Labels

        screen = self._app.screen
        if isinstance(screen, StudioScreen):
            self._app.labels = Labels(list(screen.query(LineView)))

    def action_search(self) -> None:
        if isinstance(self._app.screen, StudioScreen):
            self._app.screen.open_search()

    def action_search_step(self, step: int) -> None:
        view = self._view
        if view is None:
            return
        if not view.needle:
            self._app.notify(f"{self._app.key_name('search')} starts a search", timeout=2)
        elif not view.search(view.needle, step):
            self._app.notify(f"{view.needle!r} is not here", timeout=2, markup=False)

    def action_copy_line(self) -> None:
        view = self._view
        if view is not None:
            self._thread(self._copy, view.copied(), "line")

    def action_copy_all(self) -> None:
        view = self._view
        if view is not None:
            self._thread(self._copy_all, view.lines)

    def _copy_all(self, lines: Any) -> None:
        from ..core.lines import copy_text

        self._copy(copy_text(lines), f"{len(lines):,} lines")

    def _copy(self, text: str, what: str) -> None:
        from .clipboard import copy

        self._say(f"{what} {copy(text, self._to_terminal)}")

    def _to_terminal(self, sequence: str) -> None:
        driver = self._app._driver  # pyright: ignore[reportPrivateUsage]
        if driver is not None:
            self._app.call_from_thread(driver.write, sequence)

    # --- files -----------------------------------------------------------------------------

    def action_save_session(self) -> None:
        self._thread(self._save, self._app.record, self._stem())

    def _stem(self) -> str:
        return Path(self._app.files[0]).stem if self._app.files else "session"

    def _save(self, record: Record, name: str) -> None:
        from ...engine.inspect.store import save

        path = free_path(name, ".qds")
        try:
            save(record, path)
        except OSError as error:
            self._say(f"cannot write {path}: {error.strerror}", "error")
            return
        self._say(f"saved {path.resolve()}; `qd-studio open {path}` shows it")

    def action_write_screenshot(self) -> None:
        app = self._app
        title = " ".join(("qd-studio", *(Path(file).name for file in app.files)))
        text = _FONTS.sub("", app.export_screenshot(title=visible_line(title)))
        path = free_path(export_name(app.sel.kernel, self._stem(), "screen"), ".svg")
        self._thread(self._write_screenshot, path, text)

    def _write_screenshot(self, path: Path, text: str) -> None:
        try:
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            self._say(f"cannot write {path}: {error.strerror}", "error")
            return
        self._say(f"wrote {path.resolve()}")

    async def action_edit(self) -> None:
        """Suspend the screen, run the editor at the line, and come back."""
        from .editor import NoEditorError, editor_command

        app, (path, line) = self._app, self._source_line()
        if not path or path.endswith(".ipynb"):
            what = "A notebook has no lines for an editor." if path else "No source line is here."
            app.notify(what, timeout=3)
            return
        if not os.path.exists(path):
            app.notify(f"{path} does not exist here.", severity="error", timeout=5)
            return
        try:
            command, known = editor_command(os.environ, path, line)
            with app.batch_update(), app.suspend():  # nothing is drawn over the editor
                status = await app.run_in_front(command)
        except (NoEditorError, SuspendNotSupported, OSError) as error:
            app.notify(str(error), severity="error", timeout=5)
            return
        if status:
            app.notify(f"{command[0]} ended with status {status}", severity="warning", timeout=5)
        elif not known:
            app.notify(f"{command[0]} is not known: opened without the line {line}.", timeout=5)

    async def action_edit_ir(self) -> None:
        """Edit the IR after the selected pass, and run it."""
        from .edit_ir import edit_ir

        await edit_ir(self._app)

    def _source_line(self) -> tuple[str, int]:
        """The file and line of what is under the cursor; an empty path if there is none."""
        app, view = self._app, self._view
        line = view.current if view is not None else None
        shown = line.line if line is not None else 0
        kernel = kernel_of(app.record, app.sel)
        inside = len(app.screen_stack) > 1
        if view is not None and view.id == "errors" and line is not None and shown:
            errors = errors_of(app.record, kernel if inside else None, gradients=inside)
            return errors[cast("tuple[str, int]", line.key)[1]].file, shown
        if kernel is None:
            return (app.files[0], 1) if app.files and app.record.files else ("", 0)
        return kernel.file, shown or (app.sel.line if inside else 0) or kernel.line

    def action_export(self) -> None:
        view = self._view
        if view is not None:
            sel = self._app.sel
            name = export_name(sel.kernel, self._stem(), str(view.id))
            self._thread(self._export, view.lines, name, view.files())

    def _export(self, lines: Any, name: str, files: Mapping[str, Callable[[], str]]) -> None:
        from ..core.lines import plain

        texts: dict[str, Callable[[], str]] = {".txt": lambda: plain(lines), **files}
        written: list[str] = []
        for suffix, make in texts.items():
            path = free_path(name, suffix)
            try:
                path.write_text(make(), encoding="utf-8", errors="replace")
            except OSError as error:
                self._say(f"cannot write {path}: {error.strerror}", "error")
                return
            written.append(path.name)
        self._say(f"wrote {', '.join(written)} in {Path.cwd()}")

    # --- the worker ------------------------------------------------------------------------

    def _client(self) -> Any:
        """The worker client; None, after a notice with the reason, where there is none."""
        link = self._app.link
        if link is None:
            self._app.notify(_NO_WORKER, severity="warning")
        elif link.client is None:
            self._app.notify("The worker is still starting.", timeout=2)
        return link.client if link is not None else None

    def action_recompile(self) -> None:
        client = self._client()
        if client is not None:
            client.request_refresh()
            self._app.notify("Compiling again.", timeout=2)

    def action_backends(self) -> None:
        client = self._client()
        if client is not None:
            from ...engine import inspect

            app = self._app
            app.every_backend = not app.every_backend
            chosen = inspect.every_backend() if app.every_backend else app.backends
            client.set_backends(chosen)
            names = ", ".join(chosen) or "the backends that can launch here"
            self._app.notify(f"Compiling for {names}.", timeout=3, markup=False)

    def try_assumptions(self, names: tuple[str, ...]) -> None:
        """Measure what each assumption would gain for the selected kernel and backend."""
        client = self._client()
        if client is None:
            return
        app = self._app
        backend = backend_of(app.record, app.sel)
        if not names or backend is None:
            app.notify("Nothing that could be assumed would help here; qd-studio whatif tries "
                       "any compile option.", timeout=4)  # fmt: skip
            return
        from ..worker.protocol import Assume

        client.what_if([
            Assume(text=name, kernel=app.sel.kernel, backend=backend.backend) for name in names
        ])  # fmt: skip
        app.notify(f"Measuring with {', '.join(names)}.", timeout=4, markup=False)

    def action_cancel(self) -> None:
        screen = self._app.screen
        if isinstance(screen, StudioScreen) and screen.cancel():
            return
        client = self._client()
        if client is not None:
            client.cancel()

    def action_study(self, kind: str) -> None:
        """Find out what makes the selected kernel's result wrong; see `StudyScreen`."""
        from .screens.study import StudyScreen

        client, kernel = self._client(), self._app.sel.kernel
        here = self._app.screen
        if client is None or not kernel or (isinstance(here, StudyScreen) and here.kind == kind):
            return
        if isinstance(here, StudyScreen):
            self._app.pop_screen()
        self._app.push_screen(StudyScreen(client, kernel, kind))

    def change_option(self, name: str, value: Value) -> None:
        """Compile with another value of an option, for this session only."""
        client = self._client()
        if client is not None:
            app = self._app
            if app.config_base is None:
                app.config_base = app.edits.now
            app.options[name] = value
            client.set_config(self._app.options)
            self._app.notify(f"{name}={value}: compiling again", timeout=3, markup=False)

    def change_option_text(self, name: str, text: str) -> None:
        """`change_option` with a value as it was typed."""
        from ...engine import inspect

        try:
            _, value = inspect.parse_setting(f"{name}={text}")
        except ValueError as error:
            self._app.notify(str(error), severity="error", markup=False)
            return
        self.change_option(name, value)

    # --- looks -----------------------------------------------------------------------------

    def action_switch_theme(self) -> None:
        self._switch(COUNTERPARTS, "This theme has no light or dark counterpart.")

    def action_next_theme(self) -> None:
        if self._switch(SUCCESSORS, "The terminal's own colours stay until the studio ends."):
            self._app.notify(f"theme: {self._app.theme}", timeout=2)

    def _switch(self, themes: Mapping[str, str], refusal: str) -> bool:
        """Change to what a table says; never across families: terminal colours and true colours
        do not mix."""
        theme = themes.get(self._app.theme)
        if theme is None:
            self._app.notify(refusal, timeout=3)
            return False
        self._app.theme = theme
        for screen in self._app.screen_stack:
            if isinstance(screen, StudioScreen):
                screen.restyle()
        return True


def export_name(kernel: str, stem: str, view: str) -> str:
    """The name, without suffix, of the files that a view of a kernel (its id) is written to.

    The id in a saved session is untrusted text, which may even be a path.
    """
    name = re.sub(r"[^\w.-]+", "_", kernel.rpartition(":")[2])[:80].lstrip(".")
    return f"{name or stem}-{view}"
