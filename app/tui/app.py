"""The studio's application: holds the record and the selection, and hands news to the screen.

Worker events arrive on the client's thread and are posted as messages; handlers only assign state
and repaint the current screen. Everything slow (starting the worker, saving) runs in threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen

from ...engine.inspect.record import Record
from ..core.state import History, Selection, remember, settle
from .commands import COMMANDS, bindings
from .screens.base import LEAST, StudioScreen
from .screens.home import HomeScreen

if TYPE_CHECKING:
    from ..worker.client import WorkerClient

__all__ = ["StudioApp", "WorkerNews"]

Value = str | int | float | bool


class WorkerNews(Message):
    """An event of the worker client."""

    def __init__(self, event: object) -> None:
        super().__init__()
        self.event = event


class StudioApp(App[int]):
    """See the module docstring.

    files: what is looked at. start: makes the worker client, given a callback for its events;
    None shows ``record`` only (a saved session).
    """

    TITLE = "qd-studio"
    BINDINGS = bindings("everywhere")
    CSS = """
    Toast { max-width: 70; }
    """

    def __init__(
        self,
        files: Sequence[str],
        start: Callable[[Callable[[object], object]], WorkerClient] | None = None,
        record: Record | None = None,
        ascii_only: bool = False,
    ) -> None:
        super().__init__()
        self.files = files
        self.record = record or Record()
        self.history = remember(History(), self.record)
        self.sel = settle(self.record, Selection())
        self.progress = "" if start is None else "starting the worker"
        self.complete = start is None
        self.ascii_only = ascii_only
        self.options: dict[str, Value] = {}
        self._start = start
        self._client: WorkerClient | None = None
        self._leaving = False

    # --- life ------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return HomeScreen()

    def on_mount(self) -> None:
        if self._start is not None:
            # Only after the first paint: the worker can wait, the person should not.
            self.call_after_refresh(self._start_worker)
        self.call_after_refresh(self._check_size)

    def _start_worker(self) -> None:
        threading.Thread(target=self._connect, name="studio-start", daemon=True).start()

    def _connect(self) -> None:
        assert self._start is not None
        client = self._start(lambda event: self.post_message(WorkerNews(event)))
        self._client = client
        if self._leaving:
            client.stop()

    def on_unmount(self) -> None:
        self._leaving = True
        if self._client is not None:
            self._client.stop()

    def on_resize(self) -> None:
        self._check_size()

    def _check_size(self) -> None:
        if self.size.width < LEAST[0] or self.size.height < LEAST[1]:
            self.notify(
                f"The studio needs {LEAST[0]} columns and {LEAST[1]} rows.", severity="warning",
                timeout=3,
            )  # fmt: skip

    # --- news from the worker --------------------------------------------------------------

    def on_worker_news(self, news: WorkerNews) -> None:
        from ..worker import events as ev

        event = news.event
        if isinstance(event, ev.RecordUpdated):
            self.record = event.record
            self.complete = event.complete
            if event.complete:
                self.history = remember(self.history, event.record)
                self.progress = "ready"
        elif isinstance(event, ev.KernelUpdated):
            kernels = tuple(
                event.kernel if k.id == event.kernel.id else k for k in self.record.kernels
            )
            self.record = _with(self.record, kernels=kernels)
        elif isinstance(event, ev.Progress):
            total = f" {event.done}/{event.total}" if event.total else ""
            self.progress = f"{event.text}{total}"
            self._title()
            return
        elif isinstance(event, ev.Log):
            self.record = _with(self.record, log=(*self.record.log, event.line))
            return
        elif isinstance(event, ev.Failed):
            where = f" ({event.error.stage})" if event.error.stage else ""
            self.notify(
                f"{event.error.kind}{where}: {event.error.message.splitlines()[0]}"[:300],
                severity="error", timeout=6, markup=False,
            )  # fmt: skip
            return
        elif isinstance(event, ev.Exited):
            self.progress = "" if event.expected else f"worker ended: {event.reason}"
            self._title()
            return
        else:
            return
        self.sel = settle(self.record, self.sel)
        self.repaint()

    def repaint(self) -> None:
        """Show the state on the current screen."""
        screen = self.screen
        if isinstance(screen, StudioScreen) and screen.is_mounted:
            screen.paint()

    def _title(self) -> None:
        screen = self.screen
        if isinstance(screen, StudioScreen):
            screen.title_right(self.progress)

    # --- what screens ask for --------------------------------------------------------------

    def select(self, **changes: Any) -> None:
        """Change the selection; painting is the caller's."""
        self.sel = replace(self.sel, **changes)

    def open_kernel(self, kernel: str) -> None:
        """Go to a kernel's screen."""
        from .screens.kernel import KernelScreen

        if kernel != self.sel.kernel:
            self.select(run=None, op=-1, line=0)
        self.select(kernel=kernel)
        self.push_screen(KernelScreen())

    def change_option(self, name: str, value: Value) -> None:
        """Compile with another value of an option, for this session only."""
        if self._client is None:
            self.notify("A saved session cannot compile again.", severity="warning")
            return
        self.options[name] = value
        self._client.set_config(self.options)
        self.notify(f"{name}={value}: compiling again")

    # --- actions ---------------------------------------------------------------------------

    def action_leave(self) -> None:
        screen = self.screen
        if isinstance(screen, StudioScreen):
            if screen.close_search() or screen.clear_search():
                return
            back = getattr(screen, "back", None)
            if back is not None and back():
                return
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.repaint()

    def _open_list(self, kind: str) -> None:
        from .screens import lists

        cls = {"help": lists.HelpScreen, "log": lists.LogScreen, "config": lists.ConfigScreen}[kind]
        if not isinstance(self.screen, cls):
            self.push_screen(cls())

    def action_help(self) -> None:
        self._open_list("help")

    def action_log(self) -> None:
        self._open_list("log")

    def action_config(self) -> None:
        self._open_list("config")

    def action_search(self) -> None:
        if isinstance(self.screen, StudioScreen):
            self.screen.open_search()

    def action_search_step(self, step: int) -> None:
        view = self.screen.view if isinstance(self.screen, StudioScreen) else None
        if view is not None and view.needle and not view.search(view.needle, step):
            self.notify(f"{view.needle!r} is not here", timeout=2)

    def action_copy_line(self) -> None:
        view = self.screen.view if isinstance(self.screen, StudioScreen) else None
        if view is not None:
            self._copy(view.copied(), "line")

    def action_copy_all(self) -> None:
        from ..core.lines import text_of

        view = self.screen.view if isinstance(self.screen, StudioScreen) else None
        if view is not None:
            text = "\n".join(
                x.copy if x.copy is not None else text_of(x).rstrip() for x in view.lines
            )
            self._copy(text + "\n", f"{len(view.lines)} lines")

    def _copy(self, text: str, what: str) -> None:
        from .clipboard import copy

        def work() -> None:
            said = copy(text, self._to_terminal)
            self.call_from_thread(self.notify, f"{what} {said}", timeout=4, markup=False)

        threading.Thread(target=work, name="studio-copy", daemon=True).start()

    def _to_terminal(self, sequence: str) -> None:
        driver = self._driver
        if driver is not None:
            self.call_from_thread(driver.write, sequence)

    def action_save_session(self) -> None:
        name = Path(self.files[0]).stem if self.files else "session"
        record = self.record
        threading.Thread(
            target=partial(self._save, record, name), name="studio-save", daemon=True
        ).start()

    def _save(self, record: Record, name: str) -> None:
        from ...engine.inspect.store import save

        path = Path(f"{name}.qds")
        number = 1
        while path.exists():
            number += 1
            path = Path(f"{name}-{number}.qds")
        try:
            save(record, path)
        except OSError as error:
            self.call_from_thread(
                self.notify, f"cannot write {path}: {error.strerror}", severity="error"
            )
            return
        self.call_from_thread(self.notify, f"saved {path.resolve()}", markup=False)

    def action_recompile(self) -> None:
        if self._client is None:
            self.notify("A saved session cannot compile again.", severity="warning")
            return
        self._client.request_refresh()

    def action_switch_theme(self) -> None:
        pairs = {
            "textual-dark": "textual-light", "textual-light": "textual-dark",
        }  # fmt: skip
        other = pairs.get(self.theme)
        if other is None:
            self.notify("This theme has no twin; start with --theme dark or light.", timeout=3)
            return
        self.theme = other
        for screen in self.screen_stack:
            if isinstance(screen, StudioScreen):
                screen.restyle()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        scopes = {"HomeScreen": "home", "KernelScreen": "kernel"}
        here = scopes.get(type(screen).__name__, "")
        for command in COMMANDS:
            if command.scope in ("everywhere", here) and command.id != "palette":
                yield SystemCommand(
                    command.title, command.help, partial(self._run_command, command.action)
                )

    async def _run_command(self, action: str) -> None:
        await self.run_action(action)


def _with(record: Record, **changes: Any) -> Record:
    from msgspec.structs import replace as with_fields

    fields: Mapping[str, Any] = changes
    return with_fields(record, **fields)
