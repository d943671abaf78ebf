"""The tab of control flow: the drawing of a pass, made on another thread if it is a large one."""

from __future__ import annotations

from typing import cast

from textual import on

from ...core.lines import Line, index_of
from ...panels import Shown, find
from ...panels.cfg import FORMS, drawn, header, is_ready, no_graph, request, shown_run
from .lines import LineView
from .pane import LinesPane

__all__ = ["GraphPane"]

_AT_ONCE = 1500
"""Lines of IR up to which the graphs are made before the next paint."""
_CHANGES = frozenset({"add", "del", "move"})


class GraphPane(LinesPane):
    """See the module docstring."""

    def __init__(self, *, id: str) -> None:
        super().__init__(find(id))
        self.unfold = self._unfold

    def _draw(self) -> Shown:
        look = self.subject()
        if look is None:
            return Shown(())
        run = shown_run(look)
        if run is None:
            return no_graph(look)
        wanted = request(look, run)
        size = len(wanted[0].snapshots[run.after].lines)
        if size > _AT_ONCE and not is_ready(wanted[0], run, wanted[-1]):
            self.studio.compute(lambda: drawn(*wanted))
            text = f"Drawing the control flow of {size:,} lines ..."
            return Shown([Line(((text, "dim"),))], [header(look, run)])
        return super()._draw()

    def turn(self, name: str) -> bool:
        sel = self.studio.sel
        if name == "graph":
            self.studio.select(graph=FORMS[(FORMS.index(sel.graph) + 1) % len(FORMS)])
        elif name == "whole":
            self.studio.select(whole=not sel.whole)
        else:
            return False
        self.paint()
        return True

    def next_change(self, step: int) -> bool:
        changed = [bool(_CHANGES & {s for _, style in line.spans for s in style.split()})
                   for line in self.lines]  # fmt: skip
        starts = [i for i, now in enumerate(changed) if now and not (i and changed[i - 1])]
        if step < 0:
            starts.reverse()
        found = next((i for i in starts if (i - self.cursor) * step > 0), None)
        if found is not None:
            self.move(found)
        return True

    def _unfold(self) -> None:
        self.studio.select(whole=True, graph=FORMS[0])
        self.paint()

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        """From a line of the overview to its block, from a fold to what it hides."""
        key = event.line.key if event.line is not None else None
        if not isinstance(key, tuple):
            return
        parts = cast("tuple[object, ...]", key)
        if parts[0] == "fold":
            event.stop()
            self._unfold()
            self._go(parts[1])
        elif parts[0] == "node" and self.studio.sel.graph != FORMS[0]:
            event.stop()
            self.studio.select(graph=FORMS[0])
            self.paint()
            self._go(parts)

    def _go(self, key: object) -> None:
        at = index_of(self.lines, key)
        if at is not None:
            self.move(at)
