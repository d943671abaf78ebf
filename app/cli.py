"""``qd-studio``: arguments, exit codes, and what goes to which stream.

    qd-studio FILE... [-- ARGUMENTS]    the live studio (a report where there is no terminal for it)
    qd-studio --report FILE...          measure and write a report
    qd-studio open SESSION              a saved session or report, nothing is run
    qd-studio run SCRIPT [ARGUMENTS]    a script on our engine, as Python runs it
    qd-studio replay FILE.qds           the kernels of a recorded program, launched again
    qd-studio show FILE --panel P       one panel as text or JSON
    qd-studio doctor                    what works here, and what is missing
    qd-studio doctor --conformance      features of the language by backends, as a table
    qd-studio cache ls|show|verify|clean   the caches on disk
    qd-studio stubs DIRECTORY           types for files that say `import quadrants`
    qd-studio completion SHELL          completion of these words, for bash, zsh and fish
    qd-studio tour                      a walk through the studio, on a file of its own
    qd-studio --spec                    commands, options and keys as JSON

Standard output is data, standard error is talk. Exit codes: 0 fine; 1 a kernel or a rule failed;
2 usage; 3 the environment (nothing to run on, a place that cannot be written); 4 nothing failed,
but a rule about a time could not be judged, since the machine was too busy; 130 interrupted;
128 + n ended by signal n. Text of users is made visible on its way out (`streams`).

Everything heavy is imported where it is needed: the first screen must not wait for a compiler, and
a report not for a screen.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final

from . import ending, streams
from . import options as options_of
from .commands import is_command, load
from .parsers import main_parser
from .usage import (
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOT_JUDGED,
    EXIT_OK,
    EXIT_USAGE,
    Failure,
)

__all__ = [
    "EXIT_ENVIRONMENT", "EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_NOT_JUDGED", "EXIT_OK",
    "EXIT_USAGE", "main", "main_parser",
]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams.open_missing()
    try:
        if words[:1] == ["run"]:  # which leaves signals as they are: they are for the script
            return load("run").main(words[1:])
        with ending.ending():
            return _run(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    except Failure as failure:
        _talk(f"qd-studio: {failure}")
        return failure.status
    except streams.OutputError as error:
        _talk(f"qd-studio: {error}")
        return EXIT_ENVIRONMENT
    except KeyboardInterrupt:
        _talk("interrupted")
        return EXIT_INTERRUPTED
    except ending.Ended as end:
        _talk(f"ended by {signal.Signals(end.number).name}")
        return 128 + end.number
    except BrokenPipeError:
        return EXIT_OK  # who read our output has enough


def _run(words: list[str]) -> int:
    if is_command(words):
        return load(words[0]).main(words[1:])
    parser = main_parser()
    options = options_of.parsed(parser, words)
    if options.spec:
        from .spec import to_json

        _write(to_json())
        return EXIT_OK
    if options.check_config is not None:
        return _check_config(options)
    if not options.files and not options.module:
        parser.error("no files given" + ("; files come before --" if options.arguments else ""))
    records = [name for name in options.files if name.endswith(".qds") and os.path.isfile(name)]
    if records:
        return _open(options, records[0])
    settings = options_of.settings(options)
    if options.plain:
        from .plain import run_plain

        if options.report:
            parser.error("--plain does not go with --report")
        return run_plain(options.files, settings, ("qd-studio", *words))
    if options.report or not streams.has_screen():
        if not options.report:
            _talk("no terminal to draw on: writing a report; --plain reads commands, a line each")
        from .reporting import report

        return report(options, words, settings)
    for name in ("out", "fail_on", "require", "baseline", "format", "jobs", "executor"):
        if getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} goes with --report")
    return _studio(options, words, settings)


def _open(options: argparse.Namespace, record: str) -> int:
    """Open a saved record that was named without ``open``."""
    if len(options.files) > 1 or options.arguments or options.module or options.report:
        talk = f"{record}: a saved record, not a program; open it with: qd-studio open {record}"
        raise Failure(EXIT_USAGE, talk)
    words = [record, *(["--no-color"] if options.no_color else [])]
    for name in ("theme", "keymap"):
        if getattr(options, name):
            words.append(f"--{name}={getattr(options, name)}")
    return load("open").main(words)


def _check_config(options: argparse.Namespace) -> int:
    """Print what is wrong with a key map; the exit code is that of a rule."""
    from .core.visible import visible_line
    from .tui.run import check_keymap

    about, problems = check_keymap(options.check_config, options.keymap)
    if not problems:
        _write(f"{visible_line(about)}; nothing is wrong with it\n")
        return EXIT_OK
    path = about.partition(": ")[0]
    _write("".join(f"{visible_line(f'{path}: {problem}')}\n" for problem in problems))
    return EXIT_FAILED


def _studio(options: argparse.Namespace, words: list[str], settings: dict[str, Any]) -> int:
    from .tui.run import run_studio

    return run_studio(
        options.files,
        no_color=options_of.no_color(options),
        theme=options.theme,
        keymap=options.keymap,
        command=("qd-studio", *words),
        keep_saves=options.keep_saves,
        **settings,
    )


_write: Final = streams.write
_talk: Final = streams.talk


if __name__ == "__main__":
    sys.exit(main())
