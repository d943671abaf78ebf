"""Find what makes a kernel's result wrong: what ``qd-studio bisect`` prints."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from . import farming, streams
from . import options as common
from .core.lines import Line, plain
from .core.visible import json_text
from .usage import (
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_NOT_JUDGED,
    EXIT_OK,
    EXIT_USAGE,
    Failure,
    Parser,
)

if TYPE_CHECKING:
    from ..engine.inspect.record import Record
    from ..engine.inspect.record_bisection import Bisection
    from .worker.events import Event
    from .worker.protocol import Study

__all__ = [
    "arguments", "asked", "bisected", "main", "one_file", "one_kernel", "output_options", "parser",
    "study_parser", "text_of", "write_answer",
]  # fmt: skip

_Answer = TypeVar("_Answer")

# Revisions that are judged at once where --jobs does not say.
_REVISIONS = 3
_EXITS = {"agrees": EXIT_OK, "found": EXIT_FAILED, "unknown": EXIT_NOT_JUDGED}


def parser() -> Parser:
    """The arguments."""
    made = study_parser(
        "bisect",
        "Find what makes the result of a kernel wrong: the pass, its round, the operation and your "
        "line. The interpreter runs the IR between passes. With --metric, find what makes the "
        "kernel larger or slower. With revisions of git, find the commit.",
        good="nothing is wrong",
    )
    arguments(made)
    add = made.add_argument
    add("--metric", metavar="METRIC", default="",
        help="what became worse, in place of results: time, statements, loads, stores, "
        "instructions, registers, spills, vector-width, bytes (that a launch moves), code-bytes, "
        "or another count of the IR, such as atomics")  # fmt: skip
    for option, default in (("--good", "as it is"), ("--bad", "as it is, or HEAD")):
        add(option, metavar="SIDE", default=None,
            help="a revision of git, such as HEAD~20; or, with --metric, compile options and "
            "passes to leave out, such as 'opt_level=3,without=simplify'; "
            f"default: {default}")  # fmt: skip
    output_options(made)
    farming.arguments(made)
    return made


def study_parser(
    name: str, description: str, *, good: str, bad: str = "found", unknown: str = ""
) -> Parser:  # fmt: skip
    """The parser of a command that asks one question about a kernel. good, bad: the meaning of exit
    codes 0 and 1. unknown: more about that of 4."""
    epilog = f"Exit codes: 0 {good}, 1 {bad}, 2 usage, 3 no worker can be run here, 4 it could not "
    epilog += f"be found out{unknown}."
    return Parser(prog=f"qd-studio {name}", description=description, epilog=epilog)


def output_options(made: Parser) -> None:
    """Add --json, and what all commands that compile share."""
    made.add_argument("--json", action="store_true", help="print JSON")
    common.common(made)


def arguments(made: Parser) -> None:
    """Add what `bisect` and `repro` share."""
    one_kernel(made)
    add = made.add_argument
    add("--predicate", metavar="COMMAND", default="",
        help="a command that says if results are right, in place of the interpreter on the "
        "kernel as written: its last argument is an .npz file with an array for each parameter and "
        "the result; exit status 0: right, 125: cannot say, any other: wrong")  # fmt: skip


def one_kernel(made: Parser, more: str = "") -> None:
    """Add the file and the kernel that a study is about. more: a sentence of the help."""
    made.add_argument("files", nargs="*", metavar="FILE", help="a Python file or notebook")
    text = "the kernel's name or id; may be left out if the file has one"
    text += f". {more}" if more else ""
    made.add_argument("--kernel", metavar="K", default="", help=text)


def write_answer(
    answer: bytes, kind: type[_Answer], as_json: bool, record: Record,
    lines: Callable[[_Answer, Mapping[str, str]], Iterable[Line]],
) -> _Answer:  # fmt: skip
    """Print the answer to a study, as JSON or as lines, and return it."""
    found = msgspec.json.decode(answer, type=kind)
    texts = {file.path: file.text for file in record.files}
    _write(found, as_json, lambda: plain(lines(found, texts)))
    return found


def _write(found: object, as_json: bool, text: Callable[[], str]) -> None:
    data = json_text({"version": 1, **msgspec.to_builtins(found)}) if as_json else text()
    streams.write(data, as_json)


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = common.parsed(parser(), words)
    found, texts = bisected(options)
    _write(found, options.json, lambda: text_of(found, texts))
    return _EXITS[found.state]


def bisected(options: argparse.Namespace) -> tuple[Bisection, dict[str, str]]:
    """(what was found, the text of each file by its path)."""
    from ..engine.inspect.record_bisection import Bisection

    study, revisions = _question(options)
    if revisions is not None:
        return _between(options, study, revisions), {}
    answer, record = asked(options, study)
    found = msgspec.json.decode(answer, type=Bisection)
    return found, {file.path: file.text for file in record.files}


def text_of(found: Bisection, texts: dict[str, str]) -> str:
    """The result as text. texts: of the files, by path."""
    from .core.views.bisection import bisection_lines

    return plain(bisection_lines(found, texts))


def _question(options: argparse.Namespace) -> tuple[Study, tuple[str, str] | None]:
    """(what to ask, the good and bad revision if the question is about these)."""
    from ..engine.inspect.metrics import check_metric, parse_side
    from .worker.protocol import Study

    good, bad = options.good, options.bad
    given = [side for side in (good, bad) if side is not None]
    settings = [side for side in given if "=" in side or not side]
    try:
        if options.metric:
            check_metric(options.metric)
        for side in settings:
            parse_side(side)
    except (ValueError, KeyError) as error:
        raise Failure(EXIT_USAGE, f"bisect: {error.args[0]}") from None
    if settings and len(settings) < len(given):
        why = "--good and --bad are both revisions of git, or both options such as fast_math=0"
        raise Failure(EXIT_USAGE, f"bisect: {why}")
    if options.metric and options.predicate:
        raise Failure(EXIT_USAGE, "bisect: name a metric or a predicate, not both")
    if given and not settings:
        if good is None:
            raise Failure(EXIT_USAGE, "bisect: --bad is a revision; name a good one with --good")
        study = Study(kind="judge", predicate=options.predicate, metric=options.metric)
        return study, (good, bad or "HEAD")
    if settings and not options.metric:
        why = "options of --good and --bad need --metric; --config sets those of a wrong result"
        raise Failure(EXIT_USAGE, f"bisect: {why}")
    start = good if good is not None else "" if bad is not None else None
    return Study(
        kind="bisect", predicate=options.predicate, metric=options.metric, good=start,
        bad=bad or "",
    ), None  # fmt: skip


def _between(options: argparse.Namespace, study: Study, revisions: tuple[str, str]) -> Bisection:
    """The first bad commit between two revisions."""
    from ..engine.inspect.record_bisection import Judged
    from .history import bisect_commits
    from .revisions import NoRevisionError

    common.settings(options)
    name = one_file(options, "bisect")
    spec = farming.spec_of(options)
    jobs = 1 if spec is None else spec.jobs or _REVISIONS

    def judged(path: str) -> Judged:
        given = argparse.Namespace(**vars(options))
        given.files, given.module = [path], []
        if spec is not None:  # several revisions are judged at once, each by one job
            given.executor, given.jobs = spec.text, 1
        try:
            answer, _ = asked(given, study)
        except Failure as error:
            if error.status in (EXIT_ENVIRONMENT, EXIT_INTERRUPTED):
                raise
            return Judged(state="unknown", reason=str(error))
        return msgspec.json.decode(answer, type=Judged)

    try:
        found = bisect_commits(name, *revisions, judged, options.metric, streams.talk_line, jobs)
    except NoRevisionError as error:
        status = EXIT_ENVIRONMENT if error.environment else EXIT_USAGE
        raise Failure(status, f"bisect: {error}") from None
    return msgspec.structs.replace(found, kernel=options.kernel or found.kernel)


def one_file(options: argparse.Namespace, kind: str) -> str:
    """The file that is named. Failure if it is not one."""
    if len(options.files) != 1:
        raise Failure(EXIT_USAGE, f"{kind}: name one file")
    return options.files[0]


def asked(options: argparse.Namespace, study: Study) -> tuple[bytes, Record]:
    """(the answer to a study, the record of the file)."""
    from .worker.events import Failed, Studied
    from .worker.once import collect

    kind = "bisect" if study.kind == "judge" else study.kind
    settings = common.settings(options)
    one_file(options, kind)
    settings["cancelled"] = getattr(options, "cancelled", None)
    backends = settings["backends"]
    if len(backends) == 1:
        study = msgspec.structs.replace(study, backend=backends[0])
    answers: list[bytes] = []
    faults: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Studied):
            answers.append(event.answer)
        elif isinstance(event, Failed):
            faults.append(event.error.rendered or event.error.message)
        line.heard(event)

    spec = farming.spec_of(options) if kind == "bisect" else None
    if spec is not None:
        found = farming.studied(options.files[0], study, settings, spec)
        faults += found.faults
        answers += [one.answer for one in found.answers]
        record = found.records[0]
        return _answered(options, study, record, answers, faults)
    with common.working() as line:
        command = ("qd-studio", kind)
        record = collect(options.files, on_event=listen, study=study, command=command, **settings)
    return _answered(options, study, record, answers, faults)


def _answered(
    options: argparse.Namespace, study: Study, record: Record, answers: list[bytes],
    faults: list[str],
) -> tuple[bytes, Record]:  # fmt: skip
    """The only answer. Failure if there is none, or another one."""
    kind = "bisect" if study.kind == "judge" else study.kind
    for fault in dict.fromkeys(faults) if study.kind != "judge" else ():
        streams.talk(fault)
    kernels = [k.name for k in record.kernels]
    if len(answers) > 1:
        raise Failure(EXIT_USAGE, f"{kind}: name a kernel with --kernel: {', '.join(kernels)}")
    if not answers and study.kind == "judge" and faults:
        raise Failure(EXIT_NOT_JUDGED, faults[0].strip().splitlines()[-1])
    if not answers:
        if options.kernel and options.kernel not in [*kernels, *(k.id for k in record.kernels)]:
            there = ", ".join(kernels) or "none"
            why = f"there is no kernel {options.kernel!r}; there are: {there}"
            raise Failure(EXIT_USAGE, f"{kind}: {why}")
        raise Failure(EXIT_NOT_JUDGED, f"{kind}: the worker ended before it could say")
    return answers[0], record
