"""The address of the memory of an argument, as launch stubs find it."""

from __future__ import annotations

import ctypes
from typing import Any, Final, cast

import numpy as np

from ..ir import Param
from ..types import WriteCounter
from .binding import torch_tensor
from .program import current

__all__ = [
    "DATA_OFFSET", "FAST_ADDRESS", "UNSEEN", "memory_of", "slow_address", "wrong_order",
]  # fmt: skip

DATA_OFFSET: Final = object.__basicsize__


def _data_pointer_is_readable() -> bool:
    """True if the data pointer of a NumPy array is directly after the object header."""
    for sample in (np.zeros(5), np.zeros((3, 4), np.int8)[1:, 1:], np.zeros(())):
        seen = ctypes.c_void_p.from_address(id(sample) + DATA_OFFSET).value
        if seen != sample.ctypes.data:
            return False
    return True


def slow_address(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def wrong_order(param: Param, name: str) -> str:
    """A test for NumPy arrays without the parameter's order of axes; "" if none can have it."""
    if param.axes is None:
        return f"not {name}.flags.carray"
    if param.axes != tuple(range(param.ndim))[::-1] or param.element_shape:
        return ""
    # Not `farray`: that is also true for arrays with gaps.
    return f"not {name}.flags.fnc or not {name}.flags.behaved"


def memory_of(array: Any) -> Any:
    """An argument in the form that `Executable.launch` accepts."""
    if isinstance(array, np.ndarray):
        given = cast(Any, array)
        return given if given.flags.c_contiguous else given.T
    if not torch_tensor(array):
        return array._live()
    from .foreign import foreign_array, numpy_of_tensor

    if array.device.type == "cpu":
        return numpy_of_tensor(array)
    found = foreign_array(array, device=current().device)
    return found and found.view


UNSEEN: Final = WriteCounter()
"""The write counter for memory of other libraries, whose writes are not counted."""
UNSEEN.untracked = True

FAST_ADDRESS: Final = _data_pointer_is_readable()
