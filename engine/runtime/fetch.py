"""Reads of arrays in device memory, to compute the sizes of adstacks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..backends.array_memory import DeviceArray, host_copy

__all__ = ["FETCH", "FromDevice"]


class FromDevice:
    """See `adstack.host_eval.Fetch`. It waits for earlier launches."""

    def whole(self, value: DeviceArray) -> np.ndarray[Any, Any]:
        return host_copy(value)

    def element(self, value: DeviceArray, number: int) -> int:
        out = np.empty(1, value.dtype)
        assert value.memory is not None
        value.memory.read(value.offset + number * value.dtype.itemsize, out)
        return int(out[0])


FETCH: Final = FromDevice()
