"""The steps that a capture reports while it works, and the limits that its caller sets for them.

A capture runs code of the user and of the compiler that may hang or crash. Before each such step
it enters `Steps.step`; the watching code (the studio's worker) can report the step, or stop it
after a while by raising `StepLimit` in it. The plain `Steps` does neither.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .record import ErrorRecord, KernelRecord

if TYPE_CHECKING:
    from .earlier import Earlier

__all__ = ["StepLimit", "Steps", "late_text"]


class StepLimit(BaseException):
    """Raised when a step took too long. Not an Exception, so that user code does not catch it."""

    def __init__(self, seconds: float, what: str, note: str = "") -> None:
        super().__init__(late_text(seconds, what, note))
        self.seconds = seconds


def late_text(seconds: float, what: str, note: str = "") -> str:
    """Return the message about a step that was stopped. note: what may keep it from ending."""
    return f"stopped after {seconds:g} s: {what} did not end" + (f"; {note}" if note else "")


class Steps:
    """See the module docstring; override what is of interest.

    earlier: compiles that launches are timed in turns with, and what is kept for later ones.
    """

    earlier: Earlier | None = None

    @contextmanager
    def step(
        self, stage: str, text: str, *, backend: str = "", kind: str = "", note: str = "",
        loop: int = 0,
    ) -> Generator[None, None, None]:  # fmt: skip
        """Enclose one step. stage: as in `ErrorRecord`. kind: which limit applies: compile,
        launch, interpret, make (the user's function that makes arguments), check. note, loop: what
        may keep the step from ending, in words, and the line of it in the kernel's file."""
        yield

    @contextmanager
    def silent(self) -> Generator[None, None, None]:
        """Enclose launches that repeat others, whose output would only repeat theirs."""
        yield

    def passing(self, text: str, statements: int = 0) -> None:
        """Called with the next part of a compile: a pass, as "stage/pass", or another part, as in
        `ErrorRecord.stage`. statements: of the IR that a pass gets."""

    def counted(self, done: int, total: int = 0, unit: str = "") -> None:
        """Called within a step when ``done`` parts of it are done. total: of how many, 0 if that is
        not known. unit: the word for one part, such as trial."""

    def quarantined(self, backend: str, stage: str) -> ErrorRecord | None:
        """The error to report in place of doing ``stage``, if it is known to be fatal."""
        return None

    def updated(self, kernel: KernelRecord) -> None:
        """Called when the record has grown."""
