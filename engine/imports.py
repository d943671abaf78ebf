"""Imports of many modules at once."""

from __future__ import annotations

import gc
from importlib import import_module
from types import ModuleType

__all__ = ["load"]


def load(name: str, package: str) -> ModuleType:
    """Import a module without looking for garbage meanwhile.

    Modules are none, but their objects are so many that Python would look through all that the
    program has: a tenth of the time until the first kernel has run.
    """
    if not gc.isenabled():
        return import_module(name, package)
    gc.disable()
    try:
        return import_module(name, package)
    finally:
        gc.enable()
