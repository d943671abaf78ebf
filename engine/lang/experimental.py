"""``qd.experimental``: names that moved to the language itself."""

from __future__ import annotations

import warnings
from typing import Any

from .func import RealFunctionOfKernels
from .func import real_func as _real_func

__all__ = ["real_func"]


def real_func(fn: Any) -> RealFunctionOfKernels:
    """The old name of `real_func`."""
    warnings.warn(
        "qd.experimental.real_func is deprecated because it is no longer experimental. Use "
        "qd.real_func instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return _real_func(fn)
