"""Serve the studio's answers to an agent over the Model Context Protocol: ``qd-studio mcp``."""

from __future__ import annotations

import os

from ..options import positive
from ..usage import EXIT_OK, EXIT_USAGE, Failure, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio mcp",
        description="Serve tools to an agent over standard input and output (Model Context "
        "Protocol): kernels, diff, why_miss, cost, verdicts, bisect, code, show, report. The tools "
        "write nothing to the project; they import its files, which runs their code.",
        epilog="Needs the extra: python -m pip install 'qd-studio[mcp]'.",
    )
    add = made.add_argument
    add("folder", nargs="?", default=".", metavar="FOLDER",
        help="the project; no file outside of it is opened; default: this folder")  # fmt: skip
    add("--time-limit", type=positive, metavar="SECONDS",
        help="limit for importing a file, for compiling a kernel, and for each launch")  # fmt: skip
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    if not os.path.isdir(options.folder):
        raise Failure(EXIT_USAGE, f"mcp: {options.folder} is not a folder")
    from .project import Project
    from .serve import serve

    # Relative paths in the user's files are those of the project.
    os.chdir(options.folder)
    serve(Project(".", options.time_limit))
    return EXIT_OK
