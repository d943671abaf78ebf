"""The part of a record about races, indices and values that are not set; see `checking`."""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = ["CHECKS", "CheckFinding", "CheckRecord", "CheckVerdict"]

CHECKS = ("race", "bounds", "uninitialised")
"""The kinds of faults, in the order of reports."""


class CheckFinding(RecordPart, frozen=True, kw_only=True):
    """An access that is wrong, or that nothing shows to be right."""

    state: Annotated[
        str,
        about("fault: a launch in the interpreter had it; always, depends, values or late: z3 did "
              "not exclude it, because it occurs at any size, at some sizes, with some values in "
              "memory, or because z3 had no answer."),
    ]  # fmt: skip
    message: Annotated[str, about("The finding in words.")]
    file: Annotated[str, about("Path of the source file.")] = ""
    line: Annotated[int, about("Line of the access, from 1.")] = 0
    col: Annotated[int, about("Byte column, from 0.")] = 0
    end_col: Annotated[int, about("Byte column after the access.")] = 0
    other_line: Annotated[int, about("Line of the other access of a race, from 1; else 0.")] = 0
    array: Annotated[str, about("Name of the array, field or variable.")] = ""
    indices: Annotated[tuple[int, ...], about("Indices of the element.")] = ()
    iterations: Annotated[
        tuple[str, ...], about("The iterations, such as 'i = 3'; two of a race.")
    ] = ()  # fmt: skip
    sizes: Annotated[dict[str, str], about("Arguments and extents of an example.")] = {}  # noqa: RUF012
    needs: Annotated[str, about("An assertion that would exclude it; empty if not known.")] = ""
    workload: Annotated[str, about("Label of the launch that had it; else empty.")] = ""
    rendered: Annotated[str, about("Source line, caret and message.")] = ""


class CheckVerdict(RecordPart, frozen=True, kw_only=True):
    """The outcome for one kind of fault."""

    check: Annotated[str, about("Kind of fault: race, bounds or uninitialised.")]
    outcome: Annotated[
        str,
        about("safe: proved for all sizes under the assumptions; fault: a launch had it; unknown."),
    ]
    reason: Annotated[str, about("What prevented a proof; else empty.")] = ""
    assumptions: Annotated[tuple[str, ...], about("What a proof assumes.")] = ()
    findings: Annotated[tuple[CheckFinding, ...], about("Faults, or what is not excluded.")] = ()


class CheckRecord(RecordPart, frozen=True, kw_only=True):
    """The verdicts on one kernel."""

    verdicts: Annotated[tuple[CheckVerdict, ...], about("One of each kind of fault.")] = ()
    launches: Annotated[
        tuple[str, ...], about("Labels of the launches that the interpreter followed to their end.")
    ] = ()  # fmt: skip
    accesses: Annotated[int, about("Accesses of memory that it followed.")] = 0
    unfollowed: Annotated[str, about("Why a launch was not followed; else empty.")] = ""

    def of(self, check: str) -> CheckVerdict | None:
        """The verdict on one kind of fault."""
        return next((v for v in self.verdicts if v.check == check), None)
