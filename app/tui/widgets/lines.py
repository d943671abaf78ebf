"""A scrolling list of lines with a cursor, drawn line by line.

Lines are `core.lines.Line`. Only visible lines are rendered and the rendered strips are kept, so
100,000 lines cost no more than a screenful. The cursor keeps its place by the key of its line
when lines are replaced; copying takes `Line.copy`, which has no gutter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.theme import Theme

from ...core.lines import Line, text_of
from ..commands import bindings
from ..styles import cursor_style, search_style, styles

__all__ = ["LineView"]

_KEPT = 2000


class LineView(ScrollView, can_focus=True):
    """See the module docstring. ``header`` lines stay on top and scroll sideways only."""

    BINDINGS = bindings("list")
    DEFAULT_CSS = """
    LineView { background: $background; color: $foreground; scrollbar-size: 1 1; }
    """

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor stands on another line."""

        def __init__(self, view: LineView, line: Line | None) -> None:
            super().__init__()
            self.view = view
            self.line = line

        @property
        def control(self) -> LineView:
            return self.view

    class Chosen(Moved):
        """Enter or a double click on a line."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.lines: Sequence[Line] = ()
        self.header: Sequence[Line] = ()
        self.needle = ""
        self._strips: dict[int, Strip] = {}
        self._styles: dict[str, Style] = {}

    @property
    def look(self) -> Theme:
        """The app's theme."""
        return self.app.current_theme  # pyright: ignore[reportUnknownMemberType]

    # --- content ---------------------------------------------------------------------------

    def show(self, lines: Sequence[Line], header: Sequence[Line] = (), key: object = None) -> None:
        """Replace the lines; the cursor goes to ``key``, or stays with the key it stood on."""
        old = self.current
        top = self.cursor - self.scroll_offset.y
        self.lines, self.header = lines, header
        self._strips.clear()
        width = max((self._width(line) for line in (*lines[:4000], *header)), default=0)
        self.virtual_size = Size(width + 1, len(lines) + len(header))
        wanted = key if key is not None else old.key if old is not None else None
        found = self.find_key(wanted) if wanted is not None else None
        at = found if found is not None else min(self.cursor, max(0, len(lines) - 1))
        moved = at != self.cursor
        self.set_reactive(LineView.cursor, at)
        if found is not None and moved:
            # Hold the line at the row of the screen where it was.
            self.scroll_to(y=max(0, at - top), animate=False, immediate=True)
        self._reveal()
        self.refresh()

    @staticmethod
    def _width(line: Line) -> int:
        return sum(len(text) for text, _ in line.spans)

    def find_key(self, key: object) -> int | None:
        """The first line with this key."""
        return next((i for i, line in enumerate(self.lines) if line.key == key), None)

    @property
    def current(self) -> Line | None:
        """The line under the cursor."""
        return self.lines[self.cursor] if 0 <= self.cursor < len(self.lines) else None

    # --- drawing ---------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y < len(self.header):
            strip = self._strip(self.header[y])
        else:
            index = y - len(self.header) + self.scroll_offset.y
            if index >= len(self.lines):
                return Strip.blank(width, self.rich_style)
            cached = self._strips.get(index)
            if cached is None:
                if len(self._strips) > _KEPT:
                    self._strips.clear()
                cached = self._strips[index] = self._strip(self.lines[index])
            strip = cached
            if index == self.cursor:
                theme = self.look
                over = cursor_style(theme.name, theme.dark, self.has_focus)
                strip = Strip(Segment(s.text, (s.style or Style()) + over) for s in strip)
                strip = strip.extend_cell_length(
                    max(width + self.scroll_offset.x, strip.cell_length), self.rich_style + over
                )
        x = self.scroll_offset.x
        return strip.crop_extend(x, x + width, self.rich_style)

    def _strip(self, line: Line) -> Strip:
        if not self._styles:
            theme = self.look
            self._styles = styles(theme.name, theme.dark)
        base = self.rich_style
        if line.row:
            base = base + self._styles[line.row]
        table = self._styles
        segments = [Segment(text, base + table[style]) for text, style in line.spans]
        if self.needle:
            segments = list(self._marked(segments))
        strip = Strip(segments)
        if line.row:
            strip = strip.extend_cell_length(max(self.virtual_size.width, self.size.width), base)
        return strip

    def _marked(self, segments: Sequence[Segment]) -> Iterator[Segment]:
        text = "".join(s.text for s in segments).lower()
        needle = self.needle.lower()
        theme = self.look
        mark = search_style(theme.name, theme.dark)
        cuts: list[tuple[int, int]] = []
        at = text.find(needle)
        while at >= 0:
            cuts.append((at, at + len(needle)))
            at = text.find(needle, at + len(needle))
        at = 0
        for segment in segments:
            style = segment.style or Style()
            start, end = at, at + len(segment.text)
            for low, high in cuts:
                if high <= start or low >= end:
                    continue
                if low > start:
                    yield Segment(segment.text[start - at : low - at], style)
                yield Segment(
                    segment.text[max(low, start) - at : min(high, end) - at], style + mark
                )
                start = min(high, end)
            if start < end:
                yield Segment(segment.text[start - at :], style)
            at = end

    def restyle(self) -> None:
        """Draw anew, after a change of theme."""
        self._styles = {}
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}
        self._strips.clear()

    # --- moving ----------------------------------------------------------------------------

    @property
    def page(self) -> int:
        """Lines that fit, header not counted."""
        return max(1, self.scrollable_content_region.height - len(self.header))

    def move(self, to: int) -> None:
        """Put the cursor on line ``to``, kept within the list."""
        self.cursor = max(0, min(to, len(self.lines) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(self, self.current))

    def _reveal(self) -> None:
        top, page = self.scroll_offset.y, self.page
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + page:
            self.scroll_to(y=self.cursor - page + 1, animate=False, immediate=True)

    def action_line(self, step: int) -> None:
        self.move(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.move(self.cursor + step * max(1, self.page - 1))

    def action_edge(self, end: int) -> None:
        self.move(len(self.lines) - 1 if end else 0)

    def action_side(self, step: int) -> None:
        self.scroll_to(x=max(0, self.scroll_offset.x + step), animate=False, immediate=True)

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self, self.current))

    def on_click(self, event: events.Click) -> None:
        index = event.y - len(self.header) + self.scroll_offset.y
        if event.y >= len(self.header) and index < len(self.lines):
            self.move(index)
            if event.chain == 2:
                self.action_choose()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        self._reveal()

    def on_focus(self, event: events.Focus) -> None:
        self.refresh()

    def on_blur(self, event: events.Blur) -> None:
        self.refresh()

    # --- search and copy -------------------------------------------------------------------

    def search(self, needle: str, step: int = 1, *, here: bool = False) -> bool:
        """Mark ``needle`` and go to the next (step 1) or previous (-1) line that has it.

        here: the line under the cursor counts. Case is ignored. False if no line has it.
        """
        if needle != self.needle:
            self.needle = needle
            self._strips.clear()
            self.refresh()
        n = len(self.lines)
        if not needle or not n:
            return False
        low = needle.lower()
        first = self.cursor if here else self.cursor + step
        for k in range(n):
            at = (first + step * k) % n
            if low in text_of(self.lines[at]).lower():
                self.move(at)
                return True
        return False

    def copied(self) -> str:
        """What copying takes: the line under the cursor."""
        line = self.current
        if line is None:
            return ""
        return line.copy if line.copy is not None else text_of(line)

    def validate_cursor(self, value: Any) -> int:
        return int(value)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.header:
            self.refresh(Region(0, 0, self.size.width, len(self.header)))
