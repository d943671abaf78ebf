"""Functions of sparse nodes, bit-packed fields and meshes.

All fields are dense: activating and deactivating cells of dense nodes changes nothing, as in the
reference. The functions that need a sparse node raise an error at the user's line.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ...errors import QuadrantsUnsupportedError
from ...frontend.registry import intrinsic
from ..functions import only_in_kernels

__all__ = [
    "BitpackedFields", "Mesh", "MeshInstance", "activate", "append", "deactivate",
    "deactivate_all_snodes", "is_active", "length", "mesh_local", "mesh_patch_idx",
]  # fmt: skip


@intrinsic("activate")
def activate(node: Any, indices: Any) -> None:
    """Activate a cell. Cells of dense nodes always are active, so nothing happens."""
    only_in_kernels("activate")


@intrinsic("deactivate")
def deactivate(node: Any, indices: Any) -> None:
    """Deactivate a cell. Cells of dense nodes stay active, so nothing happens."""
    only_in_kernels("deactivate")


@intrinsic("is_active")
def is_active(node: Any, indices: Any) -> Any:
    """Not supported: only sparse nodes have inactive cells."""
    only_in_kernels("is_active")


@intrinsic("append")
def append(node: Any, indices: Any, val: Any) -> Any:
    """Not supported: there are no dynamic nodes."""
    only_in_kernels("append")


@intrinsic("length")
def length(node: Any, indices: Any) -> Any:
    """Not supported: there are no dynamic nodes."""
    only_in_kernels("length")


def deactivate_all_snodes() -> None:
    """Deactivate all sparse cells. There are none: the values of dense fields stay."""


@intrinsic("mesh_local")
def mesh_local(*args: Any) -> None:
    """Not supported: there are no meshes."""
    only_in_kernels("mesh_local")


@intrinsic("mesh_patch_idx")
def mesh_patch_idx() -> int:
    """Not supported: there are no meshes."""
    only_in_kernels("mesh_patch_idx")


def _refuse(what: str, hint: str) -> NoReturn:
    raise QuadrantsUnsupportedError(feature=what, hint=hint)


class BitpackedFields:
    """Not supported: making one raises QuadrantsUnsupportedError."""

    def __init__(self, max_num_bits: int) -> None:
        _refuse("qd.BitpackedFields", "use fields of whole integer types, such as qd.u8")


_MESH = "keep vertices and indices of elements in fields or ndarrays, and loop over the elements"


class Mesh:
    """Not supported: making one, or loading its data, raises QuadrantsUnsupportedError."""

    def __init__(self) -> None:
        _refuse("qd.Mesh", _MESH)

    @staticmethod
    def load_meta(filename: str) -> NoReturn:
        """Not supported."""
        _refuse("qd.Mesh.load_meta", _MESH)

    @staticmethod
    def generate_meta(data: Any) -> NoReturn:
        """Not supported."""
        _refuse("qd.Mesh.generate_meta", _MESH)


class MeshInstance:
    """Not supported: making one raises QuadrantsUnsupportedError."""

    def __init__(self, *args: Any) -> None:
        _refuse("qd.MeshInstance", _MESH)
