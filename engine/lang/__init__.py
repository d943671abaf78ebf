"""Objects of the language: kernels, functions, arrays, fields, matrices, structs, tapes, graphs.

Submodules that programs name without importing them (``qd.lang.impl.get_runtime()``) are loaded
when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = frozenset({"_kernel_types", "_template_mapper", "impl"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
