# mypy: ignore-errors
# pyright: basic, reportGeneralTypeIssues=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Fields and arrays: in kernels elements are of any type, and loops over them have indices."""

from abc import ABCMeta
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar, overload

from ..lang import ndarray as _ndarray
from ..lang import tensor as _tensor
from ..lang.fields import make as _make
from ..lang.fields import placed as _placed
from ..lang.fields import struct_field as _struct_field
from ..types.compound import MatrixType
from .values import MatrixTypeClass

_T = TypeVar("_T")

class Container(Any):
    """What fields and arrays have in kernels."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, without those of an element."""

    grad: Any
    dual: Any

class Field(Container, _placed.Field, Any):
    __doc__: str

class ScalarField(Container, _make.ScalarField, Any):
    __doc__: str

class MatrixField(Container, _make.MatrixField, Any):
    __doc__: str

class StructField(Container, _struct_field.StructField, Any):
    __doc__: str

class Ndarray(Container, _ndarray.Ndarray, Any):
    __doc__: str

class BufferView(Generic[_T]):
    """A range of a one-dimensional array: an argument of kernels, which read and write it."""

    offset: Any
    size: Any

    def __init__(self, arr: Any, offset: Any, size: Any) -> None: ...
    @property
    def shape(self) -> tuple[int]: ...
    def get_ndarray(self) -> Any: ...
    def subview(self, offset: Any, size: Any) -> BufferView[_T]: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...

class Tensor(Container, _tensor.Tensor, Any):
    __doc__: str

class VectorTensor(Tensor):
    __doc__: str

class MatrixTensor(Tensor):
    __doc__: str

class _Array(Protocol):
    @property
    def shape(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...

class ArrayType(Any):
    """An annotation of arrays that has settings."""

class _AnnotationClass(ABCMeta):
    """An annotation with settings is made by a call."""

    def __call__(
        cls,
        dtype: Any = None,
        ndim: int | None = None,
        element_dim: int | None = None,
        element_shape: tuple[int, ...] | None = None,
        needs_grad: bool | None = None,
        boundary: str = "unsafe",
        **options: Any,
    ) -> ArrayType: ...

class _Annotation(Container):
    def __class_getitem__(cls, item: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> int: ...

class NDArray(_Annotation, _Array, Protocol, metaclass=_AnnotationClass):
    """A parameter that is an array: ``x: qd.types.NDArray[qd.f32, 2]``.

    An ndarray of `qd.ndarray`, a NumPy array or a torch tensor. Without data type or number of
    axes it accepts any. ``qd.types.ndarray(dtype=..., ndim=...)`` is the same, but an annotation
    that calls is none to type checkers.
    """

@overload
def field(
    dtype: MatrixType | MatrixTypeClass,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    **options: Any,
) -> MatrixField:
    """A new field of zeros.

    dtype: a data type (``int``, ``float``, ``bool`` mean the configured ones), or a vector or
        matrix type.
    shape: an integer or up to 12 of them; ``()`` is one element, read as ``x[None]``. None: the
        field waits to be placed, ``qd.root.dense(qd.i, n).place(x)``.
    order: the order of the axes in memory, outermost first: ``"ji"``.
    name: its name in messages.
    offset: the first index of each axis.
    needs_grad, needs_dual: allocate gradients (`grad`), duals (`dual`).
    """

@overload
def field(
    dtype: Any,
    shape: Any = None,
    order: str | None = None,
    name: str = "",
    offset: Any = None,
    needs_grad: bool = False,
    needs_dual: bool = False,
    **options: Any,
) -> ScalarField:
    """A new field of zeros.

    dtype: a data type (``int``, ``float``, ``bool`` mean the configured ones), or a vector or
        matrix type.
    shape: an integer or up to 12 of them; ``()`` is one element, read as ``x[None]``. None: the
        field waits to be placed, ``qd.root.dense(qd.i, n).place(x)``.
    order: the order of the axes in memory, outermost first: ``"ji"``.
    name: its name in messages.
    offset: the first index of each axis.
    needs_grad, needs_dual: allocate gradients (`grad`), duals (`dual`).
    """

def ndarray(dtype: Any, shape: Any, needs_grad: bool = False, needs_dual: bool = False) -> Ndarray:
    """A new array of zeros that kernels take as an argument; it belongs to the current program.

    dtype: a data type, or a vector or matrix type. shape: an integer or a tuple of them.
    needs_grad, needs_dual: allocate gradients (`grad`), duals (`dual`).
    """

def tensor(
    dtype: Any,
    shape: Any,
    backend: Any = None,
    needs_grad: bool = False,
    **options: Any,
) -> Tensor:
    """A new tensor of zeros: a field or an array behind one interface.

    dtype: a data type, or a vector or matrix type. shape: an integer or a tuple of them.
    backend: `qd.Backend.FIELD` or `qd.Backend.NDARRAY`. needs_grad: allocate gradients.
    """

def wrap(impl: Any) -> Tensor:
    """The tensor of a field or an array."""

def ndrange(*ranges: Any, axes: Any = None) -> Iterator[Any]:
    """The product of ranges: each an extent or a pair (begin, end).

    The last range runs fastest. axes: the order of nesting, outermost first, instead.
    """

def grouped(x: Any) -> Iterator[Any]:
    """Loop with one variable that holds the whole index: ``for I in qd.grouped(x)``."""
