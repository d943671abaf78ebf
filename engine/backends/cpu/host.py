"""The kind of machine this is, and a short digest of texts for keys; loads nothing for it."""

from __future__ import annotations

import os
import struct
import sys
from functools import cache

# Without `hashlib`, which loads OpenSSL: 2 ms and more of a warm start.
try:
    from _blake2 import blake2b  # type: ignore[import-not-found]
except ImportError:
    from hashlib import blake2b

__all__ = ["digest", "machine", "maps_objects"]


def digest(*texts: str) -> str:
    """Texts as 32 hexadecimal digits."""
    data = "".join([f"{len(text)} {text}" for text in texts]).encode()
    return blake2b(data, digest_size=16).hexdigest()


@cache
def machine() -> str:
    """The kind of processor: ``x64``, ``arm64`` or what the system calls it."""
    if hasattr(os, "uname"):
        name = os.uname().machine.lower()
    else:
        import platform

        name = platform.machine().lower()
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(name, name)


@cache
def maps_objects() -> bool:
    """True if `relocatable` supports the memory layout of code here: Linux on x86-64, 64 bits."""
    return sys.platform == "linux" and machine() == "x64" and struct.calcsize("P") == 8
