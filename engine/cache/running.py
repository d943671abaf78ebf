"""The id of the running engine, from the moment that it is known (`engine_id` finds it)."""

from __future__ import annotations

__all__ = ["known", "set_known"]

_known = ""


def set_known(engine: str) -> None:
    """Note the id of this engine."""
    global _known
    _known = engine


def known() -> str:
    """The id of this engine; empty while it is being found."""
    return _known
