"""The gain if an assumption held: what ``qd-studio whatif`` prints.

The kernels are compiled with the assumption in scratch, checked against the interpreter, and timed
in turns with the kernel as it is.
"""

from __future__ import annotations

from typing import Final

from ..engine.inspect.record import KernelRecord
from . import options as common
from .core.lines import plain
from .core.views.what_if import what_if_lines
from .usage import EXIT_FAILED, EXIT_USAGE, Failure, Parser

__all__ = ["main", "parser"]

_NOTHING: Final = "no remark suggests an assumption; --assume tries one, such as --assume fast_math"


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio whatif",
        description="Compile kernels as if an assumption held, compare the results with the "
        "interpreter's, and measure the gain. Nothing is changed.",
        epilog="Exit codes: 0 done, 1 a kernel failed or an assumption is false for its "
        "arguments, 2 usage, 3 none of the backends works here.",
    )
    add = made.add_argument
    add("files", nargs="+", metavar="FILE", help="a Python file, notebook or folder")
    add("--kernel", metavar="K", help="the kernel's name or id; default: all of them")
    add("--assume", action="append", default=[], metavar="WHAT",
        help="an assumption: noalias, no_checks, fast_math, hoist_conditional, cache_elements, "
        "flat_ifs, unroll=LINE, independent=LINE, block_dim=N, or any compile option as "
        "OPTION=VALUE; may be repeated; default: those that the remarks suggest")  # fmt: skip
    add("--json", action="store_true", help="print JSON, in the form of the record")
    common.common(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect import SUGGESTED, assumption
    from .worker.protocol import Assume

    options = common.parsed(parser(), words)
    settings = common.settings(options)
    backends = [name for name in settings["backends"] if name != "interp"]
    try:
        for text in options.assume:
            assumption(text)
    except ValueError as error:
        raise Failure(EXIT_USAGE, f"whatif: {error}") from None
    settings["assume"] = [
        Assume(text=text, backend=backend)
        for backend in backends or [""]
        for text in options.assume or [SUGGESTED]
    ]
    record = common.measured(options.files, ["whatif"], settings)
    kernels = common.named(record, options.kernel, "whatif")
    common.write_kernels(kernels, "what_ifs", options.json, _text)
    failed = common.report_failures(record)
    false = any(x.agreement == "differs" for k in kernels for x in k.what_ifs)
    return EXIT_FAILED if failed or false else common.nothing_ran(record)


def _text(kernel: KernelRecord) -> str:
    return plain(what_if_lines(kernel.what_ifs)) if kernel.what_ifs else f"     {_NOTHING}\n"
