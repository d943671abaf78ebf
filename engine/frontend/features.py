"""What a kernel is specialised by: one feature for each parameter of a call.

    scalar    the DataType it is passed as
    ndarray   `NdarrayFeature`
    matrix    the (resolved) MatrixType; struct: the (resolved) StructType
    template  the Python value itself; fields are known by their identity
    tensor    `NdarrayFeature`, a FieldHandle or StructFieldHandle, or None
    record    (a ``dataclasses.dataclass``) `RecordFeature`
    instance  (``self`` of a data-oriented class) `InstanceFeature`

Calls with equal features share one compiled kernel. `Leaf` says how the launch finds the value of
each parameter of the compiled function in the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..types import DataType, FieldHandle

__all__ = ["InstanceFeature", "Leaf", "NdarrayFeature", "RecordFeature", "ndarray_feature"]


class NdarrayFeature(NamedTuple):
    """What the code for an array argument depends on; its shape is known only at the launch.

    element_shape: of the vectors or matrices it holds. axes: the order of its axes in memory,
    outermost first; None is row-major.
    """

    dtype: DataType
    ndim: int
    needs_grad: bool = False
    element_shape: tuple[int, ...] = ()
    axes: tuple[int, ...] | None = None


_known: dict[tuple[Any, ...], NdarrayFeature] = {}


def ndarray_feature(
    dtype: DataType,
    ndim: int,
    needs_grad: bool = False,
    element_shape: tuple[int, ...] = (),
    axes: tuple[int, ...] | None = None,
) -> NdarrayFeature:
    """The one feature with these values: launches compare it with ``is``."""
    key = (dtype, ndim, needs_grad, element_shape, axes)
    found = _known.get(key)
    return found if found is not None else _known.setdefault(key, NdarrayFeature(*key))


class RecordFeature:
    """A ``dataclasses.dataclass`` argument: its class and the feature of each member.

    members: name -> feature. Compared by value.
    """

    __slots__ = ("_key", "cls", "members")

    def __init__(self, cls: type, members: Mapping[str, Any]) -> None:
        self.cls: Final = cls
        self.members: Final = dict(members)
        self._key: Final = (cls, tuple(self.members.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordFeature) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class InstanceFeature:
    """The object a method is called on, and the features of the arrays it holds.

    Its primitive members are compile-time values, so two objects never share a compiled kernel;
    with ``template_primitives=False`` those that the kernel uses are passed at each launch.
    members: path of an array or lifted number, such as ``("grid", "mass")``, -> feature.
    """

    __slots__ = ("_key", "instance", "members")

    def __init__(self, instance: Any, members: Mapping[tuple[str, ...], Any]) -> None:
        self.instance: Final = instance
        self.members: Final = dict(members)
        self._key: Final = (id(instance), tuple(self.members.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InstanceFeature) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Leaf(NamedTuple):
    """Where the value of one parameter of a compiled function comes from.

    arg: number of the argument, or -1 for a field. path: attributes to follow from there; the last
        may be ``"grad"``. part: for a vector, matrix or struct argument, which of its scalars (in
        the order of `types.flat_names`); all parts of one value are parameters in a row.
    type: of the whole value that ``part`` belongs to; None for other leaves.
    field: the field, for ``arg == -1``.
    """

    arg: int
    path: tuple[str, ...] = ()
    part: int = -1
    type: Any = None
    field: FieldHandle | None = None
