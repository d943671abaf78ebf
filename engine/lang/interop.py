"""Torch tensors and DLPack capsules of containers: what fields, arrays and tensors share.

Torch is imported when one of its tensors is requested, and only then. So is `dlpack`, which makes
capsules of memory on devices; NumPy makes those of the host's.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, cast

import numpy as np

from ..backends.array_memory import view_of
from ..backends.base import Device
from ..runtime.binding import torch_tensor
from ..types import DataType, f32, f64, i32, i64, u1
from .elements import (
    CPU,
    CUDA,
    DEFAULT_STREAM,
    Elements,
    Window,
    assign,
    elements_of,
    fresh,
)  # fmt: skip

__all__ = [
    "SHARED_TYPES", "Exchanges", "conversion_error", "far_numpy", "to_tensor", "torch",
    "zero_copy_error",
]  # fmt: skip

Array = np.ndarray[Any, Any]
SHARED_TYPES = frozenset([i32, i64, f32, f64, u1])
"""Types of elements that other libraries may see without a copy."""


def zero_copy_error(reason: str) -> ValueError:
    """The error for ``copy=False`` where a copy is needed."""
    return ValueError(f"Zero-copy not available for {reason}; use copy=True or copy=None")


def far_numpy(elements: Window, dtype: DataType, wanted: Any, copy: bool | None) -> Array:
    """`to_numpy` of elements that the host does not see."""
    if copy is False and wanted != elements.dtype:
        raise conversion_error(dtype, wanted)
    if copy is False:
        raise zero_copy_error("memory of a device: numpy zero copy is CPU only")
    return fresh(elements, wanted)


def conversion_error(dtype: DataType, wanted: Any) -> ValueError:
    """The error for ``copy=False`` where the elements are of another type."""
    return ValueError(f"copy=False is incompatible with dtype conversion ({dtype} -> {wanted})")


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

    shared: True if the array is a view, which ``copy=True`` must not return.
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


def _numpy_of(tensor: Any) -> Array:
    from ..runtime.foreign import numpy_of_tensor

    return numpy_of_tensor(tensor.cpu())


_UNREACHABLE: Final = (
    "{}: memory of this device has no address by which another library could reach it;"
    " use to_numpy() and from_numpy(), or to_torch() and from_torch(), which copy"
)


class Shown:
    """Elements on a device, as DLPack shows them, for a copy at once."""

    def __init__(self, window: Elements, device: Device) -> None:
        self._window: Final = cast(Window, window)
        self._device: Final = device

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, **_options: Any
    ) -> Any:
        from .dlpack import capsule_of

        in_order(self._device, stream)
        return capsule_of(self._window, self._device.dlpack, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.dlpack


def in_order(device: Device, stream: Any) -> None:
    """Wait for the work of ``device``, if work on the stream of another library would not."""
    if stream not in (None, -1, DEFAULT_STREAM):
        device.sync()


def done(module: Any) -> None:
    """Wait for the work of torch, if later work of the engine would not."""
    current = module.cuda.current_stream()
    if current.cuda_stream:
        current.synchronize()


class Exchanges:
    """DLPack and torch for a container with ``to_numpy``, ``from_numpy`` and ``_strided_view``."""

    __slots__ = ()

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        raise NotImplementedError

    def from_numpy(self, arr: Any) -> None:
        raise NotImplementedError

    def _by_index(self) -> Elements:
        """The elements by index; ValueError if the distances between them are not fixed."""
        raise NotImplementedError

    def _strided_view(self) -> Elements:
        """The same, to share with other libraries, which may write to them."""
        raise NotImplementedError

    def _written(self) -> None:
        """Record that its elements were written."""
        raise NotImplementedError

    def _shareable(self) -> str:
        """Return why other libraries cannot share the memory without a copy; empty if they can."""
        raise NotImplementedError

    def _take(self, source: Window) -> None:
        """Copy and convert the elements of memory on the same device."""
        raise NotImplementedError

    def _device(self) -> Device:
        """The device of the memory."""
        raise NotImplementedError

    def to_torch(self, device: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as a torch tensor; shape and ``copy`` as in `to_numpy`.

        device: the device of the tensor. The tensor can share memory only on the device of the
        elements, which is the default; with ``copy=True`` the default is the CPU.
        ModuleNotFoundError where torch is not installed.
        """
        module = torch("to_torch()")
        home = self._device().dlpack
        if home[0] != CUDA:  # the host, or memory that only the engine can reach
            return to_tensor(self.to_numpy(copy=copy), False, device, copy)
        usual = "cpu" if copy else f"cuda:{home[1]}"
        where = module.device(usual if device is None else device)
        here = where.type == "cuda" and where.index in (None, home[1])
        if copy is False and not here:
            text = f"copy=False is impossible for a tensor on {where}: the data is on {usual}"
            raise ValueError(text)
        reason = "" if copy else self._shareable()
        if copy is False and reason:
            raise zero_copy_error(reason)
        if not copy and here and not reason:
            return module.from_dlpack(self)
        try:
            view = self._by_index()
        except ValueError:
            return to_tensor(self.to_numpy(), False, where, None)
        if where.type == "cpu":
            return to_tensor(self.to_numpy(), False, where, None)
        tensor = module.from_dlpack(Shown(view, self._device()))
        copied = tensor.clone() if here else tensor.to(where)
        done(module)
        return copied

    def from_torch(self, arr: Any) -> None:
        """Copy and convert the elements of a torch tensor that has the shape of `to_torch()`."""
        if not torch_tensor(arr):
            torch("from_torch()")
            raise TypeError(f"from_torch() takes a torch tensor, not {type(arr)}")
        tensor = arr.detach()
        device, where = self._device(), tensor.device
        if device.dlpack[0] != CUDA or (where.type, where.index) != ("cuda", device.dlpack[1]):
            self.from_numpy(_numpy_of(tensor))
            return
        module = torch("from_torch()")
        try:
            view = self._by_index()
            target = module.from_dlpack(Shown(view, device)) if view.shape == arr.shape else None
        except (ValueError, RuntimeError, BufferError):  # nested, or of a type that torch lacks
            target = None
        if target is None:
            self.from_numpy(_numpy_of(tensor))
            return
        target.copy_(tensor)
        done(module)
        self._written()

    def from_dlpack(self, x: Any) -> None:
        """Take the elements of anything that speaks DLPack, converted.

        ValueError for memory of a device other than the elements' device.
        """
        device = self._device()
        kind = getattr(x, "__dlpack_device__", lambda: (CPU, 0))()[0]
        if int(kind) == CPU or device.dlpack[0] == CPU:
            self.from_numpy(np.from_dlpack(x))
        else:
            from .dlpack import window_of

            self._take(window_of(x, device.dlpack, device.allocate))

    def to_dlpack(self, versioned: bool = False) -> Any:
        """A DLPack capsule of the memory, without a copy.

        Layouts and interleaved fields appear as strides. versioned: True for a capsule of DLPack
        1.0. ValueError for a field whose elements do not have fixed distances.
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
        view = self._by_index() if copy else self._strided_view()
        if not isinstance(view, Window):
            array = cast(Any, view)
            return array.__dlpack__(
                stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
            )
        device = self._device()
        if device.dlpack[0] != CUDA and tuple(dl_device or ()) != (CPU, 0):
            raise BufferError(_UNREACHABLE.format(device.name))
        if dl_device is not None and tuple(dl_device) != device.dlpack:
            if tuple(dl_device) != (CPU, 0) or copy is False:
                raise BufferError(f"the memory is on the device {device.dlpack}")
            there = cast(Any, fresh(view, view.dtype))
            return there.__dlpack__(max_version=max_version)
        from .dlpack import capsule_of

        in_order(device, stream)
        if copy:
            order = view.order() or tuple(range(view.ndim))
            memory = device.allocate(view.size * view.dtype.itemsize)
            shape = [view.shape[axis] for axis in order]
            own = elements_of(view_of(memory, 0, shape, view.dtype), np.argsort(order).tolist())
            assign(own, view)
            view = cast(Window, own)
        return capsule_of(view, device.dlpack, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._by_index()
        return self._device().dlpack

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory for CUDA libraries. AttributeError for memory that is not on a CUDA device."""
        if self._device().dlpack[0] != CUDA:
            raise AttributeError("__cuda_array_interface__: the memory is not on a CUDA device")
        from .dlpack import cuda_interface

        view = self._strided_view()
        assert isinstance(view, Window)
        return cuda_interface(view)
