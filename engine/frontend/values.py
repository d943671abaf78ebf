"""The values of a kernel's expressions while it is compiled.

* an `ir.Op` of a primitive type: a value of run time;
* an `ir.Op` of a pointer type, only as a binding of a name or an element of a bound container: a
  local variable, or an element of an array or field;
* `MatrixValue`, `StructValue`: vectors, matrices and structs, by their parts. A part is a number
  (of run time or compile time) or, only where the whole is bound, a pointer. The IR knows nothing
  of them;
* a tuple, list or dict: a container known at compile time, of any of these;
* `ArrayValue`: an array that the kernel makes for itself;
* `NdarrayRef`, `BufferViewValue`, `ShapeRef`, `RecordValue`, `InstanceValue`, `Text`: below;
* every other Python object: itself, known at compile time. Fields are such (`types.FieldHandle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, TypeGuard

from ..frozen import Frozen
from ..ir import Op
from ..named_tuple import NamedTuple
from ..types import DataType, FieldHandle, StructFieldHandle, StructType, promote, u1
from .specialization import InstanceKey, NdarrayKey, RecordKey

__all__ = [
    "CONTAINERS",
    "NUMBERS",
    "SEQUENCES",
    "ArrayValue",
    "BufferViewValue",
    "DynamicElement",
    "ElementLocation",
    "Grouped",
    "InstanceValue",
    "LoopConfig",
    "MatrixValue",
    "Method",
    "NDRange",
    "NdarrayRef",
    "RecordValue",
    "ShapeRef",
    "StructValue",
    "Text",
    "describe",
    "dtype_in",
    "is_sequence",
    "is_static",
    "promote_all",
    "tensor_name",
    "vector",
]


class NdarrayRef(Frozen):
    """An array parameter. ``param`` counts the parameters of the compiled function.

    arg, path: where the launch finds it (see `specialization.ParamBinding`). spec_key: its
    specialization key.
    """

    name: str
    param: int
    dtype: DataType
    ndim: int
    boundary: str
    element_shape: tuple[int, ...]
    spec_key: NdarrayKey
    arg: int
    path: tuple[str, ...] = ()


class ShapeRef(Frozen):
    """The shape of an array parameter; its extents are read where they are used."""

    array: NdarrayRef


class BufferViewValue(Frozen):
    """A range of an array with one axis: a `types.buffer_view.BufferView`.

    name: in messages. offset, size: i32 values; of a local name, variables that hold them.
    """

    name: str
    array: NdarrayRef
    offset: Op
    size: Op


class ElementLocation:
    """The place of a vector or matrix in an array or field.

    base: the op of the array's address. indices: those of the element. dtype: of one scalar.
    boundary: of the array. The address of a part is made where it is needed: most uses of an
    element touch some of its parts.
    """

    __slots__ = ("base", "boundary", "dtype", "indices")

    def __init__(self, base: Op, indices: tuple[Op, ...], dtype: DataType, boundary: str) -> None:
        self.base: Final = base
        self.indices: Final = indices
        self.dtype: Final = dtype
        self.boundary: Final = boundary


class ArrayValue(Frozen):
    """An array that the kernel makes for itself.

    base: the op that makes it. shape: its extents; element_shape: of the vectors or matrices in it.
    """

    name: str
    base: Op
    shape: tuple[int, ...]
    dtype: DataType
    element_shape: tuple[int, ...] = ()


class MatrixValue:
    """A vector (shape ``(n,)``) or matrix (shape ``(n, m)``).

    elems: the parts, row-major; for one in memory (``location``) an empty tuple.
    `FuncBuilder.part` and `FuncBuilder.parts` read both.
    """

    __slots__ = ("elems", "location", "shape")

    def __init__(
        self, shape: tuple[int, ...], elems: Sequence[Any], location: ElementLocation | None = None
    ) -> None:
        self.shape: Final = shape
        self.elems: Final = elems
        self.location: Final = location

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1] if len(self.shape) == 2 else self.shape[0]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<matrix {self.shape}>"


class DynamicElement:
    """One of ``parts``, the parts of a vector or matrix, by an index of run time.

    Reading it selects among the parts. `FuncBuilder.store` stores to each part the new or the old
    value; if threads share the parts, only to the one that is picked.

    picks: (block, k) -> the op there that is 1 if the index picks part k.
    """

    __slots__ = ("index", "parts", "picks")

    def __init__(self, parts: Sequence[Any], index: Op) -> None:
        self.parts: Final = parts
        self.index: Final = index
        self.picks: Final[dict[tuple[Any, int], Op]] = {}


class Method:
    """A method of a value, such as ``v.norm``, that is about to be called."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.owner: Final = owner
        self.name: Final = name


