"""The Autodiff tab: the IR before and after differentiation side by side, below it the adstacks.

What is selected on one side marks its counterparts on the other, which goes there by itself. Of the
stack under the cursor the bottom shows everything.
"""

from __future__ import annotations

from typing import Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ...core.lines import Line, index_of, wrapped
from ...core.pending import state_of
from ...core.state import backend_of, kernel_of
from ...core.views.adstacks import (
    Shown,
    chosen_stack,
    fact_lines,
    failure_lines,
    shown_of,
    stack_lines,
    stack_rows,
    summary,
    why_none,
)
from ...core.views.reversal import FORWARD, REVERSE, counterparts, linked_lines, titles
from .lines import LineView
from .pane import Pane

__all__ = ["AutodiffPane"]

PANES: Final = ("adforward", "adreverse", "adstacks", "adstack")
_SIDES: Final = {FORWARD: "adforward", REVERSE: "adreverse"}
_NUMBERS: Final = 100
"""Columns from which on the listings have line numbers."""


class AutodiffPane(Pane, Vertical):
    """See the module docstring."""

    DEFAULT_CSS = """
    AutodiffPane #sides { height: 1fr; min-height: 4; }
    AutodiffPane #adforward { width: 1fr; height: 1fr; }
    AutodiffPane #adreverse { width: 1fr; height: 1fr; border-left: solid $panel-lighten-2; }
    AutodiffPane #adstacks {
        height: auto; min-height: 4; max-height: 32%; border-top: solid $panel-lighten-2;
    }
    AutodiffPane #adstack { height: 38%; border-top: solid $panel-lighten-2; }
    AutodiffPane.alone #adstacks, AutodiffPane.alone #adstack {
        height: 1fr; max-height: 100%; border-top: none;
    }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        # What is marked on each side: counterparts of what was selected on the other, `_side`.
        self._marked: dict[str, tuple[int, ...]] = {FORWARD: (), REVERSE: ()}
        self._put = ("", "")
        self._side = REVERSE
        self._last = "adreverse"
        self.zoomed = False

    def compose(self) -> ComposeResult:
        with Horizontal(id="sides"):
            yield LineView(id="adforward")
            yield LineView(id="adreverse")
        yield LineView(id="adstacks")
        yield LineView(id="adstack", idle_cursor=False)

    def _view(self, name: str) -> LineView:
        return self.query_one(f"#{name}", LineView)

    def _shown(self) -> Shown | None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            return None
        backend = backend_of(state.record, state.sel)
        return shown_of(state.record, kernel, backend.backend if backend is not None else "")

    def _state_of(self, shown: Shown | None, *parts: str) -> str:
        return "" if shown is None else state_of(shown.kernel, shown.backend, *parts)

    # --- painting --------------------------------------------------------------------------

    def paint(self) -> None:
        """Show the app's selection."""
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            return
        shown = self._shown()
        self._lay_out(shown)
        if shown is None:
            lines = [Line(((text, "dim"),)) for text in why_none(state.record, kernel)]
            room = state.size.width - 1
            self._view("adstack").show([part for line in lines for part in wrapped(line, room)])
            return
        # Again each time: a save may have assigned other numbers to the ops.
        self._mark(shown, self._side, state.sel.op)
        for side in (FORWARD, REVERSE):
            self._paint_side(shown, side)
        self._paint_stacks(shown)

    def _lay_out(self, shown: Shown | None) -> None:
        """Show only the place for texts if there is no gradient."""
        alone = "adstack" if shown is None else self._last if self.zoomed else ""
        self.set_class(bool(alone), "alone")
        for name in ("sides", "adstacks", "adstack"):
            holds = name == "sides" and alone in _SIDES.values()
            self.query_one(f"#{name}").display = not alone or holds or name == alone

    def _paint_side(self, shown: Shown, side: str, go: bool = False) -> None:
        state = self.studio
        view = self._view(_SIDES[side])
        compiled = shown.backend.compile
        if compiled is None:
            view.show([Line((("Not compiled.", "dim"),))])
            return
        width = self.size.width or state.size.width
        marked = self._marked[side]
        lines = linked_lines(
            compiled, shown.autodiff, side, marked, width >= _NUMBERS, state.ascii_only
        )
        title = titles(shown.autodiff)[side == REVERSE]
        head = Line(((title, "title"), (f"  {len(lines):,} lines", "dim")))
        key = marked[0] if go and marked else None
        view.show(lines, [head], key, self._state_of(shown, "passes"))

    def _paint_stacks(self, shown: Shown) -> None:
        state = self.studio
        width = (self.size.width or state.size.width) - 2
        head, lines = stack_rows(shown.autodiff, width, state.ascii_only)
        put = shown.kernel.id, chosen_stack(shown.autodiff, state.sel.stack)
        key = put[1] if put != self._put else None
        self._put = put
        title = Line(((summary(shown.autodiff), "title"),))
        old = self._state_of(shown, "passes", "launches")
        self._view("adstacks").show(lines, [title, *head], key or None, old)
        self._paint_stack(shown)

    def _paint_stack(self, shown: Shown) -> None:
        state = self.studio
        view = self._view("adstack")
        width = (self.size.width or state.size.width) - 2
        key = chosen_stack(shown.autodiff, state.sel.stack)
        lines = stack_lines(shown.autodiff, key, width, state.ascii_only)
        facts = fact_lines(shown.autodiff, width)
        gap = [Line(())] if lines and facts else []
        old = self._state_of(shown, "passes", "launches")
        view.show([*failure_lines(shown), *lines, *gap, *facts], state=old)

    # --- what the person does --------------------------------------------------------------

    def _mark(self, shown: Shown, side: str, op: int) -> str:
        """Mark the counterparts of an op of ``side`` on the other side; return that side's name."""
        other = FORWARD if side == REVERSE else REVERSE
        self._side = side
        self._marked[other] = counterparts(shown.autodiff, side).get(op, ())
        self._marked[side] = ()
        return other

    @on(LineView.Moved, "#adforward")
    @on(LineView.Moved, "#adreverse")
    def _op_picked(self, event: LineView.Moved) -> None:
        event.stop()
        shown = self._shown()
        # What is opened was picked before.
        if event.line is None or shown is None or isinstance(event, LineView.Chosen):
            return
        key = event.line.key
        if event.line.line:
            self.studio.select(line=event.line.line)
        if not isinstance(key, int):
            return
        self._last = event.view.id or self._last
        self._select(shown, FORWARD if event.view.id == "adforward" else REVERSE, key)

    def _select(self, shown: Shown, side: str, op: int) -> None:
        """Take an op of ``side``, and let the other side show what belongs to it."""
        self.studio.select(op=op)
        other = self._mark(shown, side, op)
        self._paint_side(shown, other, go=True)
        self._paint_side(shown, side)

    @on(LineView.Chosen, "#adforward")
    @on(LineView.Chosen, "#adreverse")
    def _op_followed(self, event: LineView.Chosen) -> None:
        """Go to the counterpart."""
        event.stop()
        shown = self._shown()
        key = event.line.key if event.line is not None else None
        if shown is None or not isinstance(key, int):
            return
        side = FORWARD if event.view.id == "adforward" else REVERSE
        opposite = FORWARD if side == REVERSE else REVERSE
        other = self._view(_SIDES[opposite])
        found = counterparts(shown.autodiff, side).get(key, ())
        at = index_of(other.lines, found[0]) if found else None
        if at is None:
            self.notify("Nothing on the other side belongs to this line.", timeout=2)
            return
        other.put(at)
        self._go(_SIDES[opposite])
        self._select(shown, opposite, found[0])

    @on(LineView.Moved, "#adstacks")
    def _stack_picked(self, event: LineView.Moved) -> None:
        event.stop()
        shown = self._shown()
        if event.line is not None and isinstance(event.line.key, str) and shown is not None:
            self.studio.select(stack=event.line.key)
            self._put = shown.kernel.id, event.line.key
            self._paint_stack(shown)

    @on(LineView.Chosen, "#adstacks")
    def _stack_opened(self, event: LineView.Chosen) -> None:
        event.stop()
        self._go("adstack")

    def ir_view(self) -> LineView | None:
        """The list of IR that has the focus."""
        found = next((n for n in _SIDES.values() if self._view(n).has_focus), None)
        return self._view(found) if found is not None else None

    def focus_first(self) -> None:
        """Focus the pane that had it last, or what there is to read."""
        name = self._last if self._shown() is not None else "adstack"
        self._view(name).focus()

    def _go(self, name: str) -> None:
        self._last = name
        self._lay_out(self._shown())
        self._view(name).focus()

    def other_pane(self) -> None:
        """Forward, reverse, stacks, details, and round again."""
        if self._shown() is None:
            return
        names = [n for n in PANES if self._view(n).lines]
        here = next((n for n in names if self._view(n).has_focus), names[-1])
        self._go(names[(names.index(here) + 1) % len(names)])

    def zoom(self) -> None:
        """Only the focused pane, or all."""
        here = next((n for n in PANES if self._view(n).has_focus), self._last)
        self.zoomed = not self.zoomed
        self._go(here)
        self.call_after_refresh(self.paint)

    def back(self) -> bool:
        """Out of the zoom, or from the details to the stacks. False at the top."""
        if self.zoomed:
            self.zoom()
        elif self._view("adstack").has_focus and self._shown() is not None:
            self._go("adstacks")
        else:
            return False
        return True
