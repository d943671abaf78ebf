"""Pictures: read, write, resize and show. The first index of a picture is x, y grows upwards.

Pillow does all that; PNG files are also written and read without it.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np

from .png import decoded, encoded

__all__ = ["imread", "imresize", "imshow", "imwrite"]

_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow(what: str) -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ModuleNotFoundError(
            f"{what} needs Pillow, which is not installed: pip install pillow", name="PIL"
        ) from None


def _rows(img: Any) -> Any:
    """A picture as bytes, line by line from the top.

    Floats from 0 to 1 and unsigned integers of more than 8 bits become 0 to 255, rounded down.
    """
    values: Any = np.asarray(img.to_numpy() if hasattr(img, "to_numpy") else img)
    if values.dtype.kind == "f":
        values = np.clip(values, 0.0, 1.0) * 255.0
    elif values.dtype.kind == "u" and values.dtype != np.uint8:
        values = values >> (8 * values.dtype.itemsize - 8)
    elif values.dtype != np.uint8:
        values = np.clip(values, 0, 255)
    values = values.astype(np.uint8)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (2, 3, 4)):
        raise ValueError(f"a picture has the shape (w, h) or (w, h, 1 to 4), not {values.shape}")
    return np.ascontiguousarray(values.swapaxes(0, 1)[::-1])


def imwrite(img: Any, filename: str) -> str:
    """Write a picture, a field or array, and return the file's name.

    Floats are from 0 to 1, bytes and signed integers from 0 to 255, other unsigned integers from 0
    to the largest one.
    """
    rows = _rows(img)
    name = str(filename)
    if name.lower().endswith(".png"):
        with open(name, "wb") as file:
            file.write(encoded(rows))
    else:
        _pillow(f"imwrite() of {name}").fromarray(rows).save(name)
    return name


def imread(filename: str, channels: int = 0) -> Any:
    """A picture from a file, as an array of bytes of the shape (w, h, channels).

    channels: 1 (grey), 3 or 4 to convert it; 0 keeps those of the file.
    """
    if channels and channels not in _MODES:
        raise ValueError(f"channels must be 0 to 4, not {channels}")
    with open(filename, "rb") as file:
        rows = decoded(file.read())
    if rows is None or channels not in (0, rows.shape[2]):
        picture = _pillow("imread()").open(filename)
        rows = np.array(picture.convert(_MODES[channels]) if channels else picture)
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
