"""`qd.ndarray`: an array of numbers, vectors or matrices that kernels take as an argument.

The data is zero at first, aligned to 64 bytes, and belongs to the program that was current when
the array was made: after a reset every use is an error. It is row-major, the axes of an element
last; the array inside a `tensor.Tensor` may have its own axes in another order in memory. Indexing
from Python reads and writes one element and is always checked, also for negative indices, which
kernels lack. A vector or matrix that is read is a live one: writing its elements writes the array.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NoReturn, cast

import numpy as np

from ..backends.array_memory import ArrayMemory, DeviceArray, view_of
from ..backends.base import Device
from ..errors import (
    QuadrantsAssertionError,
    QuadrantsIndexError,
    QuadrantsRuntimeError,
    QuadrantsRuntimeTypeError,
)
from ..frontend.specialization import NdarrayKey, ndarray_key
from ..runtime import program
from ..types import (
    ArrayHandle,
    CompoundType,
    DataType,
    MatrixType,
    WriteCounter,
    matrix_type,
    set_array_class,
)
from .elements import Elements, Window, allocated, assign, elements_of, fresh, release
from .host import (
    ended,
    extents_of,
    is_number,
    mismatch,
    number,
    numbers,
    numbers_of,
    numpy_type,
    python_number,
    value_type,
)
from .interop import SHARED_TYPES, Exchanges, conversion_error, far_numpy, zero_copy_error

__all__ = ["MatrixNdarray", "Ndarray", "ScalarNdarray", "VectorNdarray", "ndarray"]

Array = np.ndarray[Any, Any]


Ready = tuple[NdarrayKey | None, int, tuple[int, ...], WriteCounter, Array | DeviceArray | None]
"""The parts of an array for a launch: specialization key, address, extents, write counter, memory.

