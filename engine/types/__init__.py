"""Data types, promotion and parameter annotations. Imports nothing of ours above config/errors."""

from .annotations import *  # noqa: F403
from .compound import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .handles import *  # noqa: F403
from .later import unsupported
from .layout import *  # noqa: F403
from .write_counter import *  # noqa: F403


def __getattr__(name: str) -> object:
    raise unsupported("qd.types", name)
