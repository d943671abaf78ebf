"""The screen of compile options: forms, their effect next to the options at the start, sweeps."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.app import ComposeResult

from ...core.forms import accepts, is_toggled, stepped, sweep_values
from ...core.lines import Line
from ...core.progress import State, forms
from ...core.state import kernel_of
from ...core.views.misc import config_of
from ...core.views.option_forms import ab_lines, form_lines
from ...core.visible import visible_line
from ..commands import bindings
from ..widgets.bars import PromptBar
from ..widgets.lines import LineView
from .lists import AskScreen, ListScreen

if TYPE_CHECKING:
    from ....engine.inspect.record import ConfigEntry
    from ....engine.inspect.settings import OptionInfo
    from ...core.sweeps import Value

__all__ = ["OptionsScreen", "SweepScreen"]

_HINT = (
    "Change an option: what that does to every kernel appears here, next to the results with the "
    "options at the start."
)


class OptionsScreen(AskScreen):
    """All compile options; a change compiles again, without touching the file.

    Below them are the results: A with the options at the start, B with the present ones.
    """

    scope = "config"
    heading = "options, for this session only"
    prompt = "new value, enter to compile with it, esc to leave"
    BINDINGS = bindings("config")
    KEYS = (("choose", "change"), ("option-previous+option-next", "value"),
            ("option-default", "default"), ("sweep", "sweep"), ("search", "search"),
            ("help", "help"), ("back", "back"))  # fmt: skip
    DEFAULT_CSS = """
    OptionsScreen #list { height: 3fr; }
    OptionsScreen #results { height: 2fr; border-top: solid $surface-lighten-2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._option = ""
        self._infos: dict[str, OptionInfo] = {}

    def body(self) -> ComposeResult:
        yield LineView(id="list")
        yield LineView(id="results")
        yield PromptBar(self.prompt, self._given, id="value")

    def on_mount(self) -> None:
        from ....engine import inspect

        self._infos = {info.name: info for info in inspect.options()}
        super().on_mount()

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        config = config_of(self.studio.record, self.studio.sel.kernel)
        if not config:
            return [Line((("No options are known yet.", "dim"),))], []
        head, lines = form_lines(config, self._infos.values())
        return lines, [head]

    def paint(self) -> None:
        super().paint()
        self.query_one("#results", LineView).show(self._results(), [])

    def _results(self) -> list[Line]:
        studio = self.studio
        base, now = studio.config_base, studio.edits.now
        if base is None:
            return [Line(((_HINT, "dim"),))]
        if not studio.complete or now is None or now is base:
            return [Line((("Compiling and measuring with the new options ...", "dim"),))]
        kernel = studio.sel.kernel
        if not ab_lines.has(base, now, kernel):
            studio.compute(lambda: ab_lines(base, now, kernel))
            return [Line((("Comparing ...", "dim"),))]
        return list(ab_lines(base, now, kernel))

    # --- changes ---------------------------------------------------------------------------

    def _entry(self) -> tuple[ConfigEntry, OptionInfo] | None:
        """The option under the cursor."""
        current = self.query_one("#list", LineView).current
        name = current.key if current is not None else None
        config = config_of(self.studio.record, self.studio.sel.kernel)
        entry = next((e for e in config if e.name == name), None)
        info = self._infos.get(entry.name) if entry is not None else None
        return (entry, info) if entry is not None and info is not None else None

    def _value(self, entry: ConfigEntry) -> Value | None:
        """The value that was asked for last, also where it is still being compiled with."""
        return self.studio.options.get(entry.name, entry.value)

    @on(LineView.Chosen, "#list")
    def _chosen(self, event: LineView.Chosen) -> None:
        found = self._entry()
        if found is None:
            return
        entry, info = found
        if is_toggled(info):
            self._change(info.name, stepped(info, self._value(entry), 1))
            return
        value = self._value(entry)
        self._option = entry.name
        self.bar.ask(
            "" if value is None else visible_line(str(value)),
            f"{info.name}: {accepts(info)}; enter to compile with it, esc to leave",
        )

    def _given(self, text: str) -> None:
        self.back()
        self.studio.change_option_text(self._option, text)
        self.paint()

    def _change(self, name: str, value: Value) -> None:
        self.studio.change_option(name, value)
        self.paint()

    def action_option_step(self, step: int) -> None:
        """The next or the previous value of the option under the cursor."""
        found = self._entry()
        if found is None:
            return
        entry, info = found
        try:
            new = stepped(info, self._value(entry), step)
        except ValueError as error:
            self.notify(str(error), timeout=3, markup=False)
            return
        if new != self._value(entry):
            self._change(info.name, new)
        else:
            self.notify(f"{info.name}: {accepts(info)}", timeout=3, markup=False)

    def action_option_default(self) -> None:
        """Compile with the value at the start again."""
        found = self._entry()
        if found is None:
            return
        entry, info = found
        base = self.studio.config_base
        old = config_of(base, self.studio.sel.kernel) if base is not None else ()
        value = next((e.value for e in old if e.name == entry.name), entry.default)
        if value is not None and value != self._value(entry):
            self._change(info.name, value)

    def action_sweep(self) -> None:
        """Measure the selected kernel with several values of the option under the cursor."""
        found, link = self._entry(), self.studio.link
        kernel = kernel_of(self.studio.record, self.studio.sel)
        if found is None or kernel is None:
            return
        if link is None or link.client is None:
            self.notify("This is a saved session: nothing can be compiled here.")
            return
        entry, info = found
        try:
            values = sweep_values(info, self._value(entry))
        except ValueError as error:
            self.notify(f"{error}; or use qd-studio sweep", timeout=4, markup=False)
            return
        self.app.push_screen(SweepScreen(info.name, values, kernel.id))  # pyright: ignore[reportUnknownMemberType]


