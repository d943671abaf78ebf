"""Objects of the language: kernels, functions, arrays, fields, matrices, structs, tapes, graphs.

`_kernel_types` is loaded when it is first used: programs that look at the results of launches name
it as ``qd.lang._kernel_types`` without importing it.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "_kernel_types":
        return importlib.import_module("._kernel_types", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
