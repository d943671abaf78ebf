"""Files in the PLY format (polygons) from NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from ... import logs as log

__all__ = ["PLYWriter"]

_TYPES: Final[dict[str, Any]] = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32,
    "uint": np.uint32, "float": np.float32, "double": np.float64,
}  # fmt: skip
_CORNERS: Final = {"tri": 3, "quad": 4}


class _Channels:
    """The properties of the vertices or the faces: names, types and columns."""

    def __init__(self, count: int, what: str) -> None:
        self.count: Final = count
        self._what: Final = what
        self.columns: list[tuple[str, str, Any]] = []

    def add(self, key: str, data_type: str, data: Any) -> None:
        """A column for ``data``, or one for each of its columns, numbered from 1."""
        if data_type not in _TYPES:
            log.warn(f"PLY has no type {data_type}: the channel {key} is skipped")
            return
        values = np.asarray(data)
        assert values.ndim in (1, 2) and values.shape[0] == self.count, (
            f"The dimension of the {self._what} channel is not correct"
        )
        columns = [values] if values.ndim == 1 else list(values.T)
        for i, column in enumerate(columns):
            name = key if values.ndim == 1 else f"{key}_{i + 1}"
            if any(name == known for known, _, _ in self.columns):
                log.warn(f"the PLY channel {name} is there twice")
            self.columns.append((name, data_type, column.astype(_TYPES[data_type])))

    def fields(self) -> list[tuple[Any, ...]]:
        """The columns, as fields of a NumPy record."""
        return [(f"f{i}", _TYPES[t]) for i, (_, t, _) in enumerate(self.columns)]


class PLYWriter:
    """Collects the channels of vertices and faces, and writes them to a file.

    face_type: ``tri`` or ``quad``. comment: a line of the file's header.
    """

    def __init__(
        self,
        num_vertices: int,
        num_faces: int = 0,
        face_type: str = "tri",
        comment: str = "created by PLYWriter",
    ) -> None:
        assert num_vertices > 0, "num_vertices should be greater than 0"
        assert num_faces >= 0, "num_faces shouldn't be less than 0"
        assert face_type in _CORNERS, "Only tri and quad faces are supported for now"
        self.num_vertices: Final = num_vertices
        self.num_faces: Final = num_faces
        self.face_type: Final = face_type
        self.comment: Final = comment
        self.face_indices: Any = np.full((num_faces, _CORNERS[face_type]), -1, np.int32)
        self._vertices: Final = _Channels(num_vertices, "vertex")
        self._faces: Final = _Channels(num_faces, "face")

    def add_vertex_channel(self, key: str, data_type: str, data: Any) -> None:
        """A property of the vertices; an array of two axes becomes one for each column."""
        self._vertices.add(key, data_type, data)

    def add_face_channel(self, key: str, data_type: str, data: Any) -> None:
        """A property of the faces; an array of two axes becomes one for each column."""
        self._faces.add(key, data_type, data)

    def _floats(self, names: str, *data: Any) -> None:
        for name, column in zip(names.split(), data, strict=True):
            self._vertices.add(name, "float", column)

    def add_vertex_pos(self, x: Any, y: Any, z: Any) -> None:
        """The positions; every file needs them."""
        self._floats("x y z", x, y, z)

    def add_vertex_normal(self, nx: Any, ny: Any, nz: Any) -> None:
        """The normals."""
        self._floats("nx ny nz", nx, ny, nz)

    def add_vertex_vel(self, vx: Any, vy: Any, vz: Any) -> None:
        """The velocities."""
        self._floats("vx vy vz", vx, vy, vz)

    def add_vertex_color(self, r: Any, g: Any, b: Any) -> None:
        """The colours."""
        self._floats("red green blue", r, g, b)

    def add_vertex_alpha(self, alpha: Any) -> None:
        """The opacities."""
        self._floats("Alpha", alpha)

    def add_vertex_rgba(self, r: Any, g: Any, b: Any, a: Any) -> None:
        """The colours and opacities."""
        self._floats("red green blue Alpha", r, g, b, a)

    def add_vertex_id(self) -> None:
        """The number of each vertex, as channel ``id``."""
        self._vertices.add("id", "int", np.arange(self.num_vertices))

    def add_vertex_piece(self, piece: Any) -> None:
        """The number of the piece that each vertex belongs to."""
        self._vertices.add("piece", "int", piece)

    def add_faces(self, indices: Any) -> None:
        """The indices of the vertices of all faces."""
        values = np.asarray(indices)
        assert values.size == self.face_indices.size, (
            "The dimension of the face vertices is not correct"
        )
        self.face_indices = values.reshape(self.face_indices.shape).astype(np.int32)

    def add_face_id(self) -> None:
        """The number of each face, as channel ``id``."""
        self._faces.add("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: Any) -> None:
        """The number of the piece that each face belongs to."""
        self._faces.add("piece", "int", piece)

    def sanity_check(self) -> None:
        """AssertionError if positions are missing or a face has a vertex that does not exist."""
        names = {name for name, _, _ in self._vertices.columns}
        assert {"x", "y", "z"} <= names, "The vertex pos channel is missing"
        inside = (self.face_indices >= 0) & (self.face_indices < self.num_vertices)
        assert bool(inside.all()), "The face indices are invalid"

    def _header(self, form: str) -> str:
        lines = ["ply", f"format {form} 1.0", f"comment {self.comment}"]
        lines.append(f"element vertex {self.num_vertices}")
        lines += [f"property {kind} {name}" for name, kind, _ in self._vertices.columns]
        if self.num_faces:
            lines.append(f"element face {self.num_faces}")
            lines.append("property list uchar int vertex_indices")
            lines += [f"property {kind} {name}" for name, kind, _ in self._faces.columns]
        return "\n".join([*lines, "end_header", ""])

    def _records(self) -> tuple[Any, Any]:
        """All vertices and all faces, as arrays of records without gaps."""
        vertices = np.zeros(self.num_vertices, np.dtype(self._vertices.fields()))
        for i, (_, _, column) in enumerate(self._vertices.columns):
            vertices[f"f{i}"] = column
        corners = self.face_indices.shape[1]
        head: list[Any] = [("count", np.uint8), ("corners", np.int32, (corners,))]
        faces = np.zeros(self.num_faces, np.dtype(head + self._faces.fields()))
        faces["count"], faces["corners"] = corners, self.face_indices
        for i, (_, _, column) in enumerate(self._faces.columns):
            faces[f"f{i}"] = column
        return vertices, faces

    def export(self, path: str) -> None:
        """Write a binary file, in the byte order of this machine."""
        self.sanity_check()
        vertices, faces = self._records()
        order: Literal["little", "big"] = sys.byteorder
        with open(path, "wb") as file:
            file.write(self._header(f"binary_{order}_endian").encode())
            file.write(vertices.tobytes())
            file.write(faces.tobytes())

    def export_ascii(self, path: str) -> None:
        """Write a text file."""
        self.sanity_check()
        vertices = [column for _, _, column in self._vertices.columns]
        faces = [*self.face_indices.T, *[column for _, _, column in self._faces.columns]]
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._header("ascii"))
            for row in zip(*vertices, strict=True):
                file.write("".join([str(value) + " " for value in row]) + "\n")
            count = f"{self.face_indices.shape[1]} "
            for row in zip(*faces, strict=True) if self.num_faces else ():
                file.write(count + "".join([str(value) + " " for value in row]) + "\n")

    def _frame(self, series_num: int, path: str, write: Callable[[str], None]) -> None:
        write(f"{path.removesuffix('.ply')}_{series_num:0=6d}.ply")

    def export_frame_ascii(self, series_num: int, path: str) -> None:
        """Write the text file of one step: ``path_000012.ply``."""
        self._frame(series_num, path, self.export_ascii)

    def export_frame(self, series_num: int, path: str) -> None:
        """Write the binary file of one step: ``path_000012.ply``."""
        self._frame(series_num, path, self.export)
