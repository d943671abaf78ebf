"""The errors of requests to a shared cache."""

from __future__ import annotations

__all__ = ["TransportError"]


class TransportError(OSError):
    """A request that failed; the message says why."""
