"""The interface of a tab to its kernel's screen, and the tab of a panel that is one list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from textual.widget import Widget

from ...core.lines import Line
from ...core.state import kernel_of
from ...core.visible import visible_line
from ...panels import Look, Panel, Shown, faulty
from .lines import LineView

if TYPE_CHECKING:
    from ..app import StudioApp

__all__ = ["LinesPane", "Pane", "make_pane"]


class Pane:
    """Mixed into the widget of a tab, which is made with the id of its panel."""

    scope = ""
    """The scope of the commands of this tab alone."""

    one_list = False
    """True for a tab that has no other list to go to."""

    @property
    def studio(self) -> StudioApp:
        return cast("StudioApp", cast(Any, self).app)

    def subject(self) -> Look | None:
        """The state that the app shows; None without a kernel."""
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            return None
        width = cast(Widget, self).size.width or state.size.width
        return Look(
            state.record, kernel, state.sel, state.size.width, state.size.height, width,
            state.ascii_only, state.history,
        )  # fmt: skip

    def paint(self) -> None:
        """Show the app's selection."""
        raise NotImplementedError

    def focus_first(self) -> None:
        """Focus the list that had the focus last."""
        raise NotImplementedError

    def ir_view(self) -> LineView | None:
        """The list whose lines are ops, keyed by their ids; None if none has the focus."""
        return None

    def readable_names(self, op: int, uses: bool) -> list[int] | None:
        """The ops that the line about ``op`` uses, or those that use it, in the readable form of
        IR; None if that is not shown."""
        return None

    def turn(self, name: str) -> bool:
        """Change a way of showing; False if the pane does not have it."""
        return False

    def next_change(self, step: int) -> bool:
        """Go to the next or previous change; False if the pane shows none."""
        return False

    def other_pane(self) -> None:
        """Go from one list to the next."""
        raise NotImplementedError

    def zoom(self) -> None:
        """Show only the focused list, or all."""
        raise NotImplementedError

    def back(self) -> bool:
        """One level out; False at the top."""
        return False

    def cancel(self) -> bool:
        """Give up work that the tab has begun; False if there is none."""
        return False

    def run(self, command: str, *more: Any) -> None:
        """Carry out a command of the tab's own scope."""
        raise NotImplementedError


class LinesPane(Pane, LineView):
    """The tab of a panel with `Tab.draw`."""

    one_list = True

    def __init__(self, panel: Panel) -> None:
        super().__init__(id=panel.id)
        assert panel.tab is not None
        self.tab = panel.tab
        # What the cursor was last put on, so that it is put there only once.
        self._put: object = None
        if "whole" in self.tab.flips:
            self.unfold = self._unfold

    def _unfold(self) -> None:
        self.studio.select(whole=True)
        self.paint()

    def _draw(self) -> Shown:
        look = self.subject()
        if look is None or self.tab.draw is None:
            return Shown(())
        job = self.tab.job(look) if self.tab.job is not None else None
        if job is not None:
            self.studio.compute(job[1])
            return Shown([Line(((job[0], "dim"),))])
        return self.tab.draw(look)

    def paint(self) -> None:
        shown = self._draw()
        moved = shown.at is not None and shown.at != self._put
        self._put = shown.at if moved else self._put
        self.show(shown.lines, shown.header, shown.key if moved else None, shown.state)
        if moved and shown.row is not None:
            self.put(shown.row)

    def follow(self, line: Line) -> None:
        """Select what the cursor was moved to by hand."""
        look = self.subject()
        if look is None or self.tab.moved is None:
            return
        changes = self.tab.moved(look, line)
        if changes:
            self.studio.select(**changes)
            self._put = self._draw().at

    def files(self) -> Mapping[str, Callable[[], str]]:
        look = self.subject()
        return {} if look is None or self.tab.files is None else self.tab.files(look)

    def focus_first(self) -> None:
        self.focus()

    def ir_view(self) -> LineView | None:
        return self if self.tab.ir else None


def make_pane(panel: Panel) -> Widget:
    """The widget of a panel's tab."""
    assert panel.tab is not None
    if not panel.tab.pane:
        return LinesPane(panel)
    module, _, name = panel.tab.pane.partition(":")
    try:
        return getattr(import_module(module), name)(id=panel.id)
    except Exception as error:  # the code of others, if it is the panel of another distribution
        fault = f"{panel.tab.pane} cannot be used: {type(error).__name__}: {error}"
        return LinesPane(faulty(panel.id, visible_line(fault)))
