"""Messages of the Debug Adapter Protocol as bytes: a header with the length, then JSON."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

__all__ = ["read", "write"]


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None at the end. Raises ValueError for what is no message."""
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
        if name.strip().lower() == "content-length":
            length = int(value)
    data = stream.read(length)
    if len(data) < length:
        return None
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("a message is no object")
    return found  # pyright: ignore[reportUnknownVariableType]


def write(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Send a message."""
    data = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
    stream.flush()
