"""`qd.tensor`: one interface to ndarrays and fields.

A `Tensor` holds an ndarray or a field; kernels that take a ``qd.Tensor`` see what it holds. Its
indices are those of its shape, whatever the order of its axes in memory (``layout``) is.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NoReturn

from ..errors import QuadrantsAssertionError
from ..types import DataType, TensorHandle, matrix_type
from .fields.field import field
from .fields.make import MatrixField, ScalarField
from .fields.placed import Field
from .host import items_of, mismatch
from .ndarray import Ndarray, made

__all__ = ["Backend", "MatrixTensor", "Tensor", "VectorTensor", "tensor", "wrap"]

_ACCEPTED = ("backend", "dtype", "layout", "needs_grad", "shape")


class Backend(enum.IntEnum):
    """The storage of a tensor: a field or an ndarray."""

    FIELD = 0
    NDARRAY = 1

    def __repr__(self) -> str:
        return f"<Backend.{self.name}: {self.value}>"


class Tensor(TensorHandle):
    """A common interface of an ndarray or field; made by `tensor` and `wrap`.

    As an annotation of a kernel's parameter it accepts tensors, ndarrays, fields and None.
    The constructor raises TypeError for an object that is neither an ndarray nor a field.
    """

    def __init__(self, impl: Any) -> None:
        if not isinstance(impl, Ndarray | Field):
            raise TypeError(f"Tensor(impl) requires an Ndarray or Field; got {type(impl).__name__}")
        self._impl: Any = impl
        self._grad: Tensor | None = None

    def _unwrap(self) -> Any:
        """The ndarray or field that it holds."""
        return self._impl

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, in the order of the indices."""
        return self._impl.shape

    @property
    def dtype(self) -> DataType:
        """The data type of one number."""
        return self._impl.dtype

    @property
    def layout(self) -> tuple[int, ...] | None:
        """The axes in the order of memory, outermost first; None where that is their own."""
        return self._impl.layout

    @property
    def backend(self) -> Backend:
        """The container of the elements: an ndarray or a field."""
        return Backend.NDARRAY if isinstance(self._impl, Ndarray) else Backend.FIELD

    @property
    def grad(self) -> Tensor | None:
        """The gradients; None if there can be none.

        Of a field of floats without memory for them: a tensor whose use is an error.
        """
        if self._grad is None and self._impl.grad is not None:
            self._grad = wrap(self._impl.grad)
        return self._grad

    def has_grad(self) -> bool:
        """True if there is memory for gradients."""
        return self._impl.has_grad()

    def has_dual(self) -> bool:
        """True if there is memory for duals."""
        return self._impl.has_dual()

    def __getitem__(self, key: Any) -> Any:
        return self._impl[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._impl[key] = value

    def __iter__(self) -> NoReturn:
        """Without this Python would try indices 0, 1, ... and take the end for an end."""
        raise TypeError("a tensor cannot be iterated over here; loop in a kernel, or to_numpy()")

    def fill(self, value: Any) -> None:
        """Set every element: to a number, or to a vector or matrix."""
        self._impl.fill(value)

    def copy_from(self, other: Any) -> None:
        """Copy and convert the elements of a tensor, ndarray or field of the same shape.

        QuadrantsAssertionError or ValueError if the shapes differ, TypeError for other objects.
        """
        source: Any = other._unwrap() if isinstance(other, Tensor) else other
        target = self._impl
        both_arrays = isinstance(source, Ndarray) and isinstance(target, Ndarray)
        if both_arrays or (isinstance(source, Field) and isinstance(target, Field)):
            target.copy_from(source)
            return
        if not isinstance(source, Ndarray | ScalarField | MatrixField):
            raise TypeError(f"Cannot copy from an object that is no tensor: {other!r}")
        if source.shape != target.shape:
            raise QuadrantsAssertionError(
                f"Mismatch shape: {target.shape} expected, but {source.shape} provided"
            )
        if source.element_shape != target.element_shape:
            raise mismatch(target.element_shape, source.element_shape)
        target.from_numpy(source.to_numpy())

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as an array of its shape, then that of an element; see `Ndarray.to_numpy`.

        dtype: a type to convert to. copy: True, None (only if one is needed), or False (never).
        """
        return self._impl.to_numpy(dtype=dtype, copy=copy)

    def from_numpy(self, arr: Any) -> None:
        """Copy and convert the elements of an array that has the shape of `to_numpy()`."""
        self._impl.from_numpy(arr)

    def to_torch(self, device: Any = None, *, copy: bool | None = True) -> Any:
        """The elements as a torch tensor on ``device``."""
        return self._impl.to_torch(device, copy=copy)

    def from_torch(self, arr: Any) -> None:
        """Take the elements of a torch tensor, converted."""
        self._impl.from_torch(arr)

    def from_dlpack(self, x: Any) -> None:
        """Take the elements of anything that speaks DLPack, converted."""
        self._impl.from_dlpack(x)

    def to_dlpack(self, versioned: bool = False) -> Any:
        """A DLPack capsule of the memory; the layout appears as strides."""
        return self._impl.to_dlpack(versioned)

    def __dlpack__(self, **options: Any) -> Any:
        return self._impl.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._impl.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory for CUDA libraries. AttributeError for memory that is not on a CUDA device."""
        return self._impl.__cuda_array_interface__

    def __repr__(self) -> str:
        layout = f", layout={self.layout}" if self.layout is not None else ""
        return (
            f"Tensor(shape={self.shape}, dtype={self.dtype}, backend={self.backend.name}{layout})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles carry the elements, and the gradients; they are read in the current program."""
        impl = self._impl
        if not isinstance(impl, Ndarray | ScalarField | MatrixField):
            raise TypeError(f"{impl!r} cannot be pickled")
        shape = impl.element_shape
        t = matrix_type(shape, impl.dtype) if shape else impl.dtype
        origin = () if isinstance(impl, Ndarray) else impl.memory_layout().origin
        first = origin[: len(impl.shape)]
        grad = self.grad.to_numpy() if self.grad is not None and self.has_grad() else None
        made_of = t, self.shape, self.backend, self.layout, first
        return _read, (type(self), made_of, self.to_numpy(), grad)


class VectorTensor(Tensor):
    """A tensor of vectors."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        """``(n,)``."""
        return self._impl.element_shape


class MatrixTensor(Tensor):
    """A tensor of matrices."""

    @property
    def element_shape(self) -> tuple[int, ...]:
        """``(n, m)``."""
        return self._impl.element_shape


def _read(
    kind: type[Tensor],
    made_of: tuple[Any, tuple[int, ...], Backend, tuple[int, ...] | None, tuple[int, ...]],
    values: Any,
    grad: Any,
) -> Tensor:
    """Make the tensor of a pickle.

    made_of: type, shape, backend, layout, and a field's first indices.
    """
    t, shape, backend, layout, first = made_of
    needs_grad = grad is not None
    if any(first):
        found = wrap(field(t, shape, _letters(layout), offset=first, needs_grad=needs_grad))
    else:
        found = tensor(t, shape, backend=backend, layout=layout, needs_grad=needs_grad)
    found.from_numpy(values)
    if found.grad is not None and grad is not None:
        found.grad.from_numpy(grad)
    return found if type(found) is kind else kind(found._unwrap())  # pyright: ignore[reportPrivateUsage]


def _letters(order: tuple[int, ...] | None) -> str | None:
    """The order of axes as fields take it."""
    return None if order is None else "".join(chr(ord("i") + a) for a in order)


def wrap(impl: Any) -> Tensor:
    """A tensor that holds this ndarray or field. TypeError for anything else."""
    kinds = (Tensor, VectorTensor, MatrixTensor)
    return kinds[len(getattr(impl, "element_shape", ()))](impl)


def _axes(layout: Any, shape: tuple[Any, ...]) -> tuple[int, ...] | None:
    """``layout`` checked; None for the order of the axes themselves."""
    if layout is None:
        return None
    order = tuple(layout)
    if len(order) != len(shape):
        raise ValueError(
            f"layout has {len(order)} entries but shape has {len(shape)} dimensions; they must"
            " match"
        )
    if any(not hasattr(a, "__index__") for a in order) or sorted(order) != [*range(len(order))]:
        raise ValueError(f"layout={order} is not a permutation of range({len(order)})")
    found = tuple([int(a) for a in order])
    return None if found == tuple(range(len(order))) else found


def tensor(
    dtype: Any,
    shape: Any,
    *,
    backend: Backend = Backend.NDARRAY,
    layout: Sequence[int] | None = None,
    needs_grad: bool = False,
    **unknown: Any,
) -> Tensor:
    """A new tensor of zeros.

    dtype: a data type, or a vector or matrix type. shape: an integer or a tuple of up to 12.
    backend: ``qd.Backend.NDARRAY`` or ``qd.Backend.FIELD``. layout: a permutation of the axes, the
    outermost in memory first; indices and shape stay as they are. needs_grad: allocate gradients.

    ValueError for a layout that is not a permutation, TypeError for another keyword.
    """
    if "order" in unknown:
        raise TypeError("qd.tensor(...) does not accept order=; pass layout=(...) instead")
    if unknown:
        raise TypeError(
            f"qd.tensor() got unexpected keyword argument(s) {sorted(unknown)}; accepted:"
            f" {', '.join(_ACCEPTED)}"
        )
    try:
        where = Backend(backend)
    except ValueError:
        known = ", ".join(f"qd.Backend.{b.name}" for b in Backend)
        raise ValueError(
            f"backend={backend!r} is not a valid qd.Backend; expected one of {known}"
        ) from None
    if shape is None:
        raise TypeError("a tensor needs a shape")
    sizes = tuple(items_of(shape))
    order = _axes(layout, sizes)
    if where is Backend.NDARRAY:
        return wrap(made(dtype, sizes, needs_grad, order))
    return wrap(field(dtype, sizes, order=_letters(order), needs_grad=needs_grad))
