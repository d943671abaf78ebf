"""Answers of a shared cache."""

from __future__ import annotations

from typing import Any, Final

from ...named_tuple import NamedTuple

__all__ = ["FAILED", "FOUND", "LATE", "NOTHING", "REFUSED", "SKIPPED", "Reply"]

FOUND: Final = "found"
NOTHING: Final = "nothing"
REFUSED: Final = "refused"
LATE: Final = "late"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"


class Reply(NamedTuple):
    """An answer. state: one of those above; data: the bytes of the entry's file; about: of it."""

    state: str
    reason: str = ""
    data: bytes = b""
    about: dict[str, Any] = {}  # noqa: RUF012  # never changed