def vector(elems: Sequence[Any]) -> MatrixValue:
    """A vector of these parts."""
    return MatrixValue((len(elems),), list(elems))


class StructValue:
    """A struct: its type, and its members by name (any value, or pointers where it is bound)."""

    __slots__ = ("members", "type")

    def __init__(self, type: StructType, members: dict[str, Any]) -> None:
        self.type: Final = type
        self.members: Final = members

    def __repr__(self) -> str:
        return f"<{self.type.name} {list(self.members)}>"


class Text:
    """A text with values of run time in it, to be printed or to be the message of an assert.

    pieces: each a text, or a format spec and the value that it formats.
    """

    __slots__ = ("pieces",)

    def __init__(self, pieces: Sequence[str | tuple[str, Op]]) -> None:
        self.pieces: Final = tuple(pieces)


class RecordValue(Frozen):
    """A ``dataclasses.dataclass`` argument: members become parameters when they are used."""

    name: str
    arg: int
    path: tuple[str, ...]
    spec_key: RecordKey


class InstanceValue(Frozen):
    """An object of a data-oriented class: ``self`` of a kernel, or one that it holds.

    root: the key of the argument it belongs to; path: from there to the object.
    """

    name: str
    arg: int
    path: tuple[str, ...]
    instance: Any
    root: InstanceKey


SEQUENCES: Final[frozenset[Any]] = frozenset((tuple, list))
# `isinstance` takes twice the time for a union that is made for it.
DATA: Final = (int, float, str, FieldHandle, StructFieldHandle)
"""Types that must be arguments of pure kernels; subclasses too, such as a ``numpy.float64``."""
CONTAINERS: Final = (tuple, list, dict)
"""Classes of the containers that are known at compile time."""
NUMBERS: Final = (int, float)
"""The kinds of sequences that may hold values of run time."""


class NDRange:
    """The product of ranges, ``ndrange(3, (1, n))``; iterates over index tuples in Python.

    ranges: (begin, end) of each axis; values of run time are allowed in a kernel's loop.
    axes: the order in which axes are nested, outermost first.
    """

    __slots__ = ("axes", "ranges")

    def __init__(self, ranges: tuple[tuple[Any, Any], ...], axes: tuple[int, ...] | None) -> None:
        self.ranges: Final = ranges
        self.axes: Final = axes

    def __len__(self) -> int:
        size = 1
        for begin, end in self.ranges:
            size *= max(end - begin, 0)
        return size

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        index = [begin for begin, _end in self.ranges]
        return self._visit(self.axes or tuple(range(len(index))), index)

    def _visit(self, order: tuple[int, ...], index: list[Any]) -> Iterator[tuple[int, ...]]:
        """The indices over the axes of ``order``, with those of the others as in ``index``."""
        if not order:
            yield tuple(index)
            return
        axis, inner = order[0], order[1:]
        for value in range(*self.ranges[axis]):
            index[axis] = value
            yield from self._visit(inner, index)


class Grouped(Frozen):
    """``grouped(x)``: loop over x with one index vector."""

    over: Any

    def __iter__(self) -> Iterator[Any]:
        return (vector(index) for index in self.over)


