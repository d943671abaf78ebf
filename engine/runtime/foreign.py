"""Arrays of other libraries as arguments of kernels: torch tensors, and all that support DLPack.

Nothing is imported for them: a tensor can only be passed by a program that has imported torch.

A program whose device is not the host uses memory of that device in place: torch tensors on it,
and arrays with a ``__cuda_array_interface__`` (cupy, numba). Tensors elsewhere are copied; other
arrays on another device are refused.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..backends.array_memory import DeviceArray
from ..named_tuple import NamedTuple
from .binding import torch_tensor

if TYPE_CHECKING:
    from ..backends.base import Device

__all__ = [
    "Foreign", "foreign_array", "is_foreign", "numpy_of_tensor", "on_device",
]  # fmt: skip

Array = np.ndarray[Any, Any]
_CPU = 1
"""The value for host memory among DLPack's kinds of devices."""
_CUDA = 2


class Foreign(NamedTuple):
    """An array of another library.

    view: its memory, or a copy of it if it is on another device. grad: the memory of its gradients;
    None if it needs none. back: the tensor that ``view`` must be written back to with `write_back`
    after a launch that changed it; None where ``view`` is its memory.
    """

    view: Array | DeviceArray
    grad: Array | DeviceArray | None = None
    back: Any = None

    @property
    def copy(self) -> Any:
        """The dense copy that a launch works on, as in `alias_check.Copied`."""
        return self.view

    def span(self) -> tuple[int, int]:
        """The address of the memory that ``view`` is a copy of, and the address after its end."""
        start = self.back.data_ptr()
        return start, start + self.back.nbytes

    def write_back(self) -> None:
        """Copy ``view`` to the device of the tensor."""
        if self.back is not None and isinstance(self.view, np.ndarray):
            torch = sys.modules["torch"]
            with torch.no_grad():
                self.back.copy_(torch.from_numpy(self.view))


def on_device(value: Any, device: Device) -> bool:
    """True if a torch tensor is on ``device``, which is not the host."""
    where = value.device
    return device.dlpack[0] == _CUDA and where.type == "cuda" and where.index == device.dlpack[1]


def is_foreign(value: Any) -> bool:
    """True if ``value`` is an array of another library, except NumPy."""
    return torch_tensor(value) or (
        (hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"))
        and not isinstance(value, np.ndarray | np.generic)
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


def foreign_array(value: Any, name: str = "", device: Device | None = None) -> Foreign | None:
    """``value`` as an array that kernels can use; None if it is no array of another library.

    device: that of the program, if its memory may be used in place.

    A torch tensor with ``requires_grad`` gets a gradient of zeros if it has none. ``name``: of the
    argument, for errors: ValueError for tensors that are not contiguous or of a type that NumPy
    lacks, TypeError for arrays on a device that are not torch tensors.
    """
    if torch_tensor(value):
        return _of_torch(value, name, device)
    if not is_foreign(value):
        return None
    if device is not None and device.dlpack[0] == _CUDA:
        interface: Any = getattr(value, "__cuda_array_interface__", None)
        if interface is not None:
            return Foreign(_of_interface(value, interface, name, device))
    where: Any = getattr(value, "__dlpack_device__", lambda: (_CUDA, 0))()
    if int(where[0]) != _CPU:
        raise TypeError(f"Invalid argument {name}: {type(value)} is not in host memory")
    return Foreign(np.from_dlpack(value))


def _of_interface(value: Any, interface: Any, name: str, device: Device) -> DeviceArray:
    """The memory of an array that has a ``__cuda_array_interface__``."""
    address, read_only = interface["data"]
    shape = tuple(int(n) for n in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    dense = DeviceArray(int(address or 0), shape, dtype)
    if strides is not None and dense.nbytes:
        step = dtype.itemsize
        for have, extent in zip(reversed(strides), reversed(shape), strict=True):
            if extent > 1 and have != step:
                raise ValueError(
                    f"Invalid argument {name}: strided arrays are not supported, make it contiguous"
                )
            step *= extent
    if interface.get("mask") is not None:
        raise ValueError(f"Invalid argument {name}: masked arrays are not supported")
    if dense.nbytes and not device.holds(dense.address):
        raise TypeError(
            f"Invalid argument {name}: {type(value)} is not on the program's device, {device.name}"
        )
    stream = interface.get("stream")
    if stream is not None and int(stream) > 1:  # its data is only there when that stream is
        device.streams.wait(int(stream))
    return _borrowed(dense.address, shape, dtype, device, value, not read_only)


def _borrowed(
    address: int, shape: Any, dtype: Any, device: Device, owner: Any, writeable: bool = True
) -> DeviceArray:
    """An array in memory of ``device`` that ``owner`` keeps alive."""
    size = DeviceArray(address, shape, dtype).nbytes
    memory = device.borrow(address, size, owner)
    return DeviceArray(address, shape, dtype, memory, 0, owner, writeable)


def _device_tensor(value: Any, name: str, device: Device) -> DeviceArray:
    """The memory of a dense torch tensor on ``device``."""
    text = str(value.dtype).removeprefix("torch.")
    try:
        dtype = np.dtype(text)
    except TypeError:
        raise ValueError(f"Invalid argument {name}: NumPy has no type like {value.dtype}") from None
    return _borrowed(value.data_ptr(), tuple(value.shape), dtype, device, value)


def _of_torch(value: Any, name: str, device: Device | None) -> Foreign:
    module = sys.modules["torch"]
    if value.layout is not module.strided:
        raise ValueError(f"Invalid argument {name}: {value.layout} tensors are not supported")
    if not value.is_contiguous():
        raise ValueError(
            f"Invalid argument {name}: non-contiguous tensors are not supported, call"
            " tensor.contiguous() before passing it"
        )
    if value.requires_grad and value.grad is None:
        value.grad = module.zeros_like(value)
    if device is not None and on_device(value, device):
        grad = _device_tensor(value.grad, name, device) if value.requires_grad else None
        return Foreign(_device_tensor(value.detach(), name, device), grad)
    data, back = value.detach(), None
    if value.device.type != "cpu":
        data, back = data.cpu(), value.detach()
    grad = numpy_of_tensor(value.grad, name) if value.requires_grad and back is None else None
    return Foreign(numpy_of_tensor(data, name), grad, back)
