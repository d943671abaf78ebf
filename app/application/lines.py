"""The most expensive source lines of a recorded application: ``qd-studio replay FILE --lines``."""

from __future__ import annotations

import json

import msgspec

from ...engine.inspect.application.lines import expensive_lines
from ...engine.inspect.application.model import ExpensiveLines
from ...engine.inspect.application.store import ApplicationFile
from .. import progress, streams
from ..core.lines import plain
from ..core.views.applications import expensive_table

__all__ = ["print_lines", "to_text"]


def print_lines(file: ApplicationFile, most: int, as_json: bool) -> None:
    """Count, and print a table or JSON."""
    with progress.line() as line:

        def counting(text: str, done: int, total: int) -> None:
            if line.live:
                line.counted(text, done, total, "kernel")
            else:  # the studio shows these lines
                streams.talk_line(f"{text}, {done + 1} of {total}")

        found = expensive_lines(file, most, counting)
    if as_json:
        streams.write(json.dumps(msgspec.to_builtins(found), indent=1) + "\n", True)
    else:
        streams.write(to_text(found))


def to_text(found: ExpensiveLines) -> str:
    """The table as text."""
    return plain(expensive_table(found))
