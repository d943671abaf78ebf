r"""The form of a shared entry: a signed description, then the bytes of the entry's file.

::

    QDRC1\n{description}\n{signature}\n<bytes>

The description is JSON: the layer, key and kernel, all parts of the key, the engine, the target,
the host that made the entry, when, the key that signed it, and size and SHA-256 of the bytes. The
signature is over the first two lines, and so over everything. `opened` accepts a record only for
the place that was asked for, and says of any other why it is refused.

On a server of bazel's protocol a record is stored under ``/ac/<sha256 of its place>`` in the form
of an ``ActionResult``, as servers that check these messages want it: it is the `stdout_raw`.
The bytes of a large entry are a blob under ``/cas/<their sha256>``, which the message names as an
output file, so that such a server drops the two together.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ...named_tuple import NamedTuple
from ..parts import key_of
from .signing import UNSIGNED, Keys

__all__ = [
    "CUT", "DAMAGED", "ENTRY", "LATEST", "LIMIT", "LIST", "LONGEST", "OTHER_ENGINE", "OTHER_FORMAT",
    "OTHER_KEY", "STALE", "Place", "Record", "RefusedError", "closed", "opened", "packed",
    "unpacked",
]  # fmt: skip

ENTRY: Final = "entry"
LATEST: Final = "latest"
"""The description of the entry of a kernel that was written last, to explain misses."""
LIST: Final = "list"
"""The entries that the last run of a script used; the script is in the place of the kernel."""

CUT: Final = "is cut short"
DAMAGED: Final = "is damaged: its bytes are not those that were signed"
OTHER_ENGINE: Final = "was made by another version of the engine"
OTHER_FORMAT: Final = "is no record of this format"
OTHER_KEY: Final = "is the entry of another key"
STALE: Final = "is too old, or of the future"

LIMIT: Final = 64 << 20
"""Bytes: nothing larger is sent or accepted."""
LONGEST: Final = 1 << 20
"""Bytes of a description: it is decoded before its signature is checked."""
INLINE: Final = 256 << 10
"""Bytes of an entry that its record holds itself: one request instead of two."""
_MAGIC: Final = b"QDRC1\n"
_DAY: Final = 86400.0


class RefusedError(ValueError):
    """A record that is not used. why: one of a fixed set of reasons; detail: who made it."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(f"{why} ({detail})" if detail else why)
        self.why, self.detail = why, detail


class Place(NamedTuple):
    """The place of a record. kind: `ENTRY` or `LATEST`, which has no key."""

    kind: str
    layer: str
    kernel: str
    key: str = ""

    @property
    def name(self) -> str:
        """64 hexadecimal digits."""
        text = json.dumps([1, *self])
        return hashlib.sha256(text.encode()).hexdigest()


class Record(NamedTuple):
    """An accepted record. about: the description; data: the bytes."""

    about: dict[str, Any]
    data: bytes

    @property
    def made_on(self) -> str:
        """``made on host a for znver4``, for people."""
        return made_on(self.about)


def made_on(about: Mapping[str, Any]) -> str:
    """The host and the target of a record, in words."""
    target = about.get("target")
    return f"made on {about.get('host', '?')}" + (f" for {target}" if target else "")


# ---- writing and reading


def closed(
    place: Place, about: Mapping[str, Any], data: bytes, keys: Keys, host: str
) -> tuple[bytes, str]:
    """The signed lines of a record, and the digest of its bytes. about: of the entry."""
    parts: Mapping[str, str] = about.get("parts") or {}
    digest = hashlib.sha256(data).hexdigest()
    described = {
        **place._asdict(), "parts": list(parts.items()), "engine": about.get("engine", ""),
        "target": parts.get("target", parts.get("arch", "")), "host": host, "made": time.time(),
        "signer": keys.signer, "size": len(data), "sha256": digest,
    }  # fmt: skip
    text = _MAGIC + json.dumps(described, separators=(",", ":")).encode("ascii")
    _, signature = keys.sign(text)
    return text + b"\n" + signature.encode() + b"\n", digest


