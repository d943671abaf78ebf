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
from typing import TYPE_CHECKING, Any, Final, NoReturn

from . import ending, streams
from .opening import NotOpenedError, check_text, expanded, module_file, split_arguments
from .usage import (
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOT_JUDGED,
    EXIT_OK,
    EXIT_USAGE,
    Failure,
    Parser,
    count,
)  # fmt: skip

if TYPE_CHECKING:
    from ..engine.inspect.record import Record
    from .worker.protocol import Opening

__all__ = [
    "EXIT_ENVIRONMENT", "EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_NOT_JUDGED", "EXIT_OK",
    "EXIT_USAGE", "main",
]  # fmt: skip

COMMANDS: Final = ("run", "replay", "open", "show", "doctor", "cache")


_LATER: Final = ("bisect", "diff")
"""Commands that are planned: reported as such, not as missing files."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams.open_missing()
    try:
        if words[:1] == ["run"]:  # which leaves signals as they are: they are for the script
            from .application.run import run

            return run(words[1:])
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
    if words[:1] == ["replay"]:
        from .application.replay import replay

        return replay(words[1:])
    if words and words[0] in COMMANDS:
        command = {"open": _open, "show": _show, "doctor": _doctor, "cache": _cache}[words[0]]
        own, arguments = split_arguments(words[1:]) if words[0] == "show" else (words[1:], ())
        options = _command_parser(words[0]).parse_args(own)
        options.arguments = arguments
        return command(options)
    if words[:1] == ["stubs"] and not os.path.exists("stubs"):
        from . import stubs

        return stubs.main(Parser(prog="qd-studio stubs", description=stubs.ABOUT), words[1:])
    parser = _main_parser()
    if words and words[0] in _LATER and not os.path.exists(words[0]):
        parser.error(f"this version has no command {words[0]!r}")
    own, arguments = split_arguments(words)
    options = parser.parse_args(own)
    options.arguments = arguments
    if not options.files and not options.module:
        parser.error("no files given" + ("; files come before --" if arguments else ""))
    options.opening = _opening(options)
    if options.report or not streams.has_screen():
        if not options.report:
            _talk("no terminal to draw on: writing a report")
        return _report(options, words)
    for name in ("out", "fail_on", "baseline"):
        if getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} goes with --report")
    return _studio(options, words)


# ---- arguments


def _main_parser() -> Parser:
    parser = Parser(
        prog="qd-studio",
        description="Interactive kernel workbench and IR inspector.",
        epilog="Commands: run SCRIPT | replay RECORD | open SESSION | show FILE --panel PANEL | "
        "doctor | cache ls, show, verify, clean | stubs DIRECTORY; each has --help.",
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE",
        help="Python files with kernels, notebooks, or folders with such files; words after -- are "
        "passed to each file as its arguments")  # fmt: skip
    _common(parser)
    add("--report", action="store_true", help="write a report and exit, without a screen")
    add("--out", action="append", default=[], metavar="PATH",
        help="with --report: write to PATH; the suffix .json, .md or .html selects the format; may "
        "be repeated; default: Markdown on standard output")  # fmt: skip
    add("--baseline", metavar="RECORD", help="with --report: a saved record to compare with")
    add("--fail-on", action="append", default=[], metavar="RULE",
        help="with --report: fail if RULE is true for a kernel, such as 'ir.statements>+5%%', "
        "'launch.cpu.wall_us>+20%%', 'agreement!=ok' or 'cache.fastcache!=loaded'; also fail if a "
        "kernel lacks the value, unless RULE ends in '?'; may be repeated; the rules in fail-on "
        "under [tool.qd-studio] of a pyproject.toml apply as well")  # fmt: skip
    _theme(parser)
    add("--version", action=_Version, help="print the version and exit")
    return parser


def _theme(parser: Parser) -> None:
    parser.add_argument(
        "--theme",
        choices=("dark", "light", "ansi", "ansi-light"),
        help="colours of the studio; ansi and ansi-light use the terminal's own colours",
    )


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        _write(f"qd-studio {version('qd-studio')}\n")
        parser.exit()


def _common(parser: Parser) -> None:
    """Add the options of every command that compiles."""
    add = parser.add_argument
    add("--backend", action="append", default=[], metavar="NAMES",
        help="backends to compile for, separated by commas or repeated, such as "
        "cpu,amdgpu:gfx1100; 'all' selects every backend, also those that cannot launch here; "
        "default: every backend that can launch here")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE",
        help="a compile option, such as fast_math=0; may be repeated")  # fmt: skip
    add("--run", action="store_true",
        help="also run each file as a script for a while, and launch its kernels with the "
        "arguments of the recorded calls")  # fmt: skip
    add("-m", "--module", action="append", default=[], metavar="NAME",
        help="open the module of this name, such as package.module; may be repeated")  # fmt: skip
    add("--frames", type=count, default=8, metavar="N",
        help="close a window of the file after N frames; default: 8")  # fmt: skip
    add("--no-color", action="store_true", help="no colours; the variable NO_COLOR does the same")
    add("--time-limit", type=_positive, metavar="SECONDS",
        help="limit for importing a file, for compiling a kernel, and for each launch")  # fmt: skip


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def _command_parser(command: str) -> Parser:
    texts = {
        "open": "Open a saved session, report or record of an application. Nothing is run.",
        "show": "Print one panel of a kernel file, a session or a report.",
        "doctor": "Show what works on this machine, what is missing, and how to install it.",
        "cache": "List, show, check and clean the caches on disk.",
    }
    parser = Parser(prog=f"qd-studio {command}", description=texts[command])
    add = parser.add_argument
    if command == "open":
        add("session", metavar="SESSION", help="a saved session or a report's JSON")
        add("--no-color", action="store_true", help="no colours")
        _theme(parser)
    elif command == "show":
        add("files", nargs="*", metavar="FILE",
            help="a Python file, notebook or folder, or a saved record (.qds, .json)")  # fmt: skip
        _panel_argument(parser)
        add("--kernel", metavar="K", help="the kernel's name or id; default: all of them")
        add("--pass", dest="pass_name", metavar="NAME",
            help="only the runs of this pass; 'NAME@STAGE': only those of one stage")  # fmt: skip
        add("--json", action="store_true", help="print JSON, in the form of the record")
        _common(parser)
    elif command == "cache":
        from .cache import add_arguments

        add_arguments(parser)
    else:
        add("--json", action="store_true", help="print JSON")
        _conformance(parser)
    return parser


def _panel_argument(parser: Parser) -> None:
    from .panels import panels

    old = {name: panel.id for panel in panels() for name in panel.old_names}
    names = [panel.id for panel in panels()]
    notes = ", ".join(f"{name} is an old name of {now}" for name, now in old.items())
    parser.add_argument("--panel", choices=[*names, *old], required=True, metavar="PANEL",
                        help=f"one of {', '.join(names)} ({notes})")  # fmt: skip


def _conformance(parser: Parser) -> None:
    add = parser.add_argument
    add("--conformance", action="store_true",
        help="run a small program for each feature of the language on each backend, and print the "
        "results as a table; exit code 1 if a cell is FAILED")  # fmt: skip
    add("--backend", action="append", default=[], metavar="NAMES",
        help="with --conformance: backends, separated by commas or repeated; default: every "
        "backend that can launch here")  # fmt: skip
    add("--feature", action="append", default=[], metavar="NAME",
        help="with --conformance: run only this feature or group; may be repeated")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE",
        help="with --conformance: an option for all programs; may be repeated")  # fmt: skip


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments for a `WorkerClient`, from the command line."""
    from ..engine import inspect
    from .worker.protocol import Limits

    try:
        config = dict(inspect.parse_setting(text) for text in options.config)
        names = [name for text in options.backend for name in text.split(",") if name]
        backends = inspect.expand(names)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    limit = options.time_limit
    limits = Limits(import_s=limit, run_s=limit, compile_s=limit, launch_s=limit) if limit else None
    return {
        "config": config, "backends": backends, "run": options.run, "limits": limits,
        "opening": options.opening,
    }  # fmt: skip


