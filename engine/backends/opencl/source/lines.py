"""Comments that show the user's source where it changes: ``// nbody.py:12  v += dt * a``."""

from __future__ import annotations

import linecache
from typing import Final

from ....ir import Loc

__all__ = ["Sources"]

_LONGEST: Final = 90


class Sources:
    """The user's lines, read once for each lowering."""

    def __init__(self) -> None:
        self._files: Final[dict[str, tuple[str, list[str]]]] = {}
        self._comments: Final[dict[tuple[str, int], str]] = {}

    def comment(self, loc: Loc) -> str:
        """The comment for a line of the user's; empty if there is none."""
        key = loc.file, loc.line
        found = self._comments.get(key)
        if found is None:
            found = self._comments[key] = self._make(*key)
        return found

    def _make(self, path: str, number: int) -> str:
        file = self._files.get(path)
        if file is None:
            linecache.checkcache(path)
            name = path.replace("\\", "/").rsplit("/", 1)[-1]
            file = self._files[path] = name, linecache.getlines(path)
        name, lines = file
        if not 0 < number <= len(lines):
            return ""
        text = " ".join(lines[number - 1].split())
        if len(text) > _LONGEST:
            text = text[: _LONGEST - 3] + "..."
        # Compilers may want ASCII, and a backslash at the end would join the next line to it.
        whole = f"// {name}:{number}  {text}".encode("ascii", "replace").decode()
        return whole.rstrip("\\ ")
