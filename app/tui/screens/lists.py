"""Screens that show one list: help, log, options."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from ...core.lines import Line
from ...core.panels.misc import config_lines, log_lines
from ..commands import SCOPES, by_scope
from ..widgets.bars import KeyBar, SearchBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen

__all__ = ["ConfigScreen", "HelpScreen", "LogScreen"]


class ListScreen(StudioScreen):
    """A title and a list."""

    heading = ""

    def compose(self) -> ComposeResult:
        yield TitleBar()
        view = LineView(id="list")
        view.styles.height = "1fr"
        yield view
        yield SearchBar()
        yield KeyBar(("list",))

    def on_mount(self) -> None:
        self.query_one("#list", LineView).focus()
        self.paint()

    def paint(self) -> None:
        self.query_one(TitleBar).set(left=self.heading, right="esc goes back")
        lines, header = self.content()
        self.query_one("#list", LineView).show(lines, header)

    def content(self) -> tuple[list[Line], list[Line]]:
        """(lines, header lines)."""
        raise NotImplementedError


class HelpScreen(ListScreen):
    """Every key, from the table of commands."""

    heading = "Keys"

    def content(self) -> tuple[list[Line], list[Line]]:
        out: list[Line] = []
        for scope, title in SCOPES.items():
            commands = by_scope(scope)
            if not commands:
                continue
            out += [
                Line(((title, "head"),)),
                *(_key_line(c.keys, c.title, c.help) for c in commands),
            ]
            out.append(Line(()))
        out.append(Line((("Glyphs", "head"),)))
        for glyph, meaning in (
            ("●", "the pass changed the IR"), ("○", "it did not"), ("✗", "failed"),
            ("✓", "agrees with the interpreter"), ("≠", "differs from it"),
            ("◌ ~", "stale: the last good result, kept because the newest save failed"),
            ("◆ ◇ ▹ ·", "cache hit, miss, bypassed, off"),
            ("+ - ~ >", "added, removed, changed, moved"), ("!", "the pass left a remark"),
        ):  # fmt: skip
            out.append(Line(((f"  {glyph:<22}", "accent"), (meaning, ""))))
        return out, []


_NAMES = {
    "question_mark": "?", "slash": "/", "colon": ":", "right_square_bracket": "]",
    "left_square_bracket": "[", "right_curly_bracket": "}", "left_curly_bracket": "{",
    "escape": "esc",
}  # fmt: skip


def _key_line(keys: str, title: str, help: str) -> Line:
    shown = " ".join(_NAMES.get(k, k) for k in keys.split(","))
    return Line(((f"  {shown:<22}", "accent"), (f"{title:<20}", "title"), (help, "")), None, help)


class LogScreen(ListScreen):
    """What user code and the engine wrote; follows the end."""

    heading = "Log"

    def content(self) -> tuple[list[Line], list[Line]]:
        return log_lines(self.studio.record), []

    def on_mount(self) -> None:
        super().on_mount()
        view = self.query_one("#list", LineView)
        view.move(len(view.lines) - 1)


class ConfigScreen(ListScreen):
    """All compile options; enter flips a boolean and compiles again, without touching the file."""

    heading = "Options   enter changes one that is on or off; the file stays as it is"

    def content(self) -> tuple[list[Line], list[Line]]:
        if not self.studio.record.config:
            return [Line((("No options are known yet.", "dim"),))], []
        head, *lines = config_lines(self.studio.record.config)
        return lines, [head]

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        name = event.line.key if event.line is not None else None
        entry = next((e for e in self.studio.record.config if e.name == name), None)
        if entry is None:
            return
        if not isinstance(entry.value, bool):
            self.notify(f"{entry.name} is not on or off; start with --config {entry.name}=...")
            return
        self.studio.change_option(entry.name, not entry.value)
