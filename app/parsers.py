"""The arguments of the studio and of reports; `commands` has those of the commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from . import farming, streams
from . import options as options_of
from .commands import COMMANDS
from .core.keymap import LEAST_SAVES
from .usage import Parser, count

__all__ = ["main_parser"]


def main_parser() -> Parser:
    """The arguments of the studio and of reports."""
    parser = Parser(
        prog="qd-studio",
        description="Interactive kernel workbench and IR inspector.",
        epilog=f"Commands: {' | '.join(c.usage for c in COMMANDS.values())}; each has --help.",
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE",
        help="Python files with kernels, notebooks, or folders with such files; words after -- are "
        "passed to each file as its arguments")  # fmt: skip
    options_of.common(parser)
    add("--report", action="store_true", help="write a report and exit, without a screen")
    add("--out", action="append", default=[], metavar="PATH",
        help="with --report: write to PATH, or to standard output for -; the suffix .json, .md, "
        ".html, .xml (JUnit), .sarif or .annotations (of GitHub Actions) selects the format; may "
        "be repeated; default: -")  # fmt: skip
    add("--format", choices=("md", "html", "json", "junit", "sarif", "annotations"),
        help="with --report: the format of standard output and of files with other suffixes; "
        "default: md")  # fmt: skip
    add(
        "--baseline",
        metavar="RECORD",
        help="with --report: a saved record to compare with; the report says what differs",
    )
    add("--fail-on", action="append", default=[], metavar="RULE",
        help="with --report: fail if RULE is true for a kernel, such as 'ir.statements>+5%%', "
        "'launch.cpu.wall_us>+20%%', 'agreement!=ok' or 'cache.fastcache!=loaded'; also fail if a "
        "kernel lacks the value, unless RULE ends in '?'; may be repeated; the rules in fail-on "
        "under [tool.qd-studio] of a pyproject.toml apply as well")  # fmt: skip
    add("--require", action="append", default=[], metavar="RULE",
        help="with --report: fail unless RULE is true, such as "
        "'task.2.loads<=4@cfg_optimization in step': of kernel step, task 2 has at most 4 loads "
        "after that pass; may be repeated; also require under [tool.qd-studio]")  # fmt: skip
    farming.arguments(parser, "with --report: ")
    options_of.screen(parser)
    add("--keep-saves", type=_saves, default=0, metavar="N",
        help="keep the newest N saves, to compare with them (D); default: keep-saves in "
        "keymap.toml, or 50")  # fmt: skip
    add("--plain", action="store_true",
        help="a dialogue in lines of text, for screen readers and terminals without a screen; "
        "`help` names its commands")  # fmt: skip
    add("--check-config", nargs="?", const="", metavar="FILE.toml",
        help="check keymap.toml, or FILE.toml, and exit; with status 1 if something is wrong with "
        "it")  # fmt: skip
    add("--spec", action="store_true",
        help="print the commands, options and keys as JSON and exit")  # fmt: skip
    add("--version", action=_Version, help="print the version and exit")
    return parser


def _saves(text: str) -> int:
    value = count(text)
    if value < LEAST_SAVES:
        raise argparse.ArgumentTypeError(f"{text} is not a number of {LEAST_SAVES} or more")
    return value


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        streams.write(f"qd-studio {version('qd-studio')}\n")
        parser.exit()
