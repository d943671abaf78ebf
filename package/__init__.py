"""The package `qd_studio`: the compiler engine is `qd_studio.engine`, the studio `qd_studio.app`.

Importing it loads neither.
"""

from typing import Any

__all__ = ["load_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext qd_studio``: adds the cell magic ``%%qd_inspect``."""
    from importlib import import_module

    import_module("qd_studio.app.notebook").load_ipython_extension(shell)
