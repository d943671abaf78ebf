"""``--jobs`` and ``--executor``: what commands do with a farm; see `farm`."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from . import streams
from .usage import EXIT_ENVIRONMENT, EXIT_USAGE, Failure, Parser, count

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ..engine.inspect.record import Record
    from .core.sweeps import Value
    from .farm.executors import Spec
    from .farm.jobs import Outcome
    from .worker.protocol import Study

__all__ = ["arguments", "measured", "spec_of", "studied", "swept"]


def arguments(parser: Parser, prefix: str = "") -> None:
    """Add the options. prefix: of their help."""
    add = parser.add_argument
    add("--jobs", type=count, default=0, metavar="N",
        help=f"{prefix}run N jobs at once; default: 1, or all processors or workers of "
        "--executor")  # fmt: skip
    add("--executor", default="", metavar="SPEC",
        help=f"{prefix}where jobs run: processes (of this machine), dask:ADDRESS, mpi, "
        "slurm[:KEY=VALUE,...], ray[:ADDRESS], or call:MODULE.FUNCTION, which returns a "
        "concurrent.futures.Executor")  # fmt: skip


def spec_of(options: argparse.Namespace) -> Spec | None:
    """Return where jobs run; None if that is this process."""
    if options.jobs <= 1 and not options.executor:
        return None
    from .farm.executors import Spec, SpecError

    try:
        return Spec.parse(options.executor or "processes", options.jobs)
    except SpecError as error:
        raise Failure(EXIT_USAGE, str(error)) from None


@contextlib.contextmanager
def _working() -> Generator[Callable[[str, int, int], None]]:
    """A callback for the progress of jobs. Failure if the farm cannot be used."""
    from . import progress
    from .farm.executors import FarmError

    try:
        with progress.line() as line:
            yield lambda text, done, total: line.counted(text, done, total, "job")
    except FarmError as error:
        raise Failure(EXIT_ENVIRONMENT, str(error)) from None


def measured(files: list[str], words: list[str], settings: dict[str, Any], spec: Spec) -> Record:
    """The record of these files. words: of the command line."""
    from .batch import outcome
    from .farm.records import collect

    def finished(record: Record) -> None:
        for error in record.errors:
            streams.talk(error.rendered or error.message)
        for kernel in record.kernels:
            streams.talk(f"{kernel.id}: {outcome(kernel)}")

    with _working() as counted:
        command = ("qd-studio", *words)
        return collect(files, command, spec, streams.talk, counted, finished, settings)


def swept(
    files: list[str], option: str, values: Sequence[Value], settings: dict[str, Any], rounds: int,
    spec: Spec,
) -> list[list[Record]]:  # fmt: skip
    """The records of a sweep; see `sweeping.measure`."""
    from .farm.sweeps import measure

    with _working() as counted:
        return measure(files, option, values, settings, rounds, spec, streams.talk, counted)


def studied(file: str, study: Study, settings: dict[str, Any], spec: Spec) -> Outcome:
    """The answers of a study about kernels of a file."""
    from .farm.records import jobs_of, outcomes

    with _working() as counted:
        jobs = jobs_of([file], {**settings, "study": study})
        (found,) = outcomes(jobs, spec, streams.talk, counted)
    if found.error:
        raise Failure(EXIT_ENVIRONMENT, f"no result for {jobs[0].title}: {found.error}")
    return found
