"""The most expensive source lines of a recorded application: ``qd-studio replay FILE --lines``."""

from __future__ import annotations

import json

import msgspec

from ...engine.inspect.application.lines import expensive_lines
from ...engine.inspect.application.model import ExpensiveLines
from ...engine.inspect.application.store import ApplicationFile
from .. import streams
from ..core.lines import plain
from ..core.views.applications import expensive_table

__all__ = ["print_lines", "to_text"]


def print_lines(file: ApplicationFile, most: int, as_json: bool) -> None:
    """Count, and print a table or JSON."""
    found = expensive_lines(file, most, streams.talk_line)
    if as_json:
        streams.write(json.dumps(msgspec.to_builtins(found), indent=1) + "\n", True)
    else:
        streams.write(to_text(found))


def to_text(found: ExpensiveLines) -> str:
    """The table as text."""
    return plain(expensive_table(found))
