"""Names that complete what is written in an editor's console."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from ...engine.inspect import DebugError, Debugger
from ...engine.inspect.debugging import Struct, Vector

__all__ = ["completions"]

_LAST: Final = re.compile(r"((?:\w+(?:\[[^\[\]]*\])*\.)*)(\w*)$")
"""The path before the last dot, and the start of the name after it."""


def completions(d: Debugger, text: str, frame: int) -> list[dict[str, Any]]:
    """The names of a function, or the members of a value, that start as the text ends."""
    found = _LAST.search(text)
    assert found is not None
    path, start = found[1].removesuffix("."), found[2]
    if path:
        try:
            names = _members(d.value(path, frame))
        except DebugError:
            return []
    else:
        names = {**d.locals(frame), **d.arguments()}
    return [
        {"label": name, "start": found.start(2), "length": len(start),
         "type": "property" if path else "variable"}
        for name in names if name.startswith(start)
    ]  # fmt: skip


def _members(value: Any) -> list[str]:
    if isinstance(value, Struct):
        return list(vars(value))
    if isinstance(value, Vector):
        return [*"xyzw"[: len(value)], "norm()"]
    return ["shape"] if isinstance(value, np.ndarray) else []
