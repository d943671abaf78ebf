"""Races, wrong indices and values that are not set: what ``qd-studio check`` prints."""

from __future__ import annotations

import argparse
import json

import msgspec

from ..engine.inspect.application.store import is_application
from ..engine.inspect.record import CheckRecord, KernelRecord
from . import options as common
from . import progress, streams
from .core.lines import plain
from .core.views.checks import check_lines, counts
from .core.visible import visible_json
from .usage import EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio check",
        description="Look for races between iterations, for indices outside of their array, and "
        "for reads of values that are not set. 'safe' is a proof for all sizes under the listed "
        "assumptions, 'fault' was seen in a launch by the interpreter, 'unknown' states the "
        "reason.",
        epilog="Exit codes: 0 no fault (safe or unknown), 1 a fault or a kernel failed, 2 usage, 3 "
        "no worker can be run here.",
    )
    add = made.add_argument
    add("files", nargs="+", metavar="FILE", help="a Python file, notebook or folder; or one "
        "FILE.qds of qd-studio run --record")  # fmt: skip
    add("--kernel", metavar="K", help="the kernel's name or id; default: all of them")
    add("--json", action="store_true", help="print JSON, in the form of the record")
    common.common(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from .batch import failures

    options = common.parsed(parser(), words)
    if len(options.files) == 1 and is_application(options.files[0]):
        return _recorded(options.files[0], options)
    options.opening = common.opening(options)
    settings = common.settings(options)
    settings["only"] = [options.kernel] if options.kernel else []
    settings["backends"] = settings["backends"] or ("interp",)
    settings |= {"check": True, "launch": False, "brief": True}
    record = common.measured(options.files, ["check"], settings)
    kernels = [k for k in record.kernels if options.kernel in (None, k.name, k.id)]
    if options.kernel and not kernels:
        there = ", ".join(k.name for k in record.kernels) or "none"
        raise Failure(EXIT_USAGE, f"check: no kernel {options.kernel!r}; there are: {there}")
    streams.write(_as_json(kernels) if options.json else _text(kernels), options.json)
    failed = failures(record)
    for line in failed:
        streams.talk_line(f"FAILED {line}")
    checks = [k.check for k in kernels if k.check is not None]
    streams.talk_line(f"{len(checks)} kernels: {counts(checks)}")
    fault = any(v.outcome == "fault" for check in checks for v in check.verdicts)
    return EXIT_FAILED if failed or fault else common.nothing_ran(record)


def _recorded(path: str, options: argparse.Namespace) -> int:
    """Check the kernels of a recorded application."""
    from ..engine.inspect.checking.recorded import check_application
    from .application.show import read

    file = read(path)
    names = [options.kernel] if options.kernel else []
    known = {name for kernel in file.about.kernels for name in (kernel.name, kernel.qualname)}
    if options.kernel and options.kernel not in known:
        raise Failure(EXIT_USAGE, f"check: the record has no kernel {options.kernel!r}")
    found: list[tuple[str, CheckRecord]] = []
    with progress.line() as line:
        for one in check_application(
            file, names, lambda text, done, total: line.counted(text, done, total, "kernel")
        ):
            kind = f" for {', '.join(one.specialization)}" if one.specialization else ""
            found.append((f"{one.place} {one.kernel}{kind}", one.check))
    if options.json:
        values = [{"kernel": name, "check": msgspec.to_builtins(check)} for name, check in found]
        streams.write(visible_json(json.dumps(values, indent=1, ensure_ascii=False)) + "\n", True)
    else:
        streams.write("\n".join(f"== {name}\n{plain(check_lines(c))}" for name, c in found))
    checks = [check for _, check in found]
    streams.talk_line(f"{len(checks)} compiled kernels: {counts(checks)}")
    fault = any(v.outcome == "fault" for check in checks for v in check.verdicts)
    return EXIT_FAILED if fault else EXIT_OK


def _as_json(kernels: list[KernelRecord]) -> str:
    found = [{"kernel": k.id, "check": msgspec.to_builtins(k.check)} for k in kernels]
    return visible_json(json.dumps(found, indent=1, ensure_ascii=False)) + "\n"


def _text(kernels: list[KernelRecord]) -> str:
    out: list[str] = []
    for kernel in kernels:
        if kernel.primal:
            continue
        lines = plain(check_lines(kernel.check)) if kernel.check else "     not checked\n"
        out.append(f"== {kernel.id}\n{lines}")
    return "\n".join(out)
