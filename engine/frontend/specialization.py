"""Specialization keys of a kernel: one for each parameter of a call.

    scalar    the DataType it is passed as
    ndarray   `NdarrayKey`
    matrix    the (resolved) MatrixType; struct: the (resolved) StructType
    template  the Python value itself; fields are known by their identity
    tensor    `NdarrayKey`, a FieldHandle or StructFieldHandle, or None
    record    (a ``dataclasses.dataclass``) `RecordKey`
    instance  (``self`` of a data-oriented class) `InstanceKey`

Calls with equal keys share one compiled kernel. `ParamBinding` says how the launch finds the
value of each parameter of the compiled function in the arguments of a call.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..named_tuple import NamedTuple
from ..types import DATA_ORIENTED, DataType, FieldHandle, TensorHandle

__all__ = [
    "READ_FLAGS", "InstanceKey", "NdarrayKey", "ParamBinding", "RecordKey", "Unusable", "Used",
    "ValueKey", "follow", "lifts", "ndarray_key", "number_class", "unwrapped",
]  # fmt: skip


READ_FLAGS: Final = "(marks)"
"""The last of a path to the read flags of an array or field; see `runtime.read_flags`. No
attribute."""


class NdarrayKey(NamedTuple):
    """The key of an array argument; its shape is known only at the launch.

    needs_grad, needs_dual: whether it has an array of gradients, of duals. element_shape: of the
    vectors or matrices it holds. axes: the order of its axes in memory, outermost first; None is
    row-major.
    """

    dtype: DataType
    ndim: int
    needs_grad: bool = False
    element_shape: tuple[int, ...] = ()
    axes: tuple[int, ...] | None = None
    needs_dual: bool = False

    def has(self, companion: str) -> bool:
        """True if it has the array called ``grad`` or ``dual``."""
        return self.needs_grad if companion == "grad" else companion == "dual" and self.needs_dual

    def of_grad(self) -> NdarrayKey:
        """The key of the array of gradients, and of that of duals."""
        return ndarray_key(self.dtype, self.ndim, False, self.element_shape, self.axes)


_known: dict[tuple[Any, ...], NdarrayKey] = {}


def ndarray_key(
    dtype: DataType,
    ndim: int,
    needs_grad: bool = False,
    element_shape: tuple[int, ...] = (),
    axes: tuple[int, ...] | None = None,
    needs_dual: bool = False,
) -> NdarrayKey:
    """The one key with these values: launches compare it with ``is``."""
    key = (dtype, ndim, needs_grad, element_shape, axes, needs_dual)
    found = _known.get(key)
    return found if found is not None else _known.setdefault(key, NdarrayKey(*key))


class RecordKey:
    """The key of a ``dataclasses.dataclass`` argument: its class and the key of each member.

    members: name -> key. Compared by value.
    """

    __slots__ = ("_key", "cls", "members")

    def __init__(self, cls: type, members: Mapping[str, Any]) -> None:
        self.cls: Final = cls
        self.members: Final = dict(members)
        self._key: Final = (cls, tuple(self.members.items()))

    def find(self, path: tuple[str, ...]) -> Any:
        """The key of the member that ``path`` leads to; None if there is none."""
        found: Any = self
        for name in path:
            if isinstance(found, RecordKey):
                found = found.members.get(name)
            elif isinstance(found, NdarrayKey) and found.has(name):
                found = found.of_grad()
            else:
                return None
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class InstanceKey:
    """The key of the object a method is called on.

    Its numbers are compile-time values, so two objects never share a compiled kernel; with
    ``template_primitives=False`` those that the kernel uses are passed at each launch. What the
    kernel depends on besides is found while it is compiled (`BuildResult.used`): ``key_of(value)``
    returns the key of a member. Compared by the identity of the object, which it does not keep
    alive. floats: paths to numbers that were floats at the first launch, and keep that type.
    """

    __slots__ = ("_id", "_instance", "floats", "key_of")

    def __init__(self, instance: Any, key_of: Callable[[Any], Any]) -> None:
        self._id: Final = id(instance)
        self.floats: frozenset[tuple[str, ...]] = frozenset()
        try:
            self._instance: Callable[[], Any] = weakref.ref(instance)
        except TypeError:  # a class with __slots__
            self._instance = lambda: instance
        self.key_of: Final = key_of

    @property
    def instance(self) -> Any:
        return self._instance()

    @property
    def reference(self) -> Callable[[], Any]:
        """A callable: the object, or None when it is gone; weak where the object allows it."""
        return self._instance

    def find(self, path: tuple[str, ...]) -> Any:
        """The key of the member that ``path`` leads to."""
        return self.key_of(follow(self.instance, path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InstanceKey) or self._id != other._id:
            return False
        return self.instance is other.instance  # an id may be used again

    def __hash__(self) -> int:
        return self._id


class ValueKey:
    """The key of a vector, matrix or struct as a template argument: its content.

    So are containers and arrays of NumPy that an object with ``template_primitives=False`` holds.

    value: a copy, which stays as it is. content: see `contents.content_of`.
    """

    __slots__ = ("content", "value")

    def __init__(self, value: Any, content: Any) -> None:
        self.value: Final = value
        self.content: Final = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueKey) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


def number_class(value: Any) -> type | None:
    """int, float or bool for a number, which may be one of NumPy; None for other values."""
    kind: Any = value.__class__
    if kind in (int, float, bool):
        return kind
    if isinstance(value, np.bool_):
        return bool
    if isinstance(value, np.integer):
        return int
    return float if isinstance(value, np.floating) else None


def lifts(owner: Any) -> bool:
    """True if the numbers of an object, and of those it holds, are read at each launch."""
    cls: Any = owner.__class__
    options = getattr(cls, DATA_ORIENTED, None)
    return bool(options) and not options.get("template_primitives", True)


class Unusable(NamedTuple):
    """The key of a member that is annotated with a type unknown to kernels."""

    annotation: str


def follow(value: Any, path: tuple[str, ...]) -> Any:
    """The member of ``value`` that ``path`` leads to; wrappers of tensors are looked into."""
    for name in path:
        value = unwrapped(getattr(value, name))
    return value


def unwrapped(value: Any) -> Any:
    """The field or array in the wrapper of a tensor; other values as they are."""
    if isinstance(value, TensorHandle):
        return value._unwrap()  # pyright: ignore[reportPrivateUsage]
    return value


class ParamBinding(NamedTuple):
    """The source of the value of one parameter of a compiled function.

    arg: number of the argument, or -1 for a field. path: attributes to follow from there; the last
        may be ``"grad"``, ``"dual"`` or `MARKS`. part: for a vector, matrix or struct argument,
        which of its scalars (in the order of `types.flat_names`); all parts of one value are
        parameters in a row.
    type: of the whole value that ``part`` belongs to; None for other bindings.
    field: the field, for ``arg == -1``.
    """

    arg: int
    path: tuple[str, ...] = ()
    part: int = -1
    type: Any = None
    field: FieldHandle | None = None


class Used(NamedTuple):
    """A member of an argument that the compiled code depends on, and its key."""

    arg: int
    path: tuple[str, ...]
    spec_key: Any


class Plan(NamedTuple):
    """The way a compiled kernel gets its parameters: all that a launch needs of the frontend.

    bindings: where the value of each parameter comes from. used: the members of
    arguments that the code depends on.
    """

    bindings: tuple[ParamBinding, ...] = ()
    used: tuple[Used, ...] = ()
