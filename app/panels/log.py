"""The output of user code and of the engine, for the whole record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ..core.lines import Line
from ..core.views.misc import log_lines
from ._panel import Asked, Panel

__all__ = ["PANEL"]


def _text(asked: Asked) -> Iterator[tuple[str, Sequence[Line]]]:
    yield "", log_lines(asked.record)


def _json(asked: Asked) -> list[Any]:
    """A list of LogLine."""
    return msgspec.to_builtins(list(asked.record.log))


PANEL: Final = Panel(
    id="log",
    help="The output of user code and of the engine.",
    order=90,
    launches=True,
    text=_text,
    json=_json,
)
