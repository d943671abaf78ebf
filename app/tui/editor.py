"""The user's editor at a line: its command, in the form in which each editor accepts the line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Final

__all__ = ["NoEditorError", "editor_command"]

_FORMS: Final = {
    "+{line} {file}": (
        "vi", "vim", "nvim", "gvim", "view", "elvis", "nano", "pico", "rnano", "emacs",
        "emacsclient", "mg", "jed", "joe", "ne", "kak", "micro", "gedit",
    ),
    "{file}:{line}": ("hx", "helix", "subl", "zed"),
    "--goto {file}:{line}": ("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"),
    "--line {line} {file}": ("kate", "pycharm", "charm", "idea"),
}  # fmt: skip
_FORM_OF: Final = {name: form for form, names in _FORMS.items() for name in names}


class NoEditorError(Exception):
    """No editor can be run; the text says what to do."""


def editor_command(environment: Mapping[str, str], path: str, line: int) -> tuple[list[str], bool]:
    """The command that opens a file at a line, and whether the editor's form of it is known.

    VISUAL has precedence over EDITOR; either may contain arguments. Raises NoEditorError.
    """
    text = environment.get("VISUAL", "").strip() or environment.get("EDITOR", "").strip()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise NoEditorError(f"VISUAL or EDITOR cannot be read: {error}") from None
    if not words:
        raise NoEditorError("Set VISUAL or EDITOR to your editor, such as EDITOR=nano.")
    form = _FORM_OF.get(os.path.basename(words[0]).removesuffix(".exe"))
    file = os.path.abspath(path)  # never taken for an option
    filled = [part.format(file=file, line=line) for part in (form or "{file}").split()]
    return [*words, *filled], form is not None
