"""The format of an entry: one file with a description, the data for its use, and a checksum.

::

    offset  bytes
         0     4  magic, QDSE
         4     2  format version
         6     2  flags, 0
         8     4  length of `about`
        12     4  length of `load`
        16     8  length of `code`
        24    20  the key
        44     8  digest of the kernel's name
        52     8  digest of the engine that wrote it
        60     8  creation time: seconds since 1970, a float
        68    32  checksum over everything before and after it
       100        about, load, code, and nothing more

Numbers are little-endian. `about` (JSON) is for people and explanations and is not decoded when
the entry is used; `load` (JSON) is what its use needs; `code` is raw bytes. Reading an entry never
executes anything in it: there is no pickle and no marshal.

The checksum covers every bit of the file but itself, and the length is exact, so a file that was
changed, cut or extended is detected. The file contains the key and the kernel, too: a good entry
under the name of another one is rejected. With the digest of the engine, a cleaning finds entries
of other versions without decoding anything.
"""

from __future__ import annotations

import functools
from struct import Struct
from typing import Any, Final

from ..named_tuple import NamedTuple
from .parts import KEY_LENGTH, checksum, digest

__all__ = [
    "FORMAT", "HEADER", "MAX_SIZE", "BadEntryError", "Entry", "Head", "OtherFormatError",
    "about_of", "engine_tag", "head_of", "kernel_tag", "load_and_code", "pack", "verified",
]  # fmt: skip

MAGIC: Final = b"QDSE"
FORMAT: Final = 1
_HEAD: Final = Struct("<4sHHIIQ20s8s8sd")
_SUMMED: Final = _HEAD.size
HEADER: Final = _SUMMED + 32
"""Bytes before `about`."""
MAX_SIZE: Final = 1 << 30
"""A larger file is not read: no kernel makes one."""


class Entry(NamedTuple):
    """A whole entry in memory.

    kernel: the kernel's qualified name. about: the description for people, see `store`; ``created``
    is added when the entry is written. load: JSON values.
    """

    key: str
    kernel: str
    about: dict[str, Any]
    load: Any
    code: bytes


class BadEntryError(ValueError):
    """A file that cannot be used as the entry that was asked for; the message says why.

    The message continues a sentence that begins with the name of the file.
    """


class OtherFormatError(BadEntryError):
    """An entry that another version of the engine wrote, in a format that this one cannot read."""


class Head(NamedTuple):
    """The header, decoded."""

    about: int
    load: int
    code: int
    key: str
    kernel: str
    engine: str
    created: float

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return HEADER + self.about + self.load + self.code


@functools.lru_cache(maxsize=4096)
def kernel_tag(kernel: str) -> str:
    """The short name of a kernel in file names and headers: 16 hexadecimal digits."""
    return digest(kernel)[:16]


@functools.lru_cache(maxsize=64)
def engine_tag(engine: str) -> str:
    """The short name of a version of the engine in headers: 16 hexadecimal digits."""
    return digest(engine)[:16]


def pack(entry: Entry) -> bytes:
    """The file of an entry. ``about`` must hold ``created``."""
    if len(entry.key) != KEY_LENGTH:
        raise ValueError(f"a key has {KEY_LENGTH} digits, not {len(entry.key)}: {entry.key!r}")
    about = _encoded(entry.about)
    load = _encoded(entry.load)
    head = _HEAD.pack(
        MAGIC,
        FORMAT,
        0,
        len(about),
        len(load),
        len(entry.code),
        bytes.fromhex(entry.key),
        bytes.fromhex(kernel_tag(entry.kernel)),
        bytes.fromhex(engine_tag(str(entry.about.get("engine", "")))),
        float(entry.about["created"]),
    )
    return b"".join((head, checksum(head, about, load, entry.code), about, load, entry.code))


def _encoded(value: Any) -> bytes:
    # ASCII: what is no valid text, such as half of a surrogate pair in a name, survives as well.
    import json  # here and below: programs without the disk do not load it

    return json.dumps(value, separators=(",", ":")).encode("ascii")


def head_of(data: bytes) -> Head:
    """The header at the start of ``data``, which may be no more than that. BadEntryError."""
    if data[:4] != MAGIC:
        raise BadEntryError("is no cache entry")
    if len(data) < HEADER:
        raise BadEntryError(f"is cut short: {len(data)} bytes")
    _, number, flags, about, load, code, key, kernel, engine, created = _HEAD.unpack_from(data)
    if number != FORMAT or flags:
        raise OtherFormatError(
            f"is of format {number}.{flags}, this version reads format {FORMAT}.0"
        )
    return Head(about, load, code, key.hex(), kernel.hex(), engine.hex(), created)


def verified(data: bytes) -> Head:
    """The header of a whole file whose length and checksum are right. BadEntryError."""
    head = head_of(data)
    if len(data) != head.size:
        raise BadEntryError(f"has {len(data)} bytes instead of {head.size}")
    view = memoryview(data)
    if checksum(view[:_SUMMED], view[HEADER:]) != data[_SUMMED:HEADER]:
        raise BadEntryError("is damaged: its checksum does not match")
    return head


def load_and_code(data: bytes, key: str, kernel: str) -> tuple[Any, bytes]:
    """The data and code of an entry. BadEntryError for a damaged file, or another key or kernel."""
    head = verified(data)
    if head.key != key or head.kernel != kernel_tag(kernel):
        raise BadEntryError("holds the entry of another key")
    start = HEADER + head.about
    middle = start + head.load
    return _decoded(data[start:middle]), data[middle:]


def about_of(data: bytes, head: Head) -> dict[str, Any]:
    """The decoded ``about`` of a file that was `verified`."""
    about: Any = _decoded(data[HEADER : HEADER + head.about])
    if not isinstance(about, dict):
        raise BadEntryError("does not say what it is")
    return about  # pyright: ignore[reportUnknownVariableType]


def _decoded(data: bytes) -> Any:
    import json

    # With a good checksum this fails only if the writer of the entry was wrong.
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadEntryError("cannot be decoded") from None
