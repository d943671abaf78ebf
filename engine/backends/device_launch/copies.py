"""Arrays of the host as arguments of kernels on a device that does not see its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...errors import CudaError, OpenclError
from ..array_memory import Array, ArrayMemory, DeviceArray

if TYPE_CHECKING:
    from .device import AnyDevice

__all__ = ["Copies"]

_FATAL: Final = CudaError, OpenclError
"""Errors of the device itself: after one, nothing more is copied back."""


class Copies:
    """Copies of host arrays on the device, for one launch. Those that overlap share a copy.

    values: the arguments, with device arrays for host arrays.
    """

    def __init__(self, device: AnyDevice, values: Sequence[Any]) -> None:
        arrays = [cast(Array, v) for v in values if isinstance(v, np.ndarray)]
        self.regions: Final[list[tuple[int, int, ArrayMemory]]] = []
        if not arrays:
            self.values = values
            return
        spans = sorted((a.ctypes.data, a.ctypes.data + max(a.nbytes, 1)) for a in arrays)
        merged: list[list[int]] = []
        for begin, end in spans:
            if merged and begin < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        for begin, end in merged:
            memory = device.room(end - begin)
            self.regions.append((begin, end, memory))
        self.values = [
            self._moved(cast(Array, v)) if isinstance(v, np.ndarray) else v for v in values
        ]

    def _moved(self, array: Array) -> DeviceArray:
        begin, memory = self._place(array)
        offset = array.ctypes.data - begin
        if array.nbytes:
            memory.write(offset, array)
        return DeviceArray(memory.address + offset, array.shape, array.dtype, memory, offset)

    def _place(self, array: Array) -> tuple[int, ArrayMemory]:
        at = array.ctypes.data
        return next((begin, memory) for begin, end, memory in self.regions if begin <= at < end)

    def back(self, written: Sequence[Any]) -> None:
        """Copy the written ones to where they came from. Raises what the launch failed with."""
        failed: Exception | None = None
        for value in written:
            if isinstance(value, np.ndarray) and value.nbytes:
                array = cast(Array, value)
                begin, memory = self._place(array)
                try:
                    memory.read(array.ctypes.data - begin, array)
                except _FATAL:
                    raise
                except Exception as error:
                    failed = failed or error
        if failed is not None:
            raise failed
