"""``qd-studio replay``: the kernels of a recorded application, compiled and launched again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence

import msgspec

from ...engine import inspect
from ...engine.inspect.application import replay as replaying
from .. import progress, streams
from ..core import format as fmt
from ..core.lines import plain, table
from ..core.visible import visible_line
from ..usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser, count
from .show import read

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The parser of the command."""
    made = Parser(
        prog="qd-studio replay",
        description="Compile the kernels of a recorded application again, launch them with the "
        "recorded arguments, compare and time them. The program itself is not needed.",
        epilog="Exit codes: 0 all agree, but for rounding and the order of iterations; 1 a kernel "
        "differs or fails; 2 usage; 3 no backend works here.",
    )
    add = made.add_argument
    add("file", metavar="FILE.qds", help="written by qd-studio run --record")
    add("--backend", action="append", default=[], metavar="NAMES",
        help="backends, with commas or repeated, such as cpu,cuda; default: cpu")  # fmt: skip
    add("--kernel", action="append", default=[], metavar="K",
        help="only the kernel of this name; may be repeated")  # fmt: skip
    add("--against", choices=replaying.AGAINST, default="recorded",
        help="compare with what the recorded launches have left, or with the interpreter; "
        "default: recorded")  # fmt: skip
    add("--seconds", type=float, default=0.1, metavar="S",
        help="time each launch for so long; default: 0.1")  # fmt: skip
    add("--lines", type=count, metavar="N", nargs="?", const=5,
        help="in place of all that, print the N most expensive source lines of the program; "
        "default: 5")  # fmt: skip
    add("--json", action="store_true", help="as JSON")
    return made


def main(words: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(list(words))
    names = [name for text in options.backend for name in text.split(",") if name] or ["cpu"]
    file = read(options.file)
    if options.lines:
        from .lines import print_lines

        print_lines(file, options.lines, options.json)
        return EXIT_OK
    known = {name for kernel in file.about.kernels for name in (kernel.name, kernel.qualname)}
    for name in options.kernel:
        if name not in known:
            raise Failure(EXIT_USAGE, f"replay: the record has no kernel {name!r}")
    try:
        wanted = inspect.expand(names)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    works = {info.name: info for info in inspect.backends()}
    usable: list[str] = []
    for name in wanted:
        info = works.get(name.partition(":")[0])
        if info is not None and info.works:
            usable.append(name)
        else:
            streams.talk_line(f"skipped {name}: {info.reason if info else 'no such backend'}")
    if not usable:
        return EXIT_ENVIRONMENT
    found: list[replaying.Replayed] = []
    with progress.line() as line:
        for one in replaying.replay(
            file, usable, names=options.kernel, against=options.against, seconds=options.seconds,
            progress=lambda text, done, total: line.counted(text, done, total, "result"),
        ):  # fmt: skip
            found.append(one)
            streams.talk_line(f"{one.kernel}: {one.backend} {one.state}")
    if options.json:
        streams.write(json.dumps(msgspec.to_builtins(found), indent=1) + "\n", True)
    else:
        streams.write(to_text(found))
    bad = [one for one in found if one.state in ("differs", "failed")]
    for one in bad:
        streams.talk_line(f"FAILED {one.kernel} on {one.backend}: {one.reason}")
    return EXIT_FAILED if bad else EXIT_OK


_HEADS = ("kernel", "place", "for", "backend", "launches", "result", "compile", "median",
          "recorded", "reason")  # fmt: skip

_STATES = {"rounding": "agrees but for rounding", "order": "agrees but for the order"}


def to_text(found: Sequence[replaying.Replayed]) -> str:
    """A table, a row for each kernel and backend, and how many have which result."""
    rows = [
        [
            (visible_line(text), "")
            for text in (
                one.kernel, os.path.basename(one.place), ", ".join(one.specialization),
                one.backend, " ".join(map(str, one.launches)),
                f"agrees with {one.against}" if one.state == "agrees" else _STATES.get(
                    one.state, one.state),
                fmt.duration_ms(one.compile_ms or None), fmt.duration_us(one.median_us),
                fmt.duration_us(one.recorded_us), one.reason,
            )
        ]
        for one in found
    ]  # fmt: skip
    number = [head in ("launches", "compile", "median", "recorded") for head in _HEADS]
    limits = (36, 30, 40, 16, 16, 36, 12, 12, 12, 300)
    head, lines = table(_HEADS, rows, range(len(rows)), number, limits)
    counts = Counter(one.state for one in found)
    total = ", ".join(f"{n} {state}" for state, n in counts.most_common()) or "no kernels"
    return plain([head, *lines]) + f"\n{total}\n"