def _opening(options: argparse.Namespace) -> Opening:
    """Return the settings for opening the files; set ``options.files`` to all their paths."""
    from .worker.protocol import Opening

    try:
        for word in options.arguments:
            check_text(word, "an argument")
        modules = {module_file(name): name for name in options.module}
        options.files = [*expanded(options.files), *modules]
    except NotOpenedError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    return Opening(arguments=options.arguments, frames=options.frames, modules=modules)


# ---- commands


def _studio(options: argparse.Namespace, words: list[str]) -> int:
    from .tui.run import run_studio

    settings = _settings(options)
    command = ("qd-studio", *words)
    return run_studio(
        options.files,
        no_color=_no_color(options),
        theme=options.theme,
        command=command,
        **settings,
    )


def _open(options: argparse.Namespace) -> int:
    from .application.show import is_application, show

    if is_application(options.session):
        return show(options.session, no_color=_no_color(options), theme=options.theme)
    record = _saved(options.session)
    if not streams.has_screen():
        from .report import to_markdown

        _write(to_markdown(record))
        return EXIT_OK
    from .tui.run import open_session

    return open_session(record, options.session, no_color=_no_color(options), theme=options.theme)


def _report(options: argparse.Namespace, words: list[str]) -> int:
    from .batch import PyprojectError, failures, rules_for
    from .core.rules import FAILING, RuleError, evaluate, parse_rule
    from .report import SUFFIXES, to_markdown, write

    for path in options.out:
        if os.path.splitext(path)[1] not in SUFFIXES:
            raise Failure(EXIT_USAGE, f"--out {path}: the suffix must be one of {SUFFIXES}")
        if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise Failure(EXIT_ENVIRONMENT, f"--out {path}: there is no such folder")
    settings = _settings(options)
    baseline = _saved(options.baseline) if options.baseline else None
    try:
        rules = [*rules_for(options.files), *options.fail_on]
        for rule in rules:
            if parse_rule(rule).relative and baseline is None:
                raise RuleError(f"rule {rule!r} compares with a baseline; give --baseline FILE")
    except (PyprojectError, RuleError) as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    record = _measured(options.files, words, settings)
    try:
        findings = evaluate(record, rules, baseline, _asked(options))
    except RuleError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    if not options.out:
        _write(to_markdown(record, findings))
    for path in options.out:
        try:
            write(record, path, findings)
        except OSError as error:
            raise Failure(EXIT_ENVIRONMENT, f"cannot write {path}: {error.strerror}") from None
        _talk(f"wrote {path}")
    failed = failures(record)
    texts = {f: f"rule {f.rule}: {f.kernel}: {f.message}" for f in findings}
    failed += [text for f, text in texts.items() if f.state in FAILING]
    for line in failed:
        streams.talk_line(f"FAILED {line}")
    for f, text in texts.items():
        if f.state in ("skipped", "not judged"):
            streams.talk_line(f"{f.state} {text}")
    if failed:
        return EXIT_FAILED
    unjudged = any(f.state == "not judged" for f in findings)
    return EXIT_NOT_JUDGED if unjudged else _nothing_ran(record)


