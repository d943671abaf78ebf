"""The path at which the studio writes a file without losing another."""

from __future__ import annotations

from pathlib import Path

__all__ = ["free_path"]


def free_path(name: str, suffix: str) -> Path:
    """A path in this folder that does not exist yet."""
    path = Path(f"{name}{suffix}")
    number = 1
    while path.exists():
        number += 1
        path = Path(f"{name}-{number}{suffix}")
    return path
