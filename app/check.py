"""Races, wrong indices and values that are not set: what ``qd-studio check`` prints."""

from __future__ import annotations

from ..engine.inspect.application.store import is_application
from ..engine.inspect.record import KernelRecord
from . import options as common
from . import streams
from .core.lines import plain
from .core.views.checks import check_lines, counts
from .usage import EXIT_FAILED, Parser

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
    options = common.parsed(parser(), words)
    if len(options.files) == 1 and is_application(options.files[0]):
        from .application.check import check

        return check(str(options.files[0]), options.kernel, as_json=options.json)
    settings = common.settings(options)
    settings["backends"] = settings["backends"] or ("interp",)
    settings |= {"check": True, "launch": False, "brief": True}
    record = common.measured(options.files, ["check"], settings)
    kernels = common.named(record, options.kernel, "check")
    shown = [k for k in kernels if options.json or not k.primal]
    common.write_kernels(shown, "check", options.json, _text)
    failed = common.report_failures(record)
    checks = [k.check for k in kernels if k.check is not None]
    streams.talk_line(f"{len(checks)} kernels: {counts(checks)}")
    fault = any(v.outcome == "fault" for check in checks for v in check.verdicts)
    return EXIT_FAILED if failed or fault else common.nothing_ran(record)


def _text(kernel: KernelRecord) -> str:
    return plain(check_lines(kernel.check)) if kernel.check else "     not checked\n"
