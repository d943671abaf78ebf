"""Torch tensors and DLPack capsules of containers: what fields, arrays and tensors share.

Torch is imported when one of its tensors is asked for, and only then.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

import numpy as np

from ..runtime.foreign import numpy_of_tensor, torch_tensor

__all__ = ["Exchanges", "to_tensor", "torch"]

Array = np.ndarray[Any, Any]


def torch(what: str) -> Any:
    """The module ``torch``. ModuleNotFoundError, which says what needs it, where it is missing."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"{what} needs PyTorch, which is not installed here; to_numpy() and DLPack do not",
            name="torch",
        ) from None


def to_tensor(array: Array, shared: bool, device: Any, copy: bool | None) -> Any:
    """``array`` as a torch tensor on ``device``.

    shared: whether the array is a view that must not be given away under ``copy=True``.
    """
    module = torch("to_torch()")
    where = module.device("cpu" if device is None else device)
    if copy is False and where.type != "cpu":
        raise ValueError(
            f"copy=False is impossible for a tensor on {where}: the data is on the CPU"
        )
    tensor = module.from_numpy(array)
    if copy and shared:
        tensor = tensor.clone()
    return tensor if where.type == "cpu" else tensor.to(where)


class Exchanges:
    """DLPack and torch for a container with ``to_numpy``, ``from_numpy`` and ``_strided_view``."""

    __slots__ = ()

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        raise NotImplementedError

    def from_numpy(self, arr: Any) -> None:
        raise NotImplementedError

    def _strided_view(self) -> Array:
        """A view of the elements by index; ValueError if they do not lie at fixed distances."""
        raise NotImplementedError

    def to_torch(self, device: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as a torch tensor; shape and ``copy`` as in `to_numpy`.

        device: where the tensor shall be, the CPU by default; only there it can share memory.
        ModuleNotFoundError where torch is not installed.
        """
        torch("to_torch()")
        return to_tensor(self.to_numpy(copy=copy), False, device, copy)

    def from_torch(self, arr: Any) -> None:
        """Take the elements of a torch tensor of the shape that `to_torch` gives, converted."""
        if not torch_tensor(arr):
            torch("from_torch()")
            raise TypeError(f"from_torch() takes a torch tensor, not {type(arr)}")
        self.from_numpy(numpy_of_tensor(arr.detach().cpu()))

    def from_dlpack(self, x: Any) -> None:
        """Take the elements of anything that speaks DLPack, converted."""
        self.from_numpy(np.from_dlpack(x))

    def to_dlpack(self, versioned: bool = False) -> Any:
        """A DLPack capsule of the memory, without a copy.

        Layouts and interleaved fields appear as strides. versioned: whether the capsule is of
        DLPack 1.0. ValueError for a field whose elements do not lie at fixed distances.
        """
        return self.__dlpack__(max_version=(1, 0) if versioned else None)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        view = cast(Any, self._strided_view())
        return view.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._strided_view().__dlpack_device__()
