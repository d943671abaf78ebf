"""Find where a kernel makes its first NaN or infinity: what ``qd-studio nan`` prints."""

from __future__ import annotations

from . import options as common
from .bisect import asked, one_kernel, output_options, study_parser, write_answer
from .core.views.nans import nan_lines
from .usage import EXIT_FAILED, EXIT_NOT_JUDGED, EXIT_OK, Parser

__all__ = ["main", "parser"]

_EXITS = {
    "none": EXIT_OK, "measured": EXIT_OK, "found": EXIT_FAILED, "unknown": EXIT_NOT_JUDGED,
}  # fmt: skip


def parser() -> Parser:
    """The arguments."""
    made = study_parser(
        "nan",
        "Find the operation that made the first NaN or infinity that a kernel stores, with its "
        "iteration, its operands and the values on the way. With --precision, find the lines that "
        "lose precision against f64.",
        good="there is none",
    )
    one_kernel(made, "kernel.grad names its gradient")
    made.add_argument(
        "--precision",
        action="store_true",
        help="show by line how far f16 and f32 are from f64, in units in the last place",
    )
    output_options(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect.record_nans import NanReport
    from .worker.protocol import Study

    options = common.parsed(parser(), words)
    study = Study(kind="precision" if options.precision else "nan")
    answer, record = asked(options, study)
    found = write_answer(answer, NanReport, options.json, record, nan_lines)
    return _EXITS[found.state]
