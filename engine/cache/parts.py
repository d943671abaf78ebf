"""Keys made of named parts.

    parts = (Part("engine", "1.2.3+3f9a"), *config_parts(config, "cpu"), Part("ir", digest(text)))
    key = key_of(parts)

A part's value is short text that can be shown to a person; long things stand there as their digest,
and whatever explains a difference between two of them is kept beside the key in the entry. Two
keys are equal exactly if all names and values are, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..config import CPU_ARCHES, OPTIONS

if TYPE_CHECKING:
    from ..config import CompileConfig

# Without `hashlib`, which loads OpenSSL: 2 ms and more of a warm start.
try:
    from _blake2 import blake2b  # type: ignore[import-not-found]
except ImportError:
    from hashlib import blake2b

__all__ = ["KEY_LENGTH", "Part", "checksum", "config_parts", "digest", "key_of"]

KEY_LENGTH: Final = 40
"""Characters of a key: hexadecimal digits."""


class Part(NamedTuple):
    """One named part of a key. value: as people see it."""

    name: str
    value: str


def checksum(*pieces: bytes | memoryview) -> bytes:
    """32 bytes over all pieces, as if they were one (BLAKE2b)."""
    state: Any = blake2b(digest_size=32)
    for piece in pieces:
        state.update(piece)
    return state.digest()


def digest(text: str | bytes) -> str:
    """A text too long for a part, as 32 hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return blake2b(data, digest_size=16).hexdigest()


def key_of(parts: Iterable[tuple[str, str]]) -> str:
    """The key that parts make: `KEY_LENGTH` hexadecimal digits."""
    # Lengths keep a value that holds a separator from reading like two parts.
    pieces = [f"{len(name)} {len(value)} {name}{value}" for name, value in parts]
    data = "".join(pieces).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=KEY_LENGTH // 2).hexdigest()


_EITHER: Final = ("any", "cpu", "gpu")
"""Options that code for OpenCL may depend on, whose devices may be of either kind."""


def config_parts(config: CompileConfig, backend: str) -> tuple[Part, ...]:
    """A part ``config.<option>`` for each option that changes the code of ``backend``.

    Not ``arch``, which is a name that ``backend`` goes by: x64 and cpu are the same.
    """
    scopes = _EITHER if backend == "opencl" else ("any", "cpu" if backend in CPU_ARCHES else "gpu")
    return tuple([
        Part(sys.intern(f"config.{name}"), str(getattr(config, name)))
        for name, option in OPTIONS.items()
        if option.in_cache_key and option.scope in scopes and name != "arch"
    ])  # fmt: skip
