"""The tab of generated code: the readable form of a long text is made on another thread."""

from __future__ import annotations

from typing import Final

from ...core.lines import Line
from ...panels import Shown, find
from ...panels.code import code_lines, lines_of, request
from .pane import LinesPane

__all__ = ["CodePane"]

_AT_ONCE: Final = 1500
"""Lines of a text up to which its readable form is made before the next paint."""


class CodePane(LinesPane):
    """See the module docstring."""

    def __init__(self, *, id: str) -> None:
        super().__init__(find(id))

    def _draw(self) -> Shown:
        look = self.subject()
        if look is None:
            return Shown(())
        wanted = request(look)
        size = lines_of(look)
        if look.sel.readable and size > _AT_ONCE and not code_lines.has(*wanted):
            self.studio.compute(lambda: code_lines(*wanted))
            return Shown([Line(((f"Reading {size:,} lines ...", "dim"),))])
        return super()._draw()
