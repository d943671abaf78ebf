"""Launch a loaded kernel of a device on arrays of the host, as tests of single backends do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from qd_studio.engine.backends.array_memory import view_of
from qd_studio.engine.backends.base import find
from qd_studio.engine.config import CompileConfig

__all__ = ["launch", "opened"]


def opened(backend: str = "cuda", **options: Any) -> Any:
    """The device of a program that has just begun; kernels of the backend are loaded on it."""
    return find(backend).open(CompileConfig(**options))


def _root(array: np.ndarray) -> np.ndarray:
    """The array whose memory this one shows a part of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def launch(
    executable: Any, values: Sequence[Any], seed: int = 0, plan: Any = None
) -> tuple[Any, ...]:
    """What `Executable.launch` gives; arrays hold what the kernel has written afterwards.

    Arrays that are parts of one array are so on the device.
    """
    device = executable.device
    roots = {id(_root(v)): _root(v) for v in values if isinstance(v, np.ndarray)}
    rooms: dict[int, Any] = {}
    for key, root in roots.items():
        rooms[key] = device.allocate(max(root.nbytes, 1))
        if root.nbytes:
            rooms[key].write(0, np.ascontiguousarray(root))
    given: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray):
            root = _root(value)
            offset = value.ctypes.data - root.ctypes.data
            value = view_of(rooms[id(root)], offset, value.shape, value.dtype)
        given.append(value)
    try:
        results = executable.launch(given, seed, plan)
        device.sync()
        return results
    finally:
        for key, root in roots.items():
            if root.nbytes:
                rooms[key].read(0, root)
            rooms[key].free()
