"""Names of others: those with an equal in the language, and why the others have none.

Most are Taichi's; those of tiles are Quadrants'.

`alias` and the public modules use it when such a name is looked up. Programs for Taichi reach the
engine through ``import taichi``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ABSENT", "COLOURS", "GRAPH_BUILDER", "equal", "why_absent"]

COLOURS: Final = frozenset({"hex_to_rgb", "rgb_to_hex"})
"""Functions of colours; `windows` defines them."""

GRAPH_BUILDER: Final = frozenset({"Arg", "ArgKind", "Graph", "GraphBuilder"})
"""Classes of ``graph`` for graphs of launches; `lang.graph_builder` defines them."""

_WINDOWS: Final = (
    "there are no windows; draw field.to_numpy() with another library, run the file with "
    "python -m qd_studio.engine.alias --frames 8 FILE, or open the file with qd-studio --run: in "
    "both windows are stand-ins"
)
_TEXTURE: Final = (
    "textures are not supported; keep the picture in a field of vectors and interpolate between "
    "its elements"
)
_MESH: Final = (
    "meshes are not supported; keep positions and the indices of each element's vertices in fields"
)
_ARGPACK: Final = "argument packs are dataclasses here: use dataclasses.dataclass"
_TILES = (
    "tiles of a matrix in the registers of a subgroup are not supported; keep the tile in "
    "qd.simt.block.SharedArray, or work on the elements of a field"
)
ABSENT: Final = {
    "GUI": _WINDOWS,
    "ui": _WINDOWS,
    "Texture": _TEXTURE,
    "texture": _TEXTURE,
    "rw_texture": _TEXTURE,
    "texture_type": _TEXTURE,
    "Mesh": _MESH,
    "MeshInstance": _MESH,
    "TetMesh": _MESH,
    "TriMesh": _MESH,
    "mesh_local": _MESH,
    "mesh_patch_idx": _MESH,
    "outer": _TILES,
    "Tile16x16": _TILES,
    "Tile32x32": _TILES,
    "ArgPack": _ARGPACK,
    "aot": "modules of kernels compiled ahead of time are not supported; the offline cache keeps "
    "what is compiled, for all later processes",
}
"""For each name that has no equal, the reason and what to write instead."""


def equal(name: str) -> str:
    """The name in the language of what Taichi calls ``name``; empty if there is none."""
    if name == "x86_64":
        return "x64"
    if name.startswith("Taichi") and name.endswith("Error"):
        return "Quadrants" + name.removeprefix("Taichi")
    return ""


def why_absent(module: str, name: str) -> str:
    """The error text for ``module.name``; empty if this module knows nothing of the name."""
    reason = ABSENT.get(name, "")
    return reason and f"{module}.{name}: {reason}"
