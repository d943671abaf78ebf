"""``qd.tools``: files of points, grids and pictures.

`PLYWriter` and `write_vtk` need nothing but NumPy; pictures need Pillow, except for PNG files.
"""

from __future__ import annotations

from . import image, np2ply, video, vtk
from .image import imread, imresize, imshow, imwrite
from .np2ply import PLYWriter
from .video import VideoManager
from .vtk import write_vtk

__all__ = [
    "PLYWriter", "VideoManager", "image", "imread", "imresize", "imshow", "imwrite", "np2ply",
    "video", "vtk", "write_vtk",
]  # fmt: skip
