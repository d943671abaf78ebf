"""Pictures: read, write, resize and show. The first index of a picture is x, y grows upwards.

Pillow does all that; PNG files are also written without it.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["imread", "imresize", "imshow", "imwrite"]


def _pillow(what: str) -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ModuleNotFoundError(
            f"{what} needs Pillow, which is not installed: pip install pillow", name="PIL"
        ) from None


def _rows(img: Any) -> Any:
    """A picture as bytes, line by line from the top. Floats from 0 to 1 become 0 to 255."""
    values: Any = np.asarray(img.to_numpy() if hasattr(img, "to_numpy") else img)
    if values.dtype.kind == "f":
        values = np.clip(values, 0.0, 1.0) * 255.0 + 0.5
    elif values.dtype != np.uint8:
        values = np.clip(values, 0, 255)
    values = values.astype(np.uint8)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (2, 3, 4)):
        raise ValueError(f"a picture has the shape (w, h) or (w, h, 1 to 4), not {values.shape}")
    return np.ascontiguousarray(values.swapaxes(0, 1)[::-1])


def _png(rows: Any) -> bytes:
    """The bytes of a PNG file."""
    height, width = rows.shape[:2]
    color = {1: 0, 2: 4, 3: 2, 4: 6}[1 if rows.ndim == 2 else rows.shape[2]]

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    lines = b"".join([b"\0" + row.tobytes() for row in rows])
    head = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


def imwrite(img: Any, filename: str) -> str:
    """Write a picture, a field or array, and return the file's name.

    Floats are from 0 to 1, integers from 0 to 255.
    """
    rows = _rows(img)
    name = str(filename)
    if name.lower().endswith(".png"):
        with open(name, "wb") as file:
            file.write(_png(rows))
    else:
        _pillow(f"imwrite() of {name}").fromarray(rows).save(name)
    return name


def imread(filename: str, channels: int = 0) -> Any:
    """A picture from a file, as an array of bytes of the shape (w, h, channels).

    channels: 1 (grey), 3 or 4 to convert it; 0 keeps those of the file.
    """
    picture = _pillow("imread()").open(filename)
    if channels:
        modes = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
        if channels not in modes:
            raise ValueError(f"channels must be 0 to 4, not {channels}")
        picture = picture.convert(modes[channels])
    rows = np.array(picture)
    if rows.ndim == 2:
        rows = rows[:, :, None]
    return np.ascontiguousarray(rows.swapaxes(0, 1)[:, ::-1])


def imresize(img: Any, w: int, h: int | None = None) -> Any:
    """The picture with ``w`` x ``h`` (``w``) points, each that of the nearest point of ``img``."""
    values: Any = np.asarray(img.to_numpy() if hasattr(img, "to_numpy") else img)
    wide, high = int(w), int(w if h is None else h)
    x = (np.arange(wide) * values.shape[0]) // wide
    y = (np.arange(high) * values.shape[1]) // high
    return values[x][:, y]


def imshow(img: Any, title: str = "imshow") -> None:
    """Show the picture in the machine's own viewer."""
    _pillow("imshow()").fromarray(_rows(img)).show(title)
