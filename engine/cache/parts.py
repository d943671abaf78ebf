"""Keys made of named parts.

    parts = (Part("engine", "1.2.3+3f9a"), *config_parts(config, "cpu"), Part("ir", digest(text)))
    key = key_of(parts)

A part's value is short text for people; a long value is replaced by its digest, and the entry keeps
what explains a difference between two digests, next to the key. Two keys are equal exactly if all
names and values are equal, in order.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from ..config import CPU_ARCHES, OPTIONS
from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from ..config import CompileConfig

# Without `hashlib`, which loads OpenSSL: 2 ms and more of a warm start.
try:
    from _blake2 import blake2b  # type: ignore[import-not-found]
except ImportError:
    from hashlib import blake2b

__all__ = [
    "KEY_LENGTH", "Part", "checksum", "config_parts", "digest", "key_of", "key_of_text", "text_of",
]  # fmt: skip

KEY_LENGTH: Final = 40
"""Characters of a key: hexadecimal digits."""


class Part(NamedTuple):
    """One named part of a key. value: the text that people see."""

    name: str
    value: str


def checksum(*pieces: bytes | memoryview) -> bytes:
    """32 bytes over all pieces, as if they were one (BLAKE2b)."""
    state: Any = blake2b(digest_size=32)
    for piece in pieces:
        state.update(piece)
    return state.digest()


def digest(text: str | bytes) -> str:
    """The digest of a text that is too long for a part: 32 hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return blake2b(data, digest_size=16).hexdigest()


def text_of(parts: Iterable[tuple[str, str]]) -> str:
    """The text of parts in what a key is a digest of."""
    # Lengths keep a value that holds a separator from reading like two parts.
    return "".join([f"{len(name)} {len(value)} {name}{value}" for name, value in parts])


def key_of_text(text: str) -> str:
    """The key of parts with this `text_of`: `KEY_LENGTH` hexadecimal digits."""
    data = text.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=KEY_LENGTH // 2).hexdigest()


def key_of(parts: Iterable[tuple[str, str]]) -> str:
    """The key that parts make."""
    return key_of_text(text_of(parts))


_EITHER: Final = ("any", "cpu", "gpu")
"""Options that code for OpenCL may depend on, whose devices may be of either kind."""


def config_parts(config: CompileConfig, backend: str) -> tuple[Part, ...]:
    """A part ``config.<option>`` for each option that changes the code of ``backend``.

    ``arch`` is not among them: it is another name of ``backend`` (x64 and cpu are the same).
    """
    scopes = _EITHER if backend == "opencl" else ("any", "cpu" if backend in CPU_ARCHES else "gpu")
    return tuple([
        Part(sys.intern(f"config.{name}"), str(getattr(config, name)))
        for name, option in OPTIONS.items()
        if option.in_cache_key and option.scope in scopes and name != "arch"
    ])  # fmt: skip
