"""Answers of a shared cache, and the error of a request."""

from __future__ import annotations

from typing import Any, Final

from ...named_tuple import NamedTuple

__all__ = ["FAILED", "FOUND", "LATE", "NOTHING", "REFUSED", "SKIPPED", "Reply",
           "TransportError"]  # fmt: skip

FOUND: Final = "found"
NOTHING: Final = "nothing"
REFUSED: Final = "refused"
LATE: Final = "late"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
_LONGEST: Final = 300
"""Characters of an error."""


class Reply(NamedTuple):
    """An answer. state: one of those above; data: the bytes of the entry's file; about: of it."""

    state: str
    reason: str = ""
    data: bytes = b""
    about: dict[str, Any] = {}  # noqa: RUF012  # never changed


class TransportError(OSError):
    """A request that failed; the message says why, without control characters: it may repeat what
    a server answered."""

    def __init__(self, why: str) -> None:
        super().__init__("".join(c if c.isprintable() else "?" for c in why[:_LONGEST]))
