"""The caches of a kernel: the list of layers, below it all that is known of the selected one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from ....engine.inspect.record import KernelRecord
from ...core.panels.caches import cache_lines, chosen_layer, layer_lines
from ...core.state import kernel_of
from .lines import LineView

if TYPE_CHECKING:
    from ..app import StudioApp

__all__ = ["CachesPane"]


class CachesPane(Vertical):
    """See the module docstring."""

    DEFAULT_CSS = """
    CachesPane #layers { height: auto; max-height: 45%; }
    CachesPane #layer { height: 1fr; border-top: solid $panel-lighten-2; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        # What the list was last put on, so that it is put there only once.
        self._put = ("", "")

    @property
    def studio(self) -> StudioApp:
        return cast("StudioApp", self.app)  # pyright: ignore[reportUnknownMemberType]

    def compose(self) -> ComposeResult:
        yield LineView(id="layers")
        yield LineView(id="layer", idle_cursor=False)

    def paint(self) -> None:
        """Show the app's selection."""
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            return
        head, lines = cache_lines(kernel, state.ascii_only)
        put = kernel.id, chosen_layer(kernel, state.sel.layer)
        key = put[1] if put != self._put else None
        self._put = put
        self.query_one("#layers", LineView).show(lines, head, key)
        self._paint_layer(kernel)

    def _paint_layer(self, kernel: KernelRecord) -> None:
        state = self.studio
        view = self.query_one("#layer", LineView)
        width = (self.size.width or state.size.width) - 2
        key = chosen_layer(kernel, state.sel.layer)
        lines = layer_lines(kernel, key, width, state.ascii_only)
        view.display = bool(lines)
        view.show(lines)

    @on(LineView.Moved, "#layers")
    def _moved(self, event: LineView.Moved) -> None:
        event.stop()
        kernel = kernel_of(self.studio.record, self.studio.sel)
        if event.line is not None and isinstance(event.line.key, str) and kernel is not None:
            self.studio.select(layer=event.line.key)
            self._put = kernel.id, event.line.key
            self._paint_layer(kernel)

    @on(LineView.Chosen, "#layers")
    def _chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        self.to_pane(details=True)

    def to_pane(self, details: bool) -> None:
        """Focus the details or the list."""
        view = self.query_one("#layer", LineView)
        if details and view.display:
            view.focus()
        else:
            self.query_one("#layers", LineView).focus()

    def other_pane(self) -> None:
        """From the list to the details, or back."""
        self.to_pane(details=not self.query_one("#layer", LineView).has_focus)
