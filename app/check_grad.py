"""Check the gradient of a kernel against differences: what ``qd-studio check-grad`` prints."""

from __future__ import annotations

from . import options as common
from .bisect import asked, one_kernel, output_options, study_parser, write_answer
from .core.views.gradients import gradient_lines
from .usage import EXIT_FAILED, EXIT_NOT_JUDGED, EXIT_OK, Parser

__all__ = ["main", "parser"]

_EXITS = {"right": EXIT_OK, "wrong": EXIT_FAILED, "unknown": EXIT_NOT_JUDGED}


def parser() -> Parser:
    """The arguments."""
    made = study_parser(
        "check-grad",
        "Compare the gradient of a kernel with central differences, and with forward mode. Count "
        "the wrong entries, and show the one with the largest error, the operations from the loss "
        "to it, and the cause: the rule of an operation, a race, an overwritten value, a kink, or "
        "rounding; then the next ones, each with its cause.",
        good="the gradient is right",
        bad="it is wrong",
        unknown=" (a kink, rounding, or the reason that is shown)",
    )
    one_kernel(made)
    output_options(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect.record_gradient import GradientReport
    from .worker.protocol import Study

    options = common.parsed(parser(), words)
    answer, record = asked(options, Study(kind="check-grad"))
    found = write_answer(answer, GradientReport, options.json, record, gradient_lines)
    return _EXITS[found.state]
