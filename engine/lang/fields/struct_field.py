"""Fields of structs: a field for each member, over the same axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ...types import StructFieldHandle, StructType
from ..values.struct import OWN_NAMES, Shadowing, Struct, entries_of
from .make import ScalarField
from .placed import Field
from .snode import SNode

__all__ = ["LiveStruct", "StructField"]


class LiveStruct(Struct):
    """An element of a struct field: its members are read from the field, and written there."""

    __slots__ = ("_key",)

    def __init__(self, field: StructField, key: Any) -> None:
        self._members = field.members
        self._type = field.struct_type
        object.__setattr__(self, "_key", key)

    def _read(self, name: str) -> Any:
        return self._members[name][self._key]

    def _write(self, name: str, value: Any) -> None:
        self._members[name][self._key] = value


class _ShadowingLiveStruct(Shadowing, LiveStruct):
    __slots__ = ()


class StructField(StructFieldHandle, Field):
    """A field of structs; made by ``Struct.field`` or ``.field`` of a struct type.

    Its members are fields: ``particles.pos``. An element that is read is a live struct: writing its
    members writes to the field.
    """

    def __init__(self, t: StructType, members: Mapping[str, Any], name: str = "") -> None:
        self.struct_type = t
        self.name = name
        self.layout: tuple[int, ...] | None = None
        self._members: Final[dict[str, Any]] = dict(members)
        self._companions: Final[dict[str, StructField]] = {}
        self._plain_names: Final = OWN_NAMES.isdisjoint(members)
        # A member called like a method ("parent", "fill") means the member.
        shadowing = [key for key in members if callable(getattr(type(self), key, None))]
        vars(self).update((key, members[key]) for key in shadowing)

    @property
    def members(self) -> dict[str, Any]:
        """The fields of the members by name."""
        return dict(self._members)

    field_dict = members

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return list(self._members)

    @property
    def struct_methods(self) -> dict[str, Any]:
        """The methods of the elements."""
        return dict(self.struct_type.methods)

    def get_member_field(self, key: str) -> Any:
        """The field of one member."""
        return self._members[key]

    def __getattr__(self, name: str) -> Any:
        # Only names that are no attribute come here; a member called like a property ("shape") has
        # get_member_field.
        members = self.__dict__.get("_members", {})
        if name in members:
            return members[name]
        raise AttributeError(f"{type(self).__name__} has no attribute or member {name!r}")

    def _get_field_members(self) -> list[ScalarField]:
        return [part for m in self._members.values() for part in m._get_field_members()]

    def _set_layout(self, order: tuple[int, ...]) -> None:
        self.layout = order
        for member in self._members.values():
            member._set_layout(order)

    def _first(self) -> Any:
        return next(iter(self._members.values()))

    @property
    def dtype(self) -> Any:
        """The data type of the first member."""
        return self._first().dtype

    @property
    def snode(self) -> SNode:
        """The node of the first member."""
        return self._first().snode

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes, those of every member."""
        return self._first().shape

    def is_placed(self) -> bool:
        """True if all members have a place in a tree."""
        return all(m.is_placed() for m in self._members.values())

    def has_grad(self) -> bool:
        """True if all members have memory for gradients."""
        return all(m.has_grad() for m in self._members.values())

    def has_dual(self) -> bool:
        """True if all members have memory for duals."""
        return all(m.has_dual() for m in self._members.values())

    def _companion(self, kind: str) -> StructField | None:
        found = self._companions.get(kind)
        if found is None:
            parts = {
                key: m._companion(kind) if isinstance(m, StructField) else getattr(m, kind)
                for key, m in self._members.items()
            }
            parts = {key: m for key, m in parts.items() if m is not None}
            if not parts:
                return None
            t = self.struct_type
            if len(parts) < len(self._members):
                t = StructType({k: self.struct_type.members[k] for k in parts}, t.methods, t.name)
            found = self._companions[kind] = StructField(
                t, parts, self.name and f"{self.name}.{kind}"
            )
        return found

    @property
    def grad(self) -> Any:
        """The gradients of the float members, None without any. Or the member of that name."""
        return self._members["grad"] if "grad" in self._members else self._companion("grad")

    @property
    def dual(self) -> Any:
        """The duals of the float members, None without any. Or the member of that name."""
        return self._members["dual"] if "dual" in self._members else self._companion("dual")

    def __getitem__(self, key: Any) -> Struct:
        first = self._first()
        while isinstance(first, StructField):
            first = first._first()
        first.grouped()
        first._where(key)  # pyright: ignore[reportPrivateUsage] - checks the indices
        kind = LiveStruct if self._plain_names else _ShadowingLiveStruct
        return kind(self, tuple(cast("list[Any]", key)) if isinstance(key, list) else key)

    def __setitem__(self, key: Any, value: Any) -> None:
        entries: Any = entries_of(value) if isinstance(value, Struct) else value
        if not isinstance(entries, Mapping):
            raise TypeError(f"an element of {self.struct_type!r} cannot be set to {value!r}")
        missing = [name for name in self._members if name not in entries]
        if missing:
            raise KeyError(missing[0])
        for name, member in self._members.items():
            member[key] = entries[name]

    def fill(self, val: Any) -> None:
        """Set each member of every element: to one number, or a mapping of their values."""
        for name, member in self._members.items():
            member.fill(val[name] if isinstance(val, Mapping) else val)

    def to_numpy(self, dtype: Any = None, *, copy: bool | None = True) -> Any:
        """A dictionary of the members' arrays."""
        return {k: m.to_numpy(dtype=dtype, copy=copy) for k, m in self._members.items()}

    def from_numpy(self, arr: Any) -> None:
        """Copy the members' arrays from a dictionary such as `to_numpy` returns."""
        for name, member in self._members.items():
            member.from_numpy(arr[name])

    def to_torch(self, device: Any = None, *, copy: bool | None = True) -> Any:
        """A dictionary of the members' tensors."""
        return {k: m.to_torch(device, copy=copy) for k, m in self._members.items()}

    def from_torch(self, arr: Any) -> None:
        """Copy the members' tensors from a dictionary such as `to_torch` returns."""
        for name, member in self._members.items():
            member.from_torch(arr[name])

    def _device(self) -> Any:
        return self._first()._device()

    def _by_index(self) -> Any:
        return self._strided_view()

    def _strided_view(self) -> Any:
        raise TypeError(
            "a field of structs is no array: take its members, field.member.to_dlpack()"
        )

    def copy_from(self, other: Any) -> None:
        """Take the elements of a struct field with the same members, converted."""
        if not isinstance(other, StructField) or other.keys != self.keys:
            raise TypeError(f"Cannot copy from {other!r}, which is no field of such structs")
        for name, member in self._members.items():
            member.copy_from(other.get_member_field(name))

    def __str__(self) -> str:
        if not self.is_placed():
            return "<Field: Definition of this field is incomplete>"
        return str(self.to_numpy())

    def __repr__(self) -> str:
        where = str(self.shape) if self.is_placed() else "not placed"
        return f"<qd.Struct.field {self.struct_type!r} {where}>"
