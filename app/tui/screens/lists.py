"""Screens that show one list: help, log, the last save."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from textual.app import ComposeResult

from ...core.edits import edit_lines
from ...core.lines import Line
from ...core.views.misc import log_lines
from ..commands import SCOPES, bindings, by_scope, key_names
from ..widgets.bars import KeyBar, PromptBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen

__all__ = ["EditScreen", "HelpScreen", "IrScreen", "LogScreen"]


class ListScreen(StudioScreen):
    """A title and a list."""

    heading = ""
    KEYS = (("search", "search"), ("copy", "copy line"), ("copy-all", "copy all"),
            ("export", "export"), ("help", "help"), ("back", "back"))  # fmt: skip
    DEFAULT_CSS = """
    ListScreen #list { height: 1fr; }
    """

    def body(self) -> ComposeResult:
        yield LineView(id="list")

    def on_mount(self) -> None:
        self.query_one("#list", LineView).focus()
        self.query_one(KeyBar).set(self.KEYS)
        self.paint()

    def paint(self) -> None:
        title = (("qd-studio", "bold"), ("  ", ""), (self.heading, ""))
        self.query_one(TitleBar).set(title, self.studio.status)
        lines, header = self.content()
        self.query_one("#list", LineView).show(lines, header)

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        """(lines, header lines)."""
        raise NotImplementedError


class AskScreen(ListScreen):
    """A list with a line in which something is typed. prompt: what it shows while it is empty."""

    prompt = ""

    def body(self) -> ComposeResult:
        yield from super().body()
        yield PromptBar(self.prompt, self._given, id="value")

    @property
    def bar(self) -> PromptBar:
        """The line."""
        return self.query_one("#value", PromptBar)

    def _given(self, text: str) -> None:
        """Take what was typed, when enter is pressed."""
        raise NotImplementedError

    def back(self) -> bool:
        return self.bar.leave(self.query_one("#list", LineView))


class HelpScreen(ListScreen):
    """Every key, from the table of commands."""

    heading = "keys and signs"

    def content(self) -> tuple[list[Line], list[Line]]:
        out: list[Line] = []
        width = self.studio.size.width
        for scope, title in SCOPES.items():
            commands = by_scope(scope)
            if not commands:
                continue
            out.append(Line(((title, "head"),)))
            for c in commands:
                keys = " ".join(key_names(self.studio.keys_of(c.id)))
                first, *more = textwrap.wrap(f"{c.help} ({c.id})", max(30, width - 39))
                copy = f"{keys}\t{c.title}\t{c.help}"
                spans = (
                    (f"  {keys:<18}", "accent"), (f"{c.title:<17}", "title"), (first, "")
                )  # fmt: skip
                out.append(Line(spans, c.id, copy))
                out += [Line(((" " * 37 + part, ""),), c.id, copy) for part in more]
            out.append(Line(()))
        out.append(Line((("Signs", "head"),)))
        for glyph, meaning in (
            ("●  ○  ✗", "the pass changed the IR; it did not; it failed"),
            ("+  -  ~  >", "added, removed, changed, moved"),
            ("r2  t0", "second round of the stage; the pass ran on task 0 only"),
            ("!", "the pass left a remark: why it did or did not do something"),
            ("✓  ≠  ?", "agrees with the interpreter; differs; unknown, see docs/verdicts.md"),
            ("◔", "pending: of the save before, until the newest one is compiled and measured"),
            ("◌", "stale: the last good result, kept because the newest save failed"),
            ("◆  ◇  ▹  ·", "cache hit, miss, bypassed, off"),
            ("›", "the line goes on; scroll sideways"),
        ):  # fmt: skip
            out.append(Line(((f"  {glyph:<18}", "accent"), (meaning, ""))))
        out += [Line(()), Line((("Other keys", "head"),))]
        out += [
            Line(((f"  {text}", ""),))
            for text in (
                f"{self.studio.keymap_path} assigns other keys to commands,",
                'a line each: next-pass = "ctrl+n". The ids are those in parentheses.',
            )
        ]
        return out, []


class LogScreen(ListScreen):
    """The output of user code and of the engine; follows the end while the cursor is there."""

    heading = "log"

    def __init__(self, row: int = -1) -> None:
        """row: the line that the cursor is on at first; -1: the last one."""
        super().__init__()
        self._row = row

    def on_mount(self) -> None:
        super().on_mount()
        if self._row >= 0:
            self.query_one("#list", LineView).move(self._row)

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        return log_lines(self.studio.record), []

    def paint(self) -> None:
        view = self.query_one("#list", LineView)
        follow = view.cursor >= len(view.lines) - 1
        super().paint()
        if follow:
            view.put(len(view.lines) - 1)


class IrScreen(ListScreen):
    """A list with IR, in the readable form or as it is."""

    BINDINGS = bindings("ir")
    scope = "ir"
    KEYS = (("diff-form", "form"), *ListScreen.KEYS)

    def action_form(self) -> None:
        self.studio.select(readable=not self.studio.sel.readable)
        self.studio.keep_form()
        self.paint()


class EditScreen(IrScreen):
    """The effect of the last save on the selected kernel; computed on another thread."""

    heading = "what the last save did"

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        state = self.studio
        before, now = state.edits.before, state.edits.now
        kernel, backend, width = state.sel.kernel, state.sel.backend, state.size.width
        if before is None or now is None:
            return [], []
        if kernel in state.edits.broken:
            text = "The last save has no result for this kernel: see the error on the matrix."
            return [Line(((text, "warn"),))], []
        asked = (before, now, kernel, backend, width, state.sel.readable)
        if not edit_lines.has(*asked):
            state.compute(lambda: edit_lines(*asked))
            return [Line((("Comparing ...", "dim"),))], []
        return edit_lines(*asked), []
