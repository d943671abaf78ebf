"""`cuda.bindings.driver` with the functions of the simulator: enums and structs are the real ones.

A function that the simulator has not raises AttributeError when it is asked for.
"""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as _real

from . import api_code, api_graphs
from .api import FUNCTIONS

__all__ = ["api_code", "api_graphs"]


def __getattr__(name: str) -> Any:
    found = FUNCTIONS.get(name)
    if found is not None:
        return found
    value = getattr(_real, name)
    if not isinstance(value, type):
        raise AttributeError(f"the simulated driver has no {name}")
    return value
