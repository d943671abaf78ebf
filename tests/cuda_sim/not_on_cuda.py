"""Tests that programs on CUDA cannot run as they run on the CPU, and why.

By path of the file, or path and name of the test: the reason that a skipped twin gives.
"""

from __future__ import annotations

__all__ = ["NOT"]

_IMAGES = "it is about the CPU's code images"

NOT: dict[str, str] = {
    "tests/backends/test_image.py": _IMAGES,
    "tests/backends/test_image_kernels.py": _IMAGES,
    "tests/backends/test_pool.py": "it is about the CPU's threads",
}