The specialization key and the memory of an array whose program has ended are None.
"""


def _kind(array: Ndarray) -> tuple[object, ...]:
    return array.dtype, array.shape, array.element_shape, array.layout


def _described(array: Ndarray) -> str:
    order = "" if array.layout is None else f" with the axes {array.layout} in memory"
    return f"{array.element_type} {array.shape}{order}"


class Ndarray(ArrayHandle, Exchanges):
    """An array of numbers, vectors or matrices; made by `ndarray`.

    dtype: of one number. shape: of the array, without the axes of an element. element_shape: () for
    numbers, (n,) for vectors, (n, m) for matrices. layout: the order of the axes in memory if it is
    not theirs, else None. grad, dual: the arrays of gradients and of duals, or None.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_data", "_dual", "_elements", "_extents", "_grad", "_key",
        "_memory", "_program", "_ready", "_writes", "dtype", "element_shape", "layout",
    )  # fmt: skip

    def __init__(
        self,
        dtype: DataType,
        shape: tuple[int, ...],
        needs_grad: bool = False,
        element_shape: tuple[int, ...] = (),
        axes: tuple[int, ...] | None = None,
        needs_dual: bool = False,
    ) -> None:
        owner = program.current()
        extents = tuple([shape[a] for a in axes or range(len(shape))]) + element_shape
        nbytes = dtype.size * math.prod(extents)
        memory = allocated(owner, nbytes, f"an ndarray of shape {extents}")
        self._memory: ArrayMemory | None = memory
        self._grad = Ndarray(dtype, shape, False, element_shape, axes) if needs_grad else None
        self._dual = Ndarray(dtype, shape, False, element_shape, axes) if needs_dual else None
        data = view_of(memory, 0, extents, dtype.np)
        kind = dtype, shape, element_shape, axes
        self._hold(owner, kind, WriteCounter(), data, memory.address)
        owner.own(self)

    @classmethod
    def _over(cls, field: Any) -> Ndarray | None:
        """An array in the memory of a field (a `FieldHandle`), for launches now: it does not notice
        if the field is freed. None where the elements are not one after the other."""
        address = field.address()
        if not field.memory_layout().is_row_major():
            return None
        kind = field.dtype, field.shape, field.element_shape, None
        flat, extents = field.flat(), kind[1] + kind[2]
        far = isinstance(flat, DeviceArray)
        data = DeviceArray(address, extents, flat.dtype, flat.memory, flat.offset) if far else (
            flat.reshape(extents)
        )  # fmt: skip
        made = cls.__new__(cls)
        made._memory = made._grad = made._dual = None
        made._hold(field.program, kind, field.writes, data, address)
        return made

    def _hold(
        self, owner: program.Program,
        kind: tuple[DataType, tuple[int, ...], tuple[int, ...], tuple[int, ...] | None],
        writes: WriteCounter, data: Array | DeviceArray, address: int,
    ) -> None:  # fmt: skip
        self.dtype, shape, self.element_shape, self.layout = kind
        self._extents = shape
        self._writes = writes
        self._program = owner
        self._data: Array | DeviceArray | None = data
        back = [self.layout.index(a) for a in range(len(shape))] if self.layout else None
        tail = range(len(shape), len(shape) + len(self.element_shape))
        self._elements: Elements = elements_of(data, None if back is None else [*back, *tail])
        key = self._new_key()
        self._key: NdarrayKey | None = key
        # Launchers read it in one step: another thread may end the program at any time, and the
        # memory must live as long as the launch.
        self._ready: Ready = key, address, shape, writes, data

    def _new_key(self) -> NdarrayKey:
        return ndarray_key(
            self.dtype, len(self._extents), self.has_grad(), self.element_shape, self.layout,
            self.has_dual(),
        )  # fmt: skip

    def program_ended(self) -> None:
        """Free the memory; the array is of no use from here on."""
        self._key = None
        self._ready = (None, *self._ready[1:4], None)
        memory, self._memory = self._memory, None
        self._data = None
        self._elements = np.empty(0)
        if memory is not None:
            release(memory)

    @property
    def _address(self) -> int:
        return 0 if self._key is None else self._ready[1]

    def _live(self) -> Array | DeviceArray:
        """The memory: axes in its own order, those of an element last."""
        if self._data is None:
            raise ended("ndarray")
        return self._data

    def _by_index(self) -> Elements:
        found = self._elements  # before `_live`: the program may end in between
        self._live()
        return found

    def _strided_view(self) -> Elements:
        data = self._by_index()
        self._writes.untracked = True
        return data

    def _written(self) -> None:
        self._writes.touched = True

    def _shareable(self) -> str:
        return "" if self.dtype in SHARED_TYPES else f"dtype={self.dtype}"

    def _device(self) -> Device:
        return self._program.device

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes, without those of the elements."""
        return self._extents

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._extents)

    @property
    def element_type(self) -> DataType | MatrixType:
        """The type of an element."""
        shape = self.element_shape
        return matrix_type(shape, self.dtype) if shape else self.dtype

    @property
    def n(self) -> int:
        """Rows of an element. AttributeError for an array of numbers."""
        if not self.element_shape:
            raise AttributeError("an ndarray of numbers has no attribute 'n'")
        return self.element_shape[0]

    @property
    def m(self) -> int:
        """Columns of an element, 1 for a vector. AttributeError for an array of numbers."""
        if not self.element_shape:
            raise AttributeError("an ndarray of numbers has no attribute 'm'")
        return self.element_shape[1] if len(self.element_shape) == 2 else 1

    @property
    def grad(self) -> Ndarray | None:
        """The array of gradients, or None.

        May be set to another array of the same type and shape, which launches then write to, or to
        None. QuadrantsRuntimeTypeError for anything else.
        """
        return self._grad

    @grad.setter
    def grad(self, value: Ndarray | None) -> None:
        self._grad = self._companion("grad", value)
        self._renew_key()

    @property
    def dual(self) -> Ndarray | None:
        """The array of duals, or None; may be set as `grad` may."""
        return self._dual

    @dual.setter
    def dual(self, value: Ndarray | None) -> None:
        self._dual = self._companion("dual", value)
        self._renew_key()

    def _companion(self, name: str, value: Any) -> Ndarray | None:
        """A launch indexes both arrays alike: one that is smaller would be written outside."""
        if value is None:
            return None
        if not isinstance(value, Ndarray):
            found = type(value).__name__
        elif _kind(value) == _kind(self) and self.dtype.is_real:
            return value
        else:
            found = f"{_described(value)} for one of {_described(self)}"
        raise QuadrantsRuntimeTypeError(
            f"{name} of an ndarray must be an ndarray of the same type and shape, not {found}",
            hint=f"x.{name} = qd.ndarray(x.element_type, x.shape), or x.{name}.from_numpy(...)",
        )

    def _renew_key(self) -> None:
        if self._key is not None:
            self._key = self._new_key()
            self._ready = (self._key, *self._ready[1:])

    def has_grad(self) -> bool:
        """True if there is memory for gradients."""
        return self._grad is not None

    def has_dual(self) -> bool:
        """True if there is memory for duals."""
        return self._dual is not None

    def __repr__(self) -> str:
        state = "" if self._data is not None else ", no longer valid"
        return f"<qd.ndarray {self.element_type!r} {self._extents}{state}>"

    def _index(self, key: Any) -> tuple[int, ...]:
        """``key`` as checked indices. ``None`` and ``()`` mean the one element of a 0-D array."""
        items: tuple[Any, ...] = () if key is None else (key,)
        if isinstance(key, tuple | list):
            items = tuple(cast("list[Any]", key))
        extents = self._extents
        if len(items) != len(extents):
            raise QuadrantsIndexError(
                f"ndarray with dim {len(extents)} accessed with indices of dim {len(items)}"
            )
        indices: list[int] = []
        for item in items:
            if isinstance(item, slice):
                raise QuadrantsIndexError("Slicing is not supported on qd.ndarray")
            try:
                indices.append(operator.index(item))
            except TypeError:
                raise TypeError(f"ndarray indices must be integers, not {item!r}") from None
        for i, n in zip(indices, extents, strict=True):
            if not 0 <= i < n:
                raise QuadrantsIndexError(
                    f"index {tuple(indices)} is out of range for an ndarray of shape {extents}"
                )
        return tuple(indices)

    def __getitem__(self, key: Any) -> Any:
        if key.__class__ is slice:
            from ..types.buffer_view import sliced  # imported only by programs that use one

            return sliced(self, key)
        found = self._by_index()[self._index(key)]
        if self.element_shape:
            from .values.live import live  # not by programs with arrays of numbers alone

            return live(found, self._writes)
        return python_number(found, self.dtype)

    def __iter__(self) -> NoReturn:
        """Without this Python would try indices 0, 1, ... and take the end for an end."""
        raise TypeError("an ndarray cannot be iterated over here; loop in a kernel, or to_numpy()")

    def __setitem__(self, key: Any, value: Any) -> None:
        where = self._index(key)
        if self.element_shape:
            self._by_index()[where] = numbers(value, self.dtype, self.element_shape)
        else:
            self._by_index()[where] = number(value, self.dtype)
        self._writes.touched = True

    def fill(self, val: Any) -> None:
        """Set every element: to a number, or to a vector or matrix."""
        data = self._by_index()
        if self.element_shape and not is_number(val):
            data[...] = numbers(val, self.dtype, self.element_shape, whole=True)
        else:
            data.fill(number(val, self.dtype, whole=True))
        self._writes.touched = True

    def copy_from(self, other: Any) -> None:
        """Take the values of an array of equal shape, converted to this one's dtype."""
        if not isinstance(other, Ndarray):
            raise TypeError(f"Cannot copy from a non-ndarray object: {other!r}")
        data, source = self._by_index(), other._by_index()
        if other._extents != self._extents:
            raise QuadrantsAssertionError(
                f"Mismatch shape: {self._extents} expected, but {other._extents} provided"
            )
        if other.element_shape != self.element_shape:
            raise mismatch(self.element_shape, other.element_shape)
        assign(data, source)
        self._writes.touched = True

    def __copy__(self) -> Ndarray:
        """Another array with the same values, also of gradients and duals."""
        made = Ndarray(
            self.dtype, self._extents, self.grad is not None, self.element_shape, self.layout,
            self.dual is not None,
        )  # fmt: skip
        pairs = ((made, self), (made.grad, self.grad), (made.dual, self.dual))
        for new, old in pairs:
            if new is not None:
                new.copy_from(old)
        return made

    def __deepcopy__(self, memo: Any) -> Ndarray:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles carry the elements, gradients and duals; they are read in the current program."""
        options = self.dtype, self._extents, self.element_shape, self.layout
        parts = [None if a is None else a.to_numpy() for a in (self, self.grad, self.dual)]
        return _unpickled, (type(self), options, *parts)

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        """The values as an array of the array's shape, then that of an element.

        dtype: a data type or NumPy type to convert to. copy: True makes a copy, None only where one
        is needed, False never: a ValueError where one is needed. A view shares the memory, and
        stays valid after a reset. Memory of a device is always copied.
        """
        data = self._by_index()
        wanted = data.dtype if dtype is None else numpy_type(dtype)
        if isinstance(data, Window):
            return far_numpy(data, self.dtype, wanted, copy)
        if wanted != data.dtype:
            if copy is False:
                raise conversion_error(self.dtype, wanted)
            return fresh(data, wanted)
        if copy:
            return data.copy("C")
        reason = self._shareable()
        if not reason:
            self._writes.untracked = True
            return data[...]
        if copy is False:
            raise zero_copy_error(reason)
        return data.copy("C")

    def from_numpy(self, arr: Any) -> None:
        """Copy and convert the values of an array that has the shape of `to_numpy()`."""
        self._take(numbers_of(arr))

    def _take(self, source: Elements) -> None:
        data = self._by_index()
        if source.shape != data.shape:
            raise ValueError(f"Mismatch shape: {data.shape} expected, but {source.shape} provided")
        assign(data, source)
        self._writes.touched = True


set_array_class(Ndarray)


class _Kind(type):
    """Classes that distinguish arrays by their elements; all arrays are `Ndarray` objects."""

    axes: int

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Ndarray) and len(instance.element_shape) == cls.axes

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"make arrays with qd.ndarray, not {cls.__name__}")


class ScalarNdarray(metaclass=_Kind):
    """The class of arrays of numbers, for `isinstance`."""

    axes = 0


class VectorNdarray(metaclass=_Kind):
    """The class of arrays of vectors, for `isinstance`."""

    axes = 1


class MatrixNdarray(metaclass=_Kind):
    """The class of arrays of matrices, for `isinstance`."""

    axes = 2


def _unpickled(
    kind: type[Ndarray], options: tuple[Any, ...], values: Any, grad: Any, dual: Any
) -> Ndarray:
    """Make the array of a pickle. grad, dual: the values of its gradients and duals, or None."""
    dtype, shape, element_shape, layout = options
    found = kind(dtype, shape, grad is not None, element_shape, layout, dual is not None)
    for array, data in ((found, values), (found.grad, grad), (found.dual, dual)):
        if array is not None:
            array.from_numpy(data)
    return found


def ndarray(dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False) -> Ndarray:
    """A new array of zeros.

    dtype: ``qd.f32`` and the like, or a vector or matrix type; ``int`` and ``float`` are the
    configured defaults, ``bool`` is ``qd.u1``. shape: a positive integer or a tuple of up to 12;
    ``()`` is a single element. needs_grad, needs_dual: allocate arrays of gradients
    (`Ndarray.grad`) and of duals (`Ndarray.dual`); for floats only.
    """
    return made(dtype, shape, needs_grad, needs_dual=needs_dual)


def made(
    dtype: Any, shape: Any, needs_grad: bool = False, axes: tuple[int, ...] | None = None,
    needs_dual: bool = False,
) -> Ndarray:  # fmt: skip
    """`ndarray`, with its axes in the order ``axes`` in memory."""
    t = value_type(dtype)
    if isinstance(t, CompoundType) and not isinstance(t, MatrixType):
        raise QuadrantsRuntimeError(
            f"{dtype!r} is not supported as ndarray element type",
            hint="use a field of structs, StructType.field(shape=...), or an array for each member",
        )
    number_type = cast(DataType, t.dtype) if isinstance(t, MatrixType) else t
    if (needs_grad or needs_dual) and not number_type.is_real:
        raise QuadrantsRuntimeError(
            f"{number_type} is not supported for ndarray with `needs_grad=True` or"
            " `needs_dual=True`."
        )
    element_shape = t.shape if isinstance(t, MatrixType) else ()
    return Ndarray(number_type, extents_of(shape), needs_grad, element_shape, axes, needs_dual)
