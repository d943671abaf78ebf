"""The one-line bars: title on top, tabs, errors, search, keys at the bottom."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widgets import Input, Static

from ..commands import COMMANDS, Command

__all__ = ["KeyBar", "SearchBar", "TabBar", "TitleBar"]


class TitleBar(Static):
    """What is shown, and on the right what the worker does."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._left = ""
        self._right = ""

    def set(self, left: str | None = None, right: str | None = None) -> None:
        """Change one side or both."""
        self._left = self._left if left is None else left
        self._right = self._right if right is None else right
        self._paint()

    def on_resize(self, event: events.Resize) -> None:
        self._paint()

    def _paint(self) -> None:
        width = max(1, self.size.width - 2)
        right = self._right[: max(0, width - 20)]
        left = self._left
        room = width - len(right) - 2
        if len(left) > room:
            left = left[: max(0, room - 1)] + "…"
        text = Text(left, style="bold", no_wrap=True)
        text.append(" " * max(1, width - len(left) - len(right)))
        text.append(right, style="not bold")
        self.update(text)


class TabBar(Static):
    """Names of tabs with their number keys; the current one reversed."""

    DEFAULT_CSS = """
    TabBar { height: 1; background: $surface; padding: 0 1; }
    """

    class Picked(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("", markup=False)
        self._names = names
        self._ends: list[int] = []

    def set(self, current: str, note: str = "") -> None:
        """Show ``current`` as chosen; ``note`` stands at the end of the line."""
        text = Text(no_wrap=True)
        self._ends = []
        for i, name in enumerate(self._names, 1):
            label = f" {i} {name} "
            text.append(label, style="reverse bold" if name == current else "")
            self._ends.append(len(text))
        if note:
            text.append(f"  {note}", style="italic")
        self.update(text)

    def on_click(self, event: events.Click) -> None:
        for name, end in zip(self._names, self._ends, strict=True):
            if event.x - 1 < end:
                self.post_message(self.Picked(name))
                return


class KeyBar(Static):
    """The few keys that matter here; a click runs the action."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self, scopes: Sequence[str]) -> None:
        super().__init__("", markup=False)
        self._commands = [
            c for scope in (*scopes, "everywhere") for c in COMMANDS if c.scope == scope and c.hint
        ]
        self._ends: list[tuple[int, Command]] = []

    def on_mount(self) -> None:
        self._paint()

    def on_resize(self, event: events.Resize) -> None:
        self._paint()

    def _paint(self) -> None:
        text = Text(no_wrap=True)
        self._ends = []
        for command in self._commands:
            key = _shown(command.keys)
            if len(text) + len(key) + len(command.hint) + 3 > self.size.width - 2:
                break
            text.append(key, style="bold")
            text.append(f" {command.hint}  ")
            self._ends.append((len(text), command))
        self.update(text)

    async def on_click(self, event: events.Click) -> None:
        for end, command in self._ends:
            if event.x - 1 < end:
                if command.action.startswith(("app.", "screen.")):
                    await self.run_action(command.action)
                elif self.screen.focused is not None:
                    await self.screen.focused.run_action(command.action)
                return


def _shown(keys: str) -> str:
    names = {
        "question_mark": "?", "slash": "/", "colon": ":", "right_square_bracket": "[ ]",
        "left_square_bracket": "[", "escape": "esc", "right_curly_bracket": "}",
        "left_curly_bracket": "{",
    }  # fmt: skip
    first = keys.split(",")[0]
    return names.get(first, first)


class SearchBar(Input):
    """The line in which a search is typed; hidden until asked for."""

    DEFAULT_CSS = """
    SearchBar { height: 1; border: none; padding: 0 1; background: $boost; display: none; }
    SearchBar:focus { border: none; }
    SearchBar.open { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(placeholder="search, enter to go on, esc to leave", select_on_focus=True)
