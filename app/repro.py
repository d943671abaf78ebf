"""Write a small script that shows a wrong result: ``qd-studio repro``."""

from __future__ import annotations

import os

import msgspec

from . import options as common
from . import streams
from .bisect import arguments, asked
from .core.lines import plain
from .usage import EXIT_FAILED, EXIT_NOT_JUDGED, EXIT_OK, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio repro",
        description="Bisect, and write one script that shows the wrong result: the kernel, the "
        "options and the arguments, made as small as the same pass is still at fault, and the IR "
        "before that pass. The script needs this package and NumPy alone.",
        epilog="Exit codes: 0 nothing is wrong, 1 a script was written, 2 usage, 3 no worker can "
        "be run here, 4 there is no script; the reason is printed.",
    )
    arguments(made)
    made.add_argument("--out", metavar="PATH", default="",
                      help="write the script to PATH; default: standard output")  # fmt: skip
    common.common(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect.record_bisection import SCRIPT, Reproducer
    from .core.views.bisection import bisection_lines
    from .worker.protocol import Study

    options = common.parsed(parser(), words)
    answer, record = asked(options, Study(kind="repro", predicate=options.predicate))
    made = msgspec.json.decode(answer, type=Reproducer)
    texts = {file.path: file.text for file in record.files} | {SCRIPT: made.script}
    streams.talk(plain(list(bisection_lines(made.bisection, texts))).rstrip())
    if not made.script:
        if made.bisection.state == "agrees":
            return EXIT_OK
        known = made.bisection.state == "unknown"  # the reason is printed above
        streams.talk("repro: no script" + ("" if known else f": {made.reason}"))
        return EXIT_NOT_JUDGED
    size = f"{made.lines_before} -> {made.lines} lines of kernel, {made.trials} versions tried"
    if not options.out:
        streams.write(made.script)
    else:
        common.write_file(os.path.abspath(options.out), made.script, "repro: ")
        size = f"wrote {options.out}: {size}"
    streams.talk(size)
    return EXIT_FAILED
