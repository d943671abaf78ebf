"""A scrolling list of lines with a cursor, drawn line by line.

Lines are `core.lines.Line`. Only visible lines are rendered and the rendered strips are kept, so
100,000 lines cost no more than a screenful. The cursor keeps its place by the key of its line
when lines are replaced; copying takes `Line.copy`, which has no gutter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.theme import Theme

from ...core.lines import Line, index_of, search_text, text_of, width_of
from ...core.visible import visible_line
from ..commands import bindings
from ..styles import cursor_style, search_style, styles

__all__ = ["LineView"]

_KEPT = 2000


class LineView(ScrollView, can_focus=True):
    """See the module docstring. ``header`` lines stay on top and scroll sideways only."""

    BINDINGS = bindings("list")
    DEFAULT_CSS = """
    LineView {
        background: $background; color: $foreground;
        scrollbar-size: 0 1; scrollbar-background: $background; scrollbar-color: $foreground 30%;
        scrollbar-background-hover: $background; scrollbar-color-hover: $primary;
        scrollbar-background-active: $background; scrollbar-color-active: $primary;
    }
    """

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, view: LineView, line: Line | None) -> None:
            super().__init__()
            self.view = view
            self.line = line

        @property
        def control(self) -> LineView:
            return self.view

    class Chosen(Moved):
        """Enter or a double click on a line."""

    def __init__(self, *, id: str | None = None, idle_cursor: bool = True) -> None:
        """idle_cursor: whether the cursor is seen while something else has the focus."""
        super().__init__(id=id)
        self._idle_cursor = idle_cursor
        self.lines: Sequence[Line] = ()
        self.header: Sequence[Line] = ()
        self.needle = ""
        self.state = ""
        self.unfold: Callable[[], object] | None = None
        """Shows all that is folded; None for a list without folds."""
        self._jumping = False
        self._labels: Mapping[int, str] = {}
        self._strips: dict[int, Strip] = {}
        self._styles: dict[str, Style] = {}

    @property
    def look(self) -> Theme:
        """The app's theme."""
        return self.app.current_theme  # pyright: ignore[reportUnknownMemberType]

    # --- content ---------------------------------------------------------------------------

    def show(
        self,
        lines: Sequence[Line],
        header: Sequence[Line] = (),
        key: object = None,
        state: str = "",
    ) -> None:
        """Replace the lines; the cursor goes to ``key``, or stays with the key it was on.

        Only a person moves: no message is posted. state: ``pending`` or ``stale`` if all of the
        lines are of an older save; then they have that style and no other.
        """
        same = lines is self.lines and state == self.state
        if same and list(header) == list(self.header) and key is None:
            return
        self.state = state
        old = self.current
        row = self.cursor - self.scroll_offset.y
        self.lines, self.header = lines, header
        self._strips.clear()
        if not same:
            width = max(width_of(lines), width_of(header))
            self.virtual_size = Size(width + 1, len(lines) + len(header))
        wanted = key if key is not None else old.key if old is not None else None
        now = self.current
        if wanted is None or now is None or now.key != wanted:
            # If several lines have one key, the cursor may be on any of them.
            found = index_of(lines, wanted)
            at = found if found is not None else min(self.cursor, max(0, len(lines) - 1))
            if found is not None and at != self.cursor and old is not None and old.key == wanted:
                # Hold the line at the row of the screen where it was.
                self._scroll(y=max(0, at - row))
            self.set_reactive(LineView.cursor, at)
        self._jumping = self._jumping or key is not None
        self._reveal()
        self.refresh()

    def put(self, index: int) -> None:
        """Set the cursor without a message."""
        self.set_reactive(LineView.cursor, max(0, min(index, len(self.lines) - 1)))
        self._reveal()
        self.refresh()

    @property
    def current(self) -> Line | None:
        """The line under the cursor."""
        return self.lines[self.cursor] if 0 <= self.cursor < len(self.lines) else None

    # --- drawing ---------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Columns for text, without the scroll bar."""
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        width = self.room
        base = self.rich_style
        if y < len(self.header):
            strip = self._strip(self.header[y])
        else:
            index = y - len(self.header) + self.scroll_offset.y
            if index >= len(self.lines):
                return Strip.blank(width, base)
            cached = self._strips.get(index)
            line = self.lines[index]
            if cached is None:
                if len(self._strips) > _KEPT:
                    self._strips.clear()
                cached = self._strips[index] = self._strip(line)
            strip = cached
            if line.row and not self.state:
                base = base + self._style(line.row)
            if index == self.cursor and (self._idle_cursor or self.has_focus):
                theme = self.look
                over = cursor_style(theme.name, theme.dark, self.has_focus)
                mark = search_style(theme.name, theme.dark)
                strip = Strip(Segment(s.text, _laid_over(s.style, over, mark)) for s in strip)
                base = base + over
            if index in self._labels:
                strip = self._labelled(strip, self._labels[index])
        x = self.scroll_offset.x
        if strip.cell_length <= x + width:
            return strip.crop_extend(x, x + width, base)
        # What is cut off is marked by a sign at the edge, in place of a scroll bar.
        cut = Segment(self.cut_sign, base + self._table()["dim"])
        return Strip([*strip.crop(x, x + width - 1), cut], width)

    def _labelled(self, strip: Strip, label: str) -> Strip:
        """The line with a label in place of its first columns that are seen."""
        x, width = self.scroll_offset.x, len(label)
        theme = self.look
        segment = Segment(label, self.rich_style + search_style(theme.name, theme.dark))
        left = strip.crop_extend(0, x, self.rich_style) if x else Strip([])
        return Strip([*left, segment, *strip.crop(x + width)])

    def label(self, labels: Mapping[int, str]) -> None:
        """Show labels on lines, by their index; none to show them no more."""
        if labels or self._labels:
            self._labels = labels
            self.refresh()

    @property
    def seen(self) -> range:
        """The indices of the lines on the screen."""
        top = self.scroll_offset.y
        if not self.display or not self.region:
            return range(0)
        return range(top, min(top + self.page, len(self.lines)))

    @property
    def cut_sign(self) -> str:
        """The sign at the edge of a line that goes on beyond it."""
        return ">" if getattr(self.screen, "ascii_only", False) else "›"

    def _table(self) -> dict[str, Style]:
        if not self._styles:
            theme = self.look
            self._styles = styles(theme.name, theme.dark)
        return self._styles

    def _style(self, name: str) -> Style:
        """The style called ``name``, which may be several names, the ground first."""
        table = self._table()
        found = table.get(name)
        if found is None:
            found = table[name] = Style.combine(table[part] for part in name.split())
        return found

    def _strip(self, line: Line) -> Strip:
        base = self.rich_style
        if line.row and not self.state:
            base = base + self._style(line.row)
        segments = [
            Segment(visible_line(text), base + self._style(self.state or style))
            for text, style in line.spans
        ]
        if self.needle:
            segments = list(self._marked(segments))
        return Strip(segments)

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
        """Redraw, after a change of theme."""
        self._styles = {}
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}
        self._strips.clear()

    # --- moving ----------------------------------------------------------------------------

    def focus(self, scroll_visible: bool = True) -> LineView:
        """Take the focus at once: what is typed next may already wait."""
        self.screen.set_focus(self, scroll_visible)
        return self

    @property
    def page(self) -> int:
        """Lines that fit, header not counted."""
        return max(1, self.scrollable_content_region.height - len(self.header))

    def move(self, to: int) -> None:
        """Put the cursor on line ``to``, kept within the list."""
        self.cursor = max(0, min(to, len(self.lines) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        before = self.scroll_offset
        self._reveal()
        if self.scroll_offset == before:
            for index in (old, new):
                y = index - before.y + len(self.header)
                self.refresh(Region(0, y, self.size.width, 1))
        else:
            self.refresh()
        self.post_message(self.Moved(self, self.current))

    def _reveal(self) -> None:
        """Scroll so that the cursor is seen; a far jump puts it on the upper third.

        So does being shown a line by its key: what comes after it is of interest, too.
        """
        if not self.size.height:
            return
        top, page = self.scroll_offset.y, self.page
        jumping, self._jumping = self._jumping, False
        if top <= self.cursor < top + page:
            return
        if jumping or self.cursor < top - page or self.cursor >= top + 2 * page:
            self._scroll(y=max(0, self.cursor - page // 3))
        else:
            self._scroll(y=self.cursor if self.cursor < top else self.cursor - page + 1)

    def reveal_block(self, more: int) -> None:
        """Scroll so that the lines of the cursor's key, and ``more`` below them, can be seen."""
        if (now := self.current) is None:
            return
        last = self.cursor
        while last + 1 < len(self.lines) and self.lines[last + 1].key == now.key:
            last += 1
        wanted = min(self.cursor, last + more + 1 - self.page)
        if wanted > self.scroll_offset.y:
            self._scroll(y=wanted)

    def _scroll(self, x: float | None = None, y: float | None = None) -> None:
        self.scroll_to(x=x, y=y, animate=False, immediate=True, force=True)

    def action_line(self, step: int) -> None:
        self.move(self.cursor + step)

    def action_page(self, step: int) -> None:
        self.move(self.cursor + step * max(1, self.page - 1))

    def action_edge(self, end: int) -> None:
        self.move(len(self.lines) - 1 if end else 0)

    def action_side(self, step: int) -> None:
        most = max(0, self.virtual_size.width - self.room)
        self._scroll(x=max(0, min(self.scroll_offset.x + step, most)))

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

    def search(
        self, needle: str, step: int = 1, *, here: bool = False, typing: bool = False
    ) -> bool:
        """Mark ``needle`` and go to the next (step 1) or previous (-1) line that has it.

        here: the line under the cursor counts. Case is ignored. False if no line has it. A line
        that is folded away is found, too, and unfolded, but not while the user is still ``typing``.
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
            if low in search_text(self.lines, at).lower():
                if typing or not self._unfolded(at, step):
                    self.move(at)
                    return True
                return self.search(needle, step, here=True)
        return False

    def _unfolded(self, at: int, step: int) -> bool:
        """Unfold what line ``at`` hides, and put the cursor at the end of it that a search in this
        direction comes to first. False if it hides nothing."""
        line = self.lines[at]
        if not line.folded or self.unfold is None:
            return False
        key = cast("tuple[object, ...]", line.key)
        after = self.lines[at + 1].key if step < 0 and at + 1 < len(self.lines) else None
        self.unfold()
        first = index_of(self.lines, key[1] if len(key) == 2 else key[1:])
        last = index_of(self.lines, after)
        if step < 0:
            self.put(last - 1 if last is not None else len(self.lines) - 1)
        else:
            self.put(first if first is not None else min(at, len(self.lines) - 1))
        return True

    def files(self) -> Mapping[str, Callable[[], str]]:
        """More files that the export of the list writes, by suffix."""
        return {}

    def copied(self) -> str:
        """The text that is copied: the line under the cursor."""
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


def _laid_over(style: Style | None, over: Style, mark: Style) -> Style:
    """The style of a part of the line under the cursor; a match of the search keeps its own."""
    style = style or Style()
    match = mark.bgcolor is not None and style.bgcolor == mark.bgcolor
    return style + over + mark if match else style + over
