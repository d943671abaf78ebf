"""The one-line bars: title on top, tabs, search, keys at the bottom; and the sign of no room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ...core.progress import fitting
from ...core.visible import visible_line
from ..commands import command, key_names

if TYPE_CHECKING:
    from ..app import StudioApp

__all__ = ["KeyBar", "PromptBar", "TabBar", "TitleBar", "TooSmall"]


class Bar(Static):
    """A line of text; ``self.studio`` is the app."""

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self._paint()

    def _paint(self) -> None:
        raise NotImplementedError

    @property
    def studio(self) -> StudioApp:
        return cast("StudioApp", self.app)  # pyright: ignore[reportUnknownMemberType]


class TitleBar(Bar):
    """The title of what is shown, and on the right the worker's activity."""

    DEFAULT_CSS = """
    TitleBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._left: Sequence[tuple[str, str]] = ()
        self._right: Sequence[str] = ("",)

    def set(
        self,
        left: Sequence[tuple[str, str]] | None = None,
        right: str | Sequence[str] | None = None,
    ) -> None:
        """Change one side or both. left: texts with Rich styles. right: forms of one text; the
        first that fits is shown."""
        before = self._left, self._right
        self._left = self._left if left is None else left
        if right is not None:
            self._right = (right,) if isinstance(right, str) else right
        if before != (self._left, self._right):
            self._paint()

    def _paint(self) -> None:
        width = max(1, self.size.width - 2)
        right = visible_line(fitting(self._right, width - 22))
        text = Text(no_wrap=True)
        for part, style in self._left:
            text.append(visible_line(part), style=style)
        text.truncate(max(0, width - len(right) - 2), overflow="ellipsis")
        text.append(" " * max(1, width - len(text) - len(right)))
        text.append(right)
        self.update(text)


class TabBar(Bar):
    """Names of tabs with their number keys; the current one reversed. Where not all fit, the first
    ones give way to the current one."""

    DEFAULT_CSS = """
    TabBar { height: 1; background: $surface; color: $foreground; padding: 0 1; }
    """

    class Picked(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = names
        self._current = ""
        self._ends: list[int] = []

    def set(self, current: str) -> None:
        """Show ``current`` as chosen."""
        if current == self._current:
            return
        self._current = current
        self._paint()

    def _paint(self) -> None:
        text = self._drawn(" {} {} ")
        # Before the first layout no width is known.
        if 0 < self.size.width < len(text) + 1:
            text = self._drawn("{}{}")
            at = self._names.index(self._current) if self._current in self._names else 0
            hidden = 0
            while self._ends[at] > self.size.width - 2 and hidden < at:
                hidden += 1
                text = self._drawn("{}{}", hidden)
        self.update(text)

    def _drawn(self, form: str, hidden: int = 0) -> Text:
        """form: of a number and a name. hidden: that many names are left out at the left."""
        text = Text(no_wrap=True)
        self._ends = []
        for i, name in enumerate(self._names, 1):
            if i <= hidden:
                self._ends.append(-1)
                continue
            style = "reverse bold" if name == self._current else ""
            number = i % 10 if i <= 10 else ""  # the keys of the others are in the help
            text.append(form.format(number, name), style=style)
            text.append(" ")
            self._ends.append(len(text))
        return text

    def on_click(self, event: events.Click) -> None:
        for name, end in zip(self._names, self._ends, strict=True):
            if event.x - 1 < end:
                self.post_message(self.Picked(name))
                return


class KeyBar(Bar):
    """The few keys that matter here; a click runs the action."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[tuple[str, str]] = ()
        self._ends: list[tuple[int, str]] = []

    def set(self, items: Sequence[tuple[str, str]]) -> None:
        """items: (command id, word); two ids joined by ``+`` are shown as one."""
        if items != self._items:
            self._items = items
            self._paint()

    def _paint(self) -> None:
        text = Text(no_wrap=True)
        self._ends = []
        room = self.size.width - 2
        # The last two (help and the way out) are never given up.
        for i, (ids, word) in enumerate(self._items):
            parts = [(key_names(self.studio.keys_of(id))[0], id) for id in ids.split("+")]
            rest = 0 if i >= len(self._items) - 2 else 20
            if len(text) + sum(len(k) + 1 for k, _ in parts) + len(word) + rest > room:
                continue
            for key, id in parts:
                text.append(key, style="bold")
                text.append(" ")
                self._ends.append((len(text), id))
            text.append(f"{word}   ")
            self._ends[-1] = (len(text), parts[-1][1])
        self.update(text)

    async def on_click(self, event: events.Click) -> None:
        for end, id in self._ends:
            if event.x - 1 < end:
                await self.studio.run_command(command(id))
                return


class PromptBar(Input):
    """A line in which something is typed; hidden until asked for."""

    DEFAULT_CSS = """
    PromptBar { height: 1; border: none; padding: 0 1; background: $boost; display: none; }
    PromptBar:focus { border: none; }
    PromptBar.open { display: block; }
    """

    def __init__(
        self, placeholder: str, entered: Callable[[str], object], *, id: str
    ) -> None:  # fmt: skip
        """entered: gets the text, at once when enter is pressed."""
        super().__init__(placeholder=placeholder, select_on_focus=False, id=id)
        self._entered = entered

    async def action_submit(self) -> None:
        self._entered(self.value)

    def focus(self, scroll_visible: bool = True) -> PromptBar:
        """Take the focus at once: what is typed next may already wait."""
        self.screen.set_focus(self, scroll_visible)
        self.select_all()
        return self

    def ask(self, value: str | None = None, placeholder: str = "") -> None:
        """Show it. value: what is in it at first; None for what it had."""
        self.value = self.value if value is None else value
        self.placeholder = placeholder or self.placeholder
        self.add_class("open")
        self.focus()

    def leave(self, to: Widget) -> bool:
        """Hide it and focus another widget; False if it is not open."""
        if not self.has_class("open"):
            return False
        self.remove_class("open")
        to.focus()
        return True

    def typed(self, character: str) -> None:
        """Put a character in place of what is selected, as a key does."""
        self.replace(character, *self.selection)


class TooSmall(Widget):
    """Covers a screen that has too little room, and says how much it needs."""

    DEFAULT_CSS = """
    TooSmall {
        layer: above; display: none; width: 100%; height: 100%; background: $background;
        color: $foreground; content-align: center middle; text-align: center;
    }
    """

    def __init__(self, least: tuple[int, int]) -> None:
        super().__init__()
        self._least = least

    def on_resize(self, event: events.Resize) -> None:
        self.refresh()

    def render(self) -> Text:
        width, height = self._least
        size = self.app.size  # pyright: ignore[reportUnknownMemberType]
        return Text(f"needs {width} x {height}\nhas {size.width} x {size.height}", justify="center")