class SweepScreen(ListScreen):
    """A sweep of the selected kernel, measured in processes of its own; leaving it cancels."""

    KEYS = (("copy", "copy line"), ("copy-all", "copy all"), ("export", "export"),
            ("help", "help"), ("back", "back"))  # fmt: skip

    def __init__(self, option: str, values: list[Value], kernel: str) -> None:
        super().__init__()
        self._sweep = (option, values, kernel)
        self.heading = f"sweep of {option}, {kernel}"
        self._lines = [Line((("Starting ...", "dim"),))]
        self._left = threading.Event()

    def on_mount(self) -> None:
        super().on_mount()
        threading.Thread(target=self._measure, name="studio-sweep", daemon=True).start()

    def on_unmount(self) -> None:
        self._left.set()

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        return self._lines, []

    def _measure(self) -> None:
        """On a thread of its own."""
        from ...core.sweeps import sweep_lines
        from ...sweeping import measure, sweeps_in

        studio = self.studio
        option, values, kernel = self._sweep
        link = studio.link
        if link is None or link.client is None:
            return
        settings: dict[str, Any] = {
            **studio.look_settings, "config": studio.options, "backends": studio.backends,
            "only": [kernel],
        }  # fmt: skip
        try:
            records = measure(studio.files, option, values, settings, 2, self._progress, self._left)
            found = sweeps_in(option, values, records, kernel) if not self._left.is_set() else []
        except Exception as error:  # such as a worker that cannot be started
            self.activity = ()
            self._show([Line(((f"{type(error).__name__}: {error}", "bad"),))])
            return
        lines: list[Line] = []
        for sweep in found:
            lines += [*sweep_lines(sweep, studio.size.width, studio.ascii_only), Line(())]
        self.activity = ()
        self._show(lines or [Line((("Nothing was launched.", "warn"),))])

    def _progress(self, state: State) -> None:
        self.activity = forms(state)
        leave = self.studio.key_name("back")
        lines = [Line(((self.activity[0], ""),)), Line(((f"{leave} cancels", "dim"),))]
        self._show(lines)

    def _show(self, lines: list[Line]) -> None:
        if not self._left.is_set():
            self.studio.call_from_thread(partial(self._shown, lines))

    def _shown(self, lines: list[Line]) -> None:
        self._lines = lines
        if self.is_mounted:
            self.paint()
