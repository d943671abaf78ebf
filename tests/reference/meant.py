"""What is said of a difference that is meant, and the reasons that several of them have."""

from dataclasses import dataclass, field
from typing import Any

NOTHING = object()


@dataclass(frozen=True)
class Meant:
    """A difference that is meant. Ours gives `value`, or raises `error` with `says` in its text."""

    why: str
    value: Any = field(default=NOTHING)
    error: str = ""
    says: str = ""
    output: str | None = None
    line: str = ""
    """The line of the program that the error shows, where that is the difference."""


CRASH = "the reference ends the process"
WORKS = "the reference refuses what has a clear meaning"
EARLIER = "the place we show is the more exact one"
PROMISE = "the reference promises an error and gives none"
ALIAS = "a local name is another name for what has no copy at run time"
CLASS = "the reference fails inside itself; we raise the error of this kind of mistake"