def opened(
    place: Place, lines: bytes, data: bytes, keys: Keys, engine: str, oldest_days: float
) -> Record:
    """The record at a place. RefusedError. engine: the id of the running engine."""
    about = _signed(lines, keys)
    if about.get("engine") != engine and place.kind == ENTRY:
        raise RefusedError(OTHER_ENGINE, f"{about.get('engine')}, {made_on(about)}")
    if any(about.get(name) != value for name, value in place._asdict().items()):
        raise RefusedError(OTHER_KEY, f"of {about.get('kernel')}, {made_on(about)}")
    if place.kind == ENTRY:
        if _key_in(about) != place.key:
            raise RefusedError(OTHER_KEY, f"its parts make another key, {made_on(about)}")
        age = time.time() - float(about.get("made", 0.0))
        if not -_DAY < age < oldest_days * _DAY:
            raise RefusedError(STALE, f"{age / _DAY:.0f} days, {made_on(about)}")
    size = about.get("size")
    if not isinstance(size, int) or len(data) < size:
        raise RefusedError(CUT, f"{len(data)} of {size} bytes")
    if len(data) != size or hashlib.sha256(data).hexdigest() != about.get("sha256"):
        raise RefusedError(DAMAGED)
    return Record(about, data)


def _signed(lines: bytes, keys: Keys) -> dict[str, Any]:
    """The description in signed lines."""
    if not lines.startswith(_MAGIC):
        raise RefusedError(OTHER_FORMAT if lines[:6] != _MAGIC[: len(lines)] else CUT)
    text, _, rest = lines[len(_MAGIC) :].partition(b"\n")
    if len(text) > LONGEST:
        raise RefusedError(OTHER_FORMAT)
    try:
        about: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError(CUT if not rest else DAMAGED) from None
    if not isinstance(about, dict):
        raise RefusedError(OTHER_FORMAT)
    about = cast("dict[str, Any]", about)
    signature = rest.rstrip(b"\n").decode("ascii", "replace")
    if not rest:
        raise RefusedError(UNSIGNED)
    if why := keys.fault(str(about.get("signer", "")), signature, _MAGIC + text):
        raise RefusedError(why)
    return about


def _key_in(about: Mapping[str, Any]) -> str:
    """The key that the parts of a description make; empty if they are no parts."""
    try:
        return key_of([(name, value) for name, value in about["parts"]])
    except (LookupError, TypeError, ValueError):
        return ""


# ---- as messages of bazel's protocol


class Message(NamedTuple):
    """lines: as of `closed`. data: the bytes, if the record holds them. blob: else their digest."""

    lines: bytes
    data: bytes
    blob: str


def packed(lines: bytes, digest: str, data: bytes) -> tuple[bytes, bool]:
    """The message of a record, and True if its bytes go to a blob of their own."""
    if len(data) <= INLINE:
        return _field(5, len(lines).to_bytes(4, "little") + lines + data), False
    blob = _field(1, digest.encode()) + _number(2 << 3) + _number(len(data))
    named = _field(2, _field(1, b"entry") + _field(2, blob))
    return named + _field(5, len(lines).to_bytes(4, "little") + lines), True


def unpacked(message: bytes) -> Message:
    """The contents of a message. RefusedError."""
    lines = data = b""
    blob = ""
    for number, value in _fields(message):
        if number == 5:
            size = int.from_bytes(value[:4], "little")
            lines, data = value[4 : 4 + size], value[4 + size :]
        elif number == 2:
            file = dict(_fields(value))
            blob = dict(_fields(file.get(2, b""))).get(1, b"").decode("ascii", "replace")
    if not lines:
        raise RefusedError(CUT if not message else OTHER_FORMAT)
    return Message(lines, data, blob)


def _field(number: int, value: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(value)) + value


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields with bytes; RefusedError for what is no such message."""
    at = 0
    while at < len(message):
        tag, at = _read(message, at)
        if tag & 7 == 0:
            _, at = _read(message, at)
            continue
        if tag & 7 != 2:
            raise RefusedError(OTHER_FORMAT)
        size, at = _read(message, at)
        if at + size > len(message):
            raise RefusedError(CUT)
        yield tag >> 3, message[at : at + size]
        at += size


def _read(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise RefusedError(CUT)
        if shift > 63:
            raise RefusedError(OTHER_FORMAT)
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