def _asked(options: argparse.Namespace) -> set[str]:
    """The backends that were named one by one."""
    return {name for text in options.backend for name in text.split(",")} - {"all", ""}


def _nothing_ran(record: Record) -> int:
    """The exit code of a record without failures: 3 if no backend that was asked for is here."""
    backends = [b for kernel in record.kernels for b in kernel.backends]
    if not backends or any(b.status != "absent" for b in backends):
        return EXIT_OK
    for reason in dict.fromkeys(f"{b.backend}: {b.reason}" for b in backends):
        _talk(f"qd-studio: {reason}")
    return EXIT_ENVIRONMENT


def _show(options: argparse.Namespace) -> int:
    from .batch import failures
    from .panels import find
    from .show import NothingToShow, show

    panel = find(options.panel)
    if panel.fault:
        raise Failure(EXIT_ENVIRONMENT, panel.fault)
    if not options.files and not options.module:
        raise Failure(EXIT_USAGE, "show: no file given")
    if options.files and options.files[0].endswith((".qds", ".json")):
        if len(options.files) > 1 or options.module:
            raise Failure(EXIT_USAGE, "show: a saved record is shown alone")
        record = _saved(options.files[0])
    else:
        options.opening = _opening(options)
        settings = _settings(options)
        settings["launch"] = panel.launches
        settings["only"] = [options.kernel] if options.kernel else []
        record = _measured(options.files, ["show"], settings)
    try:
        text = show(record, options.panel, options.kernel, options.pass_name, as_json=options.json)
    except NothingToShow as error:
        for line in failures(record):
            streams.talk_line(f"FAILED {line}")
        raise Failure(EXIT_FAILED if record.errors else EXIT_USAGE, str(error)) from None
    _write(text, options.json)
    failed = failures(record)
    for line in failed:
        streams.talk_line(f"FAILED {line}")
    return EXIT_FAILED if failed else _nothing_ran(record)