class LoopConfig(NamedTuple):
    """Settings that ``loop_config`` leaves for the next loop."""

    num_cpu_threads: int = 0
    block_dim: int = 0
    strictly_serialized: bool = False
    loop_name: str = ""


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """True if ``value`` is a tuple or a list."""
    return isinstance(value, tuple | list)


_ATOMS: Final = frozenset((int, float, bool, str, type(None)))
_OF_RUN_TIME: Final = frozenset((
    Op, ArrayValue, BufferViewValue, NdarrayRef, ShapeRef, RecordValue, DynamicElement, Method,
    Text,
))  # fmt: skip


def is_static(value: Any) -> bool:
    """True if ``value`` is known at compile time, with everything in it."""
    kind = value.__class__
    if kind in _ATOMS:
        return True
    if kind in _OF_RUN_TIME:
        return False
    if kind is tuple or kind is list or kind is set:
        return all(is_static(v) for v in value)
    if kind is MatrixValue:
        return value.location is None and all(is_static(v) for v in value.elems)
    if kind is StructValue:
        return all(is_static(v) for v in value.members.values())
    if kind is dict:
        return all(is_static(v) for v in (*value, *value.values()))
    if kind is slice:
        return is_static(value.start) and is_static(value.stop) and is_static(value.step)
    if kind is NDRange:
        return is_static(value.ranges)
    return kind is not Grouped or is_static(value.over)


def describe(value: Any) -> str:
    """A description of ``value`` for a message: a type name for values of run time."""
    if isinstance(value, Op):
        return "a variable" if value.type.is_ptr else value.type.name
    if isinstance(value, DynamicElement):
        return "a variable"
    if isinstance(value, Method):
        return f"the method {value.name}"
    if isinstance(value, NdarrayRef):
        return f"ndarray {value.name}"
    if isinstance(value, BufferViewValue):
        return f"BufferView {value.name}"
    if isinstance(value, ArrayValue):
        return f"array {value.name}"
    if isinstance(value, Text):
        return "a text with run-time values"
    if isinstance(value, ShapeRef):
        return f"shape of {value.array.name}"
    if isinstance(value, MatrixValue):
        kind = "vector" if len(value.shape) == 1 else "matrix"
        return f"a {kind} of shape {value.shape}"
    if isinstance(value, StructValue):
        name = value.type.name
        return "a struct" if name == "struct" else f"a struct {name}"
    if isinstance(value, RecordValue | InstanceValue):
        return f"{value.name}"
    return str(value.__class__)


class Defaults(Protocol):
    """The default types of numbers of a `FuncBuilder`."""

    default_ip: DataType
    default_fp: DataType


def dtype_in(fb: Defaults, value: Any) -> DataType:
    """The type of a number, or of the parts of a vector or matrix."""
    kind = value.__class__
    if kind is Op:
        t: Any = value.type
        return t.elem if t.is_ptr else t
    if kind is DynamicElement:
        return dtype_in(fb, value.parts[0])
    if kind is MatrixValue:
        if value.location is not None:
            return value.location.dtype
        return promote_all([dtype_in(fb, part) for part in value.elems])
    if kind is bool:
        return u1
    return fb.default_ip if isinstance(value, int) else fb.default_fp


def promote_all(types: Sequence[DataType]) -> DataType:
    """The type that values of all these types are promoted to."""
    found = types[0]
    for t in types[1:]:
        found = found if t is found else promote(found, t)
    return found


def tensor_name(fb: Defaults, value: Any, shape: tuple[int, ...] | None = None) -> str:
    """The name of the type of an operand in messages: ``[Tensor (2) f32]`` or ``f32``.

    shape: of the other operand, to which a scalar is broadcast.
    """
    if isinstance(value, MatrixValue):
        shape = value.shape
    elif not isinstance(value, Op | DynamicElement | int | float):
        return describe(value)
    name = dtype_in(fb, value).name
    return f"[Tensor ({', '.join(map(str, shape))}) {name}]" if shape else name
