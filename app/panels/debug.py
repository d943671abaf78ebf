"""A debugger of one iteration: the tab runs it; elsewhere the panel names the command."""

from __future__ import annotations

from typing import Final

from ...engine.inspect.record import KernelRecord
from ..core.lines import Line
from ._panel import Asked, Panel, Tab, text_of_kernels

__all__ = ["PANEL"]


def _text(asked: Asked, kernel: KernelRecord) -> list[Line]:
    command = f"qd-studio debug {kernel.file} --kernel {kernel.name} --iteration 0"
    return [Line(((f"Not part of a record. At a prompt: {command}", ""),))]


PANEL: Final = Panel(
    id="debug",
    help="Run one iteration, forward and back, line by line (in the studio).",
    order=88,
    tab=Tab(
        keys=(
            ("debug-previous+debug-next", "line"), ("debug-into", "into"), ("debug-out", "out"),
            ("debug-reverse+debug-continue", "run"), ("debug-break", "break"),
            ("debug-who", "who wrote"), ("debug-go", "go there"), ("debug-value", "value"),
        ),
        pane="qd_studio.app.tui.widgets.debugger:DebugPane",
    ),
    text=text_of_kernels(_text),
    json=lambda asked: [],
)  # fmt: skip
