"""Notebooks: ``%load_ext qd_studio`` and ``%%qd_inspect``, which shows a cell's kernels.

magic      the cell magic: its arguments, running the cell, the answer
capture    the record of the kernels of a cell
sections   the record as parts of a page
widget     these parts as a widget of the package ``anywidget``, an optional extra
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["load_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext``; ``quadrants`` and ``taichi`` mean the engine if not installed."""
    from importlib.util import find_spec

    from ...engine import alias
    from .magic import register

    for name in ("quadrants", "taichi"):
        if name not in sys.modules and find_spec(name) is None:
            alias.install(name)
    register(shell)
