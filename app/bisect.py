"""Find what makes a kernel's result wrong: what ``qd-studio bisect`` prints."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import msgspec

from . import options as common
from . import streams
from .core.lines import plain
from .core.visible import visible_json
from .opening import split_arguments
from .usage import (
    EXIT_ENVIRONMENT,
    EXIT_FAILED,
    EXIT_NOT_JUDGED,
    EXIT_OK,
    EXIT_USAGE,
    Failure,
    Parser,
)

if TYPE_CHECKING:
    from ..engine.inspect.record import Record
    from .worker.events import Event

__all__ = ["asked", "main", "parser"]

_EXITS = {"agrees": EXIT_OK, "found": EXIT_FAILED, "unknown": EXIT_NOT_JUDGED}


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio bisect",
        description="Find what makes the result of a kernel wrong: the pass, its round, the "
        "operation and your line. The interpreter runs the IR between passes.",
        epilog="Exit codes: 0 nothing is wrong, 1 found, 2 usage, 3 no worker can be run here, 4 "
        "it could not be found out.",
    )
    arguments(made)
    made.add_argument("--json", action="store_true", help="print JSON")
    common.common(made)
    return made


def arguments(made: Parser) -> None:
    """Add what `bisect` and `repro` share."""
    add = made.add_argument
    add("files", nargs="*", metavar="FILE", help="a Python file or notebook")
    add("--kernel", metavar="K", default="",
        help="the kernel's name or id; may be left out if the file has one")  # fmt: skip
    add("--predicate", metavar="COMMAND", default="",
        help="a command that says if results are right, in place of the interpreter on the "
        "kernel as written: its last argument is an .npz file with an array for each parameter and "
        "the result; exit status 0: right, 125: cannot say, any other: wrong")  # fmt: skip


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect.record_bisection import Bisection
    from .core.views.bisection import bisection_lines

    own, after = split_arguments(words)
    options = parser().parse_args(own)
    options.arguments = after
    answer, record = asked(options, "bisect")
    found = msgspec.json.decode(answer, type=Bisection)
    if options.json:
        data = {"version": 1, **msgspec.to_builtins(found)}
        text = json.dumps(data, indent=1, ensure_ascii=False)
        streams.write(visible_json(text) + "\n", True)
    else:
        texts = {file.path: file.text for file in record.files}
        streams.write(plain(list(bisection_lines(found, texts))))
    return _EXITS[found.state]


def asked(options: argparse.Namespace, kind: str) -> tuple[bytes, Record]:
    """(the answer to a study, the record of the file)."""
    from . import progress
    from .worker.events import Failed, Studied
    from .worker.once import WorkerError, collect
    from .worker.protocol import Study

    options.opening = common.opening(options)
    if len(options.files) != 1:
        raise Failure(EXIT_USAGE, f"{kind}: name one file")
    settings: dict[str, Any] = common.settings(options)
    backends = settings["backends"]
    study = Study(
        kind=kind, backend=backends[0] if len(backends) == 1 else "", predicate=options.predicate
    )
    answers: list[bytes] = []
    faults: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, Studied):
            answers.append(event.answer)
        elif isinstance(event, Failed):
            faults.append(event.error.rendered or event.error.message)
        line.heard(event)

    only = [options.kernel] if options.kernel else []
    try:
        with progress.line() as line:
            record = collect(
                options.files, on_event=listen, only=only, study=study,
                command=("qd-studio", kind), **settings,
            )  # fmt: skip
    except WorkerError as error:
        raise Failure(EXIT_ENVIRONMENT, str(error)) from None
    for fault in dict.fromkeys(faults):
        streams.talk(fault)
    kernels = [k.name for k in record.kernels]
    if len(answers) > 1:
        raise Failure(EXIT_USAGE, f"{kind}: name a kernel with --kernel: {', '.join(kernels)}")
    if not answers:
        if options.kernel and options.kernel not in [*kernels, *(k.id for k in record.kernels)]:
            there = ", ".join(kernels) or "none"
            why = f"there is no kernel {options.kernel!r}; there are: {there}"
            raise Failure(EXIT_USAGE, f"{kind}: {why}")
        raise Failure(EXIT_NOT_JUDGED, f"{kind}: the worker ended before it could say")
    return answers[0], record
