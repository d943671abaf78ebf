"""Declarations of parameters: annotations read into `ParamDecl`.

Parameters of kernels and functions, and the members of ``dataclasses.dataclass`` classes that are
passed to them, are annotated in the same language.
"""

from __future__ import annotations

import inspect
import sys
import types as python_types
import typing
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Literal, cast
from weakref import WeakKeyDictionary, ref

from ..config import CompileConfig
from ..frozen import is_dataclass
from ..named_tuple import NamedTuple
from ..signals import of_signal_handler
from ..types import (
    BufferViewHandle,
    BufferViewType,
    CompoundType,
    DataType,
    MatrixType,
    NDArray,
    NumberType,
    Ref,
    SparseMatrixBuilderType,
    Template,
    TensorHandle,
    parse_type,
    resolved,
    u1,
)

__all__ = [
    "DECLARED", "NO_DEFAULT", "Kind", "ParamDecl", "element_text", "evaluated", "members_of",
    "read", "resolve_type", "scalar_type", "text_of",
]  # fmt: skip

Kind = Literal[
    "scalar", "ndarray", "template", "value", "matrix", "struct", "record", "tensor", "self",
    "ref", "unusable",
]  # fmt: skip
NO_DEFAULT: Final = inspect.Parameter.empty

DECLARED: Final[deque[ref[Any]]] = deque(maxlen=64)
"""The last declarations of kernels and functions; `Trees.parse_next` parses those not used yet."""


def scalar_type(declared: NumberType, config: CompileConfig) -> DataType:
    """``declared``, with int, float and bool replaced by their types under ``config``."""
    if isinstance(declared, DataType):
        return declared
    if declared is bool:
        return u1
    return cast(DataType, parse_type(config.default_fp if declared is float else config.default_ip))


class ParamDecl(NamedTuple):
    """One parameter, or one member of a dataclass.

    kind: ``scalar``, ``ndarray``, ``template``, ``matrix``, ``struct``, ``tensor`` (a field or an
        array), ``record`` (a ``dataclasses.dataclass``), ``self`` (of a method), ``value`` (of a
        ``@qd.func``: not annotated), ``ref`` (a variable, of a real function), ``unusable`` (a
        member annotated with what kernels lack).
    dtype: of a scalar or of the scalars of an array; None accepts any. For ``int`` and ``float``
        see `number`. ndim, needs_grad: of an ndarray; None accepts any. element_dim: the number of
        axes of the elements of an array; element_shape: their extents; None accepts any.
    number: the annotation of a scalar as written: a DataType, int, float or bool.
    type: what a matrix, struct or record is annotated with. optional: None may be passed.
    """

    name: str
    kind: Kind
    dtype: DataType | None = None
    ndim: int | None = None
    needs_grad: bool | None = None
    boundary: str = "unsafe"
    annotation_text: str = ""
    number: NumberType | None = None
    default: Any = NO_DEFAULT
    type: Any = None
    optional: bool = False
    element_dim: int | None = None
    element_shape: tuple[int, ...] | None = None

    def scalar_type(self, config: CompileConfig) -> DataType:
        """The type a scalar argument is converted to."""
        assert self.number is not None, self
        return scalar_type(self.number, config)

    def element_type(self, config: CompileConfig) -> DataType | None:
        """The type of the scalars an array must have; None accepts any."""
        return None if self.number is None else scalar_type(self.number, config)

    def members(self) -> dict[str, ParamDecl]:
        """The members of a record; the array of a view has the type that the view declares."""
        found = members_of(self.type)
        if not issubclass(self.type, BufferViewHandle):
            return found
        array = self._replace(
            name="arr", kind="ndarray", type=None, optional=False, default=NO_DEFAULT
        )
        return {**found, "arr": array}

    def value_type(self, config: CompileConfig) -> Any:
        """The resolved type of a matrix or struct."""
        return resolve_type(self.type, config)


def resolve_type(t: Any, config: CompileConfig) -> Any:
    """A type of values with int, float and bool replaced by their types under ``config``."""
    ip, fp = scalar_type(int, config), scalar_type(float, config)
    return resolved(t, ip, fp)


def element_text(dtype: DataType | None, shape: tuple[int, ...] | None) -> str:
    """The name of the elements of an array in messages: ``f32`` or ``[Tensor (3) f32]``."""
    if not shape:
        return str(dtype or "any")
    return f"[Tensor ({', '.join(map(str, shape))}) {dtype}]"


def text_of(value: Any) -> str:
    """An annotation as messages show it."""
    return value.__name__ if isinstance(value, type) else repr(value)


