"""The caches of a kernel: the list of layers, below it all facts about the selected one."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from ....engine.inspect.record import KernelRecord
from ...core.state import kernel_of
from ...panels.caches import cache_lines, chosen_layer, layer_lines
from .lines import LineView
from .pane import Pane

__all__ = ["CachesPane"]


class CachesPane(Pane, Vertical):
    """See the module docstring."""

    DEFAULT_CSS = """
    CachesPane #layers { height: auto; max-height: 45%; }
    CachesPane #layer { height: 1fr; border-top: solid $panel-lighten-2; }
    CachesPane.alone #layers { max-height: 100%; }
    CachesPane.alone #layer { border-top: none; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        # What the list was last put on, so that it is put there only once.
        self._put = ("", "")
        self.zoomed = False

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
        view.display = bool(lines) and not (self.zoomed and not view.has_focus)
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

    def zoom(self) -> None:
        """Only the focused pane, or both."""
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "alone")
        layers, layer = self.query_one("#layers", LineView), self.query_one("#layer", LineView)
        layers.display = not self.zoomed or not layer.has_focus
        layer.display = bool(layer.lines) and (not self.zoomed or layer.has_focus)

    def back(self) -> bool:
        """Out of the zoom, or from the details to the list. False at the top."""
        if self.zoomed:
            self.zoom()
        elif self.query_one("#layer", LineView).has_focus:
            self.to_pane(details=False)
        else:
            return False
        return True

    def focus_first(self) -> None:
        self.query_one("#layers", LineView).focus()

    def other_pane(self) -> None:
        """Go from the list to the details, or back."""
        self.to_pane(details=not self.query_one("#layer", LineView).has_focus)
