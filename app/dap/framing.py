"""Messages of the Debug Adapter Protocol as bytes: a header with the length, then JSON."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final

__all__ = ["read", "write"]

_DIGITS: Final = 10
"""Of a length: a larger one is an error of the sender, for which no memory is taken."""


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end. Raises ValueError for what is no message; the stream is
    then after it."""
    length = -1
    while True:
        line = stream.readline()
        if not line:
            return None
        if not line.strip():
            if length < 0:
                continue
            break
        name, _, value = line.decode("ascii", "replace").partition(":")
        # What is left of a message that was refused may be before it.
        if name.strip().lower().endswith("content-length"):
            text = value.strip()
            length = int(text) if text.isdecimal() and len(text) < _DIGITS else -1
            if length < 0:
                raise ValueError(f"{text!r} is no length")
    data = stream.read(length)
    if len(data) < length:
        return None
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("a message is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("a message is no object")
    return found  # pyright: ignore[reportUnknownVariableType]


def write(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Send a message."""
    data = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    stream.flush()