def _without_none(value: Any) -> tuple[Any, bool]:
    """``T | None`` as T and True; others as they are."""
    if typing.get_origin(value) in (typing.Union, python_types.UnionType):
        args = typing.get_args(value)
        rest = [a for a in args if a is not type(None)]
        if len(rest) == 1 and len(args) == 2:
            return rest[0], True
    return value, False


def read(name: str, value: Any, default: Any = NO_DEFAULT) -> ParamDecl | None:
    """The declaration that annotation ``value`` makes; None if it makes none."""
    value, optional = _without_none(value)
    found = _read(name, value, default)
    if found is None or not optional:
        return found
    text = f"{found.annotation_text} | None"
    return found._replace(optional=True, annotation_text=text)


def _read(name: str, value: Any, default: Any) -> ParamDecl | None:
    text = text_of(value)
    if isinstance(value, DataType):
        return ParamDecl(name, "scalar", value, annotation_text=text, number=value, default=default)
    if value is bool:
        return ParamDecl(name, "scalar", u1, annotation_text=text, number=bool, default=default)
    if value is int or value is float:
        return ParamDecl(name, "scalar", annotation_text=text, number=value, default=default)
    if value in (Template, SparseMatrixBuilderType) or isinstance(value, Template):
        return ParamDecl(name, "template", annotation_text="template()", default=default)
    if isinstance(value, Ref):
        dtype = value.dtype if isinstance(value.dtype, DataType) else None
        return ParamDecl(
            name, "ref", dtype, annotation_text=text, number=value.dtype, default=default
        )
    if value is NDArray:
        value = NDArray()
    if isinstance(value, NDArray):
        return _array(name, value, default)
    if isinstance(value, BufferViewType):
        return _view(name, value, default)
    if isinstance(value, CompoundType):
        kind: Kind = "matrix" if isinstance(value, MatrixType) else "struct"
        return ParamDecl(name, kind, annotation_text=text, default=default, type=value)
    if isinstance(value, type):
        if issubclass(value, BufferViewHandle):
            return _view(name, BufferViewType(), default)
        if issubclass(value, TensorHandle):
            return ParamDecl(name, "tensor", annotation_text=text, default=default)
        if is_dataclass(cast(Any, value)):
            return ParamDecl(name, "record", annotation_text=text, default=default, type=value)
    return None


def _array(name: str, value: NDArray, default: Any) -> ParamDecl:
    number: Any = value.dtype
    shape: tuple[int, ...] | None = () if value.element_dim == 0 else None
    if isinstance(number, MatrixType):
        number, shape = number.dtype, number.shape
    dtype = u1 if number is bool else number if isinstance(number, DataType) else None
    return ParamDecl(
        name, "ndarray", dtype, value.ndim, value.needs_grad, value.boundary, repr(value), number,
        default, None, False, value.element_dim, shape,
    )  # fmt: skip


def _view(name: str, value: BufferViewType, default: Any) -> ParamDecl:
    from ..types.buffer_view import BufferView  # imported only by programs that use one

    text = "BufferView" if value.dtype is None else f"BufferView[{text_of(value.dtype)}]"
    array = _array(name, value.array, default)
    return array._replace(kind="record", type=BufferView, annotation_text=text)


_members: WeakKeyDictionary[type, dict[str, ParamDecl]] = WeakKeyDictionary()


def members_of(cls: type, names: Mapping[str, Any] | None = None) -> dict[str, ParamDecl]:
    """The members of a ``dataclasses.dataclass`` class, by name.

    names: where annotations that are strings are looked up besides the module of the class.
    """
    found = _members.get(cls)
    if found is None:
        found = dict[str, ParamDecl]()
        import dataclasses  # which this class has loaded

        for member in dataclasses.fields(cls):
            annotation: Any = member.type
            if isinstance(annotation, str):
                annotation = _evaluated(cls, member.name, annotation, names)
            found[member.name] = read(member.name, annotation) or ParamDecl(
                member.name, "unusable", annotation_text=text_of(annotation)
            )
        _members[cls] = found
        for param in found.values():
            if param.kind == "record":
                members_of(param.type, names)
    return found


def _evaluated(cls: type, name: str, text: str, names: Mapping[str, Any] | None) -> Any:
    """The value of a member's annotation given as text; the text itself if evaluation fails."""
    owner = next((c for c in cls.__mro__ if name in inspect.get_annotations(c)), cls)
    module = sys.modules.get(owner.__module__)
    seen = {**(names or {}), **(module.__dict__ if module else {}), **vars(owner)}
    try:
        return evaluated(text, seen)
    except Exception as error:
        if of_signal_handler(error):
            raise
        return text


def evaluated(annotation: Any, names: dict[str, Any]) -> Any:
    """The value of an annotation given as text; a text may stand for a text."""
    while isinstance(annotation, str):
        annotation = eval(annotation, names)
    return annotation
