"""The errors of requests to a shared cache."""

from __future__ import annotations

from typing import Final

__all__ = ["TransportError"]


_LONGEST: Final = 300


class TransportError(OSError):
    """A request that failed; the message says why, without control characters: it may repeat what
    a server answered."""

    def __init__(self, why: str) -> None:
        super().__init__("".join(c if c.isprintable() else "?" for c in why[:_LONGEST]))
