"""Grids as files of VTK, for programs such as ParaView."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["write_vtk"]

_NAMES = {"f": "Float", "i": "Int", "u": "UInt"}


def write_vtk(scalar_field: Any, filename: str) -> None:
    """Write a scalar field with two or three axes to ``filename.vtr``, a value for each cell.

    ValueError for another number of axes.
    """
    values: Any = np.asarray(scalar_field.to_numpy())
    if values.ndim not in (2, 3):
        raise ValueError("The input field must be a 2D or 3D scalar field.")
    if values.ndim == 2:
        values = values[:, :, None]
    kind = f"{_NAMES[values.dtype.kind]}{8 * values.dtype.itemsize}"
    extent = " ".join(f"0 {n}" for n in values.shape)
    name = filename.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    lines = [
        '<?xml version="1.0"?>',
        '<VTKFile type="RectilinearGrid" version="0.1">',
        f'<RectilinearGrid WholeExtent="{extent}">',
        f'<Piece Extent="{extent}">',
        "<Coordinates>",
    ]
    for axis, n in zip("xyz", values.shape, strict=True):
        points = " ".join(str(i) for i in range(n + 1))
        lines.append(f'<DataArray type="Int32" Name="{axis}" format="ascii">{points}</DataArray>')
    elements = " ".join(str(v) for v in values.ravel(order="F").tolist())
    lines += [
        "</Coordinates>",
        f'<CellData scalars="{name}">',
        f'<DataArray type="{kind}" Name="{name}" format="ascii">{elements}</DataArray>',
        "</CellData>",
        "</Piece>",
        "</RectilinearGrid>",
        "</VTKFile>",
        "",
    ]
    with open(f"{filename}.vtr", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
