"""``qd-studio dap``: a debug adapter for editors (the Debug Adapter Protocol).

`relay` passes messages between the editor and a child process, in which `adapter` debugs: what the
user's file prints, or how it ends, never touches the protocol.
"""

from __future__ import annotations

from ..options import positive
from ..usage import EXIT_OK, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio dap",
        description="A debug adapter: editors step through one iteration of a kernel, forward and "
        "back. docs/debugging.md has the settings of editors.",
    )
    add = made.add_argument
    add("--port", type=positive, metavar="PORT",
        help="wait for one editor at this port of this machine; default: standard input and "
        "output")  # fmt: skip
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    from .relay import serve

    serve(int(options.port) if options.port else 0)
    return EXIT_OK
