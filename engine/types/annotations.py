"""The annotations of a kernel's parameters other than types of values.

* ``qd.types.ndarray(dtype=qd.f32, ndim=2)``, ``qd.types.NDArray[qd.f32, 2]``: an array. Both names
  are this one class; without arguments, called or not, it accepts any array.
* ``qd.Template``, ``qd.template``, ``qd.template()``: a value known when the kernel is compiled.

The classes only hold what the user wrote; `frontend.signature` reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast

from .compound import MatrixType, StructType, matrix_type
from .dtypes import DataType, dtype_of

__all__ = [
    "AnyMatrix", "BufferViewType", "NDArray", "Ref", "SparseMatrixBuilderType", "Template",
    "ndarray", "ref", "sparse_matrix_builder", "template",
]  # fmt: skip

Boundary = Literal["unsafe", "clamp"]


class AnyMatrix:
    """``qd.types.vector()`` or ``qd.types.matrix()``: elements of any extents and data type.

    Only as the ``dtype`` of an `NDArray`. ndim: 1 for vectors, 2 for matrices.
    """

    __slots__ = ("ndim",)

    def __init__(self, ndim: int) -> None:
        self.ndim: Final = ndim

    def __repr__(self) -> str:
        return ("vector()", "matrix()")[self.ndim - 1]


def _element_type(dtype: Any) -> DataType | MatrixType | type | None:
    """A data type, a matrix type, or one of int, float, bool, which the configuration settles."""
    if dtype is None or isinstance(dtype, MatrixType) or dtype in (int, float, bool):
        return dtype
    if isinstance(dtype, StructType):
        raise TypeError(f"an ndarray cannot hold structs ({dtype!r}): use a field of structs")
    return dtype_of(dtype)


# To type checkers a parameter so annotated is of any type: kernels compute with it as it is.
_Anything: Any = Any if TYPE_CHECKING else object


class NDArray(_Anything):
    """Annotation of an array parameter.

    dtype: element type: a data type, or a vector or matrix type; None accepts any. ndim: number of
        axes, without those of an element; None accepts any.
    element_dim, element_shape: another way to ask for vectors (one axis) or matrices (two) as
        elements, of any or a given shape.
    needs_grad: whether the array must carry a gradient; None accepts both.
    boundary: ``unsafe`` (an index out of range is an error of the kernel, found under ``debug``) or
        ``clamp`` (indices are clamped into the array).

    Raises TypeError if dtype is not a type, ValueError for any other impossible value.
    """

    __slots__ = ("boundary", "dtype", "element_dim", "ndim", "needs_grad")

    def __init__(
        self,
        dtype: Any = None,
        ndim: int | None = None,
        element_dim: int | None = None,
        element_shape: tuple[int, ...] | None = None,
        needs_grad: bool | None = None,
        boundary: Boundary = "unsafe",
    ) -> None:
        if ndim is not None and (not isinstance(cast(Any, ndim), int) or ndim < 0):
            raise ValueError(f"ndim must be a non-negative int, not {ndim!r}")
        if boundary not in ("unsafe", "clamp"):
            raise ValueError(f"boundary must be 'unsafe' or 'clamp', not {boundary!r}")
        if isinstance(dtype, AnyMatrix):
            dtype, element_dim = None, dtype.ndim
        element = _element_type(dtype)
        if element_shape is not None:
            shape = tuple(element_shape)
            if element_dim is not None and element_dim != len(shape):
                raise ValueError(f"element_dim={element_dim} contradicts element_shape={shape}")
            if isinstance(element, MatrixType):
                if element.shape != shape:
                    raise ValueError(f"dtype={element!r} contradicts element_shape={shape}")
            elif shape:
                if element is None:
                    raise ValueError("element_shape needs a dtype")
                element = matrix_type(shape, element)
            element_dim = len(shape)
        elif element_dim is not None and element_dim not in (0, 1, 2):
            raise ValueError(f"element_dim must be 0, 1 or 2, not {element_dim!r}")
        if isinstance(element, MatrixType):
            if element_dim not in (None, element.ndim):
                raise ValueError(f"dtype={element!r} contradicts element_dim={element_dim}")
            element_dim = element.ndim
        elif element is not None and element_dim is None:
            element_dim = 0
        self.dtype: Final = element
        self.ndim: Final = ndim
        self.element_dim: Final = element_dim
        self.needs_grad: Final = needs_grad
        self.boundary: Final = boundary

    def __class_getitem__(cls, item: Any) -> NDArray:
        """``NDArray[dtype]`` or ``NDArray[dtype, ndim]``."""
        items = cast("tuple[Any, ...]", item if isinstance(item, tuple) else (item,))
        if len(items) > 2:
            raise TypeError(f"NDArray takes [dtype, ndim], got {len(items)} items")
        return cls(*items)

    def __or__(self, other: Any) -> Any:
        """``ndarray(...) | None``: the argument may be None."""
        return Union[self, other]  # noqa: UP007

    def __repr__(self) -> str:
        dtype = getattr(self.dtype, "__name__", self.dtype)
        parts = ["" if dtype is None else f"dtype={dtype}"]
        parts.append("" if self.ndim is None else f"ndim={self.ndim}")
        parts.append("" if self.needs_grad is None else f"needs_grad={self.needs_grad}")
        parts.append("" if self.boundary == "unsafe" else f"boundary={self.boundary!r}")
        return f"ndarray({', '.join(filter(None, parts))})"


ndarray = NDArray


class BufferViewType(_Anything):
    """Annotation of a parameter that is a `buffer_view.BufferView`: a range of an array.

    dtype: of the elements, as of `NDArray`; None accepts any. boundary: as of `NDArray`.
    """

    __slots__ = ("array",)

    def __init__(self, dtype: Any = None, boundary: Boundary = "unsafe") -> None:
        self.array: Final = NDArray(dtype, 1, boundary=boundary)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.array.dtype

    @property
    def boundary(self) -> str:
        """The treatment of an index outside of the array, as of `NDArray`."""
        return self.array.boundary

    def __or__(self, other: Any) -> Any:
        """``BufferView[...] | None``: the argument may be None."""
        return Union[self, other]  # noqa: UP007

    def __repr__(self) -> str:
        name = getattr(self.dtype, "__name__", self.dtype)
        more = "" if self.boundary == "unsafe" else f", boundary={self.boundary!r}"
        return f"BufferViewType(dtype={name}{more})"


class Template(_Anything):
    """Annotation of a parameter whose value is fixed when the kernel is compiled.

    Each distinct value compiles a new instance. In a ``@qd.func`` the argument is passed by
    reference: assigning to it changes the caller's variable.
    """

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007

    def __repr__(self) -> str:
        return "template()"


template = Template


class SparseMatrixBuilderType(Template):
    """Annotation of a parameter that is a ``qd.linalg.SparseMatrixBuilder``.

    In the kernel ``A[i, j] += v`` and ``-=`` add an element; nothing else can be done with it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "sparse_matrix_builder()"


sparse_matrix_builder = SparseMatrixBuilderType


class Ref:
    """Annotation of an argument of a real function that is passed by reference; see `ref`."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: Any) -> None:
        self.dtype: Final = dtype

    def __repr__(self) -> str:
        return f"ref({getattr(self.dtype, '__name__', self.dtype)})"


def ref(dtype: Any) -> Ref:
    """Annotation of an argument of a `real_func` that is a variable of the caller.

    The function sets the variable, or the element of an array or field, that it is called with.
    dtype: its type, a data type, int, float or bool. TypeError for another one.
    """
    if dtype not in (int, float, bool) and not isinstance(dtype, DataType):
        raise TypeError(f"Invalid data type {dtype!r}: a reference is to a number")
    return Ref(dtype)
