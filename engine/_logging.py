"""``qd._logging``: messages to the user, by level, under the reference's names.

``info("{} cells", n)`` formats its arguments like `str.format` and writes to stderr if messages of
that level are shown. Programs may replace these functions, to see the messages of other libraries
in their own log, and get the original back from `_get_logging`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, Final

from . import logs

__all__ = [
    "CRITICAL", "DEBUG", "ERROR", "INFO", "TRACE", "WARN", "critical", "debug", "error", "info",
    "is_logging_effective", "set_logging_level", "supported_log_levels", "trace", "warn",
]  # fmt: skip

TRACE: Final = "trace"
DEBUG: Final = "debug"
INFO: Final = "info"
WARN: Final = "warn"
ERROR: Final = "error"
CRITICAL: Final = "critical"
supported_log_levels: Final = [DEBUG, TRACE, INFO, WARN, ERROR, CRITICAL]


def _get_logging(name: str) -> Callable[..., None]:
    """The function that writes messages of level ``name``. ValueError if there is no such level."""
    logs.check_level(name)

    def write(msg: Any, *args: Any, **kwargs: Any) -> None:
        if logs.enabled(name):
            caller = inspect.stack(0)[1]
            place = f"{os.path.basename(caller.filename)}:{caller.function}@{caller.lineno}"
            logs.say(name, f"[{place}] {str(msg).format(*args, **kwargs)}")

    return write


def set_logging_level(level: str) -> None:
    """Show messages of this level and above: trace, debug, info, warn, error or critical.

    ValueError for another name.
    """
    logs.set_level(level)


def is_logging_effective(level: str) -> bool:
    """True if messages of this level are shown. ValueError for a name that is no level."""
    logs.check_level(level)
    return logs.enabled(level)


trace = _get_logging(TRACE)
debug = _get_logging(DEBUG)
info = _get_logging(INFO)
warn = _get_logging(WARN)
error = _get_logging(ERROR)
critical = _get_logging(CRITICAL)
