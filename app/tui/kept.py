"""The file of the user's state folder that the studio keeps values in from start to start: JSON.

``tour``: the tour has been offered. ``readable``: the form of IR that was chosen last. A file that
cannot be read or written changes nothing but that the next start knows nothing of this one.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, cast

__all__ = ["keep", "kept"]


def _path() -> Path:
    from platformdirs import user_state_path

    return user_state_path("qd-studio", appauthor=False) / "studio.json"


def kept() -> dict[str, Any]:
    """The values that were kept, by name."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(_path().read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def keep(**values: Any) -> bool:
    """Keep values next to those that are there; False if that cannot be."""
    path = _path()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(json.dumps(kept() | values), encoding="utf-8")
        new.replace(path)
        return True
    return False
