"""Prepares a Python process of ``qd-studio run`` before the user's code; see `startup`.

It costs an import of a few small modules: nothing of the engine is loaded until the program asks
for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from ...engine import alias

__all__ = ["ALIASES", "VARIABLE", "begin"]

ALIASES: Final = ("quadrants", "taichi")
VARIABLE: Final = "QDSTUDIO_RUN"
"""The variable that says what to do, as JSON: ``begin`` (this module), and what that is given."""


def begin(wanted: Mapping[str, Any]) -> None:
    """Prepare this process.

    wanted: ``aliases``: names of packages that mean the engine. ``frames``: windows have stand-ins,
    which close after so many frames; 0 for none. ``record``: settings of a recorder.
    """
    for name in wanted.get("aliases", ()):
        alias.install(name)
    if wanted.get("frames"):
        from ...engine import windows

        windows.install()
        windows.begin(wanted["frames"])
    record = wanted.get("record")
    if record and os.path.isdir(record["folder"]):
        alias.record(record["folder"], record["limits"])
