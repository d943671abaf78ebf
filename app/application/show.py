"""``qd-studio open`` on the record of an application."""

from __future__ import annotations

from ...engine.inspect import RecordFileError
from ...engine.inspect.application.store import ApplicationFile, is_application
from .. import streams
from ..usage import EXIT_OK, EXIT_USAGE, Failure

__all__ = ["is_application", "read", "show"]


def read(path: str) -> ApplicationFile:
    """The record in a file."""
    try:
        return ApplicationFile(path)
    except RecordFileError as error:
        raise Failure(EXIT_USAGE, str(error)) from None


def show(path: str, *, no_color: bool, theme: str | None = None, keymap: str | None = None) -> int:
    """Show a record in the studio; without a terminal, as text."""
    about = read(path).about
    if streams.has_screen():
        from ..tui.run import open_application

        return open_application(about, path, no_color=no_color, theme=theme, keymap=keymap)
    from ..core.views.applications import to_text

    streams.write(to_text(about))
    return EXIT_OK
