"""The studio's application: holds the record and the selection, and passes events to the screen.

Worker events arrive on the client's thread and wait in the link; one message fetches them all,
changes the state and repaints the current screen once. Everything slow (starting the worker,
saving, copying, comparing long listings) runs in threads. Actions are in `actions`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.screen import Screen

from ...engine.inspect.record import Record, RunName
from ..core.edits import Edits, looked
from ..core.pending import finished_record
from ..core.saves import MOST, Saves
from ..core.state import History, Selection, remember, settle
from ..core.tour import Where
from ..core.visible import visible, visible_line
from .actions import Actions
from .commands import Command, all_commands, bindings, command
from .labels import Labels
from .link import Computed, Computer, EventsReady, Link, Start
from .palettes import THEMES
from .screens.base import StudioScreen
from .screens.home import HomeScreen
from .styles import AsciiFilter
from .tour import Tour, TourBar
from .widgets.bars import PromptBar
from .widgets.lines import LineView

if TYPE_CHECKING:
    from .versus import Measure

__all__ = ["StudioApp"]

Value = str | int | float | bool
# Seconds of work before the title says how to give it up.
_LONG_S = 0.5


def _kernel_screen() -> Screen[Any]:
    from .screens.kernel import KernelScreen

    return KernelScreen()


class StudioApp(Actions, App[int]):
    """See the module docstring.

    files: what is looked at. start: makes the worker client, given a callback for its events;
    None shows ``record`` only (a saved session). theme: one of `palettes.THEMES`, if not the one
    that Textual starts with. keymap: command id -> keys; keymap_problems: what
    is wrong with the file it came from. keep_saves: how many; 0 for the usual number.
    """

    TITLE = "qd-studio"
    BINDINGS = bindings("everywhere")
    SCREENS = {"kernel": _kernel_screen}  # noqa: RUF012 - as Textual declares it
    CSS = """
    Toast { max-width: 76; }
    """

    def __init__(
        self,
        files: Sequence[str],
        start: Start | None = None,
        record: Record | None = None,
        *,
        ascii_only: bool = False,
        theme: str = "",
        keymap: Mapping[str, str] | None = None,
        keymap_problems: Sequence[str] = (),
        keymap_path: str = "keymap.toml",
        keep_saves: int = 0,
    ) -> None:
        super().__init__()
        for own in THEMES:
            self.register_theme(own)
        if theme:
            self.theme = theme
        self.files = files
        # A saved session may be of the middle of a look, which nothing goes on with.
        self.record = finished_record(record or Record(), "saved before it was done")
        self.history = remember(History(), self.record)
        self.edits = Edits()
        self.look_settings: dict[str, Any] = {}  # how files are looked at, for sweeps
        self.config_base: Record | None = None  # measured with the options at the start
        self.saves = Saves(keep_saves or MOST)
        if start is None:
            self._keep_save()
        self.measure: Measure | None = None  # a look of its own; None: nothing can be compiled
        self.sel = settle(self.record, Selection())
        self._focus: tuple[str, bool, RunName | None] = ("", False, None)
        self.complete = start is None
        self.ascii_only = ascii_only
        self.options: dict[str, Value] = {}
        self.backends: tuple[str, ...] = ()  # as chosen at the start; none: those that can launch
        self.every_backend = False
        self.tour: Tour | None = None
        self.labels: Labels | None = None
        self.keeps = False  # the choice of a form of IR, for the next start
        self._looks = 0
        self.keymap_path = keymap_path
        self._progress: Sequence[str] = ("" if start is None else "starting the worker",)
        self._busy_since: float | None = None
        self._keys = dict(keymap or {})
        self._keymap_problems = keymap_problems
        self.set_keymap(self._keys)
        self.link = Link(start, self.post_message) if start is not None else None
        self._computer = Computer(self.post_message)
        self._running_in: asyncio.AbstractEventLoop | None = None
        self._ended_by = 0

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        if found.__name__ != "LinuxDriver":
            return found
        from .driver import StudioDriver

        return StudioDriver

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Like Textual's; text of users is shown literally: it is no markup, and steers nothing."""
        super().notify(
            visible(message), title=visible_line(title), severity=severity, timeout=timeout,
            markup=markup,
        )  # fmt: skip

    def get_line_filters(self) -> Sequence[LineFilter]:
        found = super().get_line_filters()
        return [*found, AsciiFilter()] if self.ascii_only else found

    # --- life ------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return HomeScreen()

    def on_mount(self) -> None:
        self._running_in = asyncio.get_running_loop()
        if self._ended_by:
            self.end(self._ended_by)
        # Only after the first paint: the worker can wait, the person should not.
        self.call_after_refresh(self._after_first_paint)

    def _after_first_paint(self) -> None:
        # What is there now stays to the end: no need to look through it again and again.
        gc.freeze()
        # A look at young objects takes up to 0.7 us for each, in which nothing is painted: 7 ms.
        gc.set_threshold(10_000, 10, 20)
        gc.enable()
        # A thread that computes lets go often, so that a key need not wait for it.
        sys.setswitchinterval(0.001)
        if self.link is not None:
            self.link.connect()
            self.set_interval(1.0, self._show_progress)
        if self._keymap_problems:
            text = "\n".join((f"{self.keymap_path}:", *self._keymap_problems))
            self.notify(text, severity="warning", timeout=10, markup=False)

    def end(self, number: int) -> None:
        """End in order, so that the terminal is given back, as a signal asks for; any thread."""
        self._ended_by = number
        loop = self._running_in
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: the end has come already
                loop.call_soon_threadsafe(partial(self.exit, return_code=128 + number))

    async def run_in_front(self, command: Sequence[str]) -> int:
        """Run a program on the terminal, while the app is suspended; return its exit status.

        The app can still be ended meanwhile: it ends the program then.
        """
        process = subprocess.Popen(command)
        while process.poll() is None:
            if self._ended_by:
                process.terminate()
            await asyncio.sleep(0.02)
        return process.returncode

    def on_unmount(self) -> None:
        # The terminal need not wait until the worker has ended; the caller of the app does.
        if self.link is not None:
            threading.Thread(target=self.link.close, name="studio-end", daemon=True).start()

    # --- events ----------------------------------------------------------------------------

    def on_events_ready(self, message: EventsReady) -> None:
        from ..worker import events as ev

        assert self.link is not None
        changed = moved = False
        log = list(self.record.log)
        for event in self.link.take():
            if isinstance(event, ev.Progress):
                moved = True
                self._progress = event.forms
                if self._busy_since is None:
                    self._busy_since = self._now()
                continue
            changed = True
            if isinstance(event, ev.RecordUpdated):
                self.record = event.record
                log = list(event.record.log)
                self.complete = event.complete
                if event.complete and event.again:
                    self.edits = looked(self.edits, event.record, again=True)
                    self.saves.add(event.record, "", again=True)
                elif event.complete:
                    self.history = remember(self.history, event.record)
                    self.edits = looked(self.edits, event.record)
                    self._keep_save()
                    self._looks += 1
                    self._busy_since, self._progress = None, ("ready",)
            elif isinstance(event, ev.KernelUpdated):
                kernels = tuple(
                    event.kernel if k.id == event.kernel.id else k for k in self.record.kernels
                )
                self.record = _with(self.record, kernels=kernels)
            elif isinstance(event, ev.Log):
                log.append(event.line)
            elif isinstance(event, ev.Exited) and not event.expected:
                self._progress = (f"worker ended: {event.reason}",)
        if len(log) != len(self.record.log):
            self.record = _with(self.record, log=tuple(log))
        if changed:
            self.settle()
            self.repaint()
        elif moved:  # the title alone: keys must not wait for lists that are the same
            self._show_progress()

    def _keep_save(self) -> None:
        self.saves.add(self.record, time.strftime("%H:%M:%S"))
        if len(self.saves.all()) > 1:
            threading.Thread(target=self.saves.pack, name="studio-pack", daemon=True).start()

    def on_computed(self, message: Computed) -> None:
        self.repaint()

    def compute(self, work: Callable[[], object]) -> None:
        """Do long pure work on another thread, then repaint."""
        self._computer.ask(work)

    @property
    def status(self) -> Sequence[str]:
        """The worker's current activity, for the right end of the title; the longest form first."""
        screen = self.screen
        if isinstance(screen, StudioScreen) and screen.activity:
            back = self.key_name("back")
            return (f"{screen.activity[0]}  {back} cancels", *screen.activity)
        if not self.busy:
            return self._progress
        key = self.key_name("back" if len(self.screen_stack) == 1 else "cancel")
        return (*(f"{form}  {key} cancels" for form in self._progress[:1]), *self._progress)

    @property
    def busy(self) -> bool:
        """True if the worker has worked for so long that one may want to give it up."""
        since = self._busy_since
        return since is not None and self._now() - since > _LONG_S

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _show_progress(self) -> None:
        if self._busy_since is not None and isinstance(self.screen, StudioScreen):
            self.screen.title_right(self.status)

    def repaint(self) -> None:
        """Show the state on the current screen."""
        screen = self.screen
        # While the app ends, a screen may be there without its title or lists.
        there = self.is_running and screen.is_mounted and bool(screen.children)
        if isinstance(screen, StudioScreen) and there:
            screen.paint()
        self.call_later(self.tour_moved)

    # --- the tour --------------------------------------------------------------------------

    @property
    def where(self) -> Where:
        """The state that the steps of the tour are judged by."""
        return Where(type(self.screen).__name__, self.sel, self._looks)

    def tour_moved(self) -> None:
        """Go on with the tour if the user has done its step, and show it."""
        if self.tour is not None:
            self.tour.moved(self.where)
            for bar in self.screen.query(TourBar):
                bar.paint()

    # --- the selection ---------------------------------------------------------------------

    def select(self, **changes: Any) -> None:
        """Change the selection; the caller paints."""
        self.sel = replace(self.sel, **changes)
        self._send_focus()
        if self.tour is not None:
            self.call_later(self.tour_moved)

    def keep_form(self) -> None:
        """Remember the form of IR for the next start."""
        if self.keeps:
            from .kept import keep

            keep(readable=self.sel.readable)

    def settle(self) -> None:
        """Move the selection off what no longer exists."""
        self.sel = settle(self.record, self.sel)
        self._send_focus()

    def _send_focus(self) -> None:
        """Send the worker what to look at first after a save."""
        client = self.link.client if self.link is not None else None
        sel = self.sel
        watching = sel.tab == "passes"
        focus = (sel.kernel, watching, sel.run if watching else None)
        if client is not None and focus != self._focus:
            self._focus = focus
            client.focus(*focus)

    def select_kernel(self, kernel: str) -> None:
        """Select a kernel; op and line belong to the old one, the pass is looked for again."""
        if kernel != self.sel.kernel:
            self.select(kernel=kernel, op=-1, line=0)
            self.settle()

    def open_kernel(self, kernel: str) -> None:
        """Go to a kernel's screen."""
        self.select_kernel(kernel)
        self.push_screen("kernel")

    def show_in_kernel(self, kernel: str, changes: Mapping[str, Any], row: int = -1) -> None:
        """Go to a place of a kernel. changes: fields of the selection. row: line of the list."""
        from .screens.kernel import KernelScreen

        self.select_kernel(kernel)
        self.select(**changes)
        if not isinstance(self.screen, KernelScreen):
            self.push_screen("kernel")
        screen = self.screen
        if isinstance(screen, KernelScreen):
            self.call_after_refresh(screen.show_at, row)

    # --- keys ------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keys of the studio's own screens are done one after the other, as they come.

        Textual hands each to the widget that has the focus when it arrives; of a burst such as
        ``/mul`` all would go to the list, before the first has opened the search.
        """
        if isinstance(event, events.Key) and not event.is_forwarded:
            screen = self.screen
            if isinstance(screen, StudioScreen) and screen.is_mounted and await self._key(event):
                self.call_later(self.tour_moved)
                return
        await super().on_event(event)

    async def _key(self, event: events.Key) -> bool:
        """True if that was all there was to do for the key."""
        if self.labels is not None:
            if not self.labels.type(event.character):
                self.labels = None
            return True
        bar = self.focused
        if isinstance(bar, PromptBar) and event.is_printable and event.character is not None:
            bar.typed(event.character)
            return True
        if bar is not None and not isinstance(bar, PromptBar | LineView):
            return False
        return await self._check_bindings(event.key)

    # --- commands --------------------------------------------------------------------------

    def keys_of(self, id: str) -> str:
        """The keys of a command, the user's map applied, separated by commas."""
        return self._keys.get(id, command(id).keys)

    def key_name(self, id: str) -> str:
        """The first key of a command as a person calls it."""
        from .commands import key_names

        return key_names(self.keys_of(id))[0]

    async def run_command(self, chosen: Command) -> None:
        """Run a command as its key would."""
        view = self.screen.view if isinstance(self.screen, StudioScreen) else None
        if chosen.scope == "list" and view is not None:
            await view.run_action(chosen.action)
        else:
            await self.run_action(chosen.action, self.screen)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        here = screen.scopes if isinstance(screen, StudioScreen) else ()
        for chosen in all_commands():
            if chosen.scope in ("everywhere", "list", *here) and chosen.id != "palette":
                keys = self.key_name(chosen.id)
                yield SystemCommand(
                    f"{chosen.title} ({keys})", chosen.help, partial(self.run_command, chosen)
                )


def _with(record: Record, **changes: Any) -> Record:
    from msgspec.structs import replace as with_fields

    return with_fields(record, **changes)
