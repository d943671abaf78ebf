"""llvmlite's shared library, mapped into memory."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from contextlib import suppress

__all__ = ["map_library"]


def map_library() -> str:
    """Map llvmlite's library and relocate it while other threads run Python code; its path.

    `ctypes.CDLL` keeps Python's lock meanwhile. It then finds the library in memory; if that is not
    possible here, it says why. Python's package is not imported: that needs as long.
    """
    spec = importlib.util.find_spec("llvmlite")
    folder = os.path.dirname(spec.origin or "") if spec else ""
    name = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}.get(sys.platform)
    path = os.path.join(folder, "binding", name or "libllvmlite.so")
    with suppress(OSError, AttributeError, TypeError):
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        dlopen(os.fsencode(path), os.RTLD_NOW)
    return path
