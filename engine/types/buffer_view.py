"""`qd.BufferView`: a range of an array with one axis, as an argument of kernels.

    @qd.kernel
    def scale(v: qd.BufferView[qd.f32]):
        for i in range(v.size):
            v[i] *= 2.0

    scale(data[8:24])

A kernel gets the array and two integers, so views of all ranges share one compiled kernel. To the
compiler a view is an object of a dataclass with these three members.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .annotations import BufferViewType, NDArray
from .dtypes import i32
from .handles import ArrayHandle, BufferViewHandle, TensorHandle

__all__ = ["BufferView", "BufferViewType", "sliced"]

_OneAxis = NDArray(ndim=1)


@dataclass(init=False, repr=False, eq=False)
class BufferView(BufferViewHandle):
    """The elements ``offset`` to ``offset + size`` of an array with one axis.

    ``data[8:24]`` makes one; so does ``view[2:6]``, of a view. ``BufferView[qd.f32]`` annotates a
    parameter; ``BufferView`` alone accepts every data type.

    arr: an ndarray, or an array of NumPy. TypeError for other objects, for arrays with several axes
    and for arrays with gradients; ValueError for a range that is not in the array.
    """

    if TYPE_CHECKING:
        arr: Any
        offset: int
        size: int
    else:
        arr: _OneAxis
        offset: i32
        size: i32

    def __init__(self, arr: Any, offset: Any, size: Any) -> None:
        if isinstance(arr, BufferView):
            raise TypeError(
                "Cannot nest BufferView(view, ...); use view.subview(offset, size) instead"
            )
        if isinstance(arr, TensorHandle):
            arr = arr._unwrap()  # pyright: ignore[reportPrivateUsage]
        is_array = isinstance(arr, ArrayHandle) or hasattr(arr, "__array_interface__")
        if not is_array:
            raise TypeError(f"BufferView requires a 1D ndarray, got {type(arr).__name__}")
        if getattr(arr, "grad", None) is not None:
            raise TypeError("BufferView does not support ndarrays with gradients (needs_grad=True)")
        shape: Any = cast(Any, arr).shape
        if len(shape) != 1:
            raise TypeError(f"BufferView requires a 1D ndarray, got shape {tuple(shape)}")
        first, count, length = operator.index(offset), operator.index(size), shape[0]
        if first < 0 or count < 0 or first + count > length:
            raise ValueError(
                f"BufferView out of range: offset={first}, size={count}, ndarray length={length}"
            )
        self.arr = arr
        self.offset = first
        self.size = count

    def __class_getitem__(cls, item: Any) -> BufferViewType:
        """``BufferView[dtype]`` or ``BufferView[dtype, boundary]``."""
        items = cast("tuple[Any, ...]", item if isinstance(item, tuple) else (item,))
        return BufferViewType(*items)

    @property
    def shape(self) -> tuple[int]:
        """``(size,)``."""
        return (self.size,)

    def get_ndarray(self) -> Any:
        """The array that the view is of."""
        return self.arr

    def subview(self, offset: Any, size: Any) -> BufferView:
        """The view of ``size`` elements from element ``offset`` of this one.

        ValueError for a range that is not in the view.
        """
        first, count = operator.index(offset), operator.index(size)
        if first < 0 or count < 0 or first + count > self.size:
            raise ValueError(
                f"subview out of range: offset={first}, size={count}, parent size={self.size}"
            )
        return BufferView(self.arr, self.offset + first, count)

    def __getitem__(self, key: Any) -> BufferView:
        if not isinstance(key, slice):
            raise TypeError(
                f"BufferView host-side indexing requires a slice, got {type(key).__name__}; read"
                " view.arr[view.offset + i]"
            )
        return self.subview(*_range(cast(Any, key), self.size))

    def __repr__(self) -> str:
        return f"<qd.BufferView [{self.offset}:{self.offset + self.size}] of {self.arr!r}>"


def sliced(arr: Any, key: Any) -> BufferView:
    """``arr[key]``. TypeError for an array with several axes, ValueError for a step."""
    shape = tuple(arr.shape)
    if len(shape) != 1:
        raise TypeError(
            f"ndarray slice to BufferView requires a 1D array, got shape {shape};"
            " to_numpy() returns an array that can be sliced"
        )
    return BufferView(arr, *_range(key, shape[0]))


def _range(key: Any, length: int) -> tuple[int, int]:
    """The first element and the number of elements of a slice, as Python counts them."""
    start, stop, step = key.indices(length)
    if step != 1:
        raise ValueError(f"BufferView slice requires step=1, got step={step}")
    return start, max(stop - start, 0)
