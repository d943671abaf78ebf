"""Arrays of other libraries as arguments of kernels: torch tensors, and all that speak DLPack.

Nothing is imported for them: a tensor can only be passed by a program that has imported torch.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, cast

import numpy as np

__all__ = ["Foreign", "foreign_array", "is_foreign", "numpy_of_tensor", "torch_tensor"]

Array = np.ndarray[Any, Any]
_CPU = 1
"""The number of host memory among DLPack's kinds of devices."""


class Foreign(NamedTuple):
    """An array of another library.

    view: its memory, or a copy of it for one that lies on another device. grad: the memory of its
    gradients; None if it wants none. back: the tensor that ``view`` must be written back to with
    `write_back` after a launch that changed it; None where ``view`` is its memory.
    """

    view: Array
    grad: Array | None = None
    back: Any = None

    def write_back(self) -> None:
        """Copy ``view`` to the device that the tensor lies on."""
        if self.back is not None:
            torch = sys.modules["torch"]
            with torch.no_grad():
                self.back.copy_(torch.from_numpy(self.view))


def torch_tensor(value: Any) -> bool:
    """Whether ``value`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_foreign(value: Any) -> bool:
    """Whether ``value`` is an array of another library, NumPy's apart."""
    return torch_tensor(value) or (
        hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray | np.generic)
    )


def numpy_of_tensor(value: Any, name: str = "") -> Array:
    """The memory of a dense torch tensor in host memory, which may be the argument ``name``.

    ValueError for a data type that NumPy lacks, and for memory that is no array.
    """
    try:
        return cast(Array, value.detach().numpy())
    except (TypeError, RuntimeError) as e:
        what = f"argument {name}" if name else "tensor"
        raise ValueError(f"Invalid {what}: {value.dtype}, {value.layout}: {e}") from e


def foreign_array(value: Any, name: str = "") -> Foreign | None:
    """``value`` as an array that kernels can use; None if it is no array of another library.

    A torch tensor with ``requires_grad`` gets a gradient of zeros if it has none. ``name``: of the
    argument, for errors: ValueError for tensors that are not contiguous or of a type that NumPy
    lacks, TypeError for arrays that lie on a device without being torch tensors.
    """
    if torch_tensor(value):
        return _of_torch(value, name)
    if not is_foreign(value):
        return None
    device: Any = getattr(value, "__dlpack_device__", lambda: (_CPU, 0))()
    if int(device[0]) != _CPU:
        raise TypeError(f"Invalid argument {name}: {type(value)} is not in host memory")
    return Foreign(np.from_dlpack(value))


def _of_torch(value: Any, name: str) -> Foreign:
    module = sys.modules["torch"]
    if value.layout is not module.strided:
        raise ValueError(f"Invalid argument {name}: {value.layout} tensors are not supported")
    if not value.is_contiguous():
        raise ValueError(
            f"Invalid argument {name}: non-contiguous tensors are not supported, call"
            " tensor.contiguous() before passing it"
        )
    data, back = value.detach(), None
    if value.device.type != "cpu":
        data, back = data.cpu(), value.detach()
    grad: Array | None = None
    if value.requires_grad:
        if value.grad is None:
            value.grad = module.zeros_like(value)
        if back is None:
            grad = numpy_of_tensor(value.grad, name)
    return Foreign(numpy_of_tensor(data, name), grad, back)
