"""PNG files, written and read without another package."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

__all__ = ["decoded", "encoded"]

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES: Final = {1: 0, 2: 4, 3: 2, 4: 6}
"""The color type of so many channels of 8 bits."""
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE: Final = 3


def encoded(rows: Any) -> bytes:
    """The bytes of a file with ``rows``: lines from the top, of bytes or of up to 4 channels."""
    height, width = rows.shape[:2]
    color = _COLOR_TYPES[1 if rows.ndim == 2 else rows.shape[2]]

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = b"".join([b"\0" + row.tobytes() for row in rows])
    head = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return _SIGNATURE + data


def decoded(data: bytes) -> Any:
    """The lines from the top, of channels of 8 bits; None for a file that this cannot read."""
    if not data.startswith(_SIGNATURE):
        return None
    parts = list(_chunks(data))
    if not parts or parts[0][0] != b"IHDR":
        return None
    width, height, bits, color, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    if interlaced or color not in _CHANNELS or bits < 8:
        return None
    step = _CHANNELS[color] * bits // 8
    raw = zlib.decompress(b"".join([body for kind, body in parts if kind == b"IDAT"]))
    lines: Any = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * step)
    pixels = _unfiltered(lines, step).reshape(height, width, step)
    if bits == 16:
        pixels = pixels[:, :, ::2]  # the upper bytes
    if color == _PALETTE:
        table = next((body for kind, body in parts if kind == b"PLTE"), b"")
        pixels = np.frombuffer(table, np.uint8).reshape(-1, 3)[pixels[:, :, 0]]
    return pixels


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        at += size + 12


def _unfiltered(lines: Any, step: int) -> Any:
    """The bytes of the lines, whose first byte says how the others differ from their neighbours."""
    out: Any = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above: Any = np.zeros(lines.shape[1] - 1, np.uint8)
    for number, line in enumerate(lines):
        kind, rest = int(line[0]), line[1:]
        if kind == 1:  # differences from the left
            sums = np.cumsum(rest.reshape(-1, step), axis=0, dtype=np.uint64)
            out[number] = (sums & 0xFF).astype(np.uint8).reshape(-1)
        elif kind == 2:
            out[number] = rest + above
        elif kind:
            out[number] = _by_both(kind, rest.tolist(), above.tolist(), step)
        else:
            out[number] = rest
        above = out[number]
    return out


def _by_both(kind: int, line: list[int], above: list[int], step: int) -> list[int]:
    """A line of differences from the left and from above."""
    out = [0] * step + line
    corner = [0] * step + above
    for k in range(step, len(out)):
        left, up, diagonal = out[k - step], above[k - step], corner[k - step]
        if kind == 3:
            guess = (left + up) // 2
        else:
            a, b, c = abs(up - diagonal), abs(left - diagonal), abs(left + up - 2 * diagonal)
            guess = left if a <= b and a <= c else up if b <= c else diagonal
        out[k] = (out[k] + guess) & 0xFF
    return out[step:]