def _doctor(options: argparse.Namespace) -> int:
    from .doctor import examine, to_json, to_text

    if options.conformance:
        return _conform(options)
    if options.backend or options.feature or options.config:
        raise Failure(EXIT_USAGE, "--backend, --feature and --config go with --conformance")
    found = examine()
    _write(to_json(found) if options.json else to_text(found), options.json)
    return EXIT_OK if found.works else EXIT_ENVIRONMENT


def _conform(options: argparse.Namespace) -> int:
    from ..engine import inspect
    from .conformance import process, progress, table

    try:
        config = dict(inspect.parse_setting(text) for text in options.config)
        columns = process.chosen(options.backend)
        wanted = process.features(options.feature)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    with progress.watching(columns, len(wanted), sys.stderr) as watch:
        found = process.measure(columns, wanted, config, watch)
    _write(table.to_json(found) if options.json else table.to_text(found), options.json)
    if all(column.absent for column in columns):
        return EXIT_ENVIRONMENT
    return EXIT_FAILED if found.failed else EXIT_OK


def _cache(options: argparse.Namespace) -> int:
    from .cache import CacheError, run

    try:
        done = run(options)
    except CacheError as error:
        raise Failure(EXIT_USAGE if error.usage else EXIT_ENVIRONMENT, str(error)) from None
    _write(done.text)
    for line in done.talk:
        _talk(f"qd-studio: {line}")
    return EXIT_OK if done.fine else EXIT_FAILED


def _measured(files: list[str], words: list[str], settings: dict[str, Any]) -> Record:
    from .batch import measured
    from .worker.once import WorkerError

    try:
        return measured(files, ("qd-studio", *words), _talk, **settings)
    except WorkerError as error:
        raise Failure(EXIT_ENVIRONMENT, str(error)) from None


def _saved(path: str) -> Record:
    from ..engine import inspect

    try:
        return inspect.load(path)
    except OSError as error:
        raise Failure(EXIT_USAGE, f"cannot read {path}: {error.strerror}") from None
    except inspect.RecordFileError as error:
        raise Failure(EXIT_USAGE, str(error)) from None


def _no_color(options: argparse.Namespace) -> bool:
    return bool(options.no_color or os.environ.get("NO_COLOR"))


_write: Final = streams.write
_talk: Final = streams.talk


if __name__ == "__main__":
    sys.exit(main())
