"""``qd-studio open``: a saved session, report or record of an application; nothing is run."""

from __future__ import annotations

from . import streams
from .options import no_color, saved, screen
from .usage import EXIT_OK, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio open",
        description="Open a saved session, report or record of an application. Nothing is run.",
    )
    made.add_argument("session", metavar="SESSION", help="a saved session or a report's JSON")
    made.add_argument("--no-color", action="store_true", help="no colours")
    screen(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from .application.show import is_application, show

    options = parser().parse_args(words)
    looks = {"theme": options.theme, "keymap": options.keymap}
    if is_application(options.session):
        return show(options.session, no_color=no_color(options), **looks)
    record = saved(options.session)
    if not streams.has_screen():
        from .report import render

        streams.write(render(record, ".md"))
        return EXIT_OK
    from .tui.run import open_session

    return open_session(record, options.session, no_color=no_color(options), **looks)
