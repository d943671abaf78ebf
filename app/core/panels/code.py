"""Generated code, linked to the user's lines where the backend knows them."""

from __future__ import annotations

from typing import cast

from ....engine.inspect.record import BackendRecord
from ..lines import Line, code_spans
from .passes import user_line

__all__ = ["artefacts_of", "code_lines", "is_line", "user_line_of"]


def artefacts_of(backend: BackendRecord | None) -> list[str]:
    """Names of the texts that a backend kept."""
    if backend is None or backend.compile is None:
        return []
    return [a.name for a in backend.compile.artefacts]


def code_lines(backend: BackendRecord | None, index: int) -> list[Line]:
    """Artefact ``index``; keys are ("line", user line) where known, else the line's number."""
    names = artefacts_of(backend)
    if backend is None or backend.compile is None or not names:
        return [Line((("This backend made no code that can be shown.", "dim"),))]
    artefact = backend.compile.artefacts[index % len(names)]
    out: list[Line] = []
    for i, text in enumerate(artefact.text.splitlines()):
        loc = artefact.lines[i] if i < len(artefact.lines) else -1
        line = user_line(backend.compile, loc)
        out.append(
            Line(
                ((f"{line or '':>4} ", "gutter"), *code_spans(text, artefact.language)),
                ("line", line, i) if line else ("text", i),
                text,
            )
        )
    return out


def user_line_of(key: object) -> int:
    """The user's line that a key of `code_lines` stands for; 0 if none is known."""
    if isinstance(key, tuple) and len(key) == 3:  # pyright: ignore[reportUnknownArgumentType]
        kind, line, _ = cast("tuple[object, object, object]", key)
        if kind == "line" and isinstance(line, int):
            return line
    return 0


def is_line(key: object, line: int) -> bool:
    """Whether a key of `code_lines` stands for the user's ``line``."""
    return user_line_of(key) == line
